//! The API prints what `--json` prints.

use descartes_testkit::{World, eventually};
use serde_json::Value;

use descartes_testkit::http::Ask;

use crate::common::{PATIENT, SOON, serve, start, until_status};

fn printed(world: &World, words: &[&str]) -> String {
    let run = world.run(world.descartes(words));
    run.assert_code(0);
    run.stdout().to_owned()
}

#[test]
fn list_status_and_history_are_those_of_the_command_line() {
    let world = World::in_memory();
    world.git_init();
    let id = start(
        &world,
        "write f-${ITERATION} x",
        &["-m", "2", "--name", "auth", "--verify", "false"],
    );
    until_status(&world, &id, "ended");
    let served = serve(&world, &[]);
    let list = served.get("/api/v1/loops").assert_status(200);
    assert_eq!(list.header("content-type"), Some("application/json"));
    assert_eq!(
        list.body,
        printed(&world, &["loop", "list", "--all", "--json"])
    );
    let status = served.get("/api/v1/loops/auth").body;
    assert_eq!(
        status,
        printed(&world, &["loop", "status", "auth", "--json"])
    );
    let history = served.get(&format!("/api/v1/loops/{id}/history")).body;
    assert_eq!(
        history,
        printed(&world, &["loop", "history", "auth", "--json"])
    );
    let last = served.get(&format!("/api/v1/loops/{id}/history?last=1"));
    assert_eq!(last.lines().len(), 1);
    let missing = served.get("/api/v1/loops/nobody").assert_status(404).json();
    assert!(missing["hint"].as_str().unwrap().contains("loop list"));
    served.get("/api/v1/loops?order=up").assert_status(400);
}

