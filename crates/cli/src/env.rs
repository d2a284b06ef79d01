//! Every environment variable that the command line reads by itself, and the one place that reads
//! them. Settings are read from `DESCARTES_<KEY>` by the store's layers.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use descartes_store::debug_log::{self, Filter};

use crate::args::ColorChoice;
use crate::error::CliError;
use crate::style::Paint;

/// Set to anything: no colours (<https://no-color.org>).
const NO_COLOR: &str = "NO_COLOR";
/// `dumb` is a terminal that cannot move its cursor.
const TERM: &str = "TERM";
/// The first of these that is set says whether the terminal understands UTF-8.
const LOCALE: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// What the environment says.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
        }
    }

    /// An environment for tests.
    #[cfg(test)]
    pub fn of(pairs: &[(&str, &str)]) -> Self {
        let pair = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
        Self {
            variables: pairs.iter().map(pair).collect(),
        }
    }

    /// All variables, for agents.
    pub fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    /// A variable as it stands.
    pub fn raw(&self, name: &str) -> Option<&OsString> {
        let found = self.variables.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value)
    }

    /// A variable as text; one that is empty counts as not set.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.raw(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// What `DESCARTES_LOG` says is logged; `None` where it is not set.
    pub fn log_filter(&self) -> Result<Option<Filter>, CliError> {
        let value = self
            .raw(debug_log::VARIABLE)
            .filter(|value| !value.is_empty());
        let filter = value.map(|value| Filter::of_variable(value)).transpose();
        filter.map_err(|message| CliError::usage(message, Filter::EXAMPLE))
    }

    /// The program of that name on the `PATH`.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let is_program = |path: &PathBuf| {
            let found = std::fs::metadata(path);
            found.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        let folders = std::env::split_paths(self.raw("PATH")?);
        folders.map(|folder| folder.join(name)).find(is_program)
    }

    /// Whether a stream is painted.
    pub fn paint(&self, choice: ColorChoice, stream: Stream) -> Paint {
        let auto = stream == Stream::Terminal && self.text(NO_COLOR).is_none() && !self.is_dumb();
        match choice {
            ColorChoice::Always => Paint::Colour,
            ColorChoice::Auto if auto => Paint::Colour,
            ColorChoice::Auto | ColorChoice::Never => Paint::Plain,
        }
    }

    /// Whether the terminal cannot move its cursor.
    pub fn is_dumb(&self) -> bool {
        self.text(TERM).is_none_or(|term| term == "dumb")
    }

    /// Whether the terminal shows more than ASCII.
    pub fn is_utf8(&self) -> bool {
        let locale = LOCALE.iter().find_map(|name| self.text(name));
        locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
    }
}

/// What a stream leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// A person's terminal.
    Terminal,
    /// A file or another program.
    Pipe,
}

impl Stream {
    /// What this stream leads to.
    pub fn of(stream: &impl std::io::IsTerminal) -> Self {
        if stream.is_terminal() {
            Self::Terminal
        } else {
            Self::Pipe
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_whose_person_did_not_say_no() {
        let auto = |pairs: &[(&str, &str)], stream| {
            Environment::of(pairs).paint(ColorChoice::Auto, stream)
        };
        let term = ("TERM", "xterm");
        assert_eq!(auto(&[term], Stream::Terminal), Paint::Colour);
        assert_eq!(auto(&[term], Stream::Pipe), Paint::Plain);
        assert_eq!(
            auto(&[term, ("NO_COLOR", "1")], Stream::Terminal),
            Paint::Plain
        );
        assert_eq!(
            auto(&[term, ("NO_COLOR", "")], Stream::Terminal),
            Paint::Colour
        );
        assert_eq!(auto(&[("TERM", "dumb")], Stream::Terminal), Paint::Plain);
        let no = Environment::of(&[("NO_COLOR", "1")]);
        assert_eq!(no.paint(ColorChoice::Always, Stream::Pipe), Paint::Colour);
        assert_eq!(no.paint(ColorChoice::Never, Stream::Terminal), Paint::Plain);
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        assert!(Environment::of(&[("LANG", "C.UTF-8")]).is_utf8());
        assert!(!Environment::of(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")]).is_utf8());
        assert!(!Environment::default().is_utf8());
    }
}
