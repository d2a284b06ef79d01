//! Tests and checks.

use crate::shell::{Step, answers, run};

/// Everything is built once, in the `ci` profile.
pub const PROFILE: &str = "ci";

/// The everyday suite.
pub fn test(rest: &[String]) -> Step {
    suite(rest, &[])
}

/// The suite; `tolerance` is for nextest alone.
fn suite(rest: &[String], tolerance: &[&str]) -> Step {
    // Tests start the real binaries, which `cargo test` does not build for other packages.
    run(
        "cargo",
        &["build", "--profile", PROFILE, "--workspace", "--bins"],
    )?;
    let extra: Vec<&str> = rest.iter().map(String::as_str).collect();
    if answers("cargo", &["nextest", "--version"]) {
        // Most tests wait for a process or a grace: twice the processors are busy, not overloaded.
        let threads = std::thread::available_parallelism().map_or(2, usize::from) * 2;
        let threads = threads.to_string();
        let mut args = vec!["nextest", "run", "--cargo-profile", PROFILE, "--workspace"];
        if !extra
            .iter()
            .any(|arg| arg.starts_with("-j") || arg.starts_with("--test-threads"))
        {
            args.extend(["--test-threads", &threads]);
        }
        args.extend(tolerance);
        args.extend(extra);
        run("cargo", &args)?;
    } else {
        let mut args = vec![
            "test",
            "--profile",
            PROFILE,
            "--workspace",
            "--bins",
            "--lib",
            "--tests",
        ];
        args.extend(extra);
        run("cargo", &args)?;
    }
    // Fault points are compiled in for these alone.
    run(
        "cargo",
        &[
            "test",
            "--profile",
            PROFILE,
            "-p",
            "descartes-store",
            "--features",
            "faults",
            "--test",
            "faults",
        ],
    )?;
    run(
        "cargo",
        &["test", "--profile", PROFILE, "--workspace", "--doc"],
    )
}

/// Format, lints, documentation.
pub fn check() -> Step {
    run("cargo", &["fmt", "--all", "--check"])?;
    run(
        "cargo",
        &[
            "clippy",
            "--profile",
            PROFILE,
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    run(
        "cargo",
        &[
            "doc",
            "--profile",
            PROFILE,
            "--workspace",
            "--no-deps",
            "--quiet",
        ],
    )
}

/// What a change must pass. What does not build ends it; of everything else all is told.
pub fn ci() -> Step {
    check()?;
    let short = ["--short".to_owned()];
    let parts: [(&str, &dyn Fn() -> Step); 8] = [
        // A test that fails and then passes is listed as flaky at the end of the run.
        ("test", &|| {
            suite(&[], &["--no-fail-fast", "--retries", "2"])
        }),
        ("fuzz", &|| {
            crate::fuzz::run(&["--seconds", "1", "--seed", "1"].map(str::to_owned))
        }),
        ("faults", &|| crate::faults::run(&short)),
        ("bench", &|| crate::bench::run(&short)),
        ("tasks", &|| crate::tasks::run(&short)),
        // Those that are installed; the others cannot.
        ("peers", &|| crate::peers::run(&short)),
        ("agents", &|| {
            crate::agents::run_all(&short).or_else(|missed| {
                println!("{missed}\nmissed, and taken once more:");
                crate::agents::run_all(&short)
            })
        }),
        ("gui", &|| crate::gui::run(&short)),
    ];
    let mut failed = Vec::new();
    for (name, part) in parts {
        println!("\n== {name}");
        if let Err(error) = part() {
            eprintln!("error: {error}");
            failed.push(name);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("failed: {}", failed.join(", ")))
}
