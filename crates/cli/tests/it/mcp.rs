//! `descartes mcp`: loops are started, followed and steered over real pipes, by a client that knows
//! nothing of us; what a model must not choose is refused, and loops outlive the server.

use std::time::Duration;

use descartes_testkit::pty::{Pty, Size};
use descartes_testkit::{World, eventually};
use serde_json::{Value, json};

use crate::common::{descartes, journal, loops};
use crate::hint_rows::{suggestion, typed};
use crate::mcp_client::{McpClient, SOON};
use crate::task_common::{self, WORKS};

/// A world with a repository, and a server whose loops have an agent of this script.
fn served(script: &str, flags: &[&str]) -> (World, McpClient) {
    let world = World::in_memory();
    world.git_init();
    let agent = world.agent(script);
    let client = McpClient::start(&world, &[&["--command", &agent], flags].concat());
    (world, client)
}

/// Works until a file is there, so that a test says when it is over.
const HELD: &str = "print working ;; wait-file go ;; write done x ;; promise";

fn go(world: &World) {
    world.write("go", "");
}

fn start(client: &mut McpClient, more: Value) -> Value {
    let mut call = json!({ "prompt": "make it work", "max_iterations": 3 });
    if let (Value::Object(call), Value::Object(more)) = (&mut call, more) {
        call.extend(more);
    }
    client.done("start", &call)
}

#[test]
fn a_client_is_told_the_tools_and_their_arguments() {
    let world = World::in_memory();
    let mut client = McpClient::without_greeting(world.descartes(["mcp"]));
    let greeting = client.greet();
    let listed = client.request("tools/list", &json!({}));
    let told = json!([greeting["result"], listed["result"]]);
    let told = serde_json::to_string_pretty(&told).unwrap();
    let told = told.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    // Not among the snapshots of verbs.
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("mcp_snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("tools", told));
    assert!(client.close().success());
}

#[test]
fn a_loop_is_started_followed_to_its_end_and_looked_at() {
    let script = "write work.txt done ;; print I did it ;; err careful ;; promise";
    let (world, mut client) = served(script, &[]);
    let started = start(
        &mut client,
        json!({ "gates": ["test -f work.txt"], "name": "auth" }),
    );
    assert_eq!(started["name"], "auth");
    let id = started["loop_id"].as_str().unwrap().to_owned();

    let ended = client.done("wait", &json!({ "loop": "auth", "seconds": 100 }));
    assert_eq!(ended["over"], true, "{ended}");
    assert_eq!(ended["label"], "Completed (promise)");
    assert_eq!(ended["loop_id"], id.as_str());

    // The same shapes as on the command line.
    let told = descartes(&world, &["loop", "status", "--json"]);
    let told: Value = serde_json::from_str(&told.stdout()).unwrap();
    assert_eq!(client.done("status", &json!({})), told);
    let told = descartes(&world, &["loop", "list", "--json"]);
    let told: Value = serde_json::from_str(&told.stdout()).unwrap();
    let listed = client.done("list", &json!({ "all": true, "children": true }));
    assert_eq!(listed, json!({ "left_out": 0, "loops": told }));
    let told = descartes(&world, &["loop", "history", "--json"]);
    let told: Value = serde_json::from_str(&told.stdout()).unwrap();
    let history = client.done("history", &json!({ "loop": id, "last": 1 }));
    assert_eq!(history["iterations"], json!([told]));

    let logs = client.done("logs", &json!({ "iteration": 1, "lines": 1 }));
    assert_eq!(logs["text"], "<promise>COMPLETE</promise>");
    assert_eq!(logs["cut"], true);
    let logs = client.done("logs", &json!({ "stderr": true }));
    assert_eq!(
        (&logs["text"], &logs["stream"]),
        (&json!("careful"), &json!("stderr"))
    );

    let diff = client.done("diff", &json!({ "loop": "auth", "iteration": 1 }));
    assert_eq!(
        diff["files"],
        json!([{ "path": "work.txt", "status": "added", "outside": false }])
    );
    assert!(diff["patch"].as_str().unwrap().contains("+done"), "{diff}");
    let names = client.done("diff", &json!({ "files_only": true }));
    assert!(names.get("patch").is_none(), "{names}");

    let report = client.done("report", &json!({}));
    let page = std::fs::read_to_string(report["path"].as_str().unwrap()).unwrap();
    assert!(page.contains("auth"));
    assert!(
        report["summary"]
            .as_str()
            .unwrap()
            .contains("Completed (promise)")
    );
    assert!(client.close().success());
}

#[test]
fn a_wait_tells_progress_and_ends_at_its_time() {
    let (world, mut client) = served(HELD, &[]);
    start(&mut client, json!({ "gates": ["true"] }));
    let waited = client.done("wait", &json!({ "seconds": 1 }));
    assert_eq!(waited["over"], false, "{waited}");
    let id = client.ask(
        "tools/call",
        &json!({ "name": "wait", "arguments": {}, "_meta": { "progressToken": 7 } }),
    );
    // From here on the loop is followed.
    let first = client.next();
    assert_eq!(first["params"]["progressToken"], 7, "{first}");
    go(&world);
    let answer = client.answer(id);
    assert_eq!(
        answer["result"]["structuredContent"]["over"], true,
        "{answer}"
    );
    let of_wait = client
        .notifications
        .iter()
        .filter(|told| told["params"]["progressToken"] == 7);
    let told: Vec<(f64, &str)> = of_wait
        .map(|told| {
            let message = told["params"]["message"].as_str().unwrap();
            (told["params"]["progress"].as_f64().unwrap(), message)
        })
        .collect();
    assert!(
        told.windows(2).all(|pair| pair[0].0 < pair[1].0),
        "{told:?}"
    );
    let said = |text: &str| told.iter().any(|(_, message)| message.contains(text));
    assert!(
        said("gate passed: true") && said("Completed (promise)"),
        "{told:?}"
    );
}

#[test]
fn a_wait_that_is_cancelled_is_given_up_and_the_loop_goes_on() {
    let (world, mut client) = served(HELD, &[]);
    start(&mut client, json!({}));
    let call = json!({ "name": "wait", "arguments": { "seconds": 3000 } });
    let id = client.ask("tools/call", &call);
    client.send(
        &json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
        })
        .to_string(),
    );
    // It answers others, and the loop is as it was.
    eventually("its agent works", SOON, || {
        client.done("status", &json!({}))["label"] == "Running"
    });
    go(&world);
    assert_eq!(client.done("wait", &json!({}))["over"], true);
}

