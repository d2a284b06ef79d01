//! A promise that was printed where it does not count: it is shown, kept, and told to the agent.

use descartes_testkit::World;
use serde_json::Value;

use crate::common::{claude_result, descartes, events, json_lines, prints, start, state};

const TELLS: &str = "if, and only if, the task is completely finished, print <promise>COMPLETE</promise> alone on a line.";
const TELLS_ABORT: &str =
    "if, and only if, the task cannot be done, print <promise>BLOCKED</promise> alone on a line.";

/// Prints a promise that does not count, once.
const NEARLY: &str =
    "@1 print Status: <promise>COMPLETE</promise>\n@2 print still at work\n@3 promise";

/// An agent that does this and keeps every prompt.
fn script(text: &str) -> String {
    (1..=4)
        .map(|n| format!("@{n} save-prompt seen-{n}\n"))
        .collect::<String>()
        + text
}

#[test]
fn a_near_miss_is_shown_kept_and_told_once() {
    let world = World::in_memory();
    let agent = script(NEARLY);
    let ended = start(&world, &agent, &["-m", "5"]);
    ended.assert_code(0);
    let shown = format!("{}{}", ended.stdout(), ended.stderr());
    assert!(
        shown.contains("near miss: Status: <promise>COMPLETE</promise>"),
        "{shown}"
    );
    let facts = events(&world, "agent_ended");
    assert_eq!(facts[0]["near_miss"]["count"], 1);
    assert_eq!(
        facts[0]["near_miss"]["line"],
        "Status: <promise>COMPLETE</promise>"
    );
    assert_eq!(facts[1]["near_miss"], Value::Null);
    // The next prompt says it, the one after does not.
    assert!(!world.read("seen-1").contains("only if"));
    assert!(
        world.read("seen-2").contains(TELLS),
        "{}",
        world.read("seen-2")
    );
    assert!(!world.read("seen-3").contains("only if"));
    // Wherever iterations are shown.
    let history = descartes(&world, &["loop", "history"]).stdout();
    assert!(
        history.contains("near miss: Status: <promise>"),
        "{history}"
    );
    let rows = json_lines(&descartes(&world, &["loop", "history", "--json"]).stdout());
    assert_eq!(rows[0]["near_miss"]["count"], 1);
    assert!(rows[2].get("near_miss").is_none());
    let summaries = &state(&world)["iteration_summaries"];
    assert_eq!(summaries[0]["near_miss"]["count"], 1);
    let asked = "select near_misses, near_miss from iterations order by iteration";
    let table = descartes(&world, &["query", "--csv", asked]).stdout();
    assert!(
        table.contains("1,Status: <promise>COMPLETE</promise>"),
        "{table}"
    );
    let report = world.path("report.html");
    descartes(&world, &["report", "-o", report.to_str().unwrap()]).assert_code(0);
    let page = world.read("report.html");
    assert!(page.contains("near miss: Status: &lt;promise&gt;"));
}

#[test]
fn it_is_told_with_a_fresh_context_and_for_the_abort_promise_too() {
    let world = World::in_memory();
    let agent = script("@1 print I am stuck: <promise>BLOCKED</promise>\n@2 promise");
    start(&world, &agent, &["-m", "3", "--fresh-context"]).assert_code(0);
    assert!(
        world.read("seen-2").contains(TELLS_ABORT),
        "{}",
        world.read("seen-2")
    );
    assert_eq!(events(&world, "agent_ended")[0]["near_miss"]["abort"], true);
}

#[test]
fn it_stands_in_every_prompt_until_a_run_counts() {
    let world = World::in_memory();
    let agent = world.program(
        "agent",
        "#!/bin/sh\n\
         n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n; printf %s \"$1\" > seen-$n\n\
         case $n in\n\
         1) echo 'Status: <promise>COMPLETE</promise>';;\n\
         2) echo 'rate limit exceeded, try again in 1 second' >&2; exit 1;;\n\
         3) echo working;;\n\
         *) echo '<promise>COMPLETE</promise>';;\n\
         esac\n",
    );
    let mut command = world.descartes(["loop", "start", "--prompt", "go", "-m", "5", "--command"]);
    command.arg(agent);
    world.run(command).assert_code(0);
    assert_eq!(events(&world, "run_discarded").len(), 1);
    let told: Vec<bool> = (1..=4)
        .map(|n| world.read(format!("seen-{n}")).contains(TELLS))
        .collect();
    assert_eq!(told, [false, true, true, false]);
}

