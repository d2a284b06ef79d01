//! Limits on processes and memory in `strict`: a control group where this user may make one, else what a
//! process can take from itself, and the word that there is no more.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Processes and threads in `strict`: a fork bomb ends, a large build does not.
pub(super) const STRICT_PROCESSES: u64 = 4096;

/// What is known of the machine's limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitFacts {
    /// Control groups (version 2) from the one that this process is in up to the root; `None` where the
    /// machine has none.
    pub groups: Option<Vec<GroupFacts>>,
    /// Whether this is root, whom a limit on a user's processes does not bind.
    pub is_root: bool,
    /// The machine's memory in bytes.
    pub memory: Option<u64>,
    /// Whether systemd has a session for this user, in which groups can be had.
    pub has_session: bool,
}

/// A control group above this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupFacts {
    pub path: PathBuf,
    /// Whether groups can be made in it and processes moved below it.
    pub writable: bool,
    /// What groups in it can limit.
    pub controllers: Vec<String>,
}

/// A control group to be made for a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupOrder {
    /// In which group.
    #[serde(with = "descartes_text::path_text::one")]
    pub parent: PathBuf,
    /// The group that this process is in, and goes back to.
    #[serde(with = "descartes_text::path_text::one")]
    pub own: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// In bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// Which limits hold, and which cannot be set here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldLimits {
    /// What is made for each run.
    pub group: Option<GroupOrder>,
    /// For people.
    pub held: Vec<String>,
    /// What is not limited, and why: `memory: no control group can be made here`.
    pub missing: Vec<String>,
}

impl LimitFacts {
    /// Decides which limits `strict` gets.
    pub fn limits(&self) -> HeldLimits {
        let found = self.group();
        let why = found.as_ref().err().cloned();
        let (controllers, order) = match found {
            Ok((group, own)) => {
                let has = |name: &str| group.controllers.iter().any(|found| found == name);
                let memory = self.memory.filter(|_| has("memory")).map(share);
                let order = GroupOrder {
                    parent: group.path.clone(),
                    own: own.path.clone(),
                    processes: has("pids").then_some(STRICT_PROCESSES),
                    memory,
                };
                (group.controllers.clone(), Some(order))
            }
            Err(_) => (Vec::new(), None),
        };
        let no = |what: &str| {
            why.clone().unwrap_or_else(|| {
                format!(
                    "control groups here limit {}, not {what}",
                    controllers.join(", ")
                )
            })
        };
        let mut limits = HeldLimits::default();
        let by_group = order.as_ref().and_then(|order| order.processes).is_some();
        match by_group || !self.is_root {
            true => limits.held.push(format!("{STRICT_PROCESSES} processes")),
            false => limits.missing.push(format!("processes: {}", no("pids"))),
        }
        match order.as_ref().and_then(|order| order.memory) {
            Some(most) => limits.held.push(format!("{} MiB of memory", most >> 20)),
            None => limits.missing.push(format!("memory: {}", no("memory"))),
        }
        limits.group = order;
        limits
    }

    /// The nearest group in which one can be made that limits anything, memory before processes; with it the
    /// one that this process is in.
    fn group(&self) -> Result<(&GroupFacts, &GroupFacts), String> {
        let groups = self.groups.as_deref().unwrap_or_default();
        let Some((own, above)) = groups.split_first() else {
            return Err("this machine has no control groups of version 2".to_owned());
        };
        // A group with processes in it cannot have limited groups in it, except the root.
        let above = match above.is_empty() {
            true => groups,
            false => above,
        };
        let limits = |group: &&GroupFacts, what: &str| group.controllers.iter().any(|c| c == what);
        let writable: Vec<&GroupFacts> = above.iter().filter(|group| group.writable).collect();
        if writable.is_empty() {
            let way = match self.has_session {
                true => "start descartes with systemd-run --user --scope",
                false => "this user has no session of systemd",
            };
            return Err(format!("no control group can be made here ({way})"));
        }
        let find = |what: &str| writable.iter().copied().find(|group| limits(group, what));
        let found = find("memory").or_else(|| find("pids"));
        found.map(|group| (group, own)).ok_or_else(|| {
            "control groups of version 2 limit neither memory nor processes here".to_owned()
        })
    }
}

