//! The sandbox that nobody asked for: agents that nobody checks are confined where the machine can.

use descartes_testkit::World;
use descartes_testkit::world::Finished;
use serde_json::Value;

use crate::common::{events, state};
use crate::sandbox::{has_bwrap, world};
use crate::task_common::run;

const ALL: [&str; 2] = ["--permissions", "all"];
const AGENT: [&str; 6] = ["loop", "start", "--command", "agent", "--prompt", "go"];
/// Tries to write outside of its work tree, and says so.
const STEALS: &str = "echo stolen >> ~/.bashrc; touch done.txt; echo COMPLETE";

#[track_caller]
fn started(world: &World, flags: &[&str]) -> Finished {
    run(world, &[&AGENT[..], flags].concat())
}

fn bashrc(world: &World) -> String {
    std::fs::read_to_string(world.home().join(".bashrc")).unwrap()
}

fn status(world: &World) -> Value {
    let told = run(world, &["loop", "status", "--json"]).stdout();
    serde_json::from_str(&told).unwrap()
}

#[test]
fn an_agent_that_may_do_everything_is_confined_and_every_view_says_why() {
    if !has_bwrap() {
        return;
    }
    let world = world(STEALS);
    let ended = started(&world, &ALL);
    ended.assert_code(0);
    let said = ended.stdout() + &ended.stderr();
    assert!(said.contains("sandbox workspace (default)"), "{said}");
    assert_eq!(bashrc(&world), "# mine\n");
    let told = status(&world);
    assert_eq!(told["sandbox_level"], "workspace");
    assert_eq!(told["sandbox_why"], "the default with --permissions all");
    let text = run(&world, &["loop", "status"]).stdout();
    assert!(
        text.contains("the default with --permissions all"),
        "{text}"
    );
    let page = run(&world, &["report", "--output", "-"]).stdout();
    assert!(
        page.contains("the default with --permissions all"),
        "{page}"
    );
}

#[test]
fn a_flag_of_the_agents_own_that_skips_its_checks_counts_and_one_that_grants_edits_does_not() {
    if !has_bwrap() {
        return;
    }
    let message = r#"{"type":"result","subtype":"success","is_error":false,"result":"<promise>COMPLETE</promise>"}"#;
    for (command, level, why) in [
        (
            "claude --dangerously-skip-permissions",
            "workspace",
            "the default for an agent that skips its own checks",
        ),
        ("claude --permission-mode acceptEdits", "off", ""),
    ] {
        let world = world("");
        world.program(
            "claude",
            &format!("#!/bin/sh\necho stolen >> ~/.bashrc\necho '{message}'\n"),
        );
        let words = ["loop", "start", "--command", command, "--prompt", "go"];
        run(&world, &words).assert_code(0);
        let told = status(&world);
        assert_eq!(told["sandbox_level"], level, "{command}");
        assert_eq!(told["sandbox_why"].as_str().unwrap_or(""), why, "{command}");
        assert_eq!(bashrc(&world).contains("stolen"), level == "off");
    }
}

#[test]
fn other_commands_are_not_confined_unless_somebody_asks() {
    let world = world(STEALS);
    let ended = started(&world, &[]);
    ended.assert_code(0);
    assert!(ended.stdout().contains("sandbox off"), "{ended}");
    assert!(bashrc(&world).contains("stolen"));
    assert_eq!(status(&world)["sandbox_level"], "off");
    assert_eq!(status(&world)["sandbox_why"], Value::Null);
    let off = [&ALL[..], &["--sandbox", "off", "--force"]].concat();
    let ended = started(&world, &off);
    ended.assert_code(0);
    assert!(
        ended.stdout().contains("sandbox off (asked for)"),
        "{ended}"
    );
    assert_eq!(status(&world)["sandbox_why"], "asked for");
}

#[test]
fn a_loop_that_is_resumed_stays_in_its_sandbox_unless_a_person_changes_it() {
    if !has_bwrap() {
        return;
    }
    let world = world("echo stolen >> ~/.bashrc; echo working");
    started(&world, &[&ALL[..], &["-m", "1"]].concat()).assert_code(2);
    let resumed = |flags: &[&str]| run(&world, &[&["loop", "resume"][..], flags].concat());
    resumed(&["-m", "2"]).assert_code(2);
    assert_eq!(bashrc(&world), "# mine\n");
    assert_eq!(status(&world)["sandbox_level"], "workspace");
    let loosened = resumed(&["-m", "3", "--sandbox", "off"]);
    loosened.assert_code(2);
    assert!(bashrc(&world).contains("stolen"));
    assert_eq!(status(&world)["sandbox_why"], "asked for");
    let change = &events(&world, "config_changed")[1];
    assert_eq!(change["change"]["sandbox"], "off", "{change}");
    resumed(&["-m", "4", "--sandbox", "strict"]).assert_code(2);
    assert_eq!(state(&world)["config"]["sandbox"]["level"], "strict");
    let levels: Vec<Value> = events(&world, "sandbox_started")
        .iter()
        .map(|event| event["level"].clone())
        .collect();
    assert_eq!(levels, ["workspace", "strict"]);
}

#[test]
fn rights_that_are_given_later_bring_the_sandbox_along() {
    if !has_bwrap() {
        return;
    }
    let world = world("echo working");
    started(&world, &["-m", "1"]).assert_code(2);
    assert_eq!(status(&world)["sandbox_level"], "off");
    let words = ["loop", "resume", "-m", "2", "--permissions", "all"];
    run(&world, &words).assert_code(2);
    let told = status(&world);
    assert_eq!(told["sandbox_why"], "the default with --permissions all");
    assert_eq!(events(&world, "sandbox_started").len(), 1);
}

