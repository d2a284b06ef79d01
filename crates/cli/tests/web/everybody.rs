//! Pages for everybody: by the keyboard alone, and for a screen reader.

use descartes_testkit::World;
use descartes_testkit::browser::{Browser, DARK, DESKTOP, PHONE, axe};

use crate::browser::{enter, no_complaints};
use crate::common::{serve, start, status, until_status};
use crate::tasks;

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

/// Goes on with Tab until this element has the focus.
#[track_caller]
fn tab_to(browser: &Browser, selector: &str) {
    let there = format!("return !!document.activeElement?.matches({selector:?})");
    for _ in 0..80 {
        if browser.run(&there) == true {
            return;
        }
        browser.press(TAB);
    }
    panic!("Tab never comes to {selector}");
}

#[test]
fn every_way_to_steer_is_reached_by_the_keyboard_alone() {
    let Some(browser) = Browser::start(DESKTOP) else {
        return;
    };
    let world = World::in_memory();
    let script = "print at work ${ITERATION}\nwait-file go-${ITERATION}";
    let id = start(&world, script, &["-m", "9", "--name", "auth"]);
    let served = serve(&world, &["--allow-start"]);
    enter(&browser, &served);
    browser.until_text("#rows", "auth");
    // The list: search, a row, its page.
    browser.press("/");
    browser.press("auth");
    browser.press(ENTER);
    browser.until("the search", "return location.search.includes('q=auth')");
    browser.until_text("#rows", "auth");
    browser.press("j");
    browser.press(ENTER);
    browser.until_text("#output", "at work 1");
    // A note, by its key.
    browser.press("s");
    browser.press("be brief");
    browser.press(ENTER);
    browser.until_text("#answers", "say: accepted");
    browser.press("\u{e00c}");
    // Pause and go on, by their keys.
    browser.press("p");
    browser.until_text("#answers", "pause: accepted");
    world.write("go-1", "");
    browser.until_text("#head", "Paused");
    browser.press("p");
    browser.until_text("#answers", "unpause: effective");
    browser.until_text("#output", "at work 2");
    // Limits, by Tab.
    tab_to(&browser, "#limits summary");
    browser.press(ENTER);
    tab_to(&browser, "#set-max_iterations");
    browser.press("7");
    browser.press(ENTER);
    browser.until_text("#answers", "set: effective");
    assert_eq!(status(&world, &id)["config"]["max_iterations"], 7);
    browser.press("\u{e00c}");
    // Cancel asks first; then resume.
    browser.press("c");
    assert!(browser.accept_question().contains("Cancel auth?"));
    browser.until_text("#head", "Cancelled");
    until_status(&world, &id, "ended");
    browser.until("resume", "return !!document.querySelector('#do-resume')");
    browser.press("r");
    browser.until_text("#answers", "resume: effective");
    browser.until_text("#output", "at work 3");
    // An iteration, back to the list, and the form that starts a loop.
    tab_to(&browser, "table.history td a");
    browser.press(ENTER);
    browser.until_text("h1", "Iteration");
    browser.press("q");
    browser.until("the list", "return location.pathname === '/'");
    tab_to(&browser, "a[href='/start']");
    browser.press(ENTER);
    browser.until_text("h1", "Start a loop");
    tab_to(&browser, "#prompt");
    browser.press("do it");
    tab_to(&browser, "form.start button");
    browser.press(ENTER);
    browser.until_text("#answers", "start: ");
    no_complaints(&browser);
    world.run(world.descartes(["loop", "cancel", &id, "--now"]));
}

/// What keeps people from reading this page, whatever they look at it with.
fn violations(browser: &Browser, axe: &str, page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for screen in [DESKTOP, DARK, PHONE] {
        browser.show_on(screen);
        let on_page = browser.serious_violations(axe).into_iter();
        found.extend(on_page.map(|one| format!("{page}: {screen:?}: {one}")));
    }
    found
}

#[test]
fn nothing_serious_keeps_anybody_from_reading_a_page_in_the_light_or_dark_or_on_a_phone() {
    let (Some(browser), Some(axe)) = (Browser::start(DESKTOP), axe()) else {
        return;
    };
    let world = World::in_memory();
    let waiting = tasks::started(&world);
    let script = "append notes.txt line ${ITERATION}\nprint I changed it\nerr and warned";
    let flags = [
        "-m",
        "3",
        "--verify",
        "echo seen; false",
        "--state-file",
        "s.json",
    ];
    let ended = start(&world, script, &flags);
    until_status(&world, &ended, "ended");
    let patient = start(
        &world,
        "print at work\nwait-file end",
        &["-m", "1", "--verify", "true", "--state-file", "p.json"],
    );
    let served = serve(&world, &["--allow-start"]);
    browser.go(&format!("{}/sign-in", served.origin()));
    let mut found = violations(&browser, &axe, "/sign-in");
    enter(&browser, &served);
    browser.until_text("#rows", "tasks");
    let of = |id: &str, rest: &str| format!("/loops/{id}{rest}");
    let pages = [
        "/".to_owned(),
        "/start".to_owned(),
        of("nothing", ""),
        of(&waiting, ""),
        of(&patient, ""),
        of(&ended, ""),
        of(&ended, "/iterations/2"),
        of(&ended, "/output/2"),
        of(&ended, "/diff/2"),
        of(&ended, "/history"),
    ];
    for path in &pages {
        browser.go(&format!("{}{path}", served.origin()));
        browser.until("the page", "return document.readyState === 'complete'");
        // What is folded up is read, too.
        browser.run("document.querySelectorAll('details').forEach((one) => one.open = true)");
        found.extend(violations(&browser, &axe, path));
    }
    world.write("end", "");
    std::fs::write(world.state().join("go"), "").unwrap();
    assert!(found.is_empty(), "{found:#?}");
    until_status(&world, &waiting, "ended");
}