#[test]
fn metrics_count_loops_iterations_and_gates() {
    let world = World::in_memory();
    let id = start(
        &world,
        "print x",
        &["-m", "2", "--verify", "false", "--no-promise"],
    );
    until_status(&world, &id, "ended");
    start(
        &world,
        PATIENT,
        &["--name", "other", "--state-file", "other.json"],
    );
    let served = serve(&world, &[]);
    eventually("the other loop", SOON, || {
        served
            .get("/metrics")
            .body
            .contains("descartes_loops{state=\"running\"} 1")
    });
    let text = served.get("/metrics").body;
    for line in [
        "descartes_loops{state=\"ended\"} 1",
        "descartes_iterations_total 2",
        "descartes_gates_total{outcome=\"red\"} 2",
        "# TYPE descartes_tokens_total counter",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_loop_that_vanishes_while_it_is_looked_at_is_told_of() {
    let world = World::in_memory();
    let id = start(&world, "print x", &["-m", "1", "--name", "auth"]);
    until_status(&world, &id, "ended");
    let served = serve(&world, &[]);
    let mut events = served.open(&format!("/api/v1/loops/{id}/events"));
    let mut live = served.open(&format!("/loops/{id}/live"));
    assert!(
        live.event().unwrap().json()["parts"]["head"]
            .as_str()
            .unwrap()
            .contains("auth")
    );
    std::fs::remove_dir_all(world.state().join("loops").join(&id)).unwrap();
    let trouble = loop {
        let news = live.event().expect("the stream goes on").json();
        let trouble = news["parts"]["trouble"].as_str().unwrap().to_owned();
        if !trouble.is_empty() {
            break trouble;
        }
    };
    assert!(trouble.contains("descartes loop list"), "{trouble}");
    let told: Vec<_> = std::iter::from_fn(|| events.event()).collect();
    assert_eq!(told.last().unwrap().name, "trouble");
    served.get(&format!("/loops/{id}")).assert_status(404);
    served
        .get(&format!("/api/v1/loops/{id}/events"))
        .assert_status(404);
    eventually("the list", SOON, || !served.get("/").body.contains(&id));
    let list: Value = served.get("/api/v1/loops").json();
    assert_eq!(list, serde_json::json!([]));
}

#[test]
fn no_address_opens_a_file() {
    let world = World::in_memory();
    let id = start(&world, "promise", &["--name", "auth"]);
    until_status(&world, &id, "ended");
    world.write("secret.json", "{\"loop_id\": \"s3cret\"}");
    let served = serve(&world, &[]);
    let encoded = |path: std::path::PathBuf| path.display().to_string().replace('/', "%2F");
    let own = world.project().join(".descartes/loop-state.json");
    assert!(own.is_file());
    for file in [
        world.project().join("secret.json"),
        own,
        "secret.json".into(),
    ] {
        let file = encoded(file);
        for path in [
            format!("/api/v1/loops/{file}"),
            format!("/api/v1/loops/{file}/history"),
            format!("/api/v1/loops/{file}/events"),
            format!("/loops/{file}"),
            format!("/loops/{file}/report"),
        ] {
            let reply = served.get(&path).assert_status(404);
            assert!(!reply.body.contains("s3cret"), "{}", reply.body);
        }
        let say = format!("/api/v1/loops/{file}/say");
        served.post(&say, "text=x").assert_status(404);
    }
    for known in [&id[..], &id[..id.len() - 2], "auth"] {
        served
            .get(&format!("/api/v1/loops/{known}"))
            .assert_status(200);
    }
}

#[test]
fn every_refusal_has_an_error_and_a_hint_and_is_a_page_for_people() {
    let world = World::in_memory();
    let id = start(&world, "promise", &["--name", "auth"]);
    until_status(&world, &id, "ended");
    let twin = start(
        &world,
        "promise",
        &["--name", "auth", "--state-file", "b.json"],
    );
    until_status(&world, &twin, "ended");
    let served = serve(&world, &[]);
    let at = |rest: &str| format!("/api/v1/loops/{id}{rest}");
    let get = |path: String, status: u16| (Ask::get(path), status);
    let post = |path: String, body: &str, status: u16| (Ask::post(path, body), status);
    let all = [
        get("/api/v1/loops?x=1".into(), 400),
        get(at("/events?from=abc"), 400),
        get(at("/history?last=-1"), 400),
        get("/api/v1/loops/%ff".into(), 400),
        get("/api/v1/loops/auth".into(), 409),
        get(at("/pause"), 405),
        get("/nothing".into(), 404),
        get("/?page=-1".into(), 400),
        get(format!("/loops/{id}/iterations/abc"), 400),
        post(at("/pause?wait=abc"), "", 400),
        post("/sign-in".into(), "token=x&more=y", 422),
    ];
    for (ask, status) in all {
        let ask = ask.bearer(&served.full).with("Origin", &served.origin());
        let reply = served.ask(&ask).assert_status(status);
        let told = reply.json();
        for key in ["error", "hint"] {
            let words = told[key].as_str().unwrap_or_default();
            assert!(!words.is_empty(), "{ask:?}: {told}");
        }
        let seen = served.ask(&ask.clone().with("Accept", "text/html"));
        let is_page = seen
            .assert_status(status)
            .body
            .contains("<h1>Not shown</h1>");
        assert_eq!(is_page, !ask.path.starts_with("/api/"), "{ask:?}");
    }
    let far = Ask::get(at("/events?follow=false")).with("Last-Event-ID", &u64::MAX.to_string());
    let far = served.ask(&far.bearer(&served.full)).assert_status(200);
    assert!(!far.body.contains("event: record"), "{}", far.body);
}

#[test]
fn a_loop_whose_folder_is_moved_away_leaves_the_list_at_once() {
    let world = World::in_memory();
    let id = start(&world, "print x", &["-m", "1", "--name", "auth"]);
    until_status(&world, &id, "ended");
    let served = serve(&world, &[]);
    assert!(served.get("/").body.contains(&id));
    let folder = world.state().join("loops").join(&id);
    let begun = std::time::Instant::now();
    std::fs::rename(folder, world.root().join("away")).unwrap();
    eventually("the list", SOON, || !served.get("/").body.contains(&id));
    assert!(begun.elapsed() < std::time::Duration::from_secs(15));
}
