//! The gap between the end of one agent and the start of the next, by the agent's own
//! stamps, beside its floor: one spawn and one durable append.
//!
//! `cargo run --release -p descartes-core --example gap -- AGENT [DIR] [ITERATIONS]`, where
//! AGENT is the scripted agent's binary.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example for the terminal"
)]

use std::io::Write;
use std::path::{Path, PathBuf};

use descartes_core::host::{GuardProgram, HostSettings, NewLoop, OnExistingState};
use descartes_core::loops::create;
use descartes_core::{IterativeLoopConfig, LoopBackendConfig};
use descartes_store::layout::StateRoot;
use descartes_testkit::stamp;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "__guard" {
        std::process::exit(descartes_proc::guard_main());
    }
    let agent = PathBuf::from(&args[1]);
    let own = tempfile::tempdir_in(".").unwrap();
    let root = own.path().canonicalize().unwrap();
    let dir = args.get(2).map_or_else(|| root.join("work"), PathBuf::from);
    let count: u32 = args.get(3).map_or(200, |n| n.parse().unwrap());
    std::fs::create_dir_all(&dir).unwrap();
    let stamps = root.join("stamps");
    let script = format!("stamp {}", stamps.display());
    let exe = std::env::current_exe().unwrap();
    let settings = HostSettings {
        root: StateRoot::at(root.join("state")),
        guard: Some(GuardProgram {
            exe,
            args: vec!["__guard".into()],
        }),
        ..HostSettings::from_process().unwrap()
    };
    let config = IterativeLoopConfig {
        command: agent.display().to_string(),
        prompt: "measure".into(),
        completion_promise: Some("COMPLETE".into()),
        max_iterations: Some(count),
        working_directory: Some(dir),
        state_file: Some(root.join("state.json")),
        backend: LoopBackendConfig {
            environment: [("SCRIPTED_AGENT".to_owned(), script.clone())].into(),
            prompt_mode: "none".into(),
            ..Default::default()
        },
        ..Default::default()
    };
    let new = NewLoop {
        config: config.try_into().unwrap(),
        name: None,
        existing: OnExistingState::Error,
    };
    create(settings, new).unwrap().run().unwrap();
    let ours = sorted_ms(&stamps);
    std::fs::remove_file(&stamps).unwrap();
    spawn_and_append(&agent, &script, &root.join("floor.jsonl"), count);
    let floor = sorted_ms(&stamps);
    print_row("descartes", &ours);
    print_row("floor", &floor);
    println!("ratio of medians {:.2}", median(&ours) / median(&floor));
}

/// Spawn and wait, and one append with fdatasync, with nothing around them.
fn spawn_and_append(agent: &Path, script: &str, journal: &Path, count: u32) {
    let mut journal = std::fs::File::create(journal).unwrap();
    for _ in 0..count {
        let child = std::process::Command::new(agent)
            .env("SCRIPTED_AGENT", script)
            .spawn();
        child.unwrap().wait().unwrap();
        journal.write_all(&[b'x'; 300]).unwrap();
        journal.sync_data().unwrap();
    }
}

fn sorted_ms(stamps: &Path) -> Vec<f64> {
    let gaps = stamp::gaps_ns(&stamp::read(stamps));
    let mut gaps: Vec<f64> = gaps.into_iter().map(|ns| ns as f64 / 1e6).collect();
    gaps.sort_by(f64::total_cmp);
    gaps
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

fn print_row(name: &str, sorted: &[f64]) {
    let at = |q: f64| sorted[((sorted.len() - 1) as f64 * q) as usize];
    println!(
        "{name:10} min {:.3}  p50 {:.3}  p90 {:.3}  p99 {:.3} ms  ({} gaps)",
        at(0.0),
        at(0.5),
        at(0.9),
        at(0.99),
        sorted.len()
    );
}
