//! Programs of the system that tests and campaigns use: whoever lacks one skips what needs it.

use std::fs;

use crate::shell::{Step, answers, run};

struct SystemTool {
    name: &'static str,
    /// With the packages of Debian and Ubuntu.
    packages: &'static [&'static str],
    used_by: &'static str,
    is_there: fn() -> bool,
}

const TOOLS: [SystemTool; 6] = [
    SystemTool {
        name: "bwrap",
        packages: &["bubblewrap"],
        used_by: "tests of the sandbox",
        is_there: || is_program("bwrap"),
    },
    SystemTool {
        name: "chromium and chromedriver",
        packages: &["chromium", "chromium-driver"],
        used_by: "tests of the pages",
        is_there: || is_program("chromedriver"),
    },
    SystemTool {
        name: "Xvfb",
        packages: &[
            "xvfb",
            "libx11-6",
            "libx11-xcb1",
            "libxcursor1",
            "libxi6",
            "libxkbcommon-x11-0",
        ],
        used_by: "`cargo xtask gui`",
        is_there: || is_program("Xvfb"),
    },
    SystemTool {
        name: "xdotool",
        packages: &["xdotool"],
        used_by: "`cargo xtask gui`",
        is_there: || is_program("xdotool"),
    },
    SystemTool {
        name: "libfaketime",
        packages: &["faketime"],
        used_by: "`cargo xtask faults`",
        is_there: has_faketime,
    },
    SystemTool {
        name: "gh",
        packages: &["gh"],
        used_by: "`cargo xtask tasks`",
        is_there: || is_program("gh"),
    },
];

fn is_program(name: &str) -> bool {
    answers("sh", &["-c", &format!("command -v {name}")])
}

fn has_faketime() -> bool {
    let mut folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders.any(|folder| folder.path().join("faketime").exists())
}

fn missing() -> Vec<&'static SystemTool> {
    TOOLS.iter().filter(|tool| !(tool.is_there)()).collect()
}

fn packages(of: &[&SystemTool]) -> Vec<&'static str> {
    of.iter().flat_map(|tool| tool.packages).copied().collect()
}

/// Those of these names that are not here, for people.
pub fn lacking(names: &[&str]) -> Option<String> {
    let mut lacking = missing();
    lacking.retain(|tool| names.contains(&tool.name));
    let names: Vec<&str> = lacking.iter().map(|tool| tool.name).collect();
    let are = match names.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let packages = packages(&lacking).join(" ");
    let names = names.join(" and ");
    Some(format!(
        "{names} {are} not installed (Debian and Ubuntu: apt-get install {packages})"
    ))
}

/// Says what will not be tested here.
pub fn tell_missing() {
    let missing = missing();
    if missing.is_empty() {
        return;
    }
    println!("not installed here, so what needs them is skipped:");
    for tool in &missing {
        println!("  {:<26} {}", tool.name, tool.used_by);
    }
    let packages = packages(&missing).join(" ");
    println!("Debian and Ubuntu: sudo apt-get install {packages}\n");
}

/// Gets what is missing from the system's packages where that can be done without asking anybody.
pub fn install() -> Step {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() || !answers("apt-get", &["--version"]) {
        tell_missing();
        return Ok(());
    }
    run("apt-get", &["update", "--quiet", "--quiet"])?;
    for tool in missing {
        let words = ["install", "--yes", "--quiet", "--no-install-recommends"];
        // One that this system does not have keeps nobody from the others.
        if let Err(error) = run("apt-get", &[&words, tool.packages].concat()) {
            println!("{error}");
        }
    }
    tell_missing();
    Ok(())
}
