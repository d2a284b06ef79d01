//! Which variables an agent gets. Gates and git are the user's own programs and get all of them.

use std::ffi::OsStr;

/// What hardly any program works without, and what holds no secret: always passed on.
const ESSENTIAL: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_*",
    // Our own: which loop, iteration and task this is.
    "DESCARTES_*",
];

/// Which variables of its surroundings an agent gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PassEnv {
    /// All.
    #[default]
    All,
    /// The essential ones and these; `AWS_*` stands for all that begin so.
    Only(Vec<String>),
}

impl PassEnv {
    /// Whether a variable of this name is passed on.
    pub fn passes(&self, name: &OsStr) -> bool {
        let Self::Only(names) = self else { return true };
        let name = name.to_string_lossy();
        let fits = |wanted: &str| match wanted.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == wanted,
        };
        ESSENTIAL.iter().any(|wanted| fits(wanted)) || names.iter().any(|wanted| fits(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_and_what_is_essential_passes() {
        let only = PassEnv::Only(vec!["MY_KEY".into(), "AWS_*".into()]);
        for name in ["MY_KEY", "AWS_REGION", "PATH", "HOME", "LC_ALL", "LANG"] {
            assert!(only.passes(OsStr::new(name)), "{name}");
        }
        for name in ["MY_KEY_2", "OPENAI_API_KEY", "PATHS", "GITHUB_TOKEN"] {
            assert!(!only.passes(OsStr::new(name)), "{name}");
            assert!(PassEnv::All.passes(OsStr::new(name)), "{name}");
        }
        assert!(!PassEnv::Only(Vec::new()).passes(OsStr::new("MY_KEY")));
    }
}
