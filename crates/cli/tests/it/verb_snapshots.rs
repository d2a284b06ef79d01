//! Every verb in its usual and in a wrong use: what it prints, what it says, how it ends. One snapshot a
//! verb, in `snapshots/`; a test in `src/args/table.rs` holds the list against clap's own.

use std::fmt::Write;
use std::path::PathBuf;

use descartes_testkit::World;
use descartes_testkit::world::Finished;

use crate::docs_commands::Situation::{self, *};
use crate::typed_hints as hints;

/// More lines than this say nothing about the verb.
const MOST_LINES: usize = 80;

/// Verbs that look for what is installed: the agents of this machine are of no matter.
const LOOK_AROUND: [&str; 3] = ["agents", "agents test", "doctor"];

/// Programs of the machine that these may use.
const TOOLS: [&str; 4] = ["git", "sh", "cat", "sleep"];

/// A test for each verb: what is typed in which situation, each time in a world of its own, and what is
/// typed there one after the other.
macro_rules! verbs {
    ($($test:ident: $verb:literal => [$($situation:ident: [$($words:literal),+];)+];)+) => {
        $(
            #[test]
            fn $test() {
                snapshot($verb, &[$(($situation, &[$($words),+])),+]);
            }
        )+
    };
}

verbs! {
    loop_start: "loop start" => [
        Project: [
            "--backend nobody --prompt go",
            "--prompt go --max-iterations none",
            "--backend claude --permissions edit --max-iteration 3",
            "--backend claude --permissions edit --prompt go --name auth"
        ];
        Project: ["--backend claude --permissions edit --prompt go --verify false --max-iterations 1"];
        Project: ["--backend claude --permissions edit --prompt go --detach"];
    ];
    loop_resume: "loop resume" => [
        Interrupted: [""];
        AtLimit: [""];
        Done: [""];
        Project: [""];
    ];
    loop_status: "loop status" => [
        Done: ["", "nobody"];
        AtLimit: [""];
        Project: [""];
    ];
    loop_list: "loop list" => [
        Done: ["", "--status sleeping"];
        Project: [""];
    ];
    loop_history: "loop history" => [
        Done: ["", "--last none"];
        Project: [""];
    ];
    loop_logs: "loop logs" => [
        Done: ["", "9"];
        Project: [""];
    ];
    loop_watch: "loop watch" => [
        Done: ["", "nobody"];
    ];
    loop_cancel: "loop cancel" => [
        Running: [""];
        Done: [""];
        Project: [""];
    ];
    loop_pause: "loop pause" => [
        Running: [""];
        Done: [""];
    ];
    loop_unpause: "loop unpause" => [
        Running: [""];
        Done: [""];
    ];
    loop_say: "loop say" => [
        Running: ["'use tabs'", ""];
        Done: ["'use tabs'"];
    ];
    loop_set: "loop set" => [
        Running: ["--max-iterations 9", "", "--max-cost much"];
    ];
    loop_diff: "loop diff" => [
        Done: ["1", "9"];
        Project: [""];
    ];
    loop_rewind: "loop rewind" => [
        Done: ["1", "9 --yes", "1 --yes"];
    ];
    loop_workers: "loop workers" => [
        Done: ["", "nobody"];
        Project: [""];
    ];
    watch: "watch" => [
        Done: ["", "--all-of-them"];
    ];
    roadmap_run: "roadmap run" => [
        Project: [
            "ROADMAP.md --permissions edit --verify true",
            "NOTHING.md --permissions edit",
            "ROADMAP.md --max-iterations none"
        ];
    ];
    roadmap_status: "roadmap status" => [
        RoadmapBlocked: ["ROADMAP.md"];
        Project: ["ROADMAP.md", "NOTHING.md"];
    ];
    roadmap_reset: "roadmap reset" => [
        RoadmapBlocked: ["ROADMAP.md"];
        Project: ["ROADMAP.md"];
    ];
    roadmap_check: "roadmap check" => [
        Project: ["ROADMAP.md", "NOTHING.md"];
    ];
    import: "import" => [
        Lists: ["PLAN.md", "PLAN.md", "specs/003-export", "NOTHING.md"];
    ];
    spec: "spec" => [
        Project: ["1 --scud-tag auth", "99 --scud-tag auth", ""];
    ];
    work: "work" => [
        Unlanded: [""];
        Project: ["", "--nothing"];
    ];
    work_land: "work land" => [
        Unlanded: [""];
        Project: [""];
    ];
    graph: "graph" => [
        Project: ["--scud-tag auth", "--scud-tag none"];
    ];
    report: "report" => [
        Done: ["", "nobody"];
        Project: [""];
    ];
    gui: "gui" => [
        Done: ["", "--nothing"];
    ];
    serve: "serve" => [
        Done: ["--listen 0.0.0.0:7317", "--listen here", "--tls-cert cert.pem", "--listen 127.0.0.1:0 --tls-cert none.pem --tls-key none.pem"];
    ];
    mcp: "mcp" => [
        Project: ["", "--working-dir nowhere", "--max-loops many", "--permissions everything"];
    ];
    query: "query" => [
        Done: ["'select name, iterations, exit_reason from loops'", "'selec 1'", ""];
    ];
    demo: "demo" => [
        Project: ["", "--slow"];
    ];
    init: "init" => [
        Project: ["--nothing", ""];
        Initialised: [""];
    ];
    install: "install" => [
        Project: ["claude", "emacs", "gemini", "gemini --yes", "gemini --yes"];
    ];
    uninstall: "uninstall" => [
        Installed: ["claude", "cursor --yes"];
        Project: ["claude", ""];
    ];
    clean: "clean" => [
        Done: ["", "--older soon"];
    ];
    agents: "agents" => [
        Project: ["", "--nothing"];
    ];
    agents_show: "agents show" => [
        Project: ["codex", "nobody"];
    ];
    agents_test: "agents test" => [
        Project: ["claude", "nobody"];
    ];
    doctor: "doctor" => [
        Project: ["", "--nothing"];
    ];
    sandbox: "sandbox" => [
        Project: ["-- sh -c 'exit 3'", "--sandbox off -- true", "--sandbox-write / -- true", ""];
    ];
    sandbox_explain: "sandbox explain" => [
        Project: ["--sandbox-read nowhere", "--sandbox off", "--sandbox loose"];
    ];
    config_show: "config show" => [
        Initialised: [""];
        Project: ["--nothing"];
    ];
    config_defaults: "config defaults" => [
        Project: ["", "--nothing"];
    ];
    trust: "trust" => [
        Untrusted: ["--show", "", "--yes"];
        Project: ["--yes"];
    ];
    worker: "worker" => [
        Project: ["", "--engine here", "--engine nats://127.0.0.1:4222 --slots 0", "--engine nats://127.0.0.1:4222 --slots many"];
    ];
    engine_start: "engine start" => [
        Project: ["", "--listen"];
    ];
    engine_check: "engine check" => [
        Project: ["nats://127.0.0.1:4222", "", "127.0.0.1:4222", "nats://127.0.0.1:4222?pin=1"];
    ];
    engine_status: "engine status" => [
        Project: ["", "--json", "now"];
    ];
    engine_stop: "engine stop" => [
        Project: ["", "now"];
    ];
    engine_join_token: "engine join-token" => [
        Project: ["worker-7", "", "'worker 7'"];
    ];
    engine_revoke: "engine revoke" => [
        Project: ["worker-7", ""];
    ];
    completions: "completions" => [
        Project: ["bash", "csh"];
    ];
    man: "man" => [
        Project: ["", "--out"];
    ];
}