#[test]
fn a_loop_is_paused_told_something_continued_and_ended() {
    let script = "save-prompt prompt-${DESCARTES_ITERATION} ;; wait-file go-${DESCARTES_ITERATION}";
    let (world, mut client) = served(script, &[]);
    start(&mut client, json!({ "name": "x" }));
    eventually("the agent", SOON, || world.has("prompt-1"));
    let paused = client.done("pause", &json!({ "loop": "x" }));
    assert_eq!(paused["answer"], "accepted", "{paused}");
    // A note that looks like a flag is a note.
    let said = client.done("say", &json!({ "text": "--wait use tabs" }));
    assert_eq!(said["answer"], "accepted", "{said}");
    world.write("go-1", "");
    eventually("it is paused", SOON, || {
        client.done("status", &json!({}))["label"] == "Paused"
    });
    let on = client.done("unpause", &json!({}));
    assert_eq!(on["answer"], "effective", "{on}");
    eventually("the note is read", SOON, || {
        world.has("prompt-2") && world.read("prompt-2").contains("--wait use tabs")
    });
    let ended = client.done("cancel", &json!({ "now": true }));
    assert_eq!(ended["answer"], "effective", "{ended}");
    assert_eq!(ended["exit_reason"]["type"], "user_cancelled", "{ended}");
}

