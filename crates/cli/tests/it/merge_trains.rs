//! Proven work that waits is merged and verified together, and nothing of it is lost or lands unproven.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::landing::{tasks, with_agent};
use crate::task_common::{kill_when, repository, roadmap, run, said, statuses};

const LONG: Duration = descartes_testkit::PATIENCE;

/// Where agents and gates of a test write what they do.
struct Log<'w>(&'w World);

impl Log<'_> {
    fn path(&self, name: &str) -> String {
        self.0.root().join(name).display().to_string()
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.0.root().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Gate runs on merged trees.
    fn gate_runs(&self) -> usize {
        self.lines("merged-gates").len()
    }

    /// How often the agent of each task ran.
    fn agent_runs(&self) -> BTreeMap<String, u32> {
        let mut runs = BTreeMap::new();
        for task in self.lines("agent-runs") {
            *runs.entry(task).or_insert(0) += 1;
        }
        runs
    }

    /// A gate that is green in every worktree of an agent. On a merged tree it waits until `count` of
    /// those runs are over, and then does this.
    fn gate(&self, count: u32, on_merged: &str) -> String {
        let (merged, slots) = (self.path("merged-gates"), self.path("slot-gates"));
        format!(
            "case $PWD in */merged*) echo x >> {merged}; \
             until [ $(wc -l < {slots}) -ge {count} ]; do sleep 0.05; done; {on_merged};; \
             *) echo x >> {slots};; esac"
        )
    }

    /// An agent that does this.
    fn agent(&self, does: &str) -> String {
        let agents = self.path("agent-runs");
        format!("echo $DESCARTES_TASK_ID >> {agents}; {does}")
    }
}

const WORKS: &str = "echo x > work-$DESCARTES_TASK_ID";

fn once_each(count: u32) -> BTreeMap<String, u32> {
    (1..=count).map(|task| (task.to_string(), 1)).collect()
}

#[test]
fn work_that_waits_is_verified_once_for_many_tasks() {
    for (batch, most) in [("16", 5), ("1", 8)] {
        let world = tasks(8);
        let log = Log(&world);
        let (agent, gate) = (log.agent(WORKS), log.gate(8, "true"));
        let flags = ["--verify", &gate, "--parallel", "8", "--merge-batch", batch];
        with_agent(&world, &agent, &flags).assert_code(0);
        assert_eq!(statuses(&world), "DDDDDDDD");
        assert_eq!(log.agent_runs(), once_each(8));
        let runs = log.gate_runs();
        assert!(runs <= most, "{runs} gate runs with a batch of {batch}");
        assert!(batch != "1" || runs == 8, "{runs} gate runs, each alone");
        let files = world.git(["ls-tree", "--name-only", "HEAD"]);
        assert_eq!(files.matches("work-").count(), 8, "{files}");
    }
}

#[test]
fn only_the_task_that_breaks_the_gate_goes_back_to_its_agent() {
    let world = tasks(7);
    let log = Log(&world);
    let agent = log.agent(
        "if [ $DESCARTES_TASK_ID = 4 ] && [ ! -e bad-4 ]; then echo x > bad-4; else rm -f bad-4; \
         echo x > work-$DESCARTES_TASK_ID; fi",
    );
    let gate = log.gate(7, "! ls bad-*");
    let flags = ["--verify", &gate, "--parallel", "7"];
    with_agent(&world, &agent, &flags).assert_code(0);
    let mut expected = once_each(7);
    expected.insert("4".to_owned(), 2);
    assert_eq!(log.agent_runs(), expected);
    assert_eq!(statuses(&world), "DDDDDDD");
    let files = world.git(["ls-tree", "--name-only", "HEAD"]);
    assert_eq!(files.matches("work-").count(), 7, "{files}");
    assert!(!files.contains("bad-"), "{files}");
}

#[test]
fn work_that_conflicts_with_a_member_waits_for_it_and_goes_back_alone() {
    let world = tasks(5);
    let log = Log(&world);
    let agent = log.agent(
        "case $DESCARTES_TASK_ID in 2|4) if grep -q '<<<<<<<' same 2>/dev/null; \
         then echo both > same; else echo $DESCARTES_TASK_ID > same; fi;; \
         *) echo x > work-$DESCARTES_TASK_ID;; esac",
    );
    let gate = log.gate(5, "true");
    let flags = ["--verify", &gate, "--parallel", "5"];
    with_agent(&world, &agent, &flags).assert_code(0);
    let runs = log.agent_runs();
    let of = |task: &str| runs[task];
    assert_eq!((of("1"), of("3"), of("5")), (1, 1, 1));
    assert_eq!(of("2") + of("4"), 3, "one of the two resolves the conflict");
    assert_eq!(world.git(["show", "HEAD:same"]), "both");
    assert_eq!(statuses(&world), "DDDDD");
}

