//! Help, version, completions, manual pages; and usage errors.

use std::time::{Duration, Instant};

use descartes_testkit::{World, eventually};

use crate::common::descartes;

#[test]
fn help_is_data_and_shows_the_verbs() {
    let world = World::in_memory();
    for arguments in [
        &["--help"][..],
        &["loop", "--help"],
        &["loop", "start", "--help"],
        &["-h"],
    ] {
        let help = descartes(&world, arguments);
        help.assert_code(0);
        assert!(help.stdout().contains("Usage: descartes"), "{help}");
        assert_eq!(help.stderr(), "");
    }
    let verbs = descartes(&world, &["loop", "--help"]).stdout();
    assert!(
        verbs.contains("start") && verbs.contains("resume"),
        "{verbs}"
    );
    assert!(!verbs.contains("--max-iterations"), "{verbs}");
}

#[test]
fn no_command_at_all_is_a_usage_error_with_the_help() {
    for arguments in [&[][..], &["loop"]] {
        let run = descartes(&World::in_memory(), arguments);
        run.assert_code(64);
        assert!(run.stderr().contains("Usage: descartes"), "{run}");
        assert_eq!(run.stdout(), "");
    }
}

#[test]
fn what_the_parser_refuses_is_an_error_with_a_hint_and_exit_code_64() {
    let table: [(&[&str], &str); 7] = [
        (
            &["loop", "start", "--max-iteration", "3"],
            "--max-iterations",
        ),
        (&["loop", "start", "--promise-match", "sometimes"], "tagged"),
        (&["loop", "start", "--timeout", "soon"], "30m"),
        (&["loop", "start", "--env", "=x"], "NAME=VALUE"),
        (
            &["loop", "start", "--prompt", "a", "--prompt-file", "b"],
            "--prompt-file",
        ),
        (&["lop"], "loop"),
        (&["loop", "begin"], "begin"),
    ];
    for (arguments, words) in table {
        let run = descartes(&World::in_memory(), arguments);
        run.assert_code(64);
        let verb = arguments
            .iter()
            .copied()
            .take_while(|w| ["loop", "start"].contains(w));
        let command = [&["descartes"], &verb.collect::<Vec<_>>()[..]].concat();
        let see = format!("hint: see: {} --help", command.join(" "));
        assert!(run.stderr().contains(&see), "{see}: {run}");
        let err = run.stderr();
        assert!(
            err.starts_with("error: ") && err.contains("\nhint: "),
            "{run}"
        );
        assert!(err.contains(words), "{words}: {run}");
        assert!(err.contains("--help"), "{run}");
    }
}

#[test]
fn version_is_quick() {
    let world = World::in_memory();
    for arguments in [["--version"], ["-V"]] {
        let run = descartes(&world, &arguments);
        run.assert_code(0);
        assert_eq!(
            run.stdout(),
            concat!("descartes ", env!("CARGO_PKG_VERSION"), "\n")
        );
    }
    // The best of as many as it takes: the machine may be busy. The bar for a release build is 5 ms.
    eventually("a quick one", Duration::from_secs(60), || {
        let begun = Instant::now();
        world.descartes(["--version"]).output().unwrap();
        begun.elapsed().as_millis() < 100
    });
}

#[test]
fn completions_and_manual_pages_know_the_flags() {
    let world = World::in_memory();
    for shell in ["bash", "zsh", "fish"] {
        let run = descartes(&world, &["completions", shell]);
        run.assert_code(0);
        assert!(run.stdout().contains("completion-promise"), "{shell}");
        assert!(!run.stdout().contains("__guard"), "{shell}");
    }
    let page = descartes(&world, &["man"]);
    page.assert_code(0);
    assert!(
        page.stdout().starts_with(".ie") || page.stdout().contains(".TH"),
        "{page}"
    );
    descartes(&world, &["man", "--out", "pages"]).assert_code(0);
    assert!(
        world
            .read("pages/descartes-loop-start.1")
            .contains("completion")
    );
}
