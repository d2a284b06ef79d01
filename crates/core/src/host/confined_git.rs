//! Git of ours where an agent works in the user's own tree. Whatever such a git reads there may be of the
//! agent's making: settings, attributes, filters, hooks, repositories inside. So it runs where gates do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use descartes_agents::agent::{GENERIC, Profile};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::{
    Access, GitPlaces, RunPurpose, SandboxLevel, SandboxPlan, home_path,
};

use super::error::HostError;
use super::git_look::GIT_TIME;
use super::opening::git_of;
use super::sandbox::{ConfinedRun, LoopSandbox, environment_rules};
use super::settings::HostSettings;
use crate::worktree::deadline::Deadline;
use crate::worktree::git::confined::ConfinedGit;
use crate::worktree::signing::Signing;

/// How the user's commits are signed, or why they cannot be; `None` where they are not.
pub(crate) type HowSigned = Option<Result<Signing, String>>;

impl LoopSandbox {
    /// What git of ours runs in; `None` where gates are not confined either.
    pub(crate) fn confined_git(
        &self,
        config: &IterativeLoopConfig,
        settings: &HostSettings,
        profile: Option<&Profile>,
        signing: HowSigned,
    ) -> Result<Option<Arc<ConfinedGit>>, HostError> {
        if config.sandbox.effective_for_gates() == SandboxLevel::Off {
            return Ok(None);
        }
        let run = ConfinedRun {
            purpose: RunPurpose::Gate,
            profile,
            program: None,
            handed: &[],
        };
        let plan = self.plan(config, settings, run)?;
        Ok(Some(Arc::new(ConfinedGit {
            prefix: self.prefix(&plan)?,
            rules: environment_rules(settings, profile, RunPurpose::Gate),
            level: plan.level,
            signing,
        })))
    }

    /// How the user signs, by the settings of now: asked before the first agent. `folder` is kept for it.
    pub(crate) fn signing(
        &self,
        config: &IterativeLoopConfig,
        settings: &HostSettings,
        profile: Option<&Profile>,
        folder: &Path,
    ) -> HowSigned {
        let git = self.project().git()?;
        let call = git_of(settings).read(&git.top);
        let call = call.args([
            "config",
            "--list",
            "--null",
            "--show-scope",
            "--show-origin",
        ]);
        let listed = match call.output(Deadline::after(GIT_TIME)) {
            Ok(listed) => String::from_utf8_lossy(&listed).into_owned(),
            Err(error) => return Some(Err(format!("the settings of git cannot be read: {error}"))),
        };
        let listed = Listed::read(&listed, &git.top);
        if !listed.is_true("commit.gpgsign") {
            return None;
        }
        let run = ConfinedRun {
            purpose: RunPurpose::Agent,
            profile: profile.or(settings.profiles.get(GENERIC)),
            program: None,
            handed: &[],
        };
        let plan = match self.plan(config, settings, run) {
            Ok(plan) => plan,
            Err(error) => return Some(Err(error.to_string())),
        };
        let programs = SigningPrograms {
            listed: &listed,
            plan: &plan,
            settings,
            git,
        };
        if let Err(why) = programs.are_out_of_reach() {
            return Some(Err(why));
        }
        let kept = ["user.", "author.", "committer.", "gpg."];
        let of_signing = |key: &&GitSetting| kept.iter().any(|kept| key.key.starts_with(kept));
        let kept = listed.0.iter().filter(of_signing);
        Some(Ok(Signing {
            settings: kept
                .map(|set| (OsString::from(&set.key), OsString::from(&set.value)))
                .collect(),
            folder: folder.to_owned(),
        }))
    }
}

/// One setting, and the file that it stands in.
struct GitSetting {
    key: String,
    value: String,
    file: Option<PathBuf>,
}

/// Settings as git lists them, without those of our own call.
struct Listed(Vec<GitSetting>);

impl Listed {
    /// `scope NUL origin NUL key LF value NUL …`; a key without a value is `true`.
    fn read(text: &str, top: &Path) -> Self {
        let mut fields = text.split('\0');
        let mut all = Vec::new();
        while let (Some(scope), Some(origin), Some(entry)) =
            (fields.next(), fields.next(), fields.next())
        {
            if scope == "command" {
                continue;
            }
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            all.push(GitSetting {
                key: key.to_owned(),
                value: value.to_owned(),
                file: origin.strip_prefix("file:").map(|file| top.join(file)),
            });
        }
        Self(all)
    }

    fn get(&self, key: &str) -> Option<&GitSetting> {
        self.0.iter().rev().find(|set| set.key == key)
    }

    fn is_true(&self, key: &str) -> bool {
        let value = self.get(key).map(|set| set.value.to_ascii_lowercase());
        value.is_some_and(|value| matches!(&*value, "true" | "yes" | "on" | "1"))
    }
}

/// The programs that a signature starts.
struct SigningPrograms<'a> {
    listed: &'a Listed,
    plan: &'a SandboxPlan,
    settings: &'a HostSettings,
    git: &'a GitPlaces,
}

impl SigningPrograms<'_> {
    fn are_out_of_reach(&self) -> Result<(), String> {
        let format = self.listed.get("gpg.format");
        let format = format.map_or("openpgp", |set| set.value.as_str());
        let (keys, default): (&[&str], &str) = match format {
            "ssh" => (&["gpg.ssh.program"], "ssh-keygen"),
            "x509" => (&["gpg.x509.program"], "gpgsm"),
            _ => (&["gpg.openpgp.program", "gpg.program"], "gpg"),
        };
        let set = keys.iter().find_map(|key| self.listed.get(key));
        match set {
            Some(set) => self.is_out_of_reach(&set.key, &set.value, set.file.as_deref())?,
            None => self.is_out_of_reach("gpg.program", default, None)?,
        }
        let asks = self.listed.get("gpg.ssh.defaultkeycommand");
        match asks.filter(|_| format == "ssh" && self.listed.get("user.signingkey").is_none()) {
            Some(set) => {
                for word in shell_words::split(&set.value).unwrap_or_default() {
                    self.is_out_of_reach(&set.key, &word, set.file.as_deref())?;
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn is_out_of_reach(&self, key: &str, name: &str, file: Option<&Path>) -> Result<(), String> {
        let refused = |what: &Path, how: &str| {
            Err(format!(
                "{key} {how} {}, which the agent can write: no commit is signed by it",
                what.display()
            ))
        };
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let in_reach = |path: &Path| match self.plan.access(path) {
            Access::Writable | Access::Pinned => true,
            // What lies there outside is not there inside.
            Access::Private | Access::Hidden => false,
            // What is locked in the work tree is as an agent before this one left it.
            Access::ReadOnly => {
                path.starts_with(&self.git.top) && !path.starts_with(&self.git.common_dir)
            }
        };
        if let Some(file) = file.map(real).filter(|file| in_reach(file)) {
            return refused(&file, "is set in");
        }
        let environment = self.settings.environment.iter().rev();
        let path = environment.clone().find(|(key, _)| key == "PATH");
        let path = path.map(|(_, value)| value.as_os_str());
        let home = self.settings.paths.home.as_deref();
        let name = home_path(name, home).unwrap_or_else(|| name.into());
        let found = descartes_proc::find_program(name.as_os_str(), path, &self.git.top);
        let found = found.unwrap_or(name);
        let found = real(&self.git.top.join(found));
        match in_reach(&found) {
            true => refused(&found, "is"),
            false => Ok(()),
        }
    }
}
