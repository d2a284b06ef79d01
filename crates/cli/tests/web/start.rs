//! Starting loops from a browser: off, unless the server was told otherwise.

use descartes_testkit::World;

use crate::common::{serve, start, status, until_status};
use descartes_testkit::http::Ask;

fn form(world: &World, folder: &str, more: &str) -> String {
    let agent = world.agent("write proof x\npromise");
    let text = |raw: &str| {
        let plain = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        };
        raw.bytes().map(plain).collect::<String>()
    };
    format!(
        "project={}&agent={}&prompt={}&gates=test+-e+proof{more}",
        text(folder),
        text(&agent),
        text("--write the proof")
    )
}

#[test]
fn loops_are_started_only_where_that_is_allowed() {
    let world = World::new();
    let first = start(&world, "promise", &["--name", "first"]);
    until_status(&world, &first, "ended");
    let (known, other) = (world.project(), world.root().join("other/below"));
    std::fs::create_dir_all(&other).unwrap();
    let (known, other) = (known.to_str().unwrap(), other.to_str().unwrap());
    let post = |served: &crate::common::Served, body: &str| served.post("/api/v1/start", body);

    let plain = serve(&world, &[]);
    let refused = post(&plain, &form(&world, known, "")).assert_status(403);
    let hint = refused.json()["hint"].as_str().unwrap().to_owned();
    plain.get("/start").assert_status(403);
    assert!(!plain.get("/").body.contains("/start"));

    // As the refusal says.
    assert_eq!(hint, "descartes serve --allow-start");
    let words: Vec<&str> = hint.split(' ').skip(2).collect();
    let served = serve(&world, &words);
    post(&served, &form(&world, other, "")).assert_status(403);
    post(&served, &form(&world, "/nowhere/at/all", "")).assert_status(422);
    // Not by way of a link or of dots either.
    let link = world.path("link");
    std::os::unix::fs::symlink(other, &link).unwrap();
    post(&served, &form(&world, link.to_str().unwrap(), "")).assert_status(403);
    post(
        &served,
        &form(&world, &format!("{known}/../other/below"), ""),
    )
    .assert_status(403);
    post(&served, &form(&world, known, "&env=A%3DB")).assert_status(422);
    post(&served, "project=.&prompt=+").assert_status(422);
    let by_reader = Ask::get("/start").bearer(&served.read);
    served.ask(&by_reader).assert_status(403);
    let page = served
        .get(&format!("/start?like={first}"))
        .assert_status(200)
        .body;
    assert!(
        page.contains(known) && page.contains(">go</textarea>"),
        "{page}"
    );
    let started = post(&served, &form(&world, known, "&name=second"))
        .assert_status(200)
        .json();
    let id = started["loop_id"].as_str().unwrap();
    until_status(&world, id, "ended");
    let seen = status(&world, id);
    assert_eq!(seen["label"], "Completed (promise)");
    assert_eq!(seen["config"]["prompt"], "--write the proof");
    assert_eq!(seen["config"]["verify"][0], "test -e proof");

    let above = world.root().join("other");
    let wider = serve(
        &world,
        &["--allow-start", "--project", above.to_str().unwrap()],
    );
    post(&wider, &form(&world, other, "")).assert_status(200);
    let both = world.run(world.descartes(["serve", "--allow-start", "--read-only"]));
    both.assert_code(64);
}

