//! The pages in a real browser.

use descartes_testkit::World;
use serde_json::json;

use crate::common::{Served, serve, start, status, until_status};
use descartes_testkit::browser::{Browser, DESKTOP, PHONE, Screen, TABLET};

/// An agent that says something and waits for leave.
const SPEAKS: &str = "print working on <b>iteration ${ITERATION}</b>\nappend notes.txt line ${ITERATION}\n\
                      wait-file go-${ITERATION}\nprint done with it";

pub fn enter(browser: &Browser, served: &Served) {
    browser.go(&format!("{}{}", served.origin(), served.entrance));
    assert_eq!(browser.url(), format!("{}/", served.origin()));
}

/// Nothing was refused by the policy, and no script failed.
#[track_caller]
pub fn no_complaints(browser: &Browser) {
    let all = browser.complaints();
    let bad: Vec<&String> = all
        .iter()
        .filter(|line| !line.contains("net::ERR") && !line.contains("status of"))
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn a_loop_is_followed_and_steered_from_the_list_to_its_end() {
    let Some(browser) = Browser::start(DESKTOP) else {
        return;
    };
    let world = World::in_memory();
    world.git_init();
    let gate = "echo checked by the gate; test -e never";
    let id = start(
        &world,
        SPEAKS,
        &[
            "-m",
            "6",
            "--name",
            "auth",
            "--no-promise",
            "--verify",
            gate,
        ],
    );
    let served = serve(&world, &[]);
    enter(&browser, &served);
    browser.until_text("#link", "live");
    browser.until_text("#rows", "auth");
    browser.picture("list");
    browser.click("#rows a");
    browser.until_text("#output", "working on <b>iteration 1</b>");
    // A new line appears without a reload.
    world.write("go-1", "");
    browser.until_text("#output", "working on <b>iteration 2</b>");
    browser.until_text("#gates", "checked by the gate");
    browser.until_text("#history", "worked");
    browser.until(
        "the picture",
        "return !!document.querySelector('#pictures svg')",
    );
    browser.picture("loop");
    // Both answers of a command.
    browser.keys("#say", "use tabs <script>\n");
    browser.until_text("#answers", "say: accepted: iteration 3 gets the note");
    browser.click("#do-pause");
    browser.until_text(
        "#answers",
        "pause: accepted: it takes effect after iteration 2",
    );
    world.write("go-2", "");
    browser.until_text("#answers", "pause: effective");
    browser.until_text("#head", "Paused");
    browser.click("#limits summary");
    browser.keys("#set-max_iterations", "5\n");
    browser.until_text("#answers", "set: effective: changed: max_iterations");
    let count =
        "return document.getElementById('answers').innerText.split('set: effective').length - 1";
    assert_eq!(browser.run(count), 1);
    browser.until_text("#head", "of at most 5");
    // By its key, as in `descartes watch`.
    browser.run("document.activeElement.blur()");
    browser.keys("body", "p");
    browser.until_text("#answers", "unpause: effective: continuing");
    browser.until_text("#output", "working on <b>iteration 3</b>");
    // A note has taken effect once an iteration has finished with it.
    world.write("go-3", "");
    browser.until_text("#answers", "say: effective");
    browser.until_text("#output", "working on <b>iteration 4</b>");
    browser.click("#do-cancel");
    assert!(browser.accept_question().contains("Cancel auth?"));
    browser.until_text("#head", "Cancelled");
    until_status(&world, &id, "ended");
    assert_eq!(status(&world, &id)["config"]["max_iterations"], 5);
    world.write("go-5", "");
    browser.until("resume", "return !!document.querySelector('#do-resume')");
    browser.click("#do-resume");
    browser.until_text("#answers", "resume: effective: resumed in the background");
    browser.until_text("#head", "Iteration limit");
    browser.click(".history a");
    browser.until_text("h1", "Iteration 5");
    browser.picture("iteration");
    browser.click("a[href*='/diff/']");
    browser.until_text(".diff", "+line 5");
    browser.picture("diff");
    no_complaints(&browser);
}

/// An agent as people have them: on the path, with words of its own.
const TYPICAL: &str = "#!/bin/sh\n\
    echo 'Reading src/lib.rs and the failing tests.'\n\
    echo '$ cargo test  exit 101  3.2 s'\n\
    echo 'The tokenizer drops the last character of a quoted string.'\n\
    echo 'edit src/tokenizer.rs'\n\
    echo \"fixed $DESCARTES_ITERATION\" >> tokenizer.rs\n\
    while [ $DESCARTES_ITERATION = 3 ] && [ ! -e end ]; do sleep 0.05; done\n";

/// `docs/web.png` is the picture that this takes.
#[test]
fn one_page_shows_what_a_loop_does_and_did() {
    let tall = Screen {
        width: 1180,
        height: 1500,
        dark: false,
    };
    let Some(browser) = Browser::start(tall) else {
        return;
    };
    let world = World::in_memory();
    world.git_init();
    world.program("my-agent", TYPICAL);
    let gate = "echo 'test quoted_string ... FAILED'; echo '2 passed; 1 failed'; exit 1";
    let words = [
        "loop",
        "start",
        "--detach",
        "--command",
        "my-agent",
        "--name",
        "parser",
    ];
    let more = [
        "--prompt",
        "make the tests pass",
        "-m",
        "12",
        "--max-duration",
        "2h",
    ];
    let flags = ["--verify", gate, "--no-promise"];
    let run = world.run(world.descartes([&words[..], &more, &flags].concat()));
    run.assert_code(0);
    let id = run.stdout().trim().to_owned();
    let served = serve(&world, &[]);
    enter(&browser, &served);
    browser.go(&format!("{}/loops/{id}", served.origin()));
    browser.until_text("#head", "iteration 3 of at most 12");
    browser.until_text("#output", "edit src/tokenizer.rs");
    browser.keys("#say", "use the names of the grammar in error messages\n");
    browser.until_text("#notes", "use the names of the grammar");
    browser.until_text("#gates", "2 passed; 1 failed");
    browser.until_text("#history", "running");
    // The two that are over share a bar where the third has been at work for much longer.
    let drawn = "return document.querySelectorAll('#pictures svg rect').length >= 2";
    browser.until("the picture", drawn);
    browser.run("document.activeElement.blur()");
    browser.picture("web");
    world.write("end", "");
    world.run(world.descartes(["loop", "cancel", &id, "--now"]));
    no_complaints(&browser);
}

#[test]
fn a_lost_server_is_said_and_found_again_with_nothing_missed() {
    let Some(browser) = Browser::start(DESKTOP) else {
        return;
    };
    let world = World::in_memory();
    let script = "print one\nwait-file go\nprint two\nprint three\nwait-file end";
    let id = start(&world, script, &["-m", "1"]);
    let served = serve(&world, &[]);
    let address = served.address.clone();
    enter(&browser, &served);
    browser.go(&format!("{}/loops/{id}", served.origin()));
    browser.until_text("#output", "one");
    browser.until_text("#link", "live");
    drop(served);
    browser.until_text("#link", "reconnecting");
    browser.picture("reconnecting");
    world.write("go", "");
    let served = serve(&world, &["--listen", &address]);
    browser.until_text("#link", "live");
    browser.until_text("#output", "three");
    let lines =
        browser.run("return [...document.querySelectorAll('#output div')].map((d) => d.innerText)");
    assert_eq!(lines, json!(["iteration 1", "one", "two", "three"]));
    // New tokens sign the browser out, and it says so.
    let _other = serve(&world, &["--new-token"]);
    browser.until_text("#link", "signed out");
    drop(served);
    world.write("end", "");
}

#[test]
fn the_pages_fit_a_phone_and_a_tablet_and_run_nothing_that_a_loop_says() {
    let Some(browser) = Browser::start(DESKTOP) else {
        return;
    };
    let world = World::in_memory();
    world.git_init();
    let nasty = "<img src=x onerror=\"window.nasty=1\"><script>window.nasty=2</script>";
    let script = format!("print {nasty}\nappend notes.txt {nasty}\nerr {nasty}");
    let gate = "echo '<svg onload=window.nasty=3>'; false";
    let name = "a<script>window.nasty=4</script>";
    let id = start(
        &world,
        &script,
        &["-m", "3", "--name", name, "--no-promise", "--verify", gate],
    );
    until_status(&world, &id, "ended");
    let served = serve(&world, &[]);
    enter(&browser, &served);
    browser.until_text("#rows", "window.nasty=4");
    fits(&browser, "list");
    let paths = ["", "/iterations/1", "/output/1", "/diff/1", "/history"];
    for path in paths {
        browser.go(&format!("{}/loops/{id}{path}", served.origin()));
        browser.until("the page", "return document.readyState === 'complete'");
        assert_eq!(
            browser.run("return window.nasty === undefined"),
            true,
            "{path}"
        );
        fits(&browser, &format!("loop{}", path.replace('/', "-")));
    }
    no_complaints(&browser);
}

/// Nothing of this page is beyond the edge of a small screen.
#[track_caller]
pub fn fits(browser: &Browser, page: &str) {
    for (screen, device) in [(PHONE, "phone"), (TABLET, "tablet")] {
        browser.show_on(screen);
        let wide = browser.run("return document.documentElement.scrollWidth - window.innerWidth");
        let page = format!("{device}-{page}");
        assert!(wide.as_i64().unwrap() <= 1, "{page} is {wide} px too wide");
        browser.picture(&page);
    }
}

#[test]
fn a_token_typed_by_hand_signs_in_and_seven_windows_are_live_at_once() {
    let Some(browser) = Browser::start(DESKTOP) else {
        return;
    };
    let world = World::in_memory();
    let flags = |file| ["-m", "1", "--state-file", file];
    let script = "print one\nwait-file go\nprint two\nwait-file end";
    let ids = ["a", "b", "c", "d", "e", "f"].map(|file| start(&world, script, &flags(file)));
    let served = serve(&world, &[]);
    browser.go(&format!("{}/", served.origin()));
    browser.keys("#token", &format!("{}\n", served.read));
    browser.until_text("#link", "live");
    browser.until_text("header", "read only");
    let windows: Vec<String> = (0..7)
        .map(|number| {
            let handle = browser.new_window();
            browser.go(&format!("{}/loops/{}", served.origin(), ids[number % 6]));
            browser.until_text("#output", "one");
            browser.until_text("#link", "live");
            let steer = browser.run("return document.querySelector('#steer')");
            assert_eq!(steer, json!(null));
            handle
        })
        .collect();
    world.write("go", "");
    let mut streams = 0;
    for handle in &windows {
        browser.look_at(handle);
        assert_eq!(browser.run("return document.hidden"), false);
        browser.until_text("#output", "two");
        browser.until_text("#link", "live");
        streams += i32::from(browser.run("return source !== null") == true);
    }
    // The list has one of the four, unless it was asked for last.
    assert!((3..=4).contains(&streams), "{streams}");
    world.write("end", "");
    for handle in &windows {
        browser.look_at(handle);
        browser.until_text("#head", "Iteration limit");
    }
    no_complaints(&browser);
}