#[test]
fn an_agent_that_prints_its_prompt_makes_none() {
    let world = World::in_memory();
    let agent = world.program(
        "agent",
        "#!/bin/sh\nprintf '%s\\n' \"$1\" | fold -s -w 40\n",
    );
    let prompt = "Go over all of the parsers and repair what is broken in them.\n\
                  When every one of the checks is green again, print\n<promise>COMPLETE</promise>";
    let mut command =
        world.descartes(["loop", "start", "-m", "3", "--prompt", prompt, "--command"]);
    command.arg(agent);
    world.run(command).assert_code(2);
    for facts in events(&world, "agent_ended") {
        assert_eq!(facts["near_miss"], Value::Null, "{facts}");
        assert_eq!(facts["claim"], Value::Null, "{facts}");
    }
}

#[test]
fn two_lines_that_were_asked_for_are_a_claim() {
    let prompt = "Repair every one of the parsers in this project.\nAt the end say exactly:\nAll tests pass.\n<promise>COMPLETE</promise>";
    let world = World::in_memory();
    let agent = "print All tests pass.\npromise";
    start(&world, agent, &["-m", "1", "--prompt", prompt]).assert_code(0);
}

#[test]
fn package_managers_and_diffs_do_not_complete_a_loop() {
    for printed in [
        "Complete!",
        "complete",
        "- complete",
        "+<promise>COMPLETE</promise>",
        "-<promise>COMPLETE</promise>",
        "``` <promise>COMPLETE</promise> ```",
        "I'll print... <promise>COMPLETE</promise>",
    ] {
        let world = World::in_memory();
        start(&world, &format!("print {printed}"), &["-m", "1"]).assert_code(2);
    }
}

#[test]
fn an_agent_that_works_on_after_its_promise_is_let_finish() {
    let world = World::in_memory();
    let agent = world.program(
        "agent",
        "#!/bin/sh\necho '<promise>COMPLETE</promise>'\n\
         end=$(($(date +%s) + 7)); while [ $(date +%s) -lt $end ]; do i=0; \
         while [ $i -lt 20000 ]; do i=$((i+1)); done; done\ntouch finished\n",
    );
    let mut command = world.descartes(["loop", "start", "--prompt", "go", "-m", "1"]);
    command
        .args(["--promise-grace", "3s", "--command"])
        .arg(agent);
    world.run(command).assert_code(0);
    assert!(world.has("finished"));
    assert_eq!(events(&world, "agent_ended")[0]["ended_by"], "exit");
}

/// Prints a final message as claude does, and keeps its prompt.
fn claude_says(text: &str) -> String {
    format!(
        "save-prompt seen-${{ITERATION}} stdin\n{}",
        prints(&claude_result(text))
    )
}

#[test]
fn the_promise_without_its_tag_is_told_and_stands_in_the_next_prompt() {
    for (script, flags, line) in [
        (
            claude_says("All is done.\\nCOMPLETE"),
            &["--backend", "claude", "--permissions", "edit"][..],
            "COMPLETE",
        ),
        (
            "save-prompt seen-${ITERATION}\nprint complete".to_owned(),
            &[],
            "complete",
        ),
        (
            "save-prompt seen-${ITERATION}\nprint **Complete.**".to_owned(),
            &[],
            "**Complete.**",
        ),
    ] {
        let world = World::in_memory();
        let flags = [&["-m", "2"], flags].concat();
        let ended = start(&world, &script, &flags);
        ended.assert_code(2);
        let told =
            format!("near miss: `{line}` alone does not count: print <promise>COMPLETE</promise>");
        let said = format!("{}{}", ended.stdout(), ended.stderr());
        assert!(said.contains(&told), "{said}");
        assert!(
            world.read("seen-2").contains(TELLS),
            "{}",
            world.read("seen-2")
        );
        assert!(
            world
                .read("seen-2")
                .contains("COMPLETE appeared without its tag")
        );
        let history = descartes(&world, &["loop", "history"]).stdout();
        assert!(history.contains(&told), "{history}");
    }
    // In the case that counts it is a claim.
    let world = World::in_memory();
    start(&world, "print COMPLETE", &[]).assert_code(0);
}

#[test]
fn an_ending_says_that_the_promise_was_never_printed() {
    let world = World::in_memory();
    let ended = start(&world, "print hm", &["-m", "2"]);
    ended.assert_code(2);
    let said = format!("{}{}", ended.stdout(), ended.stderr());
    assert!(
        said.contains("iteration 1: worked, 0 files changed, no promise"),
        "{said}"
    );
    let words = "the agent never printed <promise>COMPLETE</promise>";
    assert!(said.contains(words), "{said}");
    for verb in ["history", "status"] {
        let shown = descartes(&world, &["loop", verb]).stdout();
        assert!(shown.contains(words), "{shown}");
    }
    // Where a claim was refused, that is told instead.
    let world = World::in_memory();
    let refused = start(&world, "promise", &["-m", "1", "--verify", "false"]);
    refused.assert_code(2);
    assert!(!format!("{}{}", refused.stdout(), refused.stderr()).contains("never printed"));
}