#[test]
fn secrets_of_a_loop_that_is_started_again_are_masked_and_kept() {
    let world = World::new();
    let key = format!("sk-ant-{}", "a1B2".repeat(10));
    let (prompt, gate) = (format!("use {key}\nbe brief"), format!("true {key}"));
    let flags = ["--prompt", &prompt, "--verify", &gate];
    let first = start(&world, "promise", &flags);
    until_status(&world, &first, "ended");
    let served = serve(&world, &["--allow-start"]);
    let page = served.get(&format!("/start?like={first}"));
    let page = page.assert_status(200).body;
    assert!(!page.contains(&key), "{page}");
    assert!(
        page.contains("use sk-ant-***\nbe brief</textarea>"),
        "{page}"
    );
    let agent = world.agent("promise").replace('/', "%2F").replace(' ', "+");
    let folder = world.project().display().to_string();
    let post = |prompt: &str, gates: &str| {
        let form =
            format!("project={folder}&like={first}&agent={agent}&prompt={prompt}&gates={gates}");
        served.post("/api/v1/start", &form)
    };
    let again = post("use+sk-ant-***%0D%0Abe+loud", "true+sk-ant-***").assert_status(200);
    let id = again.json()["loop_id"].as_str().unwrap().to_owned();
    let config = status(&world, &id)["config"].clone();
    assert_eq!(config["prompt"], format!("use {key}\nbe loud"));
    assert_eq!(config["verify"][0], gate);
    let changed = post("never+use+sk-ant-***", "true").assert_status(422);
    assert!(changed.body.contains("masked secret"), "{}", changed.body);
    until_status(&world, &id, "ended");
}

