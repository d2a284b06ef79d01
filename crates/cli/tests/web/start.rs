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
    post(&plain, &form(&world, known, "")).assert_status(403);
    plain.get("/start").assert_status(403);
    assert!(!plain.get("/").body.contains("/start"));

    let served = serve(&world, &["--allow-start"]);
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