#[test]
fn tasks_of_a_tag_and_of_a_roadmap_are_run_and_checked() {
    let tasks = task_common::graph("1 | First | P | 0 | M", "");
    let world = task_common::scud_project(tasks);
    let agent = world.agent(WORKS);
    let mut client = McpClient::start(&world, &["--command", &agent]);
    let call = json!({ "tag": "auth", "max_iterations": 5, "gates": ["true"] });
    let id = client.done("start", &call)["loop_id"].clone();
    let ended = client.done("wait", &json!({ "loop": id, "seconds": 100 }));
    assert_eq!(ended["reason"]["type"], "gates_passed", "{ended}");
    let logs = client.done("logs", &json!({ "loop": id }));
    assert_eq!(logs["task"], "1", "{logs}");

    world.write(
        "plan/ROADMAP.md",
        "## Tasks\n- [ ] **a**: Write it\n  - check: true\n",
    );
    let checked = client.done("roadmap_check", &json!({ "path": "plan/ROADMAP.md" }));
    assert_eq!(checked["format"], "roadmap", "{checked}");
    assert_eq!(checked["tasks"][0]["id"], "a");
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "plan"]);
    let call = json!({ "file": "plan/ROADMAP.md", "max_duration": "1h" });
    let id = client.done("start", &call)["loop_id"].clone();
    let ended = client.done("wait", &json!({ "loop": id, "seconds": 100 }));
    assert_eq!(ended["tasks_done"], 1, "{ended}");
    assert!(world.read("plan/ROADMAP.md").contains("[x] **a**"));

    let (error, _) = client.refused("roadmap_check", &json!({ "path": "../x.md" }));
    assert!(error.contains("not a path in"), "{error}");
    let (error, _) = client.refused("roadmap_check", &json!({ "path": "nothing.md" }));
    assert!(error.contains("nothing.md"), "{error}");
}

#[test]
fn a_roadmap_cannot_choose_the_agent() {
    let (world, mut client) = served("promise", &[]);
    let evil = "## Tasks\n- [ ] **a**: Write it\n  - agent: `touch owned`\n";
    world.write("ROADMAP.md", evil);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "plan"]);
    let call = json!({ "file": "ROADMAP.md", "max_iterations": 2 });
    let (error, hint) = client.refused("start", &call);
    assert!(
        error.contains("line 2: task a names its own agent"),
        "{error}"
    );
    assert!(hint.contains("descartes roadmap run"), "{hint}");
    // The same rule on the command line; without it the task's agent is a person's choice.
    let agent = world.agent("promise");
    let words = [
        "roadmap",
        "run",
        "ROADMAP.md",
        "--command",
        &agent,
        "--no-task-agents",
    ];
    descartes(&world, &words).assert_code(65);
    assert!(loops(&world).is_empty() && !world.has("owned"));
}

#[test]
fn what_a_model_may_not_choose_is_refused_and_nothing_is_started() {
    let (world, mut client) = served("promise", &[]);
    for (call, said) in [
        (json!({ "prompt": "x" }), "no budget"),
        (json!({ "prompt": "x", "timeout": "5m" }), "no budget"),
        (json!({ "max_iterations": 1 }), "nothing to do"),
        (
            json!({ "prompt": "x", "max_iterations": 0 }),
            "allows nothing",
        ),
        (
            json!({ "prompt": "x", "max_iterations": "many" }),
            "invalid type",
        ),
        (
            json!({ "prompt": "x", "max_iterations": 1, "command": "sh" }),
            "person's to choose",
        ),
        (
            json!({ "prompt": "x", "max_iterations": 1, "backend": "codex" }),
            "person's to choose",
        ),
        (
            json!({ "prompt": "x", "max_iterations": 1, "permissions": "all" }),
            "person's to choose",
        ),
        (
            json!({ "prompt": "x", "max_iterations": 1, "working_dir": "/" }),
            "person's to choose",
        ),
        (
            json!({ "prompt": "x", "max_iterations": 1, "colour": "red" }),
            "no argument of `start`",
        ),
        (
            json!({ "file": "/etc/passwd", "max_iterations": 1 }),
            "not a path in",
        ),
        (json!({ "tag": "nothing", "max_iterations": 1 }), "SCUD"),
    ] {
        let (error, hint) = client.refused("start", &call);
        assert!(error.contains(said), "{call}: {error}");
        assert!(!hint.is_empty(), "{call}: {error}");
    }
    assert!(loops(&world).is_empty());
}

#[test]
fn what_a_project_config_must_be_trusted_for_is_asked_of_a_person() {
    let world = World::in_memory();
    world.git_init();
    world.write(
        ".descartes/config.toml",
        "default_agent = \"mine\"\n[agents.mine]\ncommand = \"true\"\n",
    );
    let mut client = McpClient::start(&world, &[]);
    let (error, hint) = client.refused("start", &json!({ "prompt": "x", "max_iterations": 1 }));
    assert!(
        error.contains("trust") && hint.contains("descartes trust"),
        "{error} {hint}"
    );
    assert!(loops(&world).is_empty());
}

