//! Who is let in, and who is not.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use descartes_testkit::{World, eventually};

use crate::common::{PATIENT, SOON, serve, start, tokens};
use descartes_testkit::http::Ask;

/// Every address that changes something, with a body that fits.
fn changing(id: &str) -> Vec<(String, &'static str)> {
    let at = |verb: &str| format!("/api/v1/loops/{id}/{verb}");
    vec![
        (at("pause"), ""),
        (at("unpause"), ""),
        (at("say"), "text=hello"),
        (at("set"), "max_iterations=99"),
        (at("retry"), ""),
        (at("cancel"), ""),
        (at("resume"), ""),
        ("/api/v1/start".to_owned(), "project=.&prompt=x"),
    ]
}

/// Every address that shows something.
fn showing(id: &str) -> Vec<String> {
    let all = [
        "/",
        "/live",
        "/loops/ID",
        "/loops/ID/live",
        "/loops/ID/iterations/1",
        "/loops/ID/output/1",
        "/loops/ID/diff/1",
        "/loops/ID/history",
        "/loops/ID/report",
        "/metrics",
        "/api/v1/loops",
        "/api/v1/events",
        "/api/v1/loops/ID",
        "/api/v1/loops/ID/history",
        "/api/v1/loops/ID/events",
    ];
    all.iter().map(|path| path.replace("ID", id)).collect()
}

#[test]
fn without_a_token_or_with_a_wrong_one_nothing_is_shown_and_nothing_changed() {
    let world = World::in_memory();
    let id = start(&world, PATIENT, &["--name", "auth"]);
    let served = serve(&world, &[]);
    for path in showing(&id) {
        let reply = served.ask(&Ask::get(&path)).assert_status(401);
        assert!(!reply.body.contains("auth"), "{path}: {}", reply.body);
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    for (path, body) in changing(&id) {
        served.ask(&Ask::post(&path, body)).assert_status(401);
    }
    let wrong = [
        Ask::get("/api/v1/loops").bearer("wrong"),
        Ask::get("/metrics").bearer("a b"),
    ];
    for ask in wrong {
        served.ask(&ask).assert_status(401);
    }
    let cookie = format!("descartes-{}=0", served.address.split(':').nth(1).unwrap());
    served
        .ask(&Ask::get("/").with("Cookie", &cookie))
        .assert_status(401);
    // A browser is asked for a token.
    let page = served.ask(&Ask::get("/").with("Accept", "text/html"));
    assert!(page.assert_status(401).body.contains("name=\"token\""));
    let counted = served.get("/metrics").body;
    assert!(
        counted.contains("descartes_requests_refused_total{why=\"wrong_token\"} 3"),
        "{counted}"
    );
}

#[test]
fn the_printed_address_works_once_and_leads_to_a_clean_one() {
    let world = World::in_memory();
    let served = serve(&world, &[]);
    assert!(
        served
            .line
            .starts_with("serving 0 loops on http://127.0.0.1:")
    );
    let reply = served.ask(&Ask::get(&served.entrance)).assert_status(303);
    assert_eq!(reply.header("location"), Some("/"));
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    let cookie = reply.header("set-cookie").unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(&served.full) && !cookie.contains(&served.read));
    let cookie = cookie.split(';').next().unwrap();
    let page = served
        .ask(&Ask::get("/").with("Cookie", cookie))
        .assert_status(200);
    assert!(page.body.contains("no loops yet"));
    served.ask(&Ask::get(&served.entrance)).assert_status(401);
    // Typed by hand, a token does the same.
    let form = format!("token={}", served.read);
    let signed = Ask::post("/sign-in", &form).with("Origin", &served.origin());
    assert!(
        served
            .ask(&signed)
            .assert_status(303)
            .header("set-cookie")
            .is_some()
    );
    let wrong = Ask::post("/sign-in", "token=no").with("Origin", &served.origin());
    served.ask(&wrong).assert_status(401);
    let counted = served.get("/metrics").body;
    for why in ["wrong_code", "wrong_token"] {
        let line = format!("descartes_requests_refused_total{{why=\"{why}\"}} 1");
        assert!(counted.contains(&line), "{counted}");
    }
    served.ask(&Ask::post("/sign-in", &form)).assert_status(403);
}