/// Types it all, and holds what comes of it against the snapshot.
fn snapshot(verb: &str, uses: &[(Situation, &[&str])]) {
    let mut text = String::new();
    let mut wrong = Vec::new();
    for (situation, typed) in uses {
        let world = situation.world();
        let _ = writeln!(text, "# {situation:?}");
        let mut said = Vec::new();
        for words in *typed {
            let command = format!("descartes {verb} {words}");
            let _ = writeln!(text, "$ {}", command.trim_end());
            let ended = type_it(&world, verb, words);
            text.push_str(&told(&world, &ended));
            text.push('\n');
            said.push(ended);
        }
        for ended in &said {
            wrong.extend(hints::that_fail(&world, ended));
        }
        world.end_all();
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(verb.replace(' ', "-"), text));
    assert!(wrong.is_empty(), "suggested, and no use: {wrong:#?}");
}

fn type_it(world: &World, verb: &str, words: &str) -> Finished {
    let binary = match verb {
        // The window would be found beside it, and wants a screen.
        "gui" => {
            let alone = world.root().join("alone/descartes");
            std::fs::create_dir_all(alone.parent().unwrap()).unwrap();
            std::fs::copy(descartes_testkit::descartes(), &alone).unwrap();
            alone
        }
        engine if engine.starts_with("engine") => with_scripted_fleet(world),
        _ => descartes_testkit::descartes().to_owned(),
    };
    let mut path = vec![binary.parent().unwrap().to_owned(), world.bin()];
    let machine = std::env::var_os("PATH").unwrap();
    let machine: Vec<PathBuf> = std::env::split_paths(&machine).collect();
    if LOOK_AROUND.contains(&verb) {
        for tool in TOOLS {
            let mut places = machine.iter().map(|folder| folder.join(tool));
            let place = places.find(|place| place.is_file()).expect(tool);
            world.program(
                tool,
                &format!("#!/bin/sh\nexec '{}' \"$@\"\n", place.display()),
            );
        }
    } else {
        path.extend(machine);
    }
    let mut command = world.command(&binary);
    command
        .args(verb.split(' '))
        .args(shell_words::split(words).unwrap())
        .env("PATH", std::env::join_paths(path).unwrap());
    world.run(command)
}

