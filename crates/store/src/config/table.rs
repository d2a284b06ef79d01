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
                    /// Time limit for each gate [default: 30m]
                    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
                    verify_timeout: Option<Secs> = Never, not 0 => verify_timeout_secs;
                    /// What the agent prints, as <promise>TEXT</promise>, when it is done [default: COMPLETE]
                    #[arg(long, value_name = "TEXT", conflicts_with = "no_promise")]
                    completion_promise: Option<String> = Never;
                    /// Use no promise: the gates alone decide, or exit code 0 if there are none
                    #[arg(long)]
                    no_promise: bool = Never;
                    /// How the promise must appear in the output [default: tagged for understood agents and tasks of lists; else line]
                    #[arg(long, value_name = "HOW", value_parser = values::one_of::<PromiseMatch>())]
                    promise_match: Option<PromiseMatch> = Never;
                    /// Whether the first prompt tells the agent how to print it [default: on for understood agents and tasks; else off]
                    #[arg(long, value_name = "WHEN", value_parser = values::switch())]
                    promise_hint: Option<bool> = Never => promise_hint;
                    /// Time without output after the promise before the iteration is ended [default: 10s]
                    #[arg(long, value_name = "DUR", value_parser = values::duration)]
                    promise_grace: Option<Secs> = Never => promise_grace_secs;
                    /// What the agent prints, tagged the same way, when the task cannot be done [default: BLOCKED]
                    #[arg(long, value_name = "TEXT")]
                    abort_promise: Option<String> = Never => abort_promise;
                }
                /// What ends the loop before that.
                #[command(next_help_heading = "Limits")]
                LimitArgs {
                    /// Maximum number of iterations, or `unlimited` [default: 20]
                    #[arg(short, long, value_name = "N", value_parser = values::iterations)]
                    max_iterations: Option<IterationLimit> = Never, not 0 => max_iterations;
                    /// Time budget for the whole loop
                    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
                    max_duration: Option<Secs> = Never, not 0 => max_duration_secs;
                    /// Cost budget for the whole loop
                    #[arg(long, value_name = "USD", value_parser = values::usd)]
                    max_cost: Option<f64> = Never => max_cost_usd;
                    /// Token budget for the whole loop
                    #[arg(long, value_name = "N", value_parser = values::count)]
                    max_tokens: Option<u64> = Never => max_tokens;
                    /// Time limit for one iteration
                    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
                    timeout: Option<Secs> = Never, not 0 => iteration_timeout_secs;
                    /// Time without output or activity after which an iteration counts as hung and is ended [default: 30m]
                    #[arg(long, value_name = "DUR", value_parser = values::duration)]
                    idle_timeout: Option<Secs> = Never => idle_timeout_secs;
                    /// Failed iterations in a row that end the loop [default: 5]
                    #[arg(long, value_name = "N", value_parser = values::number)]
                    max_failures: Option<u32> = Never, not 0 => max_failures;
                    /// Iterations without progress before a nudge; twice as many end the loop; 0: off [default: depends on the backend]
                    #[arg(long, value_name = "N", value_parser = values::number)]
                    stall_after: Option<u32> = Never => stall_after;
                    /// Time between asking processes to end and killing them [default: 5s; less for some agents]
                    #[arg(long, value_name = "DUR", value_parser = values::duration)]
                    kill_grace: Option<Secs> = Never => kill_grace_secs;
                    /// Maximum log size of one iteration, or `unlimited` [default: 2GB]
                    #[arg(long, value_name = "SIZE", value_parser = values::size)]
                    max_log: Option<SizeLimit> = Never => max_log_bytes;
                    /// Maximum size of the snapshots kept for `loop diff` and `loop rewind`, or `unlimited` [default: 2GB]
                    #[arg(long, value_name = "SIZE", value_parser = values::size)]
                    max_snapshots: Option<SizeLimit> = Never => max_snapshot_bytes;
                }
                /// How the agent is started.
                #[command(next_help_heading = "Agent")]
                AgentArgs {
                    /// claude, codex, gemini, opencode, generic, or a profile [default: guessed]
                    #[arg(long, value_name = "NAME")]
                    backend: Option<String> = Always;
                    /// The model, passed with the backend's own flag
                    #[arg(long, value_name = "NAME")]
                    model: Option<String> = AsFlag => model;
                    /// What the agent may do without asking [default: agent]
                    #[arg(long, value_name = "WHAT", value_parser = values::one_of::<Permissions>())]
                    permissions: Option<Permissions> = Always => permissions;
                    /// An agent that takes over when those before it are limited or failing; repeatable
                    #[arg(long, value_name = "AGENT")]
                    fallback: Vec<String> = Always => fallback;
                    /// An environment variable for the agent only, never stored; without a value it is inherited,
                    /// which no process list shows; repeatable
                    #[arg(long, value_name = "K[=V]", value_parser = values::variable)]
                    env: Vec<Variable>;
                    /// How the prompt is passed to the agent [default: depends on the backend]
                    #[arg(long, value_name = "HOW", value_parser = values::one_of::<PromptMode>())]
                    prompt_mode: Option<PromptMode> = Never => backend.prompt_mode;
                }
                /// Where agents and gates may write, and what they may see.
                #[command(next_help_heading = "Sandbox")]
                SandboxArgs {
                    /// Confine agents and gates: writes only in the work tree, keys hidden; strict: also no network
                    /// but the provider's hosts [default: workspace where nobody checks the agent, as with --permissions
                    /// all, if it works here; else off]
                    #[arg(long, value_name = "LEVEL", value_parser = values::one_of::<SandboxLevel>())]
                    sandbox: Option<SandboxLevel> = Always => sandbox.level;
                    /// A file or folder that may also be written; repeatable
                    #[arg(long, value_name = "PATH")]
                    sandbox_write: Vec<PathBuf> = Always;
                    /// A file or folder that may be read though it would be hidden; repeatable
                    #[arg(long, value_name = "PATH")]
                    sandbox_read: Vec<PathBuf> = Always;
                    /// A file or folder that is also hidden; repeatable
                    #[arg(long, value_name = "PATH")]
                    sandbox_hide: Vec<PathBuf> = Never;
                    /// Whether gates run in the same sandbox, without the agent's logins [default: on]
                    #[arg(long, value_name = "WHEN", value_parser = values::switch())]
                    gate_sandbox: Option<bool> = Always => sandbox.gates;
                    /// Whether gates in a sandbox have the machine's network [default: on; off with --sandbox strict]
                    #[arg(long, value_name = "WHEN", value_parser = values::switch())]
                    gate_network: Option<bool> = Always => sandbox.gate_network;
                }
                /// What is added to the prompt.
                #[command(next_help_heading = "Prompt")]
                PromptArgs {
                    /// Give later iterations the bare prompt; only gate failures and your notes are added
                    #[arg(long, overrides_with = "iteration_context")]
                    fresh_context: bool = Never;
                    /// Tell later iterations which iteration they are (the default)
                    #[arg(long, overrides_with = "fresh_context")]
                    iteration_context: bool;
                    /// A file whose text is put before the prompt in every iteration; repeatable
                    #[arg(long, value_name = "FILE")]
                    spec_file: Vec<PathBuf> = OutsideProject;
                    /// Token budget for those files [default: 5000]
                    #[arg(long, value_name = "N", value_parser = values::number)]
                    max_spec_tokens: Option<u32> = Never => max_spec_tokens;
                }
                /// What is done in git.
                #[command(next_help_heading = "Git")]
                GitArgs {
                    /// Commit after each iteration; not with --scud-tag
                    #[arg(long)]
                    auto_commit: bool = Never => git.auto_commit;
                    /// Message for those commits [default: loop: iteration {iteration}]; not with --scud-tag
                    #[arg(long, value_name = "T")]
                    commit_template: Option<String> = Never => git.commit_template;
                    /// Create a branch and switch to it first
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
                    /// An implementation plan; each task's spec gets its section of the plan
                    #[arg(long, value_name = "FILE")]
                    plan: Option<PathBuf>;
                    /// Notes from an earlier run, for every task
                    #[arg(long, value_name = "FILE")]
                    handoff: Option<PathBuf>;
                    /// Maximum attempts at each task [default: 3]
                    #[arg(long, value_name = "N", value_parser = values::number)]
                    max_iterations_per_task: Option<u32> = Never, not 0 -> max_iterations_per_task;
                    /// Give a whole wave to one agent instead of a fresh agent to each task
                    #[arg(long)]
                    no_sub_agents: bool;
                    /// Land each task as its own commit instead of one commit per wave; with --in-place commit nothing
                    #[arg(long)]
                    no_auto_commit_waves: bool;
                    /// Start a task as soon as its dependencies are merged
                    #[arg(long)]
                    no_wave_barrier: bool;
                    /// Layout of a task's spec: a text or file with {task}, {plan}, {custom}, {verification}
                    #[arg(long, value_name = "TEXT|FILE")]
                    spec_template: Option<String> = OutsideProject;
                    /// Work in this checkout, one task at a time, instead of in worktrees
                    #[arg(long)]
                    in_place: bool = Never;
                    /// Number of tasks to run in parallel, each in its own worktree [default: 1; without N: 4]
                    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = BARE_PARALLEL, value_parser = values::number)]
                    parallel: Option<u32> = Never -> parallel;
                    /// Finished tasks to merge and verify together, at most; 1 merges each alone [default: 16]
                    #[arg(long, value_name = "N", value_parser = values::number)]
                    merge_batch: Option<u32> = Never, not 0 -> merge_batch;
                    /// Have workers on other machines make the attempts: the address of their engine, e.g. nats://HOST:4222 or nats://HOST:4222#POOL
                    #[arg(long, value_name = "URL")]
                    workers: Option<String> = Always -> workers;
                    /// Send work to workers and back through this repository instead of the engine (refs below refs/descartes/)
                    #[arg(long, value_name = "URL")]
                    git_remote: Option<String> = Always -> git_remote;
                    /// Accept the marks that others set on tasks while the loop runs
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
                sandbox_caches: Vec<String> = Always => sandbox.caches;
                wave_barrier: Option<bool> = Never -> wave_barrier;
                worktree_copy: Vec<String> = OutsideProject -> worktree_copy;
                worktree_setup: Option<String> = Always -> worktree_setup;
            }
            // Every entry a setting of its own.
            tables {
                agents = Always;
                prices = Never;
                source = Always;
            }
        }
    };
}
