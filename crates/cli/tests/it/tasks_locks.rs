//! Lock files of git that lie in the way of a task loop.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::task_common::{WORKS, graph, left, repository, run, said, scud_project, start};

const SOON: Duration = descartes_testkit::PATIENCE;

fn one_task() -> World {
    scud_project(graph("1 | First | P | 1 | H", ""))
}

fn lock(world: &World, name: &str) -> PathBuf {
    let path = world.project().join(".git").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "").unwrap();
    path
}

fn landed(world: &World) -> bool {
    world.project().join("work-1").exists()
}

/// Starts descartes with its talk in a file, and waits until it says this.
fn until_said(world: &World, words: &[&str], text: &str) -> Child {
    let talk = std::fs::File::create(world.state().join("talk")).unwrap();
    let mut command = world.descartes(words);
    command
        .stdout(talk.try_clone().unwrap())
        .stderr(talk)
        .stdin(Stdio::null());
    let child = command.spawn().unwrap();
    eventually(text, SOON, || left(world, "talk").contains(text));
    child
}

#[test]
fn a_lock_in_the_users_checkout_is_named_and_waited_for_and_never_taken_away() {
    for name in ["index.lock", "HEAD.lock", "refs/heads/main.lock"] {
        let world = one_task();
        let lock = lock(&world, name);
        let agent = world.agent(WORKS);
        let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
        let mut host = until_said(&world, &words, "is in the way");
        assert!(lock.exists(), "{name}");
        assert!(!landed(&world), "{name}");
        let talk = left(&world, "talk");
        assert!(talk.contains(&format!("rm {}", lock.display())), "{talk}");
        std::fs::remove_file(&lock).unwrap();
        assert_eq!(host.wait().unwrap().code(), Some(0), "{name}: {talk}");
        assert!(landed(&world), "{name}");
        assert!(left(&world, "talk").contains("is gone: continuing"));
        assert_eq!(
            world
                .git(["status", "--porcelain", "--untracked-files=no"])
                .trim(),
            ""
        );
    }
}

#[test]
fn who_does_not_want_to_wait_for_a_lock_loses_nothing() {
    let world = one_task();
    let lock = lock(&world, "index.lock");
    let agent = world.agent(WORKS);
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let mut host = until_said(&world, &words, "is in the way");
    run(&world, &["loop", "cancel"]).assert_code(0);
    host.wait().unwrap();
    assert!(lock.exists());
    assert!(!landed(&world));
    let work = run(&world, &["work"]);
    assert!(said(&work).contains("descartes/auth"), "{work}");
    std::fs::remove_file(&lock).unwrap();
    let talk = left(&world, "talk");
    assert!(talk.contains("descartes/auth"), "{talk}");
    world.git(["merge", "--ff-only", "descartes/auth"]);
    assert!(landed(&world));
}

#[test]
fn locks_that_keep_nothing_from_being_done_keep_nothing_from_being_done() {
    let world = one_task();
    // Git itself would wait a second, again and again.
    world.git(["config", "core.packedRefsTimeout", "0"]);
    let locks = ["packed-refs.lock", "config.lock"].map(|name| lock(&world, name));
    let ended = start(&world, WORKS, &[]);
    ended.assert_code(0);
    assert!(landed(&world));
    assert!(locks.iter().all(|lock| lock.exists()));
    // Branches of finished work could not be removed, and that is said.
    let told = format!("rm {}", locks[0].display());
    assert!(said(&ended).contains(&told), "{ended}");
    assert!(!said(&ended).contains("config.lock"), "{ended}");
}

/// A roadmap whose host was killed while its first agent worked; what to type to go on.
fn killed_at_work(world: &World) -> Vec<String> {
    let script = "unless-file ../../../go touch ../../../begun\n\
        unless-file ../../../go hang\nwrite ${DESCARTES_TASK_ID}.txt x";
    let agent = world.agent(script);
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent].map(str::to_owned);
    let mut command = world.descartes(&words);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut host = command.spawn().unwrap();
    eventually("an agent works", SOON, || {
        world.state().join("begun").exists()
    });
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("its agent is gone", SOON, || world.processes().is_empty());
    std::fs::write(world.state().join("go"), "").unwrap();
    words.to_vec()
}

#[test]
fn a_git_that_outlived_its_host_keeps_its_lock_until_it_is_done() {
    let world = repository("ROADMAP.md", "- [ ] **a**: First\n");
    let words = killed_at_work(&world);
    let lock = lock(&world, "worktrees/slot-0/index.lock");
    let slot = std::fs::read_to_string(lock.with_file_name("gitdir")).unwrap();
    // As git does: writes its lock file to the end, then renames it.
    let script = "#!/bin/sh\ntouch \"$2\"; sleep 1\n\
        if test -e \"$1\"; then echo kept > \"$3\"; rm \"$1\"; else echo lost > \"$3\"; fi\n";
    let slow = world.program("git-slow", script);
    let (begun, told) = (world.state().join("slow"), world.state().join("told"));
    let mut orphan = std::process::Command::new(slow)
        .args([&lock, &begun, &told])
        .current_dir(PathBuf::from(slot.trim()).parent().unwrap())
        .spawn()
        .unwrap();
    eventually("it works", SOON, || begun.exists());
    let ended = world.run_within(world.descartes(&words), SOON);
    ended.assert_code(0);
    assert_eq!(left(&world, "told"), "kept\n", "{ended}");
    orphan.wait().unwrap();
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 1);
}

