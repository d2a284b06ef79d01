//! A git that runs in the sandbox of a loop, with all that it starts: what it reads is of an agent's making.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use descartes_kernel::sandbox::{EnvironmentRules, SandboxLevel};

use crate::host::CONFINED_VARIABLE;
use crate::worktree::signing::Signing;

/// Variables that name places which are others inside.
pub(crate) const OTHER_INSIDE: [&str; 4] = ["TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR"];

/// How such a git is started.
#[derive(Clone, Debug)]
pub(crate) struct ConfinedGit {
    /// The words before the command.
    pub(crate) prefix: Vec<OsString>,
    /// Which variables that look like keys are passed on.
    pub(crate) rules: EnvironmentRules,
    pub(crate) level: SandboxLevel,
    /// How its commits are signed, or why they cannot be; `None` where the user does not sign.
    pub(crate) signing: Option<Result<Signing, String>>,
}

impl ConfinedGit {
    /// The command up to the arguments of git. The sandbox begins in a folder of its own.
    pub(super) fn words(&self, program: Vec<OsString>, dir: &Path) -> Vec<OsString> {
        let mut words = self.prefix.clone();
        words.extend(program);
        words.extend(["-C".into(), dir.into()]);
        words
    }

    pub(super) fn environment(
        &self,
        mut all: Vec<(OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let stays = |name: &OsStr| {
            let name = name.to_str();
            name.is_none_or(|name| self.rules.passes(name) && !OTHER_INSIDE.contains(&name))
        };
        all.retain(|(name, _)| stays(name));
        all.push((CONFINED_VARIABLE.into(), self.level.as_str().into()));
        all
    }
}
