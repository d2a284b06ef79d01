//! `on_event`: commands and webhooks hear of real loops, and never hold them up.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use descartes_testkit::{World, eventually};
use serde_json::Value;

use crate::common::{descartes, events, journal, loop_dir, start};

const SOON: Duration = descartes_testkit::PATIENCE;

fn configure(world: &World, text: &str) {
    world.configure(text);
}

#[test]
fn a_command_hears_of_the_end_as_json_and_in_its_environment() {
    let world = World::in_memory();
    configure(
        &world,
        "on_event = 'cat > heard.json.part; env > heard.env; mv heard.json.part heard.json'\n",
    );
    start(&world, "promise", &["--name", "auth", "--verify", "true"]).assert_code(0);
    eventually("the hook", SOON, || world.has("heard.json"));
    let heard: Value = serde_json::from_str(&world.read("heard.json")).unwrap();
    assert_eq!(heard["event"], "ended");
    assert_eq!(heard["exit_code"], 0);
    assert_eq!(heard["exit_reason"]["type"], "completion_promise_detected");
    assert_eq!(heard["name"], "auth");
    assert_eq!(heard["loop_id"], journal(&world)[0]["loop_id"]);
    let env = world.read("heard.env");
    assert!(env.contains("DESCARTES_EVENT=ended\n"), "{env}");
    assert!(env.contains("DESCARTES_EVENT_NAME=auth\n"), "{env}");
    assert!(
        !env.contains("DESCARTES_LOOP_ID="),
        "a hook is no part of the loop: {env}"
    );
}

#[test]
fn a_hook_that_hangs_delays_no_loop_and_a_failure_is_tried_again_and_written_down() {
    let world = World::in_memory();
    configure(
        &world,
        "on_event_timeout = \"4s\"\n\
         on_event = ['echo x >> hung; exec sleep 1000', 'echo x >> tries; test $(wc -l < tries) = 2', 'http://127.0.0.1:1/']\n",
    );
    let begun = Instant::now();
    start(&world, "promise", &["--detach"]).assert_code(0);
    eventually("the end", SOON, || {
        !events(&world, "loop_finished").is_empty()
    });
    eventually("the lock", SOON, || {
        descartes(&world, &["loop", "status", "--json"])
            .stdout()
            .contains("\"pid\":null")
    });
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    eventually("the second try", SOON, || {
        world.has("tries") && world.read("tries").len() == 4
    });
    let log = loop_dir(&world).join("notify.log");
    eventually("what could not be told", SOON, || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.lines().count() == 2)
    });
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(
        log.contains("sleep 1000: took longer than 4 s (tried 3 times)"),
        "{log}"
    );
    assert!(log.contains("http://127.0.0.1:1/: cannot reach"), "{log}");
    assert_eq!(world.read("hung").len(), 6, "three tries");
}

#[test]
fn a_webhook_hears_of_a_blocked_agent_without_its_secrets() {
    let world = World::in_memory();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    let (heard, rx) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        while !text.ends_with("}\n") {
            let read = stream.read(&mut piece).unwrap();
            text.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        heard.send(text).unwrap();
    });
    configure(&world, &format!("on_event = \"http://{place}/hook\"\n"));
    let key = format!("sk-ant-{}", "a1B2c3D4".repeat(5));
    let script = format!("print no key {key}\npromise BLOCKED");
    start(&world, &script, &[]).assert_code(5);
    let text = rx.recv_timeout(SOON).unwrap();
    assert!(text.starts_with("POST /hook HTTP/1.1\r\n"), "{text}");
    assert!(text.contains("\"event\":\"needs_person\""), "{text}");
    assert!(!text.contains("a1B2c3D4"), "{text}");
}