/// What a browser sends of the form on a page: the values of its fields as they stand.
fn filled(page: &str) -> String {
    let form = page.split("<form class=\"start\"").nth(1).unwrap();
    let form = form.split("</form>").next().unwrap();
    let plain = |text: &str| {
        let pairs = [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&amp;", "&"),
        ];
        pairs
            .iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let attribute = |tag: &str, name: &str| {
        let rest = tag.split(&format!("{name}=\"")).nth(1)?;
        Some(plain(rest.split('"').next()?))
    };
    let mut sent = Vec::new();
    for piece in form.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        let name = attribute(tag, "name");
        match tag.split(' ').next().unwrap() {
            "input" if tag.contains("type=\"checkbox\"") && !tag.contains(" checked") => {}
            "input" => sent.push((name.unwrap(), attribute(tag, "value").unwrap_or_default())),
            "textarea" => sent.push((name.unwrap(), plain(text))),
            "option" if tag.contains(" selected") => {
                sent.push(("permissions".to_owned(), attribute(tag, "value").unwrap()));
            }
            _ => {}
        }
    }
    let pairs = sent.iter().map(|(name, value)| {
        let value = value.bytes().map(|byte| format!("%{byte:02X}"));
        format!("{name}={}", value.collect::<String>())
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// The config of a loop without what is said of it alone.
fn settings(world: &World, id: &str) -> serde_json::Value {
    status(world, id)["config"].clone()
}

#[test]
fn a_loop_is_started_again_with_all_its_settings() {
    let world = World::new();
    world.git_init();
    world.write("spec.md", "the spec");
    let flags = [
        "--name",
        "mine",
        "-m",
        "1",
        "--no-promise",
        "--verify",
        "false",
        "--auto-commit",
        "--commit-template",
        "mine {iteration}",
        "--timeout",
        "7m",
        "--max-duration",
        "2h",
        "--idle-timeout",
        "90s",
        "--max-failures",
        "3",
        "--stall-after",
        "0",
        "--max-log",
        "unlimited",
        "--gate-network",
        "off",
        "--sandbox",
        "off",
        "--permissions",
        "edit",
        "--spec-file",
        "spec.md",
        "--fresh-context",
        "--state-file",
        "mine.json",
        "--backend",
        "claude",
        "--model",
        "small",
    ];
    let first = start(&world, "print x", &flags);
    until_status(&world, &first, "ended");
    let served = serve(&world, &["--allow-start"]);
    let page = served.get(&format!("/start?like={first}"));
    let body = filled(&page.assert_status(200).body);
    // It ended at its limit: without leave to start over, its state file is in the way.
    let without = body.replace("&force=%74%72%75%65", "");
    assert_ne!(without, body);
    let refused = served.post("/api/v1/start", &without).assert_status(409);
    assert!(
        refused.body.contains("has already ended"),
        "{}",
        refused.body
    );
    let again = served.post("/api/v1/start", &body).assert_status(200);
    let second = again.json()["loop_id"].as_str().unwrap().to_owned();
    until_status(&world, &second, "ended");
    assert_eq!(settings(&world, &second), settings(&world, &first));
    assert_eq!(status(&world, &second)["name"], "mine");
}

#[test]
fn lines_of_a_gate_a_prompt_and_a_command_stay_together() {
    let world = World::new();
    world.write("sub/red", "");
    let mut command = world.descartes(["loop", "start", "--detach", "-m", "1", "--no-promise"]);
    command.args([
        "--command",
        "sh -c 'exit 0\nexit 1'",
        "--prompt",
        "one\n\ttwo",
    ]);
    // Each line by itself is green.
    command.args(["--verify", "cd sub\ntest ! -e red", "--verify", "true"]);
    let run = world.run(command);
    run.assert_code(0);
    let first = run.stdout().trim().to_owned();
    until_status(&world, &first, "ended");
    let served = serve(&world, &["--allow-start"]);
    let page = served.get(&format!("/start?like={first}"));
    // As browsers send line ends.
    let body = filled(&page.assert_status(200).body).replace("%0A", "%0D%0A");
    let again = served.post("/api/v1/start", &body).assert_status(200);
    let second = again.json()["loop_id"].as_str().unwrap().to_owned();
    until_status(&world, &second, "ended");
    assert_eq!(settings(&world, &second), settings(&world, &first));
    assert_eq!(
        status(&world, &second)["exit_reason"]["type"],
        "max_iterations_reached"
    );
    let piece = body
        .replace("&gate=", "&name=")
        .replace("&gates=", "&gates=cd+sub");
    let piece = piece.split('&').filter(|pair| !pair.starts_with("name="));
    let piece = piece.collect::<Vec<_>>().join("&");
    let refused = served.post("/api/v1/start", &piece).assert_status(422);
    assert!(refused.body.contains("several lines"), "{}", refused.body);
}

#[test]
fn a_loop_that_has_not_ended_makes_no_room() {
    let world = World::new();
    let id = start(&world, crate::common::PATIENT, &["-m", "1"]);
    let served = serve(&world, &["--allow-start"]);
    let page = served.get(&format!("/start?like={id}")).assert_status(200);
    assert!(!page.body.contains("name=\"force\""), "{}", page.body);
    let body = filled(&page.body) + "&force=true";
    let refused = served.post("/api/v1/start", &body).assert_status(409);
    assert!(refused.body.contains("has ended"), "{}", refused.body);
    world.write("go-1", "");
}

#[test]
fn settings_and_secrets_of_a_loop_never_come_to_another_folder() {
    let world = World::new();
    let key = format!("sk-ant-{}", "a1B2".repeat(10));
    let id = start(&world, "promise", &["--verify", &format!("true {key}")]);
    until_status(&world, &id, "ended");
    let other = world.root().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let other = other.to_str().unwrap();
    let served = serve(&world, &["--allow-start", "--project", other]);
    let empty = served
        .get(&format!("/start?project={other}"))
        .assert_status(200);
    assert!(!empty.body.contains("sk-ant-"), "{}", empty.body);
    assert!(empty.body.contains(other), "{}", empty.body);
    let body = format!("project={other}&like={id}&prompt=go&gates=true+sk-ant-***");
    let refused = served.post("/api/v1/start", &body).assert_status(422);
    assert!(
        refused.body.contains("the settings of a loop in"),
        "{}",
        refused.body
    );
    let own = served.get(&format!("/start?project={}", world.project().display()));
    assert!(own.assert_status(200).body.contains("true sk-ant-***"));
}

#[test]
fn a_task_loop_says_what_to_type_to_start_it_again() {
    let world = World::new();
    let id = crate::tasks::started(&world);
    let served = serve(&world, &["--allow-start"]);
    let page = served
        .get(&format!("/start?like={id}"))
        .assert_status(409)
        .body;
    assert!(page.contains("descartes roadmap run"), "{page}");
    assert!(page.contains("ROADMAP.md --command"), "{page}");
    world.run(world.descartes(["loop", "cancel", &id, "--now"]));
}