#[test]
fn a_torn_index_of_our_own_worktree_is_made_anew() {
    let world = repository("ROADMAP.md", "- [ ] **a**: First\n");
    let words = killed_at_work(&world);
    for tree in std::fs::read_dir(world.project().join(".git/worktrees")).unwrap() {
        let index = tree.unwrap().path().join("index");
        // Nothing is checked out yet where work comes together.
        if let Ok(index) = std::fs::File::options().write(true).open(index) {
            index.set_len(10).unwrap();
        }
    }
    let ended = world.run_within(world.descartes(&words), SOON);
    ended.assert_code(0);
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 1);
}

/// Git's folder of the worktree in which work is merged.
fn control_folder(world: &World) -> PathBuf {
    let trees = std::fs::read_dir(world.state().join("worktrees")).unwrap();
    let mut controls = trees.map(|tree| tree.unwrap().path().join("control"));
    controls.find(|control| control.is_dir()).unwrap()
}

#[test]
fn locks_of_our_own_refs_that_a_killed_git_left_are_taken_away() {
    let world = repository("ROADMAP.md", "- [ ] **a**: First\n- [ ] **b**: Second\n");
    let words = killed_at_work(&world);
    let refs = world.git(["for-each-ref", "--format=%(refname)"]);
    let mut ours: Vec<PathBuf> = refs
        .lines()
        .filter(|name| name.contains("descartes/"))
        .map(|name| lock(&world, &format!("{name}.lock")))
        .collect();
    assert!(ours.len() > 2, "{refs}");
    // As a git leaves it that was killed while it merged.
    let merging = control_folder(&world).join("ORIG_HEAD.lock");
    std::fs::write(&merging, "").unwrap();
    ours.push(merging);
    let ended = world.run_within(world.descartes(&words), SOON);
    ended.assert_code(0);
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 2);
    assert!(
        said(&ended).contains("the lock of a git process that was killed"),
        "{ended}"
    );
    assert!(ours.iter().all(|lock| !lock.exists()));
}

#[test]
fn an_agents_git_that_was_ended_with_it_does_not_cost_the_task() {
    let world = repository("ROADMAP.md", "- [ ] **a**: First\n");
    let script = "touch \"$(git rev-parse --git-dir)/index.lock\"; echo x > a.txt";
    world.program("careless", &format!("#!/bin/sh\n{script}\n"));
    let words = ["roadmap", "run", "ROADMAP.md", "--command", "careless"];
    run(&world, &words).assert_code(0);
    assert!(world.project().join("a.txt").exists());
}

#[test]
fn a_wave_in_place_waits_for_a_lock() {
    let world = one_task();
    let agent = world.agent(&format!("write .git/index.lock x ;; {WORKS}"));
    let flags = ["--scud-tag", "auth", "--in-place", "--command", &agent];
    let words = [&["loop", "start"], &flags[..]].concat();
    let mut host = until_said(&world, &words, "is in the way");
    let lock = world.project().join(".git/index.lock");
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(
        host.wait().unwrap().code(),
        Some(0),
        "{}",
        left(&world, "talk")
    );
    let log = world.git(["log", "-1", "--format=%s"]);
    assert_eq!(log.trim(), "feat(auth): complete wave 1");
}

#[test]
fn a_wave_that_a_lock_keeps_from_its_commit_is_committed_by_the_next_host() {
    let world = one_task();
    let script = format!("append ../ran x ;; write .git/index.lock x ;; {WORKS}");
    let agent = world.agent(&script);
    let flags = ["--scud-tag", "auth", "--in-place", "--command", &agent];
    let words = [&["loop", "start"], &flags[..]].concat();
    let mut host = until_said(&world, &words, "is in the way");
    // Who wants the loop to end is not kept waiting; nothing was decided about the wave.
    drop(run(&world, &["loop", "cancel"]));
    assert_eq!(host.wait().unwrap().code(), Some(65));
    let talk = left(&world, "talk");
    assert!(
        talk.contains("hint: then continue with: descartes loop resume"),
        "{talk}"
    );
    let lock = world.project().join(".git/index.lock");
    std::fs::remove_file(&lock).unwrap();
    run(&world, &["loop", "resume"]).assert_code(0);
    let log = world.git(["log", "-1", "--format=%s"]);
    assert_eq!(log.trim(), "feat(auth): complete wave 1");
    assert_eq!(
        std::fs::read_to_string(world.root().join("ran")).unwrap(),
        "x\n"
    );
}