/// What an agent runs: reads the token as its user could, and asks. `$1` token file, `$2` port, `$3` method,
/// `$4` address, `$5` body, `$6` where the answer goes; without that it is not waited for.
const ASKS: &str = r#"
token=$(tr -d ' \n' < "$1" | sed 's/.*"full":"\([^"]*\)".*/\1/')
exec 3<>"/dev/tcp/127.0.0.1/$2"
printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nAuthorization: Bearer %s\r\n' "$3" "$4" "$2" "$token" >&3
printf 'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %s\r\n' "${#5}" >&3
printf 'Connection: close\r\n\r\n%s' "$5" >&3
[ -z "$6" ] || cat <&3 > "$6"
"#;

#[test]
fn an_agent_that_reads_the_token_changes_nothing_and_its_user_does() {
    let world = World::in_memory();
    let served = serve(&world, &["--allow-start"]);
    world.write("asks.sh", ASKS);
    let (_, port) = served.address.split_once(':').unwrap();
    let file = world.state().join("web-tokens.json");
    let ask = format!("bash asks.sh {} {port}", file.display());
    let own = "/api/v1/loops/$DESCARTES_LOOP_ID";
    let script = format!(
        "sh {ask} POST {own}/say text=plain plain\n\
         sh at={own}; setsid -w env -i $(command -v bash) -c \"{ask} POST $at/say text=daemon daemon\"\n\
         sh {ask} POST {own}/say text=gone\n\
         sh {ask} POST /api/v1/start prompt=x start\n\
         sh {ask} GET {own} '' look\n\
         print asked\nwait-file go"
    );
    let id = start(&world, &script, &["-m", "1"]);
    eventually("asked", SOON, || {
        served.get(&format!("/loops/{id}")).body.contains("asked")
    });
    for answer in ["plain", "daemon", "start"] {
        let told = world.read(answer);
        assert!(told.starts_with("HTTP/1.1 403"), "{answer}: {told}");
        let why = format!("refused: this command comes from inside loop {id}");
        assert!(told.contains(&why), "{answer}: {told}");
        assert!(told.contains("a person has to type it"), "{told}");
    }
    assert!(world.read("look").starts_with("HTTP/1.1 200"));
    // Who did not wait is refused, or was forgotten before.
    let counted = served.get("/metrics").body;
    let refused = |count: u32| {
        let line = "descartes_requests_refused_total{why=\"from_within_a_loop\"}";
        counted.contains(&format!("{line} {count}\n"))
    };
    assert!(refused(3) || refused(4), "{counted}");
    let say = format!("/api/v1/loops/{id}/say");
    served.post(&say, "text=by+hand").assert_status(200);
    let notes = crate::common::status(&world, &id)["notes"].to_string();
    assert!(notes.contains("by hand"), "{notes}");
    for agent in ["plain", "daemon", "gone"] {
        assert!(!notes.contains(agent), "{notes}");
    }
    world.write("go", "");
}

#[test]
fn tokens_are_private_and_a_file_that_others_read_is_refused() {
    let world = World::in_memory();
    let served = serve(&world, &[]);
    let file = world.state().join("web-tokens.json");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_ne!(served.full, served.read);
    drop(served);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let run = world.run(world.descartes(["serve", "--listen", "127.0.0.1:0"]));
    run.assert_code(65);
    assert!(run.stderr().contains("can be read by other users"), "{run}");
    assert!(run.stderr().contains("chmod 600"), "{run}");
}

