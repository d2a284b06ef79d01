//! What an agent leaves in its worktree and cannot be removed as usual stands in no other task's way.

use crate::landing::{tasks, with_agent};
use crate::task_common::{said, statuses};

#[test]
fn folders_too_deep_for_git_cost_no_other_task_anything() {
    let world = tasks(2);
    let script = "if [ $DESCARTES_TASK_ID = 1 ]; then
(i=0; while [ $i -lt 900 ]; do mkdir deep && cd -P deep || exit; i=$((i+1)); done)
elif [ -e deep ]; then echo met >> ../../../met; fi
echo x > work-$DESCARTES_TASK_ID";
    let flags = ["--parallel", "1", "--verify", "ls work-*"];
    let done = with_agent(&world, script, &flags);
    done.assert_code(0);
    assert_eq!(statuses(&world), "DD", "{}", said(&done));
    assert!(
        !world.state().join("met").exists(),
        "task 2 met what task 1 left"
    );
    let left = std::fs::read_dir(world.state().join("worktrees"));
    let left: Vec<_> = left.unwrap().flatten().map(|entry| entry.path()).collect();
    let slots = left.iter().filter(|dir| dir.join("slot-0").exists());
    assert_eq!(slots.count(), 0, "{left:?}");
}

#[test]
fn an_agent_that_deletes_its_own_branch_has_done_its_task_and_spoils_no_worktree() {
    let world = tasks(2);
    let script = "echo x > work-$DESCARTES_TASK_ID && git add -A && git commit -qm own
git update-ref -d $(git symbolic-ref HEAD)";
    let flags = ["--parallel", "1", "--verify", "ls work-*"];
    let done = with_agent(&world, script, &flags);
    done.assert_code(0);
    assert_eq!(statuses(&world), "DD", "{}", said(&done));
    let files = world.git(["ls-tree", "--name-only", "HEAD"]);
    for task in 1..=2 {
        assert!(files.contains(&format!("work-{task}")), "{files}");
    }
}

#[test]
fn an_agent_that_breaks_the_ref_of_its_branch_costs_no_other_task_anything() {
    let world = tasks(2);
    let script = "echo x > work-$DESCARTES_TASK_ID
if [ $DESCARTES_TASK_ID = 1 ]; then
echo garbage > $(git rev-parse --git-common-dir)/$(git symbolic-ref HEAD); fi";
    let flags = ["--parallel", "1", "--verify", "ls work-*"];
    let done = with_agent(&world, script, &flags);
    done.assert_code(6);
    assert_eq!(statuses(&world), "BD", "{}", said(&done));
}
