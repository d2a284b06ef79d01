//! The arguments of a verb.

use std::path::PathBuf;
use std::time::Duration;

use super::Trouble;
use super::text::{expand, word};
use crate::units;

pub(super) fn duration(text: &str) -> Result<Duration, Trouble> {
    units::duration(text).ok_or_else(|| missing("a duration"))
}

pub(super) fn missing(what: &str) -> Trouble {
    Trouble::Script(format!("wants {what}"))
}

/// What stands after a verb.
#[derive(Debug, Clone)]
pub(super) struct Arguments<'a> {
    pub(super) rest: &'a str,
    pub(super) iteration: u64,
}

impl Arguments<'_> {
    /// The whole rest, replaced.
    pub(super) fn text(&self) -> String {
        expand(self.rest, self.iteration)
    }

    /// The next word, replaced and taken off.
    pub(super) fn take(&mut self, what: &str) -> Result<String, Trouble> {
        let (word, rest) = word(self.rest).ok_or_else(|| missing(what))?;
        self.rest = rest;
        Ok(expand(word, self.iteration))
    }

    /// The next word without taking it.
    pub(super) fn word(&self, what: &str) -> Result<String, Trouble> {
        self.clone().take(what)
    }

    pub(super) fn path(&mut self) -> Result<PathBuf, Trouble> {
        self.take("a file").map(PathBuf::from)
    }

    pub(super) fn duration(&self) -> Result<Duration, Trouble> {
        duration(&self.word("a duration")?)
    }

    pub(super) fn number(&self, what: &str) -> Result<u8, Trouble> {
        self.word(what)?.parse().map_err(|_| missing(what))
    }

    pub(super) fn take_number(&mut self, what: &str) -> Result<u16, Trouble> {
        self.take(what)?.parse().map_err(|_| missing(what))
    }
}
