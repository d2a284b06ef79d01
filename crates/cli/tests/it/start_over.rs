//! A loop that is over does not block its folder, and the same work never gets fresh budgets by
//! being started again.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use descartes_store::host::this_host;
use descartes_store::layout::StateRoot;
use descartes_store::lock::{Holder, NameLock, StateLock};
use descartes_testkit::{World, eventually};
use serde_json::Value;

use crate::common::{CLAIMS, descartes, loops, start, start_command, state};

const LONG: Duration = descartes_testkit::PATIENCE;

/// State files that were set aside.
fn kept(world: &World) -> Vec<Value> {
    let files = std::fs::read_dir(world.path(".descartes")).unwrap();
    let mut names: Vec<String> = files
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("loop-state.json.2"))
        .collect();
    names.sort();
    let read = |name: String| world.read(format!(".descartes/{name}"));
    names
        .into_iter()
        .map(|name| serde_json::from_str(&read(name)).unwrap())
        .collect()
}

fn id(world: &World) -> String {
    state(world)["loop_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_done_loop_makes_room_for_the_same_again_in_a_short_line() {
    let world = World::in_memory();
    start(&world, CLAIMS, &[]).assert_code(0);
    let first = id(&world);
    let again = start(&world, CLAIMS, &[]);
    again.assert_code(0);
    let said = again.stderr();
    let line = said.lines().find(|line| line.contains("is kept as"));
    let line = line.expect(&said);
    let file = "note: the loop here before was done; its state file is kept as loop-state.json.2";
    assert!(line.starts_with(file) && line.len() < 120, "{line}");
    assert!(
        !line.contains("resume"),
        "there is nothing to go on with: {line}"
    );
    assert_eq!(kept(&world)[0]["loop_id"], first.as_str());
    // It is there to be looked at.
    let back = descartes(&world, &["loop", "resume", &first]);
    back.assert_code(0);
    assert!(back.stderr().contains("already done"), "{back}");
    assert_ne!(
        id(&world),
        first,
        "nothing was put in the place of the newer one"
    );
    assert_eq!(kept(&world).len(), 1);
    // And detached it is said as well.
    let detached = start(&world, CLAIMS, &["--detach"]);
    detached.assert_code(0);
    assert!(detached.stderr().contains("is kept as"), "{detached}");
    eventually("its end", LONG, || state(&world)["completed"] == true);
}

#[test]
fn the_host_of_an_ended_loop_is_waited_for() {
    let world = World::in_memory();
    start(&world, CLAIMS, &[]).assert_code(0);
    // As a host that has told its end and is still putting its things away.
    let holder = Holder {
        loop_id: id(&world),
        since: jiff::Timestamp::now(),
        host: this_host("0"),
    };
    let (root, file) = (
        StateRoot::at(world.state()),
        world.path(".descartes/loop-state.json"),
    );
    let lock = StateLock::acquire(&root, &file, &holder).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            drop(lock);
        });
        start(&world, CLAIMS, &[]).assert_code(0);
    });
}

#[test]
fn a_cancelled_loop_makes_room_and_can_be_taken_up_again() {
    let world = World::in_memory();
    let script = "@1 touch began\n@1 wait-file never\n@2- promise";
    start(&world, script, &["--detach"]).assert_code(0);
    eventually("the agent is at work", LONG, || world.has("began"));
    let first = id(&world);
    descartes(&world, &["loop", "cancel", "--now"]).assert_code(0);
    let again = start(&world, CLAIMS, &[]);
    again.assert_code(0);
    let back = format!("return to it with `descartes loop resume {first}`");
    assert!(again.stderr().contains(&back), "{again}");
    assert_ne!(id(&world), first);
    world.write("never", "");
    let back = descartes(&world, &["loop", "resume", &first]);
    back.assert_code(0);
    assert_eq!(id(&world), first);
}

#[test]
fn the_same_prompt_after_a_limit_is_refused_with_words_that_work() {
    let world = World::in_memory();
    start(&world, "print hm", &["-m", "2"]).assert_code(2);
    let first = id(&world);
    for flags in [
        &["-m", "2"][..],
        &["-m", "9", "--detach"],
        &["--verify", "true"],
    ] {
        let refused = start(&world, CLAIMS, flags);
        refused.assert_code(65);
        let said = refused.stderr();
        let way = format!("`descartes loop resume {first} --max-iterations 4`");
        assert!(said.contains(&way) && said.contains("--force"), "{refused}");
        assert_eq!(loops(&world).len(), 1);
        assert_eq!(id(&world), first);
    }
    let typed = ["loop", "resume", &first, "--max-iterations", "4"];
    descartes(&world, &typed).assert_code(2);
    assert_eq!(state(&world)["iteration"], 4);
    start(&world, CLAIMS, &["--force"]).assert_code(0);
}

