//! The order of the page.

/// One section: measures that belong together.
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// How it was measured.
    pub how: &'static str,
    /// The measures, by the names of their rows' files.
    pub files: &'static [&'static str],
}

/// What costs users money comes first.
pub const SECTIONS: [Section; 17] = [
    Section {
        title: "False and missed completion",
        how: "A loop that stops too early leaves work undone; one that does not hear its agent pays for iterations that nobody needs. First the tools on the same agents, \
              then the labelled corpus: `falsely done` is an output without a claim that was taken for one. What is held out was written from the contract alone, by nobody who had the rules before him; \
              beside the detector stand the simple rules that loops are usually built on.",
        files: &["peers-false", "peers-missed", "corpus", "promise"],
    },
    Section {
        title: "Stopping",
        how: "From the request until every process of the loop is gone, with agents that go when asked and agents that do not. Recorded reason and exit code must be the true ones. \
              The floor is a kill of the same processes by hand. Beside other tools: an agent with a child and a child in a session of its own; Ctrl-C comes twice, 0.3 s apart, to the tool's process group, as from a terminal.",
        files: &["peers-stops", "stop"],
    },
    Section {
        title: "Orphans",
        how: "Eight shapes of agents that leave processes behind, and seven ways to end; survivors are counted two seconds later. Fork bombs are stopped while they grow.",
        files: &["orphans", "bombs"],
    },
    Section {
        title: "In a sandbox",
        how: "The same endings, kills, claims and outputs with agents in `workspace`: what holds without a sandbox holds in one; and what a run in it costs.",
        files: &["sandboxed", "sandbox"],
    },
    Section {
        title: "Crash recovery",
        how: "SIGKILL at random instants, at every write and in the middle of it; disks that are full, slow or read-only; files cut short and with single bits turned; machines that sleep and clocks that jump. \
              Then it is resumed: no finished iteration may be lost or repeated, no number used again, nothing begun at zero in silence.",
        files: &[
            "peers-recovery",
            "kills",
            "writes",
            "storage",
            "slow",
            "damage",
            "clocks",
        ],
    },
    Section {
        title: "Gate integrity",
        how: "Agents that would rather change the gate than the code; then agents, repositories and users that once lost work, fooled a gate, hung or leaked, each as a case of its own.",
        files: &["gates", "hostile"],
    },
    Section {
        title: "Stuck agents and limits",
        how: "Agents that do nothing must be called stuck after the same few iterations, agents that work never; a provider's limit counts nothing and is waited out to the second.",
        files: &["stuck"],
    },
    Section {
        title: "Strange input",
        how: "Prompts, sockets, races and crowds.",
        files: &["inputs"],
    },
    Section {
        title: "Real agents",
        how: "The agents' own command lines, as npm ships them, against a scripted model server: loops, stops in the middle of a tool call, providers that fail, and what watching them costs.",
        files: &["agents"],
    },
    Section {
        title: "Graphs of tasks",
        how: "Ten thousand tasks and more, schedules against a list schedule, hosts killed at random instants while tasks run in worktrees, and the real scud beside a running loop.",
        files: &[
            "task-scale",
            "task-schedule",
            "task-kills",
            "task-stops",
            "task-runs",
            "task-attempts",
            "landing-kills",
            "list-edits",
            "scud",
            "list-tools",
            "gh",
        ],
    },
    Section {
        title: "Merging finished work",
        how: "Proven work merged and gated together, beside the same work one by one; and what git costs a task from its preparation to its landing, beside the first version.",
        files: &["merge-queue", "git-calls"],
    },
    Section {
        title: "Many machines",
        how: "A real nats-server on one machine: first with simulated workers (hand-out, throughput, deaths, zombies, engines that are killed or lose their disk), then whole task loops with real ones.",
        files: &[
            "fleet-handout",
            "fleet-tasks",
            "fleet-killed",
            "fleet-zombies",
            "fleet-real-zombies",
            "fleet-suspended",
            "fleet-engine-killed",
            "fleet-leader-killed",
            "fleet-disk-emptied",
            "fleet-mirror",
            "fleet-commands",
            "fleet-makespan",
            "fleet-coordinator-killed",
            "fleet-rights",
        ],
    },
    Section {
        title: "Output",
        how: "Bytes in the logs against bytes sent, speed against a bare pump to the same disk, and memory.",
        files: &["output", "parse"],
    },
    Section {
        title: "Long histories",
        how: "What the next iteration costs after 100,000 of them.",
        files: &["history"],
    },
    Section {
        title: "Views",
        how: "How soon they show what happens, with long histories and many loops, and what they cost.",
        files: &[
            "views",
            "mcp",
            "window-clicks",
            "window-speed",
            "window-load",
        ],
    },
    Section {
        title: "Browser",
        how: "Pages of `descartes serve` by HTTP and in a real Chromium: many loops, long histories, huge outputs, and what open pages cost the loops.",
        files: &["web-list", "web-long", "web-screen", "web-streams"],
    },
    Section {
        title: "Overhead",
        how: "The gap between two agents by the agents' own stamps, which may be no longer than that of a plain bash loop in the same run; idle cost, start, size.",
        files: &["peers-gap", "gap", "idle"],
    },
];