#[test]
fn a_host_killed_while_a_train_is_verified_loses_nothing() {
    let world = tasks(6);
    let log = Log(&world);
    let agent = log.agent(WORKS);
    let go = log.path("go");
    let merged = log.path("merged-gates");
    // Every run but the first waits for us.
    let gate = log.gate(
        6,
        &format!("[ $(wc -l < {merged}) = 1 ] || until [ -e {go} ]; do sleep 0.05; done"),
    );
    let command = world.program("agent", &format!("#!/bin/sh\n{agent}\n"));
    let command = command.display().to_string();
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &command];
    let flags = ["--verify", &gate, "--parallel", "6"];
    let words = [&words[..], &flags].concat();
    kill_when(&world, &words, "a train is verified", || {
        log.gate_runs() >= 2
    });
    fs::write(&go, "").unwrap();
    run(&world, &["loop", "resume"]).assert_code(0);
    assert_eq!(log.agent_runs(), once_each(6), "no attempt is made again");
    assert_eq!(statuses(&world), "DDDDDD");
    let files = world.git(["ls-tree", "--name-only", "HEAD"]);
    assert_eq!(files.matches("work-").count(), 6, "{files}");
}

#[test]
fn a_pause_waits_for_work_that_is_being_stacked() {
    let world = tasks(4);
    let log = Log(&world);
    let [commits, go] = ["commits", "go"].map(|name| log.path(name));
    // The first commit of merged work is made alone; the hook holds those of the train.
    let hook = format!(
        "#!/bin/sh\ncase $PWD in */merged*) echo x >> {commits}; \
         [ $(wc -l < {commits}) -lt 2 ] || until [ -e {go} ]; do sleep 0.05; done;; esac\n"
    );
    let hook = world.write(".git/hooks/commit-msg", hook);
    fs::set_permissions(hook, PermissionsExt::from_mode(0o755)).unwrap();
    let (agent, gate) = (log.agent(WORKS), log.gate(4, "true"));
    let flags = ["--verify", &gate, "--parallel", "4", "--detach"];
    with_agent(&world, &agent, &flags).assert_code(0);
    eventually("work is being stacked", LONG, || {
        log.lines("commits").len() >= 2
    });
    let answer = run(&world, &["loop", "pause"]);
    answer.assert_code(0);
    assert!(answer.stdout().contains("accepted"), "{answer}");
    run(&world, &["loop", "unpause"]).assert_code(0);
    fs::write(go, "").unwrap();
    eventually("everything has landed", LONG, || {
        statuses(&world) == "DDDD" && world.processes().is_empty()
    });
}

#[test]
fn a_flaky_gate_sends_nobody_back_and_is_told() {
    let world = tasks(5);
    let log = Log(&world);
    let merged = log.path("merged-gates");
    // The second run on a merged tree fails, whatever is in it.
    let gate = log.gate(5, &format!("[ $(wc -l < {merged}) != 2 ]"));
    let flags = ["--verify", &gate, "--parallel", "5"];
    let done = with_agent(&world, &log.agent(WORKS), &flags);
    done.assert_code(0);
    assert_eq!(log.agent_runs(), once_each(5));
    assert_eq!(statuses(&world), "DDDDD");
    let said = said(&done);
    assert!(said.contains("a gate is flaky"), "{said}");
}

#[test]
fn a_task_whose_own_check_fails_on_the_merged_tree_goes_back_alone() {
    let mut rows = String::new();
    for task in 1..=6 {
        rows.push_str(&format!("- [ ] **t{task}**: Task {task}\n"));
        if task == 5 {
            rows.push_str("  - check: [ -e fine ]\n  - retries: 2\n");
        }
    }
    let world = repository("ROADMAP.md", format!("# Plan\n\n## Tasks\n\n{rows}"));
    let log = Log(&world);
    // At first git ignores the file that the check looks for: it is in the agent's worktree alone.
    let agent = log.agent(
        "echo x > work-$DESCARTES_TASK_ID; if [ $DESCARTES_TASK_ID = t5 ]; then echo x > fine; \
         if [ -e .gitignore ]; then rm .gitignore; else echo fine > .gitignore; fi; fi",
    );
    let gate = log.gate(6, "true");
    let flags = ["--verify", &gate, "--parallel", "6", "--merge-batch", "6"];
    roadmap(&world, &format!("sh {agent}"), &flags).assert_code(0);
    let runs = log.agent_runs();
    let twice = runs.iter().filter(|(_, runs)| **runs == 2);
    let twice: Vec<&String> = twice.map(|(task, _)| task).collect();
    assert_eq!(twice, ["t5"], "{runs:?}");
    assert_eq!(runs.values().sum::<u32>(), 7, "{runs:?}");
    let files = world.git(["ls-tree", "--name-only", "HEAD"]);
    assert!(
        files.contains("fine") && !files.contains(".gitignore"),
        "{files}"
    );
}
