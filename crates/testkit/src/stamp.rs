//! Stamps of the scripted agent: when it began and ended, by its own clock.
//!
//! Every tool that drives the agent is timed by these, so none of them needs instruments of its own.

use std::fs;
use std::path::Path;

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes of a machine share.
pub fn now_ns() -> u64 {
    let now =
        clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(nix::sys::time::TimeSpec::new(0, 0));
    let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec()).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

/// Which end of a run a stamp marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The first thing in `main`.
    Start,
    /// Right before the exit; missing when the agent was killed.
    End,
}

/// One line of a stamp file: `start|end PID ITERATION NANOSECONDS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Start or end.
    pub edge: Edge,
    /// The agent's process id.
    pub pid: i32,
    /// The iteration the agent was told, or counted.
    pub iteration: u64,
    /// When, by [`now_ns`].
    pub ns: u64,
}

/// The stamps of a file in the order of their writing; none when there is no such file.
///
/// # Panics
/// When a line is no stamp.
pub fn read(path: &Path) -> Vec<Stamp> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| parse(line).unwrap_or_else(|| panic!("{}: no stamp: {line:?}", path.display())))
        .collect()
}

/// The gaps between the end of one run and the start of the next, in nanoseconds.
pub fn gaps_ns(stamps: &[Stamp]) -> Vec<u64> {
    stamps
        .windows(2)
        .filter(|pair| pair[0].edge == Edge::End && pair[1].edge == Edge::Start)
        .map(|pair| pair[1].ns.saturating_sub(pair[0].ns))
        .collect()
}

fn parse(line: &str) -> Option<Stamp> {
    let mut words = line.split(' ');
    let edge = match words.next()? {
        "start" => Edge::Start,
        "end" => Edge::End,
        _ => return None,
    };
    let pid = words.next()?.parse().ok()?;
    let iteration = words.next()?.parse().ok()?;
    let ns = words.next()?.parse().ok()?;
    Some(Stamp {
        edge,
        pid,
        iteration,
        ns,
    })
}
