//! How far a loop is confined: as it was asked for, else by what its agent may do and what the machine can.

use descartes_text::sandbox_level::SandboxLevel;

use super::config::{LevelReason, SandboxConfig};

/// What makes an agent one that nobody checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// `--permissions all`, with whatever agent.
    ByPermissions,
    /// Its command, its settings or its nature; known of agents with a profile.
    ByItself,
}

/// What the level of a loop follows from, besides the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelQuestion {
    /// What somebody asked for.
    pub asked: Option<SandboxLevel>,
    /// Why nobody checks the agent, where that is so.
    pub unchecked: Option<Unchecked>,
    /// Whether a sandbox of ours is around this already: another one cannot be made inside of it.
    pub within: bool,
}

/// A level that is to be tried, or that holds as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedLevel {
    /// Nothing to try: this is it.
    Settled(SettledLevel),
    /// Tried, and refused where it does not work.
    Demanded(SandboxLevel),
    /// Tried, and left off, with a warning, where it does not work.
    Preferred(SandboxLevel, Unchecked),
}

/// How far a loop is confined, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledLevel {
    pub level: Option<SandboxLevel>,
    pub why: Option<LevelReason>,
    /// What a person is to be told.
    pub warning: Option<String>,
}

/// Why a sandbox does not work, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSandbox {
    pub message: String,
    pub hint: String,
}

impl LevelQuestion {
    /// Which level is to be had.
    pub fn wanted(self) -> WantedLevel {
        match (self.asked, self.unchecked) {
            (Some(SandboxLevel::Off), _) => {
                WantedLevel::Settled(SettledLevel::quiet(Some(SandboxLevel::Off), None))
            }
            (Some(level), _) => WantedLevel::Demanded(level),
            (None, None) => WantedLevel::Settled(SettledLevel::quiet(None, None)),
            // The one around holds, and is no less than this one would be.
            (None, Some(_)) if self.within => WantedLevel::Settled(SettledLevel::quiet(
                Some(SandboxLevel::Off),
                Some(LevelReason::Within),
            )),
            (None, Some(by)) => WantedLevel::Preferred(SandboxLevel::Workspace, by),
        }
    }
}

impl WantedLevel {
    /// The level to try, where there is one.
    pub fn to_try(&self) -> Option<SandboxLevel> {
        match self {
            Self::Settled(_) => None,
            Self::Demanded(level) | Self::Preferred(level, _) => Some(*level),
        }
    }

    /// What holds after it was tried. A level that somebody asked for is never less: it is refused.
    pub fn tried(self, came: Result<(), NoSandbox>) -> Result<SettledLevel, NoSandbox> {
        match (self, came) {
            (Self::Settled(settled), _) => Ok(settled),
            (Self::Demanded(level), Ok(())) => Ok(SettledLevel::quiet(Some(level), None)),
            (Self::Demanded(_), Err(why)) => Err(why),
            (Self::Preferred(level, by), Ok(())) => {
                let why = match by {
                    Unchecked::ByPermissions => LevelReason::Permissions,
                    Unchecked::ByItself => LevelReason::Unchecked,
                };
                Ok(SettledLevel::quiet(Some(level), Some(why)))
            }
            (Self::Preferred(level, _), Err(NoSandbox { message, hint })) => Ok(SettledLevel {
                level: Some(SandboxLevel::Off),
                warning: Some(format!(
                    "the agent is not confined: the sandbox `{}`, which is the default for an agent that nobody \
                     checks, does not work here: {message}; {hint}; --sandbox off says that you want none",
                    level.as_str()
                )),
                why: Some(LevelReason::MachineCannot(message)),
            }),
        }
    }
}

impl SettledLevel {
    fn quiet(level: Option<SandboxLevel>, why: Option<LevelReason>) -> Self {
        Self {
            level,
            why,
            warning: None,
        }
    }

    /// Puts it into the config of a loop.
    pub fn put(&self, config: &mut SandboxConfig) {
        config.level = self.level;
        config.why.clone_from(&self.why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [Option<SandboxLevel>; 4] = [
        None,
        Some(SandboxLevel::Off),
        Some(SandboxLevel::Workspace),
        Some(SandboxLevel::Strict),
    ];
    const UNCHECKED: [Option<Unchecked>; 3] = [
        // An agent that asks, or a command that nobody knows.
        None,
        Some(Unchecked::ByPermissions),
        Some(Unchecked::ByItself),
    ];

    fn no_sandbox() -> NoSandbox {
        NoSandbox {
            message: "bwrap is not installed".to_owned(),
            hint: "install bubblewrap".to_owned(),
        }
    }

    /// What comes of a question on a machine that can, or cannot.
    fn settled(
        asked: Option<SandboxLevel>,
        unchecked: Option<Unchecked>,
        within: bool,
        can: bool,
    ) -> Result<SettledLevel, NoSandbox> {
        let question = LevelQuestion {
            asked,
            unchecked,
            within,
        };
        let came = can.then_some(()).ok_or_else(no_sandbox);
        question.wanted().tried(came)
    }

    #[test]
    fn the_level_follows_from_what_was_asked_the_agent_and_the_machine() {
        use LevelReason::{MachineCannot, Permissions, Unchecked as ByItself, Within};
        use SandboxLevel::{Off, Workspace};
        let (all, own) = (Unchecked::ByPermissions, Unchecked::ByItself);
        let cannot = || MachineCannot("bwrap is not installed".to_owned());
        // Nobody asked: who checks the agent, within, the machine can, what holds and why.
        let table = [
            (None, false, true, None, None),
            (None, false, false, None, None),
            (None, true, true, None, None),
            (Some(all), false, true, Some(Workspace), Some(Permissions)),
            (Some(all), false, false, Some(Off), Some(cannot())),
            (Some(all), true, true, Some(Off), Some(Within)),
            (Some(all), true, false, Some(Off), Some(Within)),
            (Some(own), false, true, Some(Workspace), Some(ByItself)),
            (Some(own), false, false, Some(Off), Some(cannot())),
            (Some(own), true, false, Some(Off), Some(Within)),
        ];
        for (unchecked, within, can, level, why) in table {
            let row = (unchecked, within, can);
            let got = settled(None, unchecked, within, can).unwrap();
            assert_eq!((got.level, got.why.clone()), (level, why), "{row:?}");
            let warns = matches!(got.why, Some(MachineCannot(_)));
            assert_eq!(got.warning.is_some(), warns, "{row:?}");
        }
    }

    #[test]
    fn what_was_asked_for_holds_or_is_refused_and_is_never_less() {
        for asked in LEVELS.into_iter().flatten() {
            for unchecked in UNCHECKED {
                for within in [false, true] {
                    let good = settled(Some(asked), unchecked, within, true).unwrap();
                    assert_eq!(good.level, Some(asked));
                    assert_eq!((good.why, good.warning), (None, None));
                    let bad = settled(Some(asked), unchecked, within, false);
                    match asked {
                        SandboxLevel::Off => assert_eq!(bad.unwrap().level, Some(asked)),
                        _ => assert_eq!(bad, Err(no_sandbox())),
                    }
                }
            }
        }
    }

    #[test]
    fn the_warning_says_why_and_what_to_install() {
        let off = settled(None, Some(Unchecked::ByPermissions), false, false).unwrap();
        let warning = off.warning.unwrap();
        for part in [
            "bwrap is not installed",
            "install bubblewrap",
            "--sandbox off",
        ] {
            assert!(warning.contains(part), "{warning}");
        }
    }
}