#[test]
fn no_more_loops_run_than_the_person_allows() {
    let (world, mut client) = served(HELD, &["--max-loops", "1"]);
    start(&mut client, json!({}));
    let (error, hint) = client.refused("start", &json!({ "prompt": "x", "max_iterations": 1 }));
    assert!(error.contains("1 loop is running already"), "{error}");
    let more = suggestion(&hint, "descartes mcp --max-loops N").expect(&hint);
    let more = more.replace('N', "2") + " </dev/null";
    typed(&world, "project", &more).assert_code(0);
    go(&world);
    client.done("wait", &json!({}));
    start(&mut client, json!({}));
}

#[test]
fn servers_that_start_loops_in_the_same_instant_keep_to_the_limit() {
    let (world, first) = served(HELD, &["--max-loops", "1"]);
    let agent = world.agent(HELD);
    let another = || McpClient::start(&world, &["--command", &agent, "--max-loops", "1"]);
    let mut clients = [first, another(), another()];
    let asked: Vec<u64> = clients
        .iter_mut()
        .enumerate()
        .map(|(at, client)| {
            let arguments = json!({ "prompt": "x", "max_iterations": 1, "name": format!("n{at}") });
            let params = json!({ "name": "start", "arguments": arguments });
            client.ask("tools/call", &params)
        })
        .collect();
    let mut refused = 0;
    for (client, id) in clients.iter_mut().zip(asked) {
        let answer = client.answer(id);
        if let Some(error) = answer["result"]["structuredContent"]["error"].as_str() {
            assert!(error.contains("1 loop is running already"), "{error}");
            refused += 1;
        }
    }
    assert_eq!(refused, 2);
    go(&world);
    clients[0].done("wait", &json!({}));
}

#[test]
fn loops_work_in_the_folder_and_with_the_agent_that_the_person_named() {
    let world = World::in_memory();
    let folder = world.root().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    let stream =
        crate::common::prints(&crate::common::claude_result("<promise>COMPLETE</promise>"));
    let script = world.script(&format!("dump-argv argv\n{stream}"));
    let program = format!(
        "#!/bin/sh\nexport SCRIPTED_AGENT_FILE={}\nexec {} \"$@\"\n",
        script.display(),
        descartes_testkit::world::bins::scripted_agent().display()
    );
    world.program("claude", &program);
    let flags = [
        "--working-dir",
        folder.to_str().unwrap(),
        "--backend",
        "claude",
        "--model",
        "tiny",
        "--permissions",
        "edit",
        "--sandbox",
        "off",
    ];
    let mut client = McpClient::start(&world, &flags);
    start(&mut client, json!({}));
    let ended = client.done("wait", &json!({}));
    assert_eq!(ended["working_dir"], folder.to_str().unwrap(), "{ended}");
    assert_eq!(ended["config"]["permissions"], "edit", "{ended}");
    let argv = std::fs::read_to_string(folder.join("argv")).unwrap();
    assert!(argv.contains("tiny"), "{argv}");
}

#[test]
fn what_is_no_message_and_what_is_no_tool_leave_the_server_at_work() {
    let (_world, mut client) = served("promise", &[]);
    for line in [
        "{no json",
        "[]",
        "",
        "\u{1}\u{2}",
        r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
    ] {
        client.send(line);
    }
    let answer = client.request("tools/call", &json!({ "name": "dance", "arguments": {} }));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("no tool `dance`") && message.contains("roadmap_check"),
        "{answer}"
    );
    for params in [
        json!({}),
        json!({ "name": 3 }),
        json!([1]),
        json!({ "name": "list", "arguments": [] }),
    ] {
        let answer = client.request("tools/call", &params);
        assert_eq!(answer["error"]["code"], -32602, "{params} {answer}");
    }
    let answer = client.request("tools/dance", &json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let (error, hint) = client.refused("status", &json!({}));
    assert!(
        error.contains("no loop here") && hint.contains("`start`"),
        "{error} {hint}"
    );
    let (error, _) = client.refused("status", &json!({ "loop": "nobody" }));
    assert!(error.contains("nobody"), "{error}");
    let (error, _) = client.refused("history", &json!({ "last": 0 }));
    assert!(error.contains("between 1 and 200"), "{error}");
    assert!(client.close().success());
}

