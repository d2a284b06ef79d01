//! The pages of a task loop.

use descartes_testkit::browser::{Browser, DESKTOP};
use descartes_testkit::{World, eventually};

use crate::browser::{enter, fits, no_complaints};
use crate::common::{SOON, Served, serve, until_status};

const ROADMAP: &str = "# Roadmap\n\n## Tasks\n\
    - [ ] **model**: The model\n\
    - [ ] **store**: The <b>store</b>\n  - ralph: true\n  - max_iterations: 2\n\
    - [ ] **wire**: Wire it up\n  - depends: model\n\
    - [ ] **docs**: The docs\n  - depends: store\n\
    - [ ] **ship**: Ship it\n  - depends: wire\n";

/// One task is done at once, one never says that it is, one waits for leave.
const AGENT: &str = "#!/bin/sh\n\
    echo \"at work on $DESCARTES_TASK_ID\"\n\
    echo x >> work-$DESCARTES_TASK_ID\n\
    case $DESCARTES_TASK_ID in\n\
    store) exit 0 ;;\n\
    wire) touch STATE/wired; while [ ! -e STATE/go ]; do sleep 0.05; done ;;\n\
    esac\n\
    echo '<promise>COMPLETE</promise>'\n";

/// A task loop in the middle of its work: one task has landed, one is blocked, one is at work.
pub fn started(world: &World) -> String {
    world.git_init();
    world.write("ROADMAP.md", ROADMAP);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    let state = world.state();
    let agent = AGENT.replace("STATE", &state.display().to_string());
    let agent = world.program("task-agent", &agent).display().to_string();
    let words = [
        "roadmap",
        "run",
        "ROADMAP.md",
        "--parallel",
        "2",
        "--detach",
    ];
    let run = world.run(world.descartes([&words[..], &["--command", &agent]].concat()));
    run.assert_code(0);
    eventually("the third task", SOON, || state.join("wired").exists());
    run.stdout().trim().to_owned()
}

/// The sections of the page that have these words.
fn tells(served: &Served, id: &str, words: &[&str]) -> bool {
    let page = served.get(&format!("/loops/{id}")).assert_status(200).body;
    words.iter().all(|words| page.contains(words))
}

#[test]
fn metrics_count_what_waits_for_an_agent_and_what_is_worked_on() {
    let world = World::in_memory();
    let id = started(&world);
    let served = serve(&world, &[]);
    let lines = [
        "descartes_task_queue{for=\"agent\"} 2",
        "descartes_task_queue{for=\"merge\"} 0",
        "descartes_task_queue{for=\"work\"} 1",
    ];
    // `store` is blocked once its second attempt is over.
    eventually("the lengths of the queues", SOON, || {
        let text = served.get("/metrics").body;
        lines.iter().all(|line| text.contains(line))
    });
    std::fs::write(world.state().join("go"), "").unwrap();
    // What the page names for all that tasks print (`descartes loop logs --follow`) follows until the loop has ended.
    let page = served.get(&format!("/loops/{id}")).body;
    let (_, line) = page.split_once("<code>descartes loop logs ").unwrap();
    let (words, _) = line.split_once("</code>").unwrap();
    let words = ["loop", "logs"].into_iter().chain(words.split(' '));
    let logs = world.run(world.descartes(words));
    logs.assert_code(0);
    assert!(logs.stdout().contains("at work on ship"), "{logs}");
}

#[test]
fn a_task_loop_shows_waves_tasks_reasons_and_what_has_landed_on_any_screen() {
    let Some(browser) = Browser::start(DESKTOP) else {
        return;
    };
    let world = World::in_memory();
    let id = started(&world);
    let served = serve(&world, &[]);
    enter(&browser, &served);
    // Folded under their loop in the list, and a click away.
    browser.until_text("#rows", "3 tasks");
    browser.run("document.querySelector('#rows details').open = true");
    browser.until_text("#rows details", "wire");
    browser.click("#rows td.name > a");
    let section = |title: &str| {
        format!(
            "[...document.querySelectorAll('#tasks section, #pictures section')]\
             .find((one) => one.querySelector('h2').innerText.startsWith('{title}'))"
        )
    };
    let shows = |title: &str, words: &str| {
        let script = format!("return !!{}?.innerText.includes('{words}')", section(title));
        browser.until(&format!("{words} in {title}"), &script);
    };
    shows("At work", "wire Wire it up");
    shows("Blocked", "store The <b>store</b>");
    shows("Blocked", "2 of 2 attempts used");
    shows("Waves", "wave 1");
    shows("Waves", "wave 3");
    for task in ["model", "store", "wire", "docs", "ship"] {
        shows("Tasks", task);
    }
    shows("Tasks", "done");
    shows("Landed", "wave 1");
    let graph = "return [...document.querySelectorAll('#pictures svg text')]\
                 .some((one) => one.textContent.includes('ship'))";
    browser.until("the graph", graph);
    browser.picture("tasks");
    fits(&browser, "tasks");
    browser.show_on(DESKTOP);
    // A task's own loop is a page like any other.
    browser.click("#tasks a[href^='/loops/']");
    browser.until_text("#output", "at work on");
    browser.go(&format!("{}/loops/{id}", served.origin()));
    std::fs::write(world.state().join("go"), "").unwrap();
    shows("Landed", "ship");
    browser.until_text("#head", "blocked");
    until_status(&world, &id, "ended");
    assert!(tells(&served, &id, &["wave 3", "Blocked", "2 of 2"]));
    no_complaints(&browser);
}

#[test]
fn the_page_of_a_task_loop_says_where_its_tasks_print() {
    let world = World::in_memory();
    let id = started(&world);
    let served = serve(&world, &[]);
    let words = format!("descartes loop logs --follow {id}");
    assert!(tells(&served, &id, &[&words]));
    assert!(!tells(&served, &id, &["id=\"output\""]));
    world.run(world.descartes(["loop", "cancel", &id, "--now"]));
}
