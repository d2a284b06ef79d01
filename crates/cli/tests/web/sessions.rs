//! Browsers that are signed in, and how that ends.

use std::os::unix::fs::PermissionsExt;

use descartes_testkit::World;
use descartes_testkit::http::{self, Ask, Reply};

use crate::common::{PATIENT, serve, start};

#[test]
fn signing_out_ends_the_session_and_no_other_site_signs_anybody_out() {
    let world = World::in_memory();
    let served = serve(&world, &["--read-only"]);
    let cookie = served.cookie();
    let sign_in = Ask::post("/sign-in", &format!("token={}", served.read));
    let sign_in = sign_in.with("Origin", &served.origin());
    let others = cookie_of(&served.ask(&sign_in).assert_status(303));
    assert_ne!(cookie, others);
    let events = |cookie: &str| Ask::get("/api/v1/events").with("Cookie", cookie);
    let mut stream = http::open(&served.address, &events(&cookie));
    let mut other_stream = http::open(&served.address, &events(&others));
    let ask = Ask::post("/sign-out", "").with("Cookie", &cookie);
    let by_other = ask.clone().with("Origin", "http://evil.example");
    served.ask(&by_other).assert_status(403);
    served.ask(&look(&cookie)).assert_status(200);
    let out = served.ask(&ask.with("Origin", &served.origin()));
    let out = out.assert_status(200);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert!(out.body.contains("Signed out."), "{}", out.body);
    assert_eq!(stream.event(), None);
    served.ask(&look(&cookie)).assert_status(401);
    // The other browser stays, also when the server is started again, and until its time is over.
    let id = start(&world, PATIENT, &["-m", "1"]);
    assert!(other_stream.event().is_some());
    served.ask(&look(&others)).assert_status(200);
    let address = served.address.clone();
    drop(served);
    let served = serve(&world, &["--listen", &address]);
    served.ask(&look(&others)).assert_status(200);
    served.ask(&look(&cookie)).assert_status(401);
    let folder = world.state().join("web-sessions");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let file = files[0].path();
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::write(&file, "1000000000\n").unwrap();
    served.ask(&look(&others)).assert_status(401);
    world.run(world.descartes(["loop", "cancel", &id, "--now"]));
}

fn look(cookie: &str) -> Ask {
    Ask::get("/api/v1/loops").with("Cookie", cookie)
}

fn cookie_of(reply: &Reply) -> String {
    let cookie = reply.header("set-cookie").unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn who_signs_out_at_one_server_is_signed_out_at_all() {
    let world = World::in_memory();
    let (one, two) = (serve(&world, &[]), serve(&world, &[]));
    let cookie = one.cookie();
    let (_, value) = cookie.split_once('=').unwrap();
    let there = format!(
        "descartes-{}={value}",
        two.address.split(':').nth(1).unwrap()
    );
    let events = Ask::get("/api/v1/events").with("Cookie", &there);
    let mut stream = http::open(&two.address, &events);
    assert_eq!(stream.status, 200);
    let again = Ask::post("/sign-in", &format!("token={}", one.full)).with("Origin", &one.origin());
    // Whoever signs in once more has one session, the new one.
    let cookie = cookie_of(&one.ask(&again.with("Cookie", &cookie)).assert_status(303));
    assert_eq!(stream.event(), None);
    two.ask(&look(&there)).assert_status(401);
    one.ask(&look(&cookie)).assert_status(200);
}
