//! What agents put into git's list of stashes, which all worktrees share, is neither lost nor mixed.

use crate::landing::{tasks, with_agent};
use crate::task_common::{said, statuses};

#[test]
fn a_stash_that_was_left_goes_back_to_its_agent() {
    let world = tasks(1);
    let script = "if git stash list | grep -q auth/1; then git stash pop -q; else
echo x > work; git add work; git stash -q; echo y > other; fi";
    let done = with_agent(&world, script, &["--verify", "test -e other"]);
    done.assert_code(0);
    assert!(said(&done).contains("was left in the stash"), "{done}");
    assert_eq!(world.git(["show", "HEAD:work"]), "x");
    assert_eq!(world.git(["stash", "list"]), "");
}

#[test]
fn a_stash_of_an_attempt_that_was_red_is_told_to_the_next() {
    let world = tasks(1);
    let script = "if [ $DESCARTES_ITERATION = 1 ]; then echo x > work; git add work; git stash -q
else for last; do :; done; echo \"$last\" > ../../../prompt; git stash pop -q; fi";
    let done = with_agent(&world, script, &["--verify", "test -e work"]);
    done.assert_code(0);
    let prompt = std::fs::read_to_string(world.state().join("prompt")).unwrap_or_default();
    assert!(
        prompt.contains("STASH: work was left in the stash"),
        "{prompt}{done}"
    );
    assert_eq!(world.git(["show", "HEAD:work"]), "x");
}

#[test]
fn a_stash_that_nobody_took_back_is_kept_and_named_and_the_users_are_left_alone() {
    let world = tasks(1);
    world.write("mine", "old");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "mine"]);
    world.write("mine", "new");
    world.git(["stash", "--quiet"]);
    let before = world.git(["rev-parse", "refs/stash"]);
    let script =
        "if [ $DESCARTES_ITERATION = 1 ]; then echo x > work; git add work; git stash -q; fi
echo $DESCARTES_ITERATION > other";
    let done = with_agent(&world, script, &["--verify", "true"]);
    done.assert_code(6);
    assert_eq!(statuses(&world), "B");
    let kept = world.git([
        "for-each-ref",
        "--format=%(refname:short)",
        "refs/heads/descartes-kept",
    ]);
    assert!(
        !kept.is_empty() && said(&done).contains(&kept),
        "{kept}: {done}"
    );
    world.git(["stash", "apply", "--quiet", &kept]);
    assert_eq!(world.read("work"), "x\n");
    let list = world.git(["log", "-g", "--format=%H", "refs/stash"]);
    assert_eq!(list.lines().last(), Some(before.trim()), "{list}");
}

/// Two agents stash at the same time, and each takes what is on top: the other's.
#[test]
fn stashes_that_were_mixed_up_are_noticed_and_set_right() {
    let world = tasks(2);
    // The first puts its own there, the second takes it. That it was there can only be seen while it
    // is; that it was taken is known once it is kept.
    let script = "here=../../..; other=$((3 - $DESCARTES_TASK_ID))
await() { while [ ! -e $here/$1 ]; do sleep 0.05; done; }
kept() { until git for-each-ref refs/descartes/auth/stash | grep -q .; do sleep 0.05; done; }
if [ $DESCARTES_ITERATION = 1 ]; then
  if [ $DESCARTES_TASK_ID = 1 ]; then
    echo x > work-1; git add work-1; git stash -q; sleep 4; touch $here/put; await taken; echo y > rest-1
  else await put; git stash pop -q; kept; touch $here/taken; echo z > work-2; fi
elif [ $DESCARTES_TASK_ID = 1 ]; then
  for last; do :; done; echo \"$last\" > $here/told-1
  git stash apply -q $(echo \"$last\" | grep -o 'git stash apply [0-9a-f]*' | head -1 | cut -d' ' -f4)
else for last; do :; done; echo \"$last\" > $here/told-2; git rm -qf work-1; fi";
    let gate = "test -e rest-1 -o -e work-2";
    let done = with_agent(&world, script, &["--verify", gate, "--parallel", "2"]);
    done.assert_code(0);
    let words = said(&done);
    assert!(words.contains("took a stash that was made on"), "{words}");
    let told = |n: u32| std::fs::read_to_string(world.state().join(format!("told-{n}")));
    assert!(told(1).unwrap().contains("took your stash"), "{done}");
    assert!(told(2).unwrap().contains("was not yours"), "{done}");
    assert_eq!(world.git(["show", "HEAD:work-1"]), "x");
    assert_eq!(world.git(["show", "HEAD:work-2"]), "z");
    let refs = world.git([
        "for-each-ref",
        "refs/descartes",
        "refs/heads/descartes-kept",
    ]);
    assert_eq!(refs, "", "{done}");
}