impl HeldLimits {
    /// What holds where the group could not be made after all.
    pub fn without_group(facts: &LimitFacts, why: &str) -> Self {
        let facts = LimitFacts {
            groups: None,
            ..facts.clone()
        };
        let mut limits = facts.limits();
        for missing in &mut limits.missing {
            let what = missing.split(':').next().unwrap_or_default();
            *missing = format!("{what}: {why}");
        }
        limits
    }
}

/// Three quarters: the rest keeps the machine usable.
fn share(memory: u64) -> u64 {
    memory / 4 * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: &str, writable: bool, controllers: &[&str]) -> GroupFacts {
        GroupFacts {
            path: path.into(),
            writable,
            controllers: controllers.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// Groups, whether it is root, in which group one is made, what holds, what does not.
    type LimitRow<'a> = (
        Option<Vec<GroupFacts>>,
        bool,
        Option<&'a str>,
        &'a [&'a str],
        &'a [&'a str],
    );

    #[test]
    fn limits_hold_where_a_group_can_be_made_and_are_told_where_not() {
        let both = &["cpu", "memory", "pids"][..];
        let own = || group("/c/a/b", true, &[]);
        let table: [LimitRow<'_>; 8] = [
            (
                None,
                false,
                None,
                &["4096 processes"],
                &["memory: this machine has no"],
            ),
            (
                None,
                true,
                None,
                &[],
                &["processes: this machine", "memory: this machine"],
            ),
            (
                Some(vec![
                    own(),
                    group("/c/a", true, both),
                    group("/c", false, both),
                ]),
                false,
                Some("/c/a"),
                &["4096 processes", "768 MiB of memory"],
                &[],
            ),
            // A session of a terminal: nothing above is this user's.
            (
                Some(vec![
                    own(),
                    group("/c/a", false, both),
                    group("/c", false, both),
                ]),
                false,
                None,
                &["4096 processes"],
                &["memory: no control group can be made here"],
            ),
            (
                Some(vec![
                    own(),
                    group("/c/a", true, &["pids"]),
                    group("/c", true, both),
                ]),
                true,
                Some("/c"),
                &["4096 processes", "768 MiB of memory"],
                &[],
            ),
            (
                Some(vec![own(), group("/c/a", true, &["pids"])]),
                true,
                Some("/c/a"),
                &["4096 processes"],
                &["memory: control groups here limit pids, not memory"],
            ),
            // The root of a container or of the machine.
            (
                Some(vec![group("/c", true, both)]),
                true,
                Some("/c"),
                &["4096 processes", "768 MiB of memory"],
                &[],
            ),
            (
                Some(vec![group("/c", true, &[])]),
                false,
                None,
                &["4096 processes"],
                &["memory: control groups of version 2 limit neither"],
            ),
        ];
        for (groups, is_root, parent, held, missing) in table {
            let facts = LimitFacts {
                groups,
                is_root,
                memory: Some(1 << 30),
                has_session: false,
            };
            let limits = facts.limits();
            let made = limits.group.as_ref().map(|order| order.parent.clone());
            assert_eq!(made, parent.map(PathBuf::from), "{facts:?}");
            assert_eq!(limits.held, held, "{facts:?}");
            assert_eq!(limits.missing.len(), missing.len(), "{limits:?}");
            for (told, expected) in limits.missing.iter().zip(missing) {
                assert!(told.starts_with(expected), "{told} ({expected})");
            }
        }
    }

    #[test]
    fn the_way_to_a_group_is_told_to_those_who_can_take_it() {
        for (has_session, wanted) in [(true, "systemd-run --user --scope"), (false, "no session")] {
            let facts = LimitFacts {
                groups: Some(vec![group("/c/a", false, &[]), group("/c", false, &[])]),
                has_session,
                ..LimitFacts::default()
            };
            let told = facts.limits().missing.concat();
            assert!(told.contains(wanted), "{told}");
            assert_eq!(told.contains("systemd-run"), has_session, "{told}");
        }
    }

    #[test]
    fn a_group_that_could_not_be_made_is_told() {
        let facts = LimitFacts {
            groups: Some(vec![group("/c", true, &["memory", "pids"])]),
            is_root: true,
            memory: Some(1 << 30),
            has_session: false,
        };
        let limits = HeldLimits::without_group(&facts, "it is busy");
        assert_eq!((limits.group, limits.held.len()), (None, 0));
        assert_eq!(
            limits.missing,
            ["processes: it is busy", "memory: it is busy"]
        );
    }
}
