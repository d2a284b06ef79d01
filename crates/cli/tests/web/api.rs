//! The API prints what `--json` prints.

use descartes_testkit::{World, eventually};
use serde_json::Value;

use crate::common::{PATIENT, SOON, serve, start, until_status};

fn printed(world: &World, words: &[&str]) -> String {
    let run = world.run(world.descartes(words));
    run.assert_code(0);
    run.stdout().to_owned()
}

#[test]
fn list_status_and_history_are_those_of_the_command_line() {
    let world = World::new();
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
    let world = World::new();
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
    let world = World::new();
    let id = start(&world, "print x", &["-m", "1", "--name", "auth"]);
    until_status(&world, &id, "ended");
    let served = serve(&world, &[]);
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
    let world = World::new();
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
