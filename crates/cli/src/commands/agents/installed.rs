//! Which agents are installed, where, and in which version.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use descartes_agents::agent::{Profile, Profiles, VersionSeen};
use descartes_proc::find_program;
use descartes_text::units::show_duration;

use crate::error::CliError;
use crate::settings::agent::profiles;
use crate::settings::command_context::{CommandContext, ProjectConfig};

/// An agent that does not tell its version by then is not waited for. All are asked at once; on a busy machine the
/// first start of some takes half a minute.
const VERSION_TIMEOUT: Duration = Duration::from_secs(60);

/// An agent that is there.
#[derive(Clone, Debug)]
pub struct Installed {
    pub program: PathBuf,
    /// Its version; none where it was not asked.
    pub version: Option<VersionSeen>,
}

/// Agents that may be started to ask for their version: those that are the same without what is
/// not trusted in the project's own config.
#[derive(Debug)]
pub struct MayBeStarted(Profiles);

impl MayBeStarted {
    /// Looks at what is trusted here.
    pub fn here(ctx: &CommandContext) -> Result<Self, CliError> {
        let harmless = ctx.with(ProjectConfig::Harmless).layers(&ctx.here);
        let found = harmless.and_then(|layers| profiles(&layers.settings));
        Ok(Self(match found {
            Ok(profiles) => profiles,
            Err(_) => Profiles::builtin(),
        }))
    }

    /// Whether this agent, one of `profiles`, is one of them.
    pub fn holds(&self, profile: &Profile, profiles: &Profiles) -> bool {
        let own = self.0.show(&profile.name);
        own.is_some() && own == profiles.show(&profile.name)
    }
}

/// Looks for every agent that is known, all at once: some take seconds to tell their version.
pub fn look<'a>(
    profiles: &'a Profiles,
    started: &MayBeStarted,
    ctx: &CommandContext,
) -> Vec<(&'a Profile, Option<Installed>)> {
    let look = |profile: &Profile| match started.holds(profile, profiles) {
        true => look_for(profile, ctx),
        false => find(profile, ctx),
    };
    let look = &look;
    thread::scope(|scope| {
        let threads: Vec<_> = profiles
            .iter()
            .map(|profile| {
                let looks = move || look(profile);
                (profile, thread::Builder::new().spawn_scoped(scope, looks))
            })
            .collect();
        let found = threads.into_iter().map(|(profile, thread)| match thread {
            Ok(thread) => (profile, thread.join().unwrap_or_default()),
            // No thread can be had: one after the other, then.
            Err(_) => (profile, look(profile)),
        });
        found.collect()
    })
}

/// Looks for one agent, and asks it for its version.
pub fn look_for(profile: &Profile, ctx: &CommandContext) -> Option<Installed> {
    let found = find(profile, ctx)?;
    let version = match printed(&found.program, &profile.version_args) {
        VersionAnswer::Text(text) => profile.judge_version(&text),
        VersionAnswer::Nothing => profile.judge_version(""),
        VersionAnswer::Late => VersionSeen::Late,
    };
    Some(Installed {
        version: Some(version),
        ..found
    })
}

/// The same without starting it.
fn find(profile: &Profile, ctx: &CommandContext) -> Option<Installed> {
    let words = shell_words::split(&profile.command).ok()?;
    let program = program(words.first()?, ctx)?;
    Some(Installed {
        program,
        version: None,
    })
}

/// The program of that name, as an agent would be found.
pub fn program(name: &str, ctx: &CommandContext) -> Option<PathBuf> {
    let path = ctx
        .environment
        .raw("PATH")
        .map(std::ffi::OsString::as_os_str);
    find_program(name.as_ref(), path, &ctx.here).ok()
}

/// What came of asking a program for its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionAnswer {
    Text(String),
    /// It could not be asked, or failed.
    Nothing,
    /// It had not answered in time.
    Late,
}

/// What the program prints when asked for its version.
pub fn printed(program: &Path, arguments: &[String]) -> VersionAnswer {
    printed_within(program, arguments, VERSION_TIMEOUT)
}

fn printed_within(program: &Path, arguments: &[String], patience: Duration) -> VersionAnswer {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return VersionAnswer::Nothing;
    };
    if !ends(&mut child, Instant::now() + patience) {
        // It is asked no more; what became of it does not matter.
        drop(child.kill());
        drop(child.wait());
        return VersionAnswer::Late;
    }
    match child.wait_with_output() {
        Ok(output) if output.status.success() => {
            VersionAnswer::Text(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        _ => VersionAnswer::Nothing,
    }
}

fn ends(child: &mut Child, by: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return true,
            Ok(None) if Instant::now() < by => thread::sleep(Duration::from_millis(5)),
            _ => return false,
        }
    }
}

/// The version for people, with how it stands to the one that the profile was tried with.
pub fn show_version(profile: &Profile, version: Option<&VersionSeen>) -> String {
    let known = profile.known_version.as_deref().unwrap_or("?");
    let Some(version) = version else {
        return "not trusted, so not started".to_owned();
    };
    match version {
        VersionSeen::Known(version) | VersionSeen::Untried(version) => version.clone(),
        VersionSeen::Older(version) => format!("{version} (older than {known})"),
        VersionSeen::Newer(version) => format!("{version} (newer than {known})"),
        VersionSeen::Unreadable => "reports no version".to_owned(),
        VersionSeen::Late => format!(
            "its version is unknown: it did not answer within {}",
            show_duration(VERSION_TIMEOUT)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_answers_late_is_not_called_one_without_a_version() {
        let sh = |script: &str, patience| {
            let words = ["-c".to_owned(), script.to_owned()];
            printed_within(Path::new("/bin/sh"), &words, patience)
        };
        let (long, short) = (Duration::from_secs(600), Duration::from_millis(50));
        assert_eq!(
            sh("echo 1.2", long),
            VersionAnswer::Text("1.2\n".to_owned())
        );
        assert_eq!(sh("exit 3", long), VersionAnswer::Nothing);
        assert_eq!(sh("exec sleep 1000", short), VersionAnswer::Late);
        let profiles = Profiles::builtin();
        let profile = profiles.get("gemini").unwrap();
        let late = show_version(profile, Some(&VersionSeen::Late));
        assert!(late.contains("did not answer within 1m"), "{late}");
    }
}