#[test]
fn a_reading_token_and_a_reading_server_change_nothing() {
    let world = World::in_memory();
    let id = start(&world, PATIENT, &[]);
    let served = serve(&world, &[]);
    let reading = serve(&world, &["--read-only"]);
    let cookie = reading.cookie();
    for (path, body) in changing(&id) {
        let by_token = Ask::post(&path, body).bearer(&served.read);
        served.ask(&by_token).assert_status(403);
        let by_full = Ask::post(&path, body).bearer(&reading.full);
        reading.ask(&by_full).assert_status(403);
        let by_cookie = Ask::post(&path, body)
            .with("Cookie", &cookie)
            .with("Origin", &reading.origin());
        reading.ask(&by_cookie).assert_status(403);
    }
    let page = served.ask(&Ask::get(format!("/loops/{id}")).bearer(&served.read));
    let page = page.assert_status(200);
    assert!(!page.body.contains("action=\"/api/"), "{}", page.body);
    let seen = crate::common::status(&world, &id);
    assert_eq!(
        (&seen["status"], &seen["config"]["max_iterations"]),
        (&"running".into(), &20.into())
    );
    assert_eq!(seen["notes"], serde_json::json!([]));
}

#[test]
fn other_hosts_and_pages_of_other_sites_are_refused() {
    let world = World::in_memory();
    let id = start(&world, PATIENT, &[]);
    let served = serve(&world, &["--host", "loops.example"]);
    let port = served.address.split(':').nth(1).unwrap().to_owned();
    for host in ["evil.example", "127.0.0.1", "127.0.0.1.evil.example:80"] {
        for path in ["/", "/sign-in", "/assets/app.js", &served.entrance] {
            let ask = Ask::get(path).bearer(&served.full).with("Host", host);
            served.ask(&ask).assert_status(421);
        }
    }
    for host in [format!("localhost:{port}"), "loops.example".to_owned()] {
        let ask = Ask::get("/").bearer(&served.full).with("Host", &host);
        served.ask(&ask).assert_status(200);
    }
    let cookie = served.cookie();
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://loops.example",
    ] {
        for (path, body) in changing(&id) {
            let ask = Ask::post(&path, body).with("Origin", origin);
            served
                .ask(&ask.clone().with("Cookie", &cookie))
                .assert_status(403);
            served.ask(&ask.bearer(&served.full)).assert_status(403);
        }
    }
    // A browser always says where a form comes from.
    let silent = Ask::post(format!("/api/v1/loops/{id}/pause"), "").with("Cookie", &cookie);
    served.ask(&silent).assert_status(403);
    let ours = silent.with("Origin", &served.origin());
    served.ask(&ours).assert_status(200);
}

#[test]
fn every_answer_forbids_what_a_page_does_not_need() {
    let world = World::in_memory();
    let served = serve(&world, &[]);
    let asks = [
        Ask::get("/").bearer(&served.full),
        Ask::get("/sign-in"),
        Ask::get("/nothing").bearer(&served.full),
        Ask::get("/").with("Host", "evil"),
        Ask::get("/api/v1/loops").bearer(&served.full),
    ];
    for ask in asks {
        let reply = served.ask(&ask);
        let policy = reply.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
}

#[test]
fn wrong_tokens_wait_longer_and_longer_and_the_right_one_never() {
    let world = World::in_memory();
    let served = serve(&world, &[]);
    let wrong = || {
        let begun = Instant::now();
        served
            .ask(&Ask::get("/api/v1/loops").bearer("x"))
            .assert_status(401);
        begun.elapsed()
    };
    for _ in 0..3 {
        wrong();
    }
    assert!(wrong() >= Duration::from_millis(800));
    // While others guess, the owner is served.
    std::thread::scope(|scope| {
        let guess = scope.spawn(wrong);
        let begun = Instant::now();
        served.get("/api/v1/loops").assert_status(200);
        assert!(begun.elapsed() < guess.join().unwrap());
    });
}

#[test]
fn new_tokens_sign_everybody_out_and_end_open_streams() {
    let world = World::in_memory();
    let served = serve(&world, &[]);
    let cookie = served.cookie();
    let mut stream = served.open("/api/v1/events");
    assert_eq!(stream.status, 200);
    let port = &served.address;
    // What is damaged is made anew by what it says: `descartes serve --new-token`.
    let file = world.state().join("web-tokens.json");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, "{").unwrap();
    let damaged = world.run(world.descartes(["serve", "--listen", "127.0.0.1:0"]));
    damaged.assert_code(65);
    let said = damaged.stderr();
    let (_, words) = said.split_once("descartes serve ").unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    std::fs::write(&file, whole).unwrap();
    let run = world.run(world.descartes(["serve", "--listen", port, "--new-token"]));
    run.assert_code(1);
    assert!(run.stderr().contains("cannot listen on"), "{run}");
    // One that serves nobody replaces nothing.
    assert_eq!(tokens(&world).0, served.full);
    let other = serve(&world, &words);
    assert_eq!(stream.event(), None);
    served
        .ask(&Ask::get("/").with("Cookie", &cookie))
        .assert_status(401);
    served.get("/api/v1/loops").assert_status(401);
    let (full, _) = tokens(&world);
    assert_ne!(full, served.full);
    assert_eq!(full, other.full);
    served
        .ask(&Ask::get("/api/v1/loops").bearer(&full))
        .assert_status(200);
}

