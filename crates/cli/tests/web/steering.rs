//! Steering real loops from a browser's side: both answers.

use descartes_testkit::{World, eventually};
use serde_json::Value;

use crate::common::{PATIENT, SOON, serve, start, status, until_status};

fn answers(lines: &[Value]) -> Vec<String> {
    let text = |line: &Value| line["answer"].as_str().unwrap().to_owned();
    lines.iter().map(text).collect()
}

#[test]
fn pause_say_limits_go_on_and_cancel_are_accepted_and_take_effect() {
    let world = World::in_memory();
    let script = "save-prompt prompt-${ITERATION} arg\nprint at work\nwait-file go-${ITERATION}";
    let id = start(&world, script, &["-m", "5", "--name", "auth"]);
    let served = serve(&world, &[]);
    let at = |verb: &str| format!("/api/v1/loops/{id}/{verb}");
    eventually("the agent", SOON, || world.has("prompt-1"));
    let said = served
        .post(&at("say"), "text=use+tabs+%26+spaces")
        .assert_status(200);
    assert!(
        said.lines()[0]["message"]
            .as_str()
            .unwrap()
            .contains("iteration 2 gets the note")
    );
    let set = served
        .post(
            &at("set?wait=60"),
            "max_iterations=3&max_duration=2h&timeout=",
        )
        .assert_status(200);
    let set = set.lines();
    assert_eq!(answers(&set), ["accepted", "effective"]);
    assert!(
        set[1]["message"]
            .as_str()
            .unwrap()
            .contains("max_iterations")
    );
    let seen = status(&world, &id);
    assert_eq!(seen["config"]["max_iterations"], 3);
    assert_eq!(seen["config"]["max_duration_secs"], 7200);
    std::thread::scope(|scope| {
        let pause = scope.spawn(|| served.post(&at("pause?wait=60"), "").lines());
        eventually("the pause", SOON, || status(&world, &id)["pause"] != "no");
        world.write("go-1", "");
        let pause = pause.join().unwrap();
        assert_eq!(answers(&pause), ["accepted", "effective"]);
        assert_eq!(pause[1]["message"], "paused before iteration 2");
    });
    let page = served.get(&format!("/loops/{id}")).body;
    assert!(
        page.contains("/unpause") && !page.contains("/pause\""),
        "{page}"
    );
    let on = served.post(&at("unpause?wait=60"), "").lines();
    assert_eq!(answers(&on), ["accepted", "effective"]);
    eventually("the note", SOON, || {
        world.has("prompt-2") && world.read("prompt-2").contains("use tabs & spaces")
    });
    let again = served.post(&at("unpause"), "").lines();
    assert_eq!(answers(&again), ["unchanged"]);
    let cancel = served.post(&at("cancel"), "").lines();
    assert_eq!(cancel[0]["answer"], "accepted");
    until_status(&world, &id, "ended");
    world.write("go-2", "");
    let resumed = served
        .post(&at("resume"), "max_iterations=4")
        .assert_status(200);
    assert_eq!(answers(&resumed.lines()), ["accepted", "effective"]);
    eventually("the next iteration", SOON, || world.has("prompt-3"));
    served.post(&at("cancel"), "now=true").assert_status(200);
    until_status(&world, &id, "ended");
    drop(served);
    world.assert_no_survivors();
}

#[test]
fn nothing_but_limits_notes_and_waits_can_be_changed() {
    let world = World::in_memory();
    let id = start(&world, PATIENT, &["--verify", "false"]);
    let served = serve(&world, &[]);
    let before = status(&world, &id)["config"].clone();
    for verb in ["set", "resume"] {
        for field in [
            "verify",
            "prompt",
            "prompt_file",
            "model",
            "permissions",
            "prompt_mode",
            "agent",
            "backend",
            "env",
            "working_dir",
            "state_file",
            "command",
            "trust_marks",
            "accept_edits",
        ] {
            let body = format!("max_iterations=9&{field}=x");
            let reply = served.post(&format!("/api/v1/loops/{id}/{verb}"), &body);
            assert!(reply.assert_status(422).body.contains(field));
        }
    }
    for (verb, body) in [
        ("set", "max_iterations=--verify"),
        ("set", "max_cost=much"),
        ("set", ""),
        ("say", "text=+"),
        ("say", "note=x"),
        ("cancel", "now=maybe"),
        ("resume", "timeout=0s"),
        ("pause", "verify=x"),
    ] {
        served
            .post(&format!("/api/v1/loops/{id}/{verb}"), body)
            .assert_status(422);
    }
    served
        .post(&format!("/api/v1/loops/{id}/rewind"), "")
        .assert_status(404);
    served
        .post("/api/v1/loops/nobody/pause", "")
        .assert_status(404);
    assert_eq!(status(&world, &id)["config"], before);
    let running = served.post(&format!("/api/v1/loops/{id}/resume"), "");
    assert!(
        running.assert_status(409).json()["error"]
            .as_str()
            .unwrap()
            .contains("is held")
    );
}

#[test]
fn a_loop_that_is_done_takes_no_orders() {
    let world = World::in_memory();
    let id = start(&world, "promise", &[]);
    until_status(&world, &id, "ended");
    let served = serve(&world, &[]);
    let said = served.post(&format!("/api/v1/loops/{id}/say"), "text=x");
    assert!(
        said.assert_status(409).json()["error"]
            .as_str()
            .unwrap()
            .contains("done")
    );
    let resumed = served.post(&format!("/api/v1/loops/{id}/resume"), "");
    let told = resumed.assert_status(200).lines();
    assert_eq!(answers(&told), ["unchanged"]);
    let words = told[0]["message"].as_str().unwrap();
    assert!(words.contains("already done"), "{words}");
    let page = served.get(&format!("/loops/{id}")).body;
    assert!(page.contains("takes no orders"), "{page}");
    for form in ["/say\"", "/set\""] {
        assert!(!page.contains(form), "{page}");
    }
}
