//! Which agents are installed, in which version.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use descartes_kernel::agent::{Profile, Profiles};
use descartes_proc::find_program;
use descartes_store::config::Layers;

use super::finding::{Finding, note, ok};
use crate::settings::surroundings::Surroundings;
use crate::view::width::{cut_end, one_line};

/// An agent that does not tell its version by then is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks for every agent that is known, all at once.
pub fn look(profiles: &Profiles, layers: &Layers, around: &Surroundings) -> Vec<Finding> {
    let installed: Vec<(Profile, PathBuf)> = profiles
        .iter()
        .filter_map(|profile| Some((profile.clone(), find(profile, around)?)))
        .collect();
    let threads: Vec<_> = installed
        .into_iter()
        .map(|(profile, program)| thread::spawn(move || tell(&profile, &program)))
        .collect();
    let mut out: Vec<Finding> = threads
        .into_iter()
        .filter_map(|thread| thread.join().ok())
        .collect();
    if out.is_empty() {
        out.push(note(
            "agents",
            "no known agent is installed",
            "any command can be one: --command './my-agent'",
        ));
    }
    out.extend(default_missing(profiles, layers, around));
    out
}

fn find(profile: &Profile, around: &Surroundings) -> Option<PathBuf> {
    let words = shell_words::split(&profile.command).ok()?;
    program(words.first()?, around)
}

fn program(name: &str, around: &Surroundings) -> Option<PathBuf> {
    let path = around
        .environment
        .raw("PATH")
        .map(std::ffi::OsString::as_os_str);
    find_program(name.as_ref(), path, &around.here).ok()
}

fn default_missing(profiles: &Profiles, layers: &Layers, around: &Surroundings) -> Option<Finding> {
    let agent = layers.get::<String>("default_agent")?.value;
    let command = profiles
        .get(&agent)
        .map_or(agent.as_str(), |profile| profile.command.as_str());
    let words = shell_words::split(command).ok()?;
    if program(words.first()?, around).is_some() {
        return None;
    }
    let message = format!("the default agent `{agent}` is not installed");
    Some(note(
        "agents",
        message,
        "set default_agent in a config file, or give --command",
    ))
}

fn tell(profile: &Profile, program: &Path) -> Finding {
    let verified = if profile.verified {
        ""
    } else {
        " (unverified profile)"
    };
    let name = &profile.name;
    match version(program, &profile.version_args) {
        Some(version) => ok(
            "agents",
            format!("{name}{verified}: {version}, {}", program.display()),
        ),
        None => note(
            "agents",
            format!("{name}{verified}: {}, tells no version", program.display()),
            "",
        ),
    }
}

/// The first line that the program prints when asked for its version.
pub fn version(program: &Path, arguments: &[String]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let end = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
            _ => {
                // It is asked no more; what became of it does not matter.
                drop(child.kill());
                drop(child.wait());
                return None;
            }
        }
    }
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.lines().map(one_line).find(|line| !line.is_empty())?;
    output.status.success().then(|| cut_end(&first, 60))
}
