//! Starting loops from a browser: off, unless the server was told otherwise.

use descartes_testkit::World;

use crate::common::{serve, start, status, until_status};
use crate::http::Ask;

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