#[test]
fn the_server_ends_with_its_input_and_its_loops_go_on() {
    let (world, mut client) = served(HELD, &[]);
    start(&mut client, json!({}));
    // Somebody still waits when the client goes away.
    client.ask(
        "tools/call",
        &json!({ "name": "wait", "arguments": { "seconds": 3000 } }),
    );
    client.done("status", &json!({}));
    client.leave();
    let told = descartes(&world, &["loop", "status", "--json"]);
    let told: Value = serde_json::from_str(&told.stdout()).unwrap();
    assert!(told["pid"].is_number(), "{told}");
    go(&world);
    eventually("the loop is done", SOON, || world.has("done"));
    eventually("its end is recorded", SOON, || {
        journal(&world)
            .iter()
            .any(|record| record["kind"] == "loop_finished")
    });
}

#[test]
fn nothing_but_the_protocol_is_printed_however_much_is_logged() {
    let world = World::in_memory();
    let agent = world.agent("promise");
    let mut command = world.descartes(["mcp", "--command", &agent]);
    command.env("DESCARTES_LOG", "trace");
    let log = std::fs::File::create(world.root().join("log")).unwrap();
    command.stderr(log);
    // The client takes every line for a message.
    let mut client = McpClient::without_greeting(command);
    client.greet();
    start(&mut client, json!({ "prompt": "a secret plan" }));
    client.done("wait", &json!({}));
    assert!(client.close().success());
    let log = std::fs::read_to_string(world.root().join("log")).unwrap();
    assert!(
        log.contains("serving MCP") && !log.contains("secret plan"),
        "{log}"
    );
}

#[test]
fn a_person_at_a_terminal_and_a_client_of_another_kind_are_told_what_to_do() {
    let world = World::in_memory();
    let run = descartes(&world, &["mcp", "--working-dir", "nowhere"]);
    run.assert_code(64);
    assert!(run.stderr().contains("--working-dir DIR"), "{run}");
    let pty = Pty::spawn(&world.descartes(["mcp"]), Size::default());
    pty.wait_text("descartes install codex");
    let mut command = world.descartes(["mcp"]);
    let lines = world.write(
        "lines",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"textDocument/open\"}\n",
    );
    command.stdin(std::fs::File::open(lines).unwrap());
    let run = world.run(command);
    run.assert_code(0);
    assert!(run.stdout().contains("\"error\""), "{run}");
}

/// An agent that talks to a server of its own: it asks these, one a line, and keeps what it is told.
fn agent_with_server(world: &World, flags: &str, calls: &[Value]) -> String {
    let greeting = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "agent", "version": "1" },
        },
    });
    let mut lines =
        format!("{greeting}\n{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}\n");
    for (at, call) in calls.iter().enumerate() {
        let call =
            json!({ "jsonrpc": "2.0", "id": at + 1, "method": "tools/call", "params": call });
        lines.push_str(&format!("{call}\n"));
    }
    let lines = world.write("../calls", lines);
    let (program, state) = (descartes_testkit::world::bins::descartes(), world.state());
    let script = format!(
        "#!/bin/sh
export DESCARTES_STATE_DIR='{state}' DESCARTES_NESTED=1
: >told
{{ cat '{lines}'; until [ $(wc -l <told) -gt {count} ]; do sleep 0.05; done; }} |
    '{program}' mcp {flags} >told
echo '<promise>COMPLETE</promise>'
",
        state = state.display(),
        lines = lines.display(),
        count = calls.len(),
        program = program.display(),
    );
    world.program("agent.sh", &script).display().to_string()
}

fn told(world: &World, id: usize) -> Value {
    let text = world.read("told");
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect(line));
    let answer = lines.find(|answer| answer["id"] == id).expect("an answer");
    answer["result"].clone()
}

