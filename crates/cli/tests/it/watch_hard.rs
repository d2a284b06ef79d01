//! The full-screen view when things are not as they should be: limits, loops that do not answer,
//! journals from tomorrow, terminals without colour, and a shell that wants its terminal back.

use descartes_testkit::pty::Size;
use descartes_testkit::{Pty, World, eventually, eventually_some, process};
use nix::sys::signal::Signal;

use crate::common::{claude_result, descartes, events, loop_dir, start};
use crate::watch_common::{SOON, background, on_terminal, quits, sees, watch};

#[test]
fn a_wait_for_the_provider_counts_down_and_a_key_ends_it() {
    let world = World::in_memory();
    let result = claude_result("<promise>COMPLETE</promise>");
    world.write("result.jsonl", result + "\n");
    let script = "if-file limited stream result.jsonl\nif-file limited exit 0\ntouch limited\n\
                  stream-limit claude 1h";
    let flags = ["--backend", "claude", "--permissions", "edit"];
    background(&world, script, &flags);
    let mut pty = watch(&world);
    sees(&pty, "Waiting");
    let first = pty.wait_screen(SOON, |screen| screen.contains("59m"));
    // The countdown moves by itself.
    pty.wait_screen(SOON, |screen| screen.contains("59m") && screen != first);
    pty.send("r");
    sees(&pty, "Completed (promise)");
    quits(&mut pty);
    assert_eq!(events(&world, "wait_ended")[0]["by"], "retry");
}

#[test]
fn a_host_that_does_not_answer_is_said_and_the_view_goes_on() {
    let world = World::in_memory();
    background(&world, "print words of ${ITERATION}\nhang", &["-m", "7"]);
    let mut pty = watch(&world);
    sees(&pty, "iteration 1 of at most 7");
    let list = descartes(&world, &["loop", "list", "--json"]).stdout();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let host = i32::try_from(list[0]["pid"].as_i64().unwrap()).unwrap();
    process::stop(host);
    pty.send("p");
    sees(&pty, "is stopped");
    // Meanwhile everything else works.
    pty.send("2");
    sees(&pty, "words of 1");
    process::send(host, Signal::SIGCONT);
    // It may take the first word now, so that another `p` would mean the contrary.
    pty.send("sgo on");
    sees(&pty, "say: go on");
    pty.send("\r");
    sees(&pty, "the next iteration will get the note");
    pty.send("cy");
    sees(&pty, "✗ Cancelled");
    quits(&mut pty);
    world.assert_no_survivors();
}

/// A record as a later format would write it, whole and with its check sum; some are of kinds
/// that are not known yet.
fn of_tomorrow(line: &str) -> String {
    let (body, _) = line.rsplit_once(",\"crc\"").unwrap();
    let body = body
        .replace("\"v\":1,", "\"v\":99,")
        .replace("\"run_started\"", "\"run_foreseen\"");
    let sum = crc32fast::hash(body.as_bytes());
    format!("{body},\"crc\":\"{sum:08x}\"}}\n")
}

#[test]
fn a_journal_of_a_newer_version_is_named_and_the_others_are_shown() {
    let world = World::in_memory();
    background(&world, "print first\nhang", &["-m", "7"]);
    eventually("a run", SOON, || !events(&world, "run_started").is_empty());
    let journal = loop_dir(&world).join("journal.jsonl");
    descartes(&world, &["loop", "cancel", "--now"]).assert_code(0);
    let text = std::fs::read_to_string(&journal).unwrap();
    let tomorrow: String = text.lines().map(of_tomorrow).collect();
    std::fs::write(&journal, tomorrow).unwrap();
    let other = ["--state-file", "other.json", "--name", "other"];
    start(&world, "promise", &other).assert_code(0);
    let mut pty = watch(&world);
    sees(&pty, "Completed (promise)");
    pty.send("j");
    sees(&pty, "newer version");
    pty.send("k");
    sees(&pty, "Completed (promise)");
    quits(&mut pty);
}

#[test]
fn without_colours_nothing_is_coloured_and_nothing_is_lost() {
    let world = World::in_memory();
    start(&world, "promise", &[]).assert_code(0);
    let colours = |pty: &Pty| {
        let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
        raw.split("\x1b[")
            .filter_map(|part| part.split_once('m').map(|(codes, _)| codes.to_owned()))
            .filter(|codes| codes.split(';').all(|code| code.parse::<u8>().is_ok()))
            .flat_map(|codes| {
                let codes = codes.split(';').map(str::to_owned);
                codes.collect::<Vec<_>>()
            })
            .filter(|code| matches!(code.parse(), Ok(30..=38 | 40..=48 | 90..=107)))
            .count()
    };
    let mut plain = on_terminal(
        world.descartes(["watch"]).env("NO_COLOR", "1"),
        Size::default(),
    );
    sees(&plain, "Completed (promise)");
    quits(&mut plain);
    assert_eq!(colours(&plain), 0);
    let mut coloured = watch(&world);
    sees(&coloured, "Completed (promise)");
    quits(&mut coloured);
    assert!(colours(&coloured) > 0);
}

/// The view in a shell that people use, which has the terminal before and after it.
fn in_a_shell(world: &World) -> Pty {
    let mut shell = world.command("bash");
    shell
        .args(["--norc", "--noprofile", "-i"])
        .env("PS1", "ready> ");
    let mut pty = on_terminal(&mut shell, Size::default());
    sees(&pty, "ready> ");
    pty.send("stty -g > before\n");
    let program = descartes_testkit::descartes();
    pty.send(format!("{} watch\n", program.display()));
    sees(&pty, "no loops");
    assert!(pty.is_full_screen());
    pty
}

/// The terminal is as it was, and listens to the shell.
#[track_caller]
fn is_given_back(world: &World, pty: &mut Pty) {
    pty.send("stty -g > after; echo wel''come\n");
    sees(pty, "welcome");
    assert!(!pty.is_full_screen());
    assert_eq!(world.read("before"), world.read("after"));
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_again() {
    let world = World::in_memory();
    let mut pty = in_a_shell(&world);
    pty.send("\x1a");
    sees(&pty, "Stopped");
    is_given_back(&world, &mut pty);
    pty.send("clear; fg\n");
    sees(&pty, "no loops");
    eventually("the other screen", SOON, || pty.is_full_screen());
    pty.send("?");
    sees(&pty, "retry now");
    pty.send("xq");
    eventually("the shell's screen", SOON, || !pty.is_full_screen());
    is_given_back(&world, &mut pty);
    pty.send("exit\n");
    pty.wait(SOON);
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let world = World::in_memory();
        let mut pty = in_a_shell(&world);
        let view = eventually_some("the view", SOON, || {
            let children = process::descendants(pty.pid());
            children
                .into_iter()
                .find(|child| child.command.contains("watch"))
        });
        process::send(view.pid, signal);
        eventually("the shell's screen", SOON, || !pty.is_full_screen());
        is_given_back(&world, &mut pty);
        pty.send("exit\n");
        pty.wait(SOON);
    }
}