/// Reads one request to its end.
fn request(stream: &mut std::net::TcpStream) -> String {
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !text.ends_with("}\n") {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "cut off: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    text
}

#[test]
fn a_webhook_that_is_down_for_a_moment_hears_of_it_with_the_next_try() {
    let world = World::in_memory();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    let (heard, rx) = channel();
    std::thread::spawn(move || {
        for answer in ["500 Internal Server Error", "200 OK"] {
            let (mut stream, _) = listener.accept().unwrap();
            let text = request(&mut stream);
            let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
            heard.send(text).unwrap();
        }
        // A third try would be one too many.
        listener.set_nonblocking(true).unwrap();
        std::thread::sleep(Duration::from_secs(6));
        assert!(listener.accept().is_err());
        heard.send("no more".to_owned()).unwrap();
    });
    configure(&world, &format!("on_event = \"http://{place}/hook\"\n"));
    start(&world, "promise", &["--name", "auth"]).assert_code(0);
    let first = rx.recv_timeout(SOON).unwrap();
    let second = rx.recv_timeout(SOON).unwrap();
    assert!(first.contains("\"event\":\"ended\""), "{first}");
    assert_eq!(first, second, "the same is told again");
    assert_eq!(rx.recv_timeout(SOON).unwrap(), "no more");
    assert!(!loop_dir(&world).join("notify.log").exists(), "it was told");
}

#[test]
fn a_webhook_that_takes_the_event_and_never_answers_holds_up_no_loop() {
    let world = World::in_memory();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    let (heard, rx) = channel();
    std::thread::spawn(move || {
        // One that is not even read, and one that drips a byte now and then, without an end.
        let (kept, _) = listener.accept().unwrap();
        let (mut dripping, _) = listener.accept().unwrap();
        request(&mut dripping);
        dripping.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ").unwrap();
        let mut drops = 0;
        while dripping.write_all(b"H").is_ok() {
            drops += 1;
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(kept);
        heard.send(drops).unwrap();
    });
    configure(
        &world,
        &format!(
            "on_event_timeout = \"8s\"\non_event = [\"http://{place}/a\", \"http://{place}/b\"]\n"
        ),
    );
    let begun = Instant::now();
    start(&world, "promise", &["--detach"]).assert_code(0);
    eventually("the lock", SOON, || {
        descartes(&world, &["loop", "status", "--json"])
            .stdout()
            .contains("\"pid\":null")
    });
    assert_eq!(events(&world, "loop_finished").len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(15));
    // It is given up after its time, however much comes.
    let drops: u32 = rx.recv_timeout(SOON).unwrap();
    assert!(drops > 0);
}

#[test]
fn bad_values_are_refused_with_their_place_and_settings_are_shown() {
    let world = World::in_memory();
    for (text, why) in [
        ("on_event = 3\n", "config.toml:1:12: `on_event`"),
        (
            "\non_event = [\"ok\", \"ftp://x/\"]\n",
            "config.toml:2:12: `on_event`: unsupported URL scheme `ftp`",
        ),
        ("on_event = \"http:///x\"\n", "has no host"),
        ("on_event = \" \"\n", "the command is empty"),
        (
            "notify = \"pigeon\"\n",
            "config.toml:1:10: `notify`: expected one or more of desktop, bell",
        ),
        (
            "on_event_timeout = \"soon\"\n",
            "config.toml:1:20: `on_event_timeout`",
        ),
    ] {
        world.write(".descartes/config.toml", text);
        let run = start(&world, "promise", &[]);
        run.assert_code(64);
        assert!(run.stderr().contains(why), "{text}: {}", run.stderr());
    }
    configure(
        &world,
        "on_event = \"true\"\nnotify = []\nmax_logs = \"1GiB\"\n",
    );
    let shown = descartes(&world, &["config", "show"]).stdout();
    for row in ["on_event ", "on_event_timeout", "notify ", "max_logs "] {
        assert!(shown.contains(row), "{shown}");
    }
    assert!(shown.contains("config.toml:1"), "{shown}");
}

#[test]
fn the_desktop_is_told_where_there_is_one_and_no_desktop_is_no_trouble() {
    let world = World::in_memory();
    world.program(
        "notify-send",
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > seen.part; mv seen.part seen\n",
    );
    start(&world, "promise", &["--name", "auth"]).assert_code(0);
    assert!(!world.has("seen"), "there is no display");
    let mut command = crate::common::start_command(
        &world,
        "print a <b>\npromise BLOCKED",
        &["--force", "--name", "auth"],
    );
    command.env("DISPLAY", ":99");
    world.run(command).assert_code(5);
    eventually("the notification", SOON, || world.has("seen"));
    let seen = world.read("seen");
    assert!(seen.contains("critical\n--\ndescartes: auth\n"), "{seen}");
    assert!(!seen.contains("<b>"), "{seen}");
}

#[test]
fn logs_beyond_their_budget_make_room_and_that_is_journalled() {
    let world = World::in_memory();
    configure(&world, "max_logs = \"100KB\"\n");
    start(&world, "flood 60000", &["-m", "4"]).assert_code(2);
    let removed: Vec<String> = events(&world, "warning")
        .iter()
        .filter_map(|record| record["message"].as_str().map(str::to_owned))
        .filter(|message| message.contains("was removed to make room"))
        .collect();
    assert!(
        !removed.is_empty() && removed[0].contains("run 1"),
        "{removed:?}"
    );
    let runs = loop_dir(&world).join("runs");
    assert!(!runs.join("0001").exists());
    assert!(runs.join("0004").is_dir(), "the newest stays");
}

#[test]
fn a_hook_script_that_was_changed_since_the_loop_began_may_not_steer() {
    for (changes, code) in [(false, 0), (true, 65)] {
        let world = World::in_memory();
        let program = descartes_testkit::world::bins::descartes();
        let steers = format!(
            "#!/bin/sh\n[ \"$DESCARTES_EVENT\" = ended ] && ! [ -e code ] || exit 0\n\
             while :; do\n\
               said=$({} loop resume --verify true -m 9 </dev/null 2>&1); code=$?\n\
               case $said in *'is held by'*) sleep 0.1 ;; *) break ;; esac\n\
             done\n\
             echo \"$said\" >steered\necho $code >code.$$\nmv code.$$ code\n",
            program.display()
        );
        let first = match changes {
            true => "#!/bin/sh\nexit 0\n",
            false => steers.as_str(),
        };
        let script = world.write("notify.sh", first);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).unwrap();
        let kept = world.root().join("other.sh");
        std::fs::write(&kept, &steers).unwrap();
        configure(
            &world,
            "on_event = './notify.sh'\non_event_timeout = '60s'\n",
        );
        let agent = format!("sh cat {} >notify.sh ;; promise", kept.display());
        let flags = ["--verify", "false", "-m", "1"];
        start(&world, &agent, &flags).assert_code(2);
        eventually("the hook", SOON, || world.has("code"));
        let told = world.read("code");
        assert_eq!(told.trim(), code.to_string(), "{}", world.read("steered"));
    }
}
