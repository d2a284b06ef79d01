//! What a change must pass.

use std::time::Instant;

use crate::shell::{Step, run};
use crate::{deny, lines, suite, typos};

/// Everything is built once, in the `ci` profile.
pub const PROFILE: &str = "ci";

/// Format, spelling, dependencies, structure, lints, documentation: the quick ones first.
pub fn check() -> Step {
    run("cargo", &["fmt", "--all", "--check"])?;
    typos::check()?;
    deny::check()?;
    lines::check()?;
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
    let mut times = vec![timed("check", &check)?];
    let short = ["--short".to_owned()];
    let parts: [(&str, &dyn Fn() -> Step); 11] = [
        ("test", &|| suite::run_all(&[], suite::Extent::All)),
        ("services", &|| suite::run_services(&[], suite::Extent::All)),
        ("fuzz", &|| {
            crate::fuzz::run(&["--seconds", "1", "--seed", "1"].map(str::to_owned))
        }),
        ("faults", &|| crate::faults::run(&short)),
        ("bench", &|| crate::bench::run(&short)),
        ("tasks", &|| crate::tasks::run(&short)),
        // Those that are installed; the others cannot.
        ("peers", &|| crate::peers::run(&short)),
        ("agents", &|| crate::agents::run_all(&short)),
        ("gui", &|| crate::gui::run(&short)),
        ("web", &|| crate::web::run(&short)),
        ("fleet", &|| crate::fleet::run(&short)),
    ];
    let mut failed = Vec::new();
    for (name, part) in parts {
        println!("\n== {name}");
        match timed(name, part) {
            Ok(time) => times.push(time),
            Err(error) => {
                eprintln!("error: {error}");
                failed.push((name, error));
            }
        }
    }
    println!("\n== times: {}", times.join(", "));
    if failed.is_empty() {
        return Ok(());
    }
    // Once more at the end, where whoever reads only the last lines of a long log finds the reasons.
    let reasons = failed.iter().map(|(name, why)| format!("\n{name}: {why}"));
    let reasons: String = reasons.collect();
    let names: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
    Err(format!("failed: {}{reasons}", names.join(", ")))
}

/// Does a part, and tells how long it took.
fn timed(name: &str, part: &dyn Fn() -> Step) -> Result<String, String> {
    let began = Instant::now();
    part()?;
    Ok(format!("{name} {} s", began.elapsed().as_secs()))
}