#[test]
fn where_the_default_cannot_be_it_is_off_with_one_warning_and_what_is_asked_for_is_refused() {
    let world = world("touch done.txt; echo COMPLETE");
    // A sandbox around the home directory would hold nothing.
    let at_home = ["--working-dir", "../home"];
    let ended = started(&world, &[&ALL[..], &at_home].concat());
    ended.assert_code(0);
    let said = ended.stdout() + &ended.stderr();
    assert_eq!(
        said.matches("the agent is not confined").count(),
        1,
        "{said}"
    );
    assert!(said.contains("holds your home directory"), "{said}");
    assert!(said.contains("--sandbox off"), "{said}");
    assert!(
        said.contains("sandbox off (it does not work here)"),
        "{said}"
    );
    let asked = [&ALL[..], &at_home, &["--sandbox", "workspace", "--force"]].concat();
    started(&world, &asked).assert_code(64);
    // Who names paths of a sandbox means one.
    let paths = [&ALL[..], &["--sandbox-write", "nowhere"]].concat();
    let refused = started(&world, &paths);
    refused.assert_code(64);
    assert!(refused.stderr().contains("no such file"), "{refused}");
}

/// Starts a program for which the kernel has no Landlock.
const WITHOUT_LANDLOCK: &str = r#"
import ctypes, os, struct, sys
def step(code, jt, jf, k): return struct.pack("HBBI", code, jt, jf, k)
# The number of the system call; 444 to 446 are not there.
program = step(0x20, 0, 0, 0) + step(0x35, 0, 2, 444) + step(0x25, 1, 0, 446) \
    + step(0x06, 0, 0, 0x00050000 | 38) + step(0x06, 0, 0, 0x7fff0000)
held = ctypes.create_string_buffer(program)
libc = ctypes.CDLL(None)
filter = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(held))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter): sys.exit(99)
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn a_machine_without_bwrap_and_landlock_says_what_to_install() {
    let world = world("touch done.txt; echo COMPLETE");
    for program in ["sh", "cat", "touch", "git", "python3"] {
        let places = ["/usr/bin", "/bin", "/usr/local/bin"];
        let mut places = places.iter().map(|folder| format!("{folder}/{program}"));
        if let Some(place) = places.find(|place| std::path::Path::new(place).exists()) {
            std::os::unix::fs::symlink(place, world.bin().join(program)).unwrap();
        }
    }
    if !world.bin().join("python3").exists() {
        return;
    }
    let start = |flags: &[&str]| {
        let mut command = world.command("python3");
        command.args(["-c", WITHOUT_LANDLOCK]);
        command.arg(descartes_testkit::descartes());
        command.args([&AGENT[..], flags].concat());
        command.env("PATH", world.bin());
        world.run(command)
    };
    let ended = start(&ALL);
    ended.assert_code(0);
    let said = ended.stdout() + &ended.stderr();
    assert!(said.contains("bwrap is not installed"), "{said}");
    assert!(said.contains("install bubblewrap"), "{said}");
    assert!(said.contains("the kernel has no Landlock"), "{said}");
    assert_eq!(
        said.matches("the agent is not confined").count(),
        1,
        "{said}"
    );
    let why = status(&world)["sandbox_why"].as_str().unwrap().to_owned();
    assert!(why.contains("bwrap is not installed"), "{why}");
    let asked = start(&["--sandbox", "workspace", "--force"]);
    asked.assert_code(65);
    assert!(asked.stderr().contains("install bubblewrap"), "{asked}");
}

#[test]
fn tasks_inherit_the_default() {
    if !has_bwrap() {
        return;
    }
    let world =
        crate::task_common::repository_on_disk("ROADMAP.md", "# Work\n\n- [ ] **one**: do it\n");
    std::fs::write(world.home().join(".bashrc"), "# mine\n").unwrap();
    world.program(
        "agent",
        "#!/bin/sh\necho stolen >> ~/.bashrc\necho x > work.txt\necho '<promise>COMPLETE</promise>'\n",
    );
    let words = ["roadmap", "run", "ROADMAP.md", "--command", "agent"];
    let ended = run(&world, &[&words[..], &ALL, &["--verify", "true"]].concat());
    ended.assert_code(0);
    let said = ended.stdout() + &ended.stderr();
    assert!(said.contains("sandbox workspace (default)"), "{said}");
    assert_eq!(bashrc(&world), "# mine\n");
    assert!(world.git(["ls-files"]).contains("work.txt"));
}

#[test]
fn a_loop_inside_of_a_sandbox_makes_no_other() {
    if !has_bwrap() {
        return;
    }
    let world = world("echo stolen >> ~/.bashrc; echo COMPLETE");
    let mut command = world.descartes(["sandbox", "--", "env", "DESCARTES_STATE_DIR=/tmp/inner"]);
    command.arg(descartes_testkit::descartes());
    command.args([&AGENT[..], &ALL, &["--state-file", "/tmp/state.json"]].concat());
    let ended = world.run(command);
    ended.assert_code(0);
    let said = ended.stdout() + &ended.stderr();
    assert!(said.contains("sandbox off (inside of another)"), "{said}");
    assert!(!said.contains("not confined"), "{said}");
    assert_eq!(bashrc(&world), "# mine\n");
}
