//! Loops that earlier versions left behind are shown, asked and resumed by this one. `make.sh` in
//! `fixtures/loops` wrote them.

use std::path::PathBuf;

use descartes_testkit::World;
use serde_json::{Value, json};

use crate::common::{descartes, state};

/// How a loop was left, and what becomes of it.
struct OldLoop {
    kind: &'static str,
    /// What its state says of it: iterations, and whether it had ended.
    left: (u64, bool),
    /// Flags with which it goes on, and the exit code and iterations in the end.
    resume: (&'static [&'static str], i32, u64),
}

const OLD_LOOPS: [OldLoop; 6] = [
    OldLoop {
        kind: "plain",
        left: (3, true),
        resume: (&[], 0, 3),
    },
    OldLoop {
        kind: "at-limit",
        left: (3, true),
        resume: (&["--max-iterations", "9"], 0, 4),
    },
    OldLoop {
        kind: "limited",
        left: (1, false),
        resume: (&[], 0, 2),
    },
    OldLoop {
        kind: "interrupted",
        left: (1, false),
        resume: (&[], 0, 3),
    },
    OldLoop {
        kind: "tasks",
        left: (1, false),
        resume: (&[], 0, 4),
    },
    OldLoop {
        kind: "long",
        left: (400, true),
        resume: (&["--max-iterations", "401"], 2, 401),
    },
];

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/loops")
}

/// A world in which another version has worked.
fn unpacked(version: &str, kind: &str) -> World {
    let world = World::in_memory();
    let archive = fixtures().join(version).join(format!("{kind}.tar.gz"));
    let mut tar = world.command("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(world.root());
    world.run(tar).assert_code(0);
    if world.has("bin/claude") {
        std::os::unix::fs::symlink(world.path("bin/claude"), world.bin().join("claude")).unwrap();
    }
    world
}

fn is_shown_asked_and_resumed(version: &str, old: &OldLoop) {
    let world = unpacked(version, old.kind);
    let context = format!("{} of {version}", old.kind);
    let (iterations, ended) = old.left;

    let status = descartes(&world, &["loop", "status", old.kind, "--json"]);
    let told: Value = serde_json::from_str(&status.stdout()).unwrap();
    assert_eq!(told["iteration"], iterations, "{context}: {status}");
    assert_eq!(told["completed"], ended, "{context}: {status}");
    for verb in ["status", "history", "logs"] {
        descartes(&world, &["loop", verb, old.kind]).assert_code(0);
    }
    let list = descartes(&world, &["loop", "list", "--all"]);
    assert!(list.stdout().contains(old.kind), "{context}: {list}");
    let report = descartes(&world, &["report", old.kind, "--output", "report.html"]);
    report.assert_code(0);

    let question = format!(
        "select iterations from loops where name = '{}' and parent is null",
        old.kind
    );
    let rows = descartes(&world, &["query", "--json", &question]);
    let rows: Value = serde_json::from_str(&rows.assert_code(0).stdout()).unwrap();
    assert_eq!(
        rows,
        json!([{ "iterations": iterations }]),
        "{context}: {rows}"
    );

    let (flags, code, after) = old.resume;
    let resumed = descartes(
        &world,
        &[&["loop", "resume", old.kind, "--here"], flags].concat(),
    );
    resumed.assert_code(code);
    assert_eq!(state(&world)["iteration"], after, "{context}: {resumed}");
    if old.kind == "tasks" {
        for task in 1..=3 {
            assert!(world.has(format!("work-{task}")), "{context}: {resumed}");
        }
    }
}

fn all_of(version: &str) {
    for old in &OLD_LOOPS {
        is_shown_asked_and_resumed(version, old);
    }
}

#[test]
fn loops_of_0_1_0_are_shown_asked_and_resumed() {
    all_of("0.1.0");
}

#[test]
fn loops_of_the_version_before_0_2_are_shown_asked_and_resumed() {
    all_of("before-0.2");
}