#[test]
fn the_same_prompt_file_is_the_same_work_however_it_reads_now() {
    let world = World::in_memory();
    world.write("PROMPT.md", "one");
    start(
        &world,
        "print hm",
        &["-m", "1", "--prompt-file", "PROMPT.md"],
    )
    .assert_code(2);
    world.write("PROMPT.md", "two");
    let again = ["-m", "1", "--prompt-file", "./PROMPT.md"];
    start(&world, CLAIMS, &again).assert_code(65);
    world.write("OTHER.md", "one");
    start(&world, CLAIMS, &["--prompt-file", "OTHER.md"]).assert_code(0);
}

#[test]
fn another_prompt_starts_over_a_loop_that_ended_at_its_limit() {
    let world = World::in_memory();
    start(&world, "print hm", &["-m", "1", "-p", "one"]).assert_code(2);
    let first = id(&world);
    let other = start(&world, CLAIMS, &["-p", "two"]);
    other.assert_code(0);
    assert!(
        other.stderr().contains(&format!("loop resume {first}")),
        "{other}"
    );
    assert_eq!(kept(&world).len(), 1);
}

#[test]
fn an_interrupted_loop_is_not_started_over_whatever_the_prompt() {
    let world = World::in_memory();
    let run = start_command(&world, "touch began\nwait-file never", &["-p", "one"]);
    let mut run = { run }
        .stdout(File::create(world.root().join("out")).unwrap())
        .spawn()
        .unwrap();
    eventually("the agent is at work", LONG, || world.has("began"));
    run.kill().unwrap();
    run.wait().unwrap();
    let refused = start(&world, CLAIMS, &["-p", "two"]);
    refused.assert_code(65);
    assert!(refused.stderr().contains("was interrupted"), "{refused}");
    let way = format!("descartes loop resume {}", id(&world));
    assert!(refused.stderr().contains(&way), "{refused}");
}

/// The file lies in the agent's reach, and so would be fresh budgets.
#[test]
fn a_state_file_that_claims_to_be_cancelled_is_not_believed() {
    for (from, to) in [
        ("\"max_iterations_reached\"", "\"user_cancelled\""),
        ("\"journal\"", "\"no_journal\""),
    ] {
        let world = World::in_memory();
        start(&world, "print hm", &["-m", "1"]).assert_code(2);
        let text = world.read(".descartes/loop-state.json");
        let text = text.replace("\"max_iterations_reached\"", "\"user_cancelled\"");
        assert!(to == "\"user_cancelled\"" || text.contains(from));
        world.write(".descartes/loop-state.json", text.replace(from, to));
        let refused = start(&world, CLAIMS, &[]);
        refused.assert_code(65);
        assert!(
            refused.stderr().contains("has already ended this work"),
            "{refused}"
        );
    }
}

/// A start that is held up behind its first look at the state file looks again once it has the lock.
#[test]
fn what_another_loop_left_meanwhile_is_seen_under_the_lock() {
    let world = World::in_memory();
    // The name is claimed behind the first look, and before the lock is taken.
    let root = StateRoot::at(world.state());
    let claim = NameLock::acquire(&root, "slow", LONG).unwrap();
    let claim = claim.expect("nobody else claims it");
    let mut slow = start_command(&world, CLAIMS, &["--name", "slow"]);
    let err = world.root().join("slow.err");
    slow.stderr(File::create(&err).unwrap());
    slow.stdout(File::create(world.root().join("slow.out")).unwrap());
    let mut slow = slow.spawn().unwrap();
    let lock = root.lock_for_name("slow");
    eventually("it waits for the name", LONG, || has_open(slow.id(), &lock));
    start(&world, "print hm", &["-m", "1"]).assert_code(2);
    let first = id(&world);
    drop(claim);
    let ended = slow.wait().unwrap();
    let said = std::fs::read_to_string(&err).unwrap();
    assert_eq!(ended.code(), Some(65), "{said}");
    assert!(said.contains("has already ended this work"), "{said}");
    assert_eq!(id(&world), first, "nothing was put in its place");
}

fn has_open(pid: u32, path: &Path) -> bool {
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let mut links = fds.into_iter().flatten().flatten();
    links.any(|fd| std::fs::read_link(fd.path()).is_ok_and(|link| link == path))
}

#[test]
fn a_loop_whose_agent_never_got_going_is_no_reason_to_refuse_the_same_again() {
    let world = World::in_memory();
    let agent = world.program("agent", "#!/bin/sh\nexec sh ./real.sh\n");
    let agent = agent.display().to_string();
    let words = ["loop", "start", "--prompt", "go", "--command", &agent];
    let few = [&words[..], &["--max-failures", "2"]].concat();
    descartes(&world, &few).assert_code(7);
    world.write("real.sh", "echo '<promise>COMPLETE</promise>'\n");
    descartes(&world, &words).assert_code(0);
    assert_eq!(kept(&world).len(), 1);
}
