//! Versions of agents, as they print them.

use super::profile::Profile;

/// How an agent's version stands to the one its profile was tried with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VersionSeen {
    /// It had not answered when nobody waited any more.
    Late,
    /// The very one.
    Known(String),
    /// An older one.
    Older(String),
    /// A newer one.
    Newer(String),
    /// A version, but none to compare it with.
    Untried(String),
    /// No version could be read.
    Unreadable,
}

impl Profile {
    /// Reads what the agent printed when it was asked for its version.
    pub fn judge_version(&self, printed: &str) -> VersionSeen {
        let Some(version) = version_in(printed) else {
            return VersionSeen::Unreadable;
        };
        let known = self.known_version.as_deref().map(numbers);
        match known.map(|known| numbers(version).cmp(&known)) {
            None => VersionSeen::Untried(version.to_owned()),
            Some(std::cmp::Ordering::Less) => VersionSeen::Older(version.to_owned()),
            Some(std::cmp::Ordering::Equal) => VersionSeen::Known(version.to_owned()),
            Some(std::cmp::Ordering::Greater) => VersionSeen::Newer(version.to_owned()),
        }
    }
}

/// The first word like `2.1.325` or `v0.166.0`.
fn version_in(printed: &str) -> Option<&str> {
    printed
        .split(|c: char| c.is_whitespace() || "(),:".contains(c))
        .map(|word| word.trim_start_matches('v'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
}

fn numbers(version: &str) -> Vec<u64> {
    let plain = version.split(['-', '+']).next().unwrap_or(version);
    plain
        .split('.')
        .map(|part| part.parse().unwrap_or(0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Profiles;

    #[test]
    fn printed_versions_are_judged() {
        let profiles = Profiles::builtin();
        let table = [
            (
                "claude",
                "2.1.325 (Claude Code)\n",
                VersionSeen::Known("2.1.325".into()),
            ),
            (
                "claude",
                "2.1.197 (Claude Code)",
                VersionSeen::Older("2.1.197".into()),
            ),
            ("claude", "2.10.0", VersionSeen::Newer("2.10.0".into())),
            (
                "codex",
                "codex-cli 0.166.0",
                VersionSeen::Known("0.166.0".into()),
            ),
            (
                "aider",
                "aider v0.86.2\n",
                VersionSeen::Known("0.86.2".into()),
            ),
            (
                "gemini",
                "0.62.0-nightly.1",
                VersionSeen::Newer("0.62.0-nightly.1".into()),
            ),
            (
                "crush",
                "crush version 0.96.1",
                VersionSeen::Untried("0.96.1".into()),
            ),
            ("claude", "command not found", VersionSeen::Unreadable),
            ("claude", "", VersionSeen::Unreadable),
        ];
        for (name, printed, want) in table {
            assert_eq!(
                profiles.get(name).unwrap().judge_version(printed),
                want,
                "{printed}"
            );
        }
    }
}