fn told(world: &World, ended: &Finished) -> String {
    let mut text = format!("exit code {}\n", ended.code().unwrap());
    for (name, said) in [("stdout", ended.stdout()), ("stderr", ended.stderr())] {
        let shown = shown(world, &said);
        if !shown.is_empty() {
            let _ = writeln!(text, "--- {name}\n{shown}");
        }
    }
    text
}

/// A copy of the binary beside a descartes-fleet with answers of its own: the real one opens a port of the
/// machine (`engine.rs` runs it).
pub fn with_scripted_fleet(world: &World) -> PathBuf {
    let alone = world.root().join("alone/descartes");
    std::fs::create_dir_all(alone.parent().unwrap()).unwrap();
    std::fs::copy(descartes_testkit::descartes(), &alone).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let script = format!(
        r#"#!/bin/sh
case "$1" in version) echo 'descartes-fleet {version} (bridge of descartes fleets)'; exit;; esac
case "$(cat)" in
*'"start"'*) echo '{{"report":"started","address":"nats://127.0.0.1:4222","pid":4711,"server":"2.15.1","already":false}}';;
*'"status"'*) echo '{{"report":"status","running":true,"address":"nats://127.0.0.1:4222","pid":4711,"server":"2.15.1","keys":["worker-7"],"workers":[]}}';;
*'"stop"'*) echo '{{"report":"stopped","was_running":true}}';;
*'worker 7'*) echo '{{"report":"failed","message":"`worker 7` cannot be the name of a worker","hints":["descartes engine join-token worker-1"]}}';;
*'"join_token"'*) echo '{{"report":"token","name":"worker-7","engine":"nats://worker-7@127.0.0.1:4222?key=SECRET","loopback":true}}';;
*'"revoke"'*) echo '{{"report":"revoked","name":"worker-7","running":true}}';;
*'"check"'*) echo '{{"report":"checked","address":"nats://127.0.0.1:4222","server":"2.15.1","write_us":7120,"marker_ms":1031}}';;
esac
"#
    );
    let script = world.program("scripted-fleet", &script);
    std::fs::rename(script, alone.with_file_name("descartes-fleet")).unwrap();
    alone
}

/// Without what is different at every run or on every machine.
fn shown(world: &World, said: &str) -> String {
    let git = world.git(["--version"]);
    let git = git.split_whitespace().nth(2).unwrap_or("no git").to_owned();
    let said = said
        .replace(&world.root().display().to_string(), "[WORLD]")
        .replace(&git, "[VERSION]")
        .replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    // Which sandbox works is the machine's, and two lines where it is not the best one.
    let mut about_machine = false;
    let of_test = said.lines().filter(|line| {
        let hint = about_machine && line.trim_start().starts_with("hint: ");
        about_machine = line.contains("  sandbox    ");
        !about_machine && !hint && !line.starts_with("warning: the sandbox is weaker here: ")
    });
    let lines: Vec<String> = of_test.map(line_shown).collect();
    let rest = if lines.len() > MOST_LINES {
        "\n[…]"
    } else {
        ""
    };
    let kept = &lines[..lines.len().min(MOST_LINES)];
    format!("{}{rest}", kept.join("\n").trim_end())
}

