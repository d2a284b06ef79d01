//! The one table of flags and settings.

/// Hands the table to the macro `$then`: the settings make keys and types of it, the command line
/// makes flags of it.
///
/// A row is `name: Type = Trust, not 0 => field;`. `Trust` says when a project's own file may set
/// it; without one it is a flag that no file has. `not 0` refuses 0 in files and environment; a flag
/// says it in its parser. `field` is where the value goes in the loop's config (`-> field`: in that
/// of its tasks); without one the command line puts it there itself. The type is as clap reads
/// it, and says what files may hold.
///
/// Comments and `#[arg]` are those of the flag. Its name is the key with dashes, the variable
/// `DESCARTES_` and the key.
#[macro_export]
macro_rules! settings_table {
    ($then:ident) => {
        $then! {
            flags {
                /// How the loop knows that the work is done.
                #[command(next_help_heading = "Done when")]
                DoneArgs {
                    /// A gate: a shell command that must pass before the work counts as done; repeatable
                    #[arg(long, value_name = "CMD")]
                    verify: Vec<String> = Always => verify;
                    /// Time limit of each gate [default: 30m]
                    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
                    verify_timeout: Option<Secs> = Never, not 0 => verify_timeout_secs;
                    /// What the agent prints, as <promise>TEXT</promise>, when it is done [default: COMPLETE]
                    #[arg(long, value_name = "TEXT", conflicts_with = "no_promise")]
                    completion_promise: Option<String> = Never;
                    /// No promise: the gates alone decide, or exit code 0 without gates
                    #[arg(long)]
                    no_promise: bool = Never;
                    /// How the promise must stand in the output [default: by backend]
                    #[arg(long, value_name = "HOW", value_parser = values::one_of::<PromiseMatch>())]
                    promise_match: Option<PromiseMatch> = Never;
                    /// Whether the first prompt tells the agent how to say it [default: by backend]
                    #[arg(long, value_name = "WHEN", value_parser = values::switch())]
                    promise_hint: Option<bool> = Never => promise_hint;
                    /// Silence after the promise that ends an iteration [default: 10s]
                    #[arg(long, value_name = "DUR", value_parser = values::duration)]
                    promise_grace: Option<Secs> = Never => promise_grace_secs;
                    /// What the agent prints, tagged alike, when it cannot be done [default: BLOCKED]
                    #[arg(long, value_name = "TEXT")]
                    abort_promise: Option<String> = Never => abort_promise;
                }
                /// What ends the loop before that.
                #[command(next_help_heading = "Limits")]
                LimitArgs {
                    /// Iterations, or `unlimited` [default: 20]
                    #[arg(short, long, value_name = "N", value_parser = values::iterations)]
                    max_iterations: Option<IterationLimit> = Never, not 0 => max_iterations;
                    /// Time budget of the whole loop
                    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
                    max_duration: Option<Secs> = Never, not 0 => max_duration_secs;
                    /// Cost budget of the whole loop
                    #[arg(long, value_name = "USD", value_parser = values::usd)]
                    max_cost: Option<f64> = Never => max_cost_usd;
                    /// Token budget of the whole loop
                    #[arg(long, value_name = "N", value_parser = values::count)]
                    max_tokens: Option<u64> = Never => max_tokens;
                    /// Time limit of one iteration
                    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
                    timeout: Option<Secs> = Never, not 0 => iteration_timeout_secs;
                    /// Silence without work that ends an iteration as hung [default: 30m]
                    #[arg(long, value_name = "DUR", value_parser = values::duration)]
                    idle_timeout: Option<Secs> = Never => idle_timeout_secs;
                    /// Failed iterations in a row that end the loop [default: 5]
                    #[arg(long, value_name = "N", value_parser = values::number)]
                    max_failures: Option<u32> = Never, not 0 => max_failures;
                    /// Iterations without progress before a nudge, twice as many end the loop; 0: off [default: by backend]
                    #[arg(long, value_name = "N", value_parser = values::number)]
                    stall_after: Option<u32> = Never => stall_after;
                    /// Between asking processes to end and killing them [default: 5s; less for some agents]
                    #[arg(long, value_name = "DUR", value_parser = values::duration)]
                    kill_grace: Option<Secs> = Never => kill_grace_secs;
                    /// Log kept of one iteration, or `unlimited` [default: 2GB]
                    #[arg(long, value_name = "SIZE", value_parser = values::size)]
                    max_log: Option<SizeLimit> = Never => max_log_bytes;
                    /// Snapshots of the work tree kept for `loop diff` and `loop rewind`, or `unlimited` [default: 2GB]
                    #[arg(long, value_name = "SIZE", value_parser = values::size)]
                    max_snapshots: Option<SizeLimit> = Never => max_snapshot_bytes;
                }
                /// How the agent is started.
                #[command(next_help_heading = "Agent")]
                AgentArgs {
                    /// claude, codex, gemini, opencode, generic, or a profile [default: guessed]
                    #[arg(long, value_name = "NAME")]
                    backend: Option<String> = Always;
                    /// The model, passed in the backend's own way
                    #[arg(long, value_name = "NAME")]
                    model: Option<String> = AsFlag => model;
                    /// What the agent may do without asking [default: agent]
                    #[arg(long, value_name = "WHAT", value_parser = values::one_of::<Permissions>())]
                    permissions: Option<Permissions> = Always => permissions;
                    /// An agent that takes over when those before it are limited or failing; repeatable
                    #[arg(long, value_name = "AGENT")]
                    fallback: Vec<String> = Always => fallback;
                    /// A variable for the agent alone, never written anywhere; without a value it is inherited, which
                    /// no list of processes shows; repeatable
                    #[arg(long, value_name = "K[=V]", value_parser = values::variable)]
                    env: Vec<Variable>;
                    /// How the prompt reaches the agent [default: by backend]
                    #[arg(long, value_name = "HOW", value_parser = values::one_of::<PromptMode>())]
                    prompt_mode: Option<PromptMode> = Never => backend.prompt_mode;
                }
                /// What is added to the prompt.
                #[command(next_help_heading = "Prompt")]
                PromptArgs {
                    /// Later iterations get the bare prompt; only gate failures and your notes are added
                    #[arg(long, overrides_with = "iteration_context")]
                    fresh_context: bool = Never;
                    /// Later iterations are told where they stand (the default)
                    #[arg(long, overrides_with = "fresh_context")]
                    iteration_context: bool;
                    /// A file whose text stands before the prompt at every iteration; repeatable
                    #[arg(long, value_name = "FILE")]
                    spec_file: Vec<PathBuf> = OutsideProject;
                    /// Budget of those files, in tokens [default: 5000]
                    #[arg(long, value_name = "N", value_parser = values::number)]
                    max_spec_tokens: Option<u32> = Never => max_spec_tokens;
                }
                /// What is done in git.
                #[command(next_help_heading = "Git")]
                GitArgs {
                    /// Commit after each iteration; not with --scud-tag
                    #[arg(long)]
                    auto_commit: bool = Never => git.auto_commit;
                    /// Message of those commits [default: loop: iteration {iteration}]; not with --scud-tag
                    #[arg(long, value_name = "T")]
                    commit_template: Option<String> = Never => git.commit_template;
                    /// Make and switch to a branch first
                    #[arg(long)]
                    branch: bool = Never => git.create_branch;
                    /// Name of that branch [default: loop/{timestamp}]
                    #[arg(long, value_name = "T")]
                    branch_template: Option<String> = Never => git.branch_template;
                    /// Tag descartes/{name}/{iteration} when all gates are green; not with --scud-tag
                    #[arg(long)]
                    tag_green: bool = Never => git.tag_green;
                }
                /// How a graph of tasks is run.
                #[command(next_help_heading = "Tasks")]
                GraphArgs {
                    /// An implementation plan: a task's section of it goes into its spec
                    #[arg(long, value_name = "FILE")]
                    plan: Option<PathBuf>;
                    /// Notes of an earlier run, for every task
                    #[arg(long, value_name = "FILE")]
                    handoff: Option<PathBuf>;
                    /// Attempts at a task [default: 3]
                    #[arg(long, value_name = "N", value_parser = values::number)]
                    max_iterations_per_task: Option<u32> = Never, not 0 -> max_iterations_per_task;
                    /// Give one agent a whole wave, instead of a fresh one to each task
                    #[arg(long)]
                    no_sub_agents: bool;
                    /// Land each task as a commit of its own, and not one a wave; with --in-place commit nothing
                    #[arg(long)]
                    no_auto_commit_waves: bool;
                    /// Start a task as soon as what it depends on is merged
                    #[arg(long)]
                    no_wave_barrier: bool;
                    /// How a task is told: a text or file with {task}, {plan}, {custom}, {verification}
                    #[arg(long, value_name = "TEXT|FILE")]
                    spec_template: Option<String> = OutsideProject;
                    /// Work in this tree, one task at a time, instead of in worktrees
                    #[arg(long)]
                    in_place: bool = Never;
                    /// Tasks at the same time, each in a worktree of its own [default: 1, bare: 4]
                    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = BARE_PARALLEL, value_parser = values::number)]
                    parallel: Option<u32> = Never -> parallel;
                    /// Count tasks that somebody else marks while the loop runs as the mark says
                    #[arg(long)]
                    trust_marks: bool;
                }
            }
            // Without a flag of the same name.
            keys {
                auto_commit_waves: Option<bool> = Never -> auto_commit_waves;
                default_agent: Option<String> = Always;
                gate_caches: Vec<String> = Always -> gate_caches;
                max_logs: Option<SizeLimit> = Never;
                max_total_iterations: Option<IterationLimit> = Never, not 0;
                notify: Vec<NotifyWay> = Never;
                on_event: Vec<HookTarget> = Always;
                on_event_timeout: Option<Secs> = Never, not 0;
                pass_env: Vec<String> = Always;
                prompt_file: Option<PathBuf> = OutsideProject;
                require_xml_format: Option<bool> = Never;
                wave_barrier: Option<bool> = Never -> wave_barrier;
                worktree_copy: Vec<String> = OutsideProject -> worktree_copy;
                worktree_setup: Option<String> = Always -> worktree_setup;
            }
            // Every entry a setting of its own.
            tables {
                agents = Always;
                prices = Never;
            }
        }
    };
}
