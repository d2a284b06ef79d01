//! A loop is steered by people: what its agent, its gates or anything below them sends is refused,
//! looking is allowed, and a loop that an agent started itself is its own to steer.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use descartes_testkit::world::{Finished, bins};
use descartes_testkit::{World, eventually};
use serde_json::Value;

use crate::common::{descartes, events, loops};
use crate::task_common;

const SOON: Duration = descartes_testkit::PATIENCE;

/// A world in which agents find `descartes` on their path, with the state folder of the world.
fn world() -> World {
    let world = World::in_memory();
    install(&world);
    world
}

fn install(world: &World) {
    let (state, program) = (world.state(), bins::descartes().display().to_string());
    let script = format!(
        "#!/bin/sh\nexport DESCARTES_STATE_DIR='{}'\nexec '{program}' \"$@\"\n",
        state.display()
    );
    let path = world.bin().join("descartes");
    std::fs::write(&path, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path, mode).unwrap();
}

/// A loop whose agent is this shell script.
fn with_agent(world: &World, script: &str, flags: &[&str]) -> Command {
    let agent = world.program("agent.sh", &format!("#!/bin/sh\n{script}\n"));
    let mut command = world.descartes(["loop", "start", "--prompt", "go", "--command"]);
    command.arg(agent).args(flags);
    command
}

/// Writes `name code` for a command, and what it said.
const TRY: &str =
    "try() { name=$1; shift; \"$@\" >>said 2>&1 </dev/null; echo \"$name $?\" >>codes; }\n";

#[track_caller]
fn codes(world: &World) -> Vec<String> {
    world.read("codes").lines().map(str::to_owned).collect()
}

#[track_caller]
fn ended(run: &Finished, code: i32, world: &World) {
    run.assert_code(code);
    assert!(events(world, "config_changed").is_empty(), "{run}");
    assert!(events(world, "command_accepted").is_empty(), "{run}");
}

#[test]
fn an_agent_may_look_at_its_loop_and_change_nothing() {
    let world = world();
    let script = format!(
        "{TRY}
try set descartes loop set --verify true
try limit descartes loop set --max-iterations 50
try retry descartes loop set --retry-now
try say descartes loop say 'use tabs'
try pause descartes loop pause
try unpause descartes loop unpause
try cancel descartes loop cancel
try now descartes loop cancel --now
try resume descartes loop resume --verify true
try rewind descartes loop rewind 0 --yes
try clean descartes clean --older 0s --yes
try start descartes loop start --command true --prompt x --state-file other.json
try over descartes loop start --nested --force --command true --prompt x
try status descartes loop status
try list descartes loop list
try history descartes loop history
try logs descartes loop logs
echo '<promise>COMPLETE</promise>'"
    );
    let run = world.run(with_agent(
        &world,
        &script,
        &["--verify", "false", "-m", "1"],
    ));
    ended(&run, 2, &world);
    let refused = [
        "set", "limit", "retry", "say", "pause", "unpause", "cancel", "now", "resume", "rewind",
        "clean", "start", "over",
    ];
    let seen = ["status", "list", "history", "logs"];
    let expected: Vec<String> = refused
        .map(|name| format!("{name} 65"))
        .into_iter()
        .chain(seen.map(|name| format!("{name} 0")))
        .collect();
    assert_eq!(codes(&world), expected, "{}", world.read("said"));
    let said = world.read("said");
    assert!(said.contains("comes from inside loop"), "{said}");
    assert!(said.contains("hint: continue with your task"), "{said}");
    assert!(said.contains("--nested"), "{said}");
    assert!(!world.has("other.json"));
}

#[test]
fn no_environment_no_session_and_no_dead_parent_hides_where_a_command_comes_from() {
    let world = world();
    let bare = format!(
        "env -i PATH=\"$PATH\" HOME=\"$HOME\" XDG_RUNTIME_DIR=\"$XDG_RUNTIME_DIR\" {}",
        world.bin().join("descartes").display()
    );
    let script = format!(
        "{TRY}
try bare {bare} loop set --verify true
try session setsid --wait {bare} loop set --verify true
(setsid sh -c 'sleep 0.2; {bare} loop set --verify true >>said 2>&1; echo daemon $? >>codes' &)
until grep -q daemon codes; do sleep 0.05; done
echo '<promise>COMPLETE</promise>'"
    );
    let run = world.run(with_agent(
        &world,
        &script,
        &["--verify", "false", "-m", "1"],
    ));
    ended(&run, 2, &world);
    assert_eq!(codes(&world), ["bare 65", "session 65", "daemon 65"]);
}