#[test]
fn the_agent_of_a_loop_may_look_but_start_and_steer_nothing() {
    let world = World::in_memory();
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let calls = [
        call("start", json!({ "prompt": "x", "max_iterations": 1 })),
        call("cancel", json!({})),
        call("pause", json!({})),
        call("say", json!({ "text": "hm" })),
        call("status", json!({})),
    ];
    let agent = agent_with_server(&world, "--command true", &calls);
    let run = descartes(
        &world,
        &["loop", "start", "-c", &agent, "-p", "go", "-m", "1"],
    );
    run.assert_code(0);
    for id in 1..=4 {
        let answer = told(&world, id);
        assert_eq!(answer["isError"], true, "{answer}");
        let error = answer["structuredContent"]["error"].as_str().unwrap();
        assert!(error.contains("inside loop"), "{error}");
    }
    let hint = told(&world, 1)["structuredContent"]["hint"].clone();
    let hint = hint.as_str().unwrap();
    let nested = suggestion(hint, "descartes mcp --allow-nested").expect(hint);
    typed(&world, "project", &format!("{nested} </dev/null")).assert_code(0);
    assert_eq!(told(&world, 5)["structuredContent"]["label"], "Running");
    assert_eq!(loops(&world).len(), 1);
}

#[test]
fn the_agent_of_a_loop_may_start_one_where_the_person_allows_it() {
    let world = World::in_memory();
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let inner = world.agent("touch inner ;; promise");
    let calls = [
        call(
            "start",
            json!({ "prompt": "x", "max_iterations": 1, "name": "inner" }),
        ),
        call("wait", json!({ "loop": "inner" })),
        call("cancel", json!({ "loop": "outer" })),
    ];
    let flags = format!("--allow-nested --command \"{inner}\"");
    let agent = agent_with_server(&world, &flags, &calls);
    let words = [
        "loop", "start", "-c", &agent, "-p", "go", "-m", "1", "--name", "outer",
    ];
    world
        .run_within(world.descartes(words), Duration::from_secs(180))
        .assert_code(0);
    assert_eq!(told(&world, 1)["isError"], false, "{}", world.read("told"));
    assert_eq!(told(&world, 3)["isError"], true, "{}", world.read("told"));
    assert_eq!(loops(&world).len(), 2);
}

#[test]
fn whatever_is_sent_is_answered_and_the_server_goes_on() {
    let world = World::in_memory();
    let mut client = McpClient::without_greeting(world.descartes(["mcp"]));
    // Before the greeting as well.
    client.send("garbage");
    assert_eq!(client.next()["error"]["code"], -32700);
    client.greet();
    let long = "x".repeat(17 << 20);
    let call = |id: u32, method: &str, text: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"text":"{text}"}}}}"#)
    };
    for (line, id, code) in [
        ("{\"jsonrpc\":".to_owned(), Value::Null, -32700),
        ("\u{0}\u{1}\u{fffd}".to_owned(), Value::Null, -32700),
        (format!("[{}]", call(1, "ping", "")), Value::Null, -32600),
        (call(901, "tools/call", &long), json!(901), -32600),
        (call(902, "no/such/method", ""), json!(902), -32601),
    ] {
        client.send(&line);
        let answer = client.next();
        let told = (&answer["id"], &answer["error"]["code"]);
        assert_eq!(told, (&id, &json!(code)), "{answer}");
    }
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/whatever","params":[]}"#);
    let ids: Vec<u64> = (0..1000).map(|_| client.ask("ping", &json!({}))).collect();
    let mut answered: Vec<u64> = ids
        .iter()
        .filter_map(|_| client.next()["id"].as_u64())
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, ids);
    // Half a line, and the end.
    client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":3");
    client.end_input();
    assert_eq!(client.next()["error"]["code"], -32700);
    assert!(client.close().success());
}

#[test]
fn a_prompt_longer_than_an_argument_reaches_the_agent() {
    let script = "read-stdin-to prompt.txt ;; promise";
    let (world, mut client) = served(script, &[]);
    let prompt = format!("begin {} end", "x".repeat(200 << 10));
    start(&mut client, json!({ "prompt": prompt }));
    let ended = client.done("wait", &json!({ "seconds": 100 }));
    assert_eq!(ended["label"], "Completed (promise)", "{ended}");
    assert!(world.read("prompt.txt").contains(&prompt));
    let (error, hint) = client.refused("say", &json!({ "text": "x".repeat(200 << 10) }));
    assert!(error.contains("128 KiB"), "{error}");
    assert!(hint.contains("file"), "{hint}");
}
