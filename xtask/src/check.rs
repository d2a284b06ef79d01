//! Tests and checks.

use crate::shell::{Step, answers, run};

/// Everything is built once, in the `ci` profile.
pub const PROFILE: &str = "ci";

/// The everyday suite.
pub fn test(rest: &[String]) -> Step {
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

/// What a change must pass.
pub fn ci() -> Step {
    check()?;
    test(&[])?;
    crate::fuzz::run(&["--seconds", "1", "--seed", "1"].map(str::to_owned))?;
    let short = ["--short".to_owned()];
    crate::faults::run(&short)?;
    crate::bench::run(&short)?;
    crate::tasks::run(&short)?;
    crate::agents::run_all(&short)?;
    crate::gui::run(&short)
}