#[test]
fn large_bodies_heads_and_clients_that_say_nothing_are_cut_off() {
    let world = World::in_memory();
    let id = start(&world, PATIENT, &[]);
    let served = serve(&world, &[]);
    for length in [70_000, 900_000] {
        let long = format!("text={}", "a".repeat(length));
        let refused = served.post(&format!("/api/v1/loops/{id}/say"), &long);
        let refused = refused.assert_status(413).json();
        assert!(refused["hint"].is_string(), "{refused}");
    }
    let head = Ask::get("/").with("X-Long", &"a".repeat(60_000));
    let status = served.ask(&head).status;
    assert!((400..500).contains(&status), "{status}");
    // A head that never ends.
    let mut slow = TcpStream::connect(&served.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(100)))
        .unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    served.get("/").assert_status(200);
    let json =
        Ask::post(format!("/api/v1/loops/{id}/say"), "{}").with("Content-Type", "application/json");
    served.ask(&json.bearer(&served.full)).assert_status(415);
}

#[test]
fn strangers_with_slow_bodies_lock_nobody_out_and_are_cut_off() {
    let world = World::in_memory();
    let served = serve(&world, &[]);
    let head = format!(
        "POST /sign-in HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nContent-Length: 1000\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken=",
        served.address
    );
    let begun = Instant::now();
    let mut strangers: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut one = TcpStream::connect(&served.address).unwrap();
            // One that had to make room may be closed by now.
            let _ = one.write_all(head.as_bytes());
            one
        })
        .collect();
    let asked = Instant::now();
    served.get("/api/v1/loops").assert_status(200);
    let signed = Ask::post("/sign-in", &format!("token={}", served.full));
    let signed = signed.with("Origin", &served.origin());
    served.ask(&signed).assert_status(303);
    assert!(asked.elapsed() < Duration::from_secs(5));
    let last = strangers.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut told = Vec::new();
    last.read_to_end(&mut told).unwrap();
    let told = String::from_utf8_lossy(&told);
    assert!(told.starts_with("HTTP/1.1 408"), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(45));
}

#[test]
fn wrong_tokens_at_the_same_time_wait_all_of_them() {
    let world = World::in_memory();
    let served = serve(&world, &[]);
    let wrong = Ask::get("/api/v1/loops").bearer("x");
    for _ in 0..5 {
        served.ask(&wrong).assert_status(401);
    }
    std::thread::scope(|scope| {
        let guesses: Vec<_> = (0..100)
            .map(|_| {
                scope.spawn(|| {
                    let begun = Instant::now();
                    served.ask(&wrong).assert_status(401);
                    begun.elapsed()
                })
            })
            .collect();
        for guess in guesses {
            assert!(guess.join().unwrap() >= Duration::from_secs(3));
        }
    });
}
