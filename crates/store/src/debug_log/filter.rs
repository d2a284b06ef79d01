//! What is logged: `debug`, or `core=debug,store=trace`.

use std::ffi::OsStr;
use std::str::FromStr;

use tracing::Level;
use tracing::level_filters::LevelFilter;

/// The parts of the program that log, as they are named in a filter and in the log.
const PARTS: [&str; 7] = ["proc", "store", "core", "client", "query", "cli", "gui"];

/// Why a filter cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFilter {
    /// Not even text.
    #[error("it is not UTF-8")]
    NotText,
    /// Not a level.
    #[error("`{0}` is not a log level (off, error, warn, info, debug, trace)")]
    Level(String),
    /// Not a part of the program.
    #[error("`{0}` is not a part of descartes that logs ({parts})", parts = PARTS.join(", "))]
    Part(String),
}

/// Which events are logged: a level for everything, and others for parts of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    everything: LevelFilter,
    /// `core` or `core::host`, each with its level.
    parts: Vec<(String, LevelFilter)>,
}

impl Filter {
    /// What a host in the background logs unless it is told otherwise.
    pub const BACKGROUND: Self = Self {
        everything: LevelFilter::INFO,
        parts: Vec::new(),
    };

    /// What to write instead of a filter that cannot be read.
    pub const EXAMPLE: &str =
        "for example DESCARTES_LOG=debug, or DESCARTES_LOG=core=debug,store=trace; off: nothing";

    /// The value of [`VARIABLE`](super::VARIABLE).
    pub fn of_variable(value: &OsStr) -> Result<Self, String> {
        let text = value.to_str().ok_or(BadFilter::NotText);
        let filter = text.and_then(str::parse);
        filter.map_err(|error| {
            format!(
                "cannot read {}={}: {error}",
                super::VARIABLE,
                value.display()
            )
        })
    }

    /// The most detailed level that anything is logged at.
    pub(super) fn most(&self) -> LevelFilter {
        let levels = self.parts.iter().map(|(_, level)| *level);
        levels.fold(self.everything, LevelFilter::max)
    }

    /// Whether an event is logged. The longest part that fits decides.
    pub(super) fn allows(&self, target: &str, level: Level) -> bool {
        let Some(target) = short_target(target) else {
            return false;
        };
        let fits = |part: &str| {
            let rest = target.strip_prefix(part);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let parts = self.parts.iter().filter(|(part, _)| fits(part));
        let longest = parts.max_by_key(|(part, _)| part.len());
        level <= longest.map_or(self.everything, |(_, level)| *level)
    }
}

impl FromStr for Filter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<Self, BadFilter> {
        let mut filter = Self {
            everything: LevelFilter::OFF,
            parts: Vec::new(),
        };
        for directive in text.split(',').map(str::trim) {
            match directive.split_once('=') {
                None => filter.everything = level(directive)?,
                Some((part, at)) => {
                    let first = part.split("::").next().unwrap_or_default();
                    if !PARTS.contains(&first) {
                        return Err(BadFilter::Part(part.to_owned()));
                    }
                    filter.parts.push((part.to_owned(), level(at)?));
                }
            }
        }
        Ok(filter)
    }
}

fn level(word: &str) -> Result<LevelFilter, BadFilter> {
    match word {
        "off" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        _ => Err(BadFilter::Level(word.to_owned())),
    }
}

/// `core::host` for `descartes_core::host`; `None` for crates of others. The binary `descartes` is
/// called `cli`, as its crate is.
pub(super) fn short_target(target: &str) -> Option<String> {
    if let Some(short) = target.strip_prefix("descartes_") {
        return Some(short.to_owned());
    }
    let rest = target.strip_prefix("descartes")?;
    (rest.is_empty() || rest.starts_with("::")).then(|| format!("cli{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_part_that_fits_decides() {
        let filter: Filter = "warn,core=debug,core::host=off,store=trace"
            .parse()
            .unwrap();
        for (target, level, logged) in [
            ("descartes_core::tasks", Level::DEBUG, true),
            ("descartes_core::tasks", Level::TRACE, false),
            ("descartes_core::host", Level::ERROR, false),
            ("descartes_core::host::driver", Level::ERROR, false),
            ("descartes_core::hostile", Level::DEBUG, true),
            ("descartes_store::lock", Level::TRACE, true),
            ("descartes::app", Level::INFO, false),
            ("descartes::app", Level::WARN, true),
            ("iced_winit", Level::ERROR, false),
        ] {
            assert_eq!(filter.allows(target, level), logged, "{target} {level}");
        }
        assert_eq!(filter.most(), LevelFilter::TRACE);
        let cli: Filter = "cli=debug".parse().unwrap();
        assert!(cli.allows("descartes::app", Level::DEBUG));
        assert!(!cli.allows("descartes_core::host", Level::ERROR));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, named) in [
            ("loud", "`loud`"),
            ("", "``"),
            ("core=", "``"),
            ("cor=debug", "`cor`"),
            ("debug,kernel=debug", "`kernel`"),
            ("debug;trace", "`debug;trace`"),
            ("DEBUG", "`DEBUG`"),
        ] {
            let error = text.parse::<Filter>().unwrap_err().to_string();
            assert!(error.starts_with(named), "{text}: {error}");
        }
        assert_eq!("off".parse::<Filter>().unwrap().most(), LevelFilter::OFF);
    }
}