#[test]
fn a_gate_cannot_change_its_loop_either() {
    let world = world();
    let gate = "descartes loop set --verify true >>said 2>&1; echo gate $? >>codes; false";
    let run = world.run(with_agent(
        &world,
        "echo '<promise>COMPLETE</promise>'",
        &["--verify", gate, "-m", "1"],
    ));
    ended(&run, 2, &world);
    assert_eq!(codes(&world), ["gate 65"]);
}

/// No test of its own: this program as an agent that talks to the socket without our client.
#[test]
#[ignore = "the agent of another test"]
fn raw_client() {
    let Ok(lines) = std::env::var("RAW_CLIENT_LINES") else {
        return;
    };
    let host = std::fs::read_dir(std::env::var("RAW_CLIENT_LOOPS").unwrap()).unwrap();
    let host = host.flatten().next().unwrap().path().join("host.json");
    let host: Value = serde_json::from_slice(&std::fs::read(host).unwrap()).unwrap();
    let socket = host["socket"].as_str().unwrap();
    let mut answers = String::new();
    for line in lines.lines() {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        BufReader::new(stream).read_line(&mut answers).unwrap();
    }
    std::fs::write("answers", answers).unwrap();
}

#[test]
fn the_loop_itself_refuses_whatever_client_an_agent_uses() {
    let world = world();
    let me = std::env::current_exe().unwrap();
    let script = format!(
        "export RAW_CLIENT_LOOPS='{}/loops'
export RAW_CLIENT_LINES='{{\"v\":1,\"command\":\"set\",\"change\":{{\"verify\":[\"true\"]}}}}
{{\"v\":1,\"command\":\"cancel\",\"grace\":\"ask\"}}
{{\"v\":1,\"command\":\"ping\"}}'
env -u DESCARTES_LOOP_ID '{}' --exact steer_within::raw_client --ignored >/dev/null
echo '<promise>COMPLETE</promise>'",
        world.state().display(),
        me.display()
    );
    let run = world.run(with_agent(
        &world,
        &script,
        &["--verify", "false", "-m", "1"],
    ));
    ended(&run, 2, &world);
    let answers: Vec<Value> = world
        .read("answers")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    for answer in &answers[..2] {
        assert_eq!(answer["answer"], "refused", "{answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("comes from inside loop"), "{message}");
    }
    assert_eq!(answers[2]["answer"], "effective", "looking is allowed");
}

#[test]
fn the_agent_of_a_task_reaches_neither_its_loop_nor_the_task_loop_nor_another_task() {
    let world = task_common::repository(
        "ROADMAP.md",
        "## Tasks\n\n- [ ] **one**: do one\n- [ ] **two**: do two\n",
    );
    install(&world);
    let results = world.root().join("results");
    let script = format!(
        "#!/bin/sh
for id in $(descartes loop list --all --children --json | grep -o '\"loop_id\":\"[^\"]*\"' | cut -d'\"' -f4 | sort -u); do
  descartes loop set \"$id\" --verify true >>'{0}'.said 2>&1; echo set $? >>'{0}'
  descartes loop cancel \"$id\" >>'{0}'.said 2>&1; echo cancel $? >>'{0}'
done
echo work > work-$$
echo '<promise>COMPLETE</promise>'",
        results.display()
    );
    let agent = world.program("agent.sh", &script);
    let agent = agent.display().to_string();
    let run = task_common::run(
        &world,
        &[
            "roadmap",
            "run",
            "ROADMAP.md",
            "--command",
            &agent,
            "--verify",
            "true",
            "--parallel",
            "2",
        ],
    );
    run.assert_code(0);
    let codes = std::fs::read_to_string(&results).unwrap();
    assert!(codes.lines().count() >= 8, "{codes}");
    assert!(codes.lines().all(|line| line.ends_with(" 65")), "{codes}");
    assert!(loops(&world).len() >= 3);
}

#[test]
fn a_trusted_on_event_command_may_steer() {
    let world = world();
    let config = world.home().join(".config/descartes/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(
        config,
        "on_event = 'test \"$DESCARTES_EVENT\" = waiting && descartes loop cancel >>steered 2>&1; echo $? >>steered'\n",
    )
    .unwrap();
    let reset = jiff::Timestamp::now().as_second() + 3600;
    let line = format!(
        r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"Claude AI usage limit reached|{reset}"}}"#
    );
    let agent = world.agent(&format!("print {line}"));
    let run = world.run_within(
        world.descartes([
            "loop",
            "start",
            "--prompt",
            "go",
            "--backend",
            "claude",
            "--permissions",
            "edit",
            "--command",
            &agent,
        ]),
        SOON,
    );
    run.assert_code(130);
    eventually("the hook's words", SOON, || world.has("steered"));
    let from = events(&world, "command_accepted")[0]["from"].clone();
    assert!(
        from["pid"].is_u64() && from["program"] == "descartes",
        "{from}"
    );
}

#[test]
fn a_loop_inside_a_loop_is_its_starters_to_steer_and_ends_with_the_iteration() {
    let world = world();
    world.program(
        "inner.sh",
        "#!/bin/sh\necho $$ >>inner-pids\necho ready >inner-ready\nexec sleep 1000\n",
    );
    let script = format!(
        "{TRY}
try plain descartes loop start --detach --command inner.sh --prompt x --state-file inner.json
try same descartes loop start --nested --detach --command inner.sh --prompt x
try nested descartes loop start --nested --detach --name inner --command inner.sh --prompt x --state-file inner.json
until test -e inner-ready; do sleep 0.05; done
try set descartes loop set inner --verify false
try say descartes loop say hello inner
try outer descartes loop say 'not mine'
echo '<promise>COMPLETE</promise>'"
    );
    let run = world.run_within(with_agent(&world, &script, &["-m", "1"]), SOON);
    run.assert_code(0);
    let expected = [
        "plain 65", "same 65", "nested 0", "set 0", "say 0", "outer 65",
    ];
    assert_eq!(codes(&world), expected, "{}", world.read("said"));
    eventually("the end of everything", SOON, || {
        world.processes().is_empty()
    });
    let status = descartes(&world, &["loop", "status", "inner"]);
    assert!(status.stdout().contains("Interrupted"), "{status}");
    assert!(status.stdout().contains("Changed while it ran"), "{status}");
    world.assert_no_survivors();
}

#[test]
fn nested_means_nothing_outside_of_a_loop_and_the_variable_says_the_same() {
    let world = world();
    let run = world.run(with_agent(
        &world,
        "echo '<promise>COMPLETE</promise>'",
        &["--nested"],
    ));
    run.assert_code(0);
    let script = format!(
        "{TRY}
try variable env DESCARTES_NESTED=1 descartes loop start --command echo --prompt '<promise>COMPLETE</promise>' --state-file inner.json
echo '<promise>COMPLETE</promise>'"
    );
    let run = world.run(with_agent(&world, &script, &["--force", "-m", "1"]));
    run.assert_code(0);
    assert_eq!(codes(&world), ["variable 0"], "{}", world.read("said"));
}

#[test]
fn what_a_person_changes_stands_in_the_result_with_who_and_when() {
    let world = world();
    let script = "echo $$ >at-work\nuntil test -e go; do sleep 0.05; done\necho '<promise>COMPLETE</promise>'";
    let flags = ["--verify", "false", "-m", "1", "--name", "auth"];
    let mut child = with_agent(&world, script, &flags)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the agent", SOON, || world.has("at-work"));
    descartes(&world, &["loop", "set", "--verify", "true"]).assert_code(0);
    world.write("go", "");
    let mut told = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let words = r#"verify: ["false"] -> ["true"], by set: descartes (pid "#;
    assert!(
        told.contains("  changed     ") && told.contains(words),
        "{told}"
    );
    for verb in ["status", "history"] {
        let shown = descartes(&world, &["loop", verb]).stdout();
        assert!(shown.contains(words), "{verb}: {shown}");
    }
    let status = descartes(&world, &["loop", "status", "--json"]).stdout();
    let status: Value = serde_json::from_str(&status).unwrap();
    let change = &status["changes"][0];
    assert_eq!(change["fields"][0]["to"], r#"["true"]"#, "{status}");
    assert!(
        change["from"]["pid"].is_u64() && change["at"].is_string(),
        "{status}"
    );
    let report = descartes(&world, &["report", "--output", "-"]).stdout();
    assert!(report.contains("Changed while it ran"), "{report}");
    let file: Value = serde_json::from_str(&world.read(".descartes/loop-state.json")).unwrap();
    assert_eq!(file["changes"][0]["by"], "set");
    assert!(
        !told.contains("gate file"),
        "another gate is no changed gate file: {told}"
    );
}