/// A line with placeholders; where there are some, columns are not as wide as they were.
fn line_shown(line: &str) -> String {
    let line = line.trim_end();
    let mut out = String::new();
    let mut rest = line;
    let mut changed = false;
    // What may be typed is the same every time.
    let advice = line.starts_with("error: ") || line.starts_with("hint: ");
    while !rest.is_empty() {
        // A dot comes before a fraction, and before the time in a file's name.
        let inside = out.ends_with(|c: char| c.is_alphanumeric())
            || out.ends_with('.') && !rest.starts_with("20");
        let found = volatile(rest).filter(|(_, name)| {
            let measured = ["[DURATION]", "[SIZE]"].contains(name);
            !inside && !(measured && (advice || out.ends_with('"')))
        });
        let (length, shown) = match found {
            Some((length, name)) => (length, Some(name)),
            None => (rest.chars().next().map_or(1, char::len_utf8), None),
        };
        match shown {
            Some(name) => {
                out.push_str(name);
                changed = true;
            }
            None => out.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    if !changed {
        return out;
    }
    let indent = out.len() - out.trim_start().len();
    let words: Vec<&str> = out
        .split("  ")
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    format!("{}{}", &out[..indent], words.join("  "))
}

/// What stands at the beginning of a text and is different every time: its length and its name.
fn volatile(text: &str) -> Option<(usize, &'static str)> {
    let run = |is: fn(char) -> bool| text.len() - text.trim_start_matches(is).len();
    let ends = |length: usize| !text[length..].starts_with(|c: char| c.is_alphanumeric());
    // A time, in any of its forms.
    let time = run(|c| c.is_ascii_digit() || "-:TZ.+".contains(c));
    let clock = text[..time].trim_end_matches(['.', ':', '-']);
    let is_clock = clock.matches(':').count() >= 1 && clock.len() >= 5;
    if clock.starts_with(|c: char| c.is_ascii_digit())
        && ends(clock.len())
        && (is_clock || is_date(clock))
    {
        return Some((clock.len(), "[TIME]"));
    }
    // In names of files: `20261116T112353Z`, `20261116T112353-086`.
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits(text) == 8 && text[8..].starts_with('T') && digits(&text[9..]) == 6 {
        let rest = text[15..]
            .strip_prefix('-')
            .map_or(0, |rest| 1 + digits(rest));
        let rest = rest + usize::from(text[15..].starts_with('Z'));
        return Some((15 + rest, "[TIME]"));
    }
    // The name of a loop that nobody named, and a process.
    if let Some(rest) = text.strip_prefix("project-") {
        let hex = rest.chars().take_while(char::is_ascii_hexdigit).count();
        if hex == 4 && ends("project-".len() + 4) {
            return Some(("project-".len() + 4, "[NAME]"));
        }
    }
    if let Some(rest) = text.strip_prefix("pid ") {
        return Some(("pid ".len() + digits(rest), "pid [PID]"));
    }
    // Ids of loops, hashes of commits and of files; a number alone is none.
    let hex = run(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase() || c == '-');
    let id = text[..hex].trim_end_matches('-');
    let both = |is: fn(char) -> bool| id.contains(is);
    let short = id.len() == 13 && id.find('-') == Some(8);
    let known = id.len() == 36 || short || (id.len() >= 7 && !id.contains('-'));
    let letters = short || both(|c| c.is_ascii_lowercase());
    if known && both(|c| c.is_ascii_digit()) && letters && ends(id.len()) {
        return Some((id.len(), "[ID]"));
    }
    let number = run(|c| c.is_ascii_digit() || c == '.');
    let number = text[..number].trim_end_matches('.').len();
    if number == 0 {
        return None;
    }
    let after = &text[number..];
    for (units, name) in [
        (&["ms", "s", "m", "min", "h", "d"][..], "[DURATION]"),
        (
            &[
                "B", "bytes", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB",
            ],
            "[SIZE]",
        ),
    ] {
        for unit in units {
            for space in ["", " "] {
                let whole = format!("{space}{unit}");
                let length = number + whole.len();
                if after.starts_with(&whole) && ends(length) {
                    return Some((length, name));
                }
            }
        }
    }
    None
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    matches!(parts.as_slice(), [year, month, day] if year.len() == 4 && month.len() == 2 && day.len() >= 2)
}

#[test]
fn what_differs_at_every_run_is_left_out_of_snapshots() {
    for (line, wanted) in [
        ("took 1.25 s, then 3ms", "took [DURATION], then [DURATION]"),
        (
            "at 2026-11-16T10:45:34.123Z and 10:45",
            "at [TIME] and [TIME]",
        ),
        ("on 2026-11-16", "on [TIME]"),
        (
            "id 019a8c3e-5b7d-7c1a-9f5e-0123456789ab, commit 1a2b3c4d",
            "id [ID], commit [ID]",
        ),
        (
            "01a1e419-1900, loop project-f5d5 (pid 42), at-20261116T112336-086.txt",
            "[ID], loop [NAME] (pid [PID]), at-[TIME].txt",
        ),
        ("hint: --timeout 30m", "hint: --timeout 30m"),
        (
            "idle \"15m\", kept.20261116T112353Z",
            "idle \"15m\", kept.[TIME]",
        ),
        ("a     12.0 MiB    b", "a  [SIZE]  b"),
        (
            "iteration 2 of 50, deadbee, v1.2",
            "iteration 2 of 50, deadbee, v1.2",
        ),
    ] {
        assert_eq!(line_shown(line), wanted);
    }
}
