//! PathRules about paths: what holds where two of them meet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What may be done with a path and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Seen as it is, not changed.
    ReadOnly,
    /// Seen and changed.
    Writable,
    /// The same, and the folder itself can be neither moved nor removed: something below is locked.
    Pinned,
    /// Not there.
    Hidden,
    /// Empty at first; what is written is thrown away.
    Private,
}

impl Access {
    /// Whether files can be made and changed.
    pub fn takes_writes(self) -> bool {
        matches!(self, Self::Writable | Self::Pinned | Self::Private)
    }

    /// As people are told.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Writable => "writable",
            Self::Pinned => "pinned",
            Self::Hidden => "hidden",
            Self::Private => "private",
        }
    }
}

/// What holds for a path and everything below it that has no rule of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    pub path: PathBuf,
    pub is_folder: bool,
    pub access: Access,
    /// What is seen there instead of what is there.
    pub source: Option<PathBuf>,
    /// For people.
    pub why: String,
}

pub(in crate::sandbox) const WHY_SECRET: &str =
    "keys, logins or history that the agent does not need";
pub(in crate::sandbox) const WHY_PROGRAM: &str = "programs that are started";
pub(in crate::sandbox) const WHY_SELF: &str = "descartes itself";
pub(in crate::sandbox) const WHY_STATE: &str = "settings and state of descartes";
pub(in crate::sandbox) const WHY_JOURNALS: &str = "journals, locks and worktrees of descartes";

/// What a rule protects, as far as that decides whether a flag may be named that opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox) enum RuleKind {
    Secret,
    Program,
    Own,
    Other,
}

impl PathRule {
    pub(in crate::sandbox) fn kind(&self) -> RuleKind {
        match self.why.as_str() {
            WHY_SECRET => RuleKind::Secret,
            WHY_PROGRAM => RuleKind::Program,
            WHY_SELF | WHY_STATE | WHY_JOURNALS => RuleKind::Own,
            _ => RuleKind::Other,
        }
    }
}

/// Which of two rules for the same path holds: the later in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    Machine,
    Kept,
    Secret,
    Writable,
    Tree,
    Lock,
    Asked,
    Fixed,
}

#[derive(Default)]
pub(super) struct PathRules(BTreeMap<PathBuf, (Priority, PathRule)>);

impl PathRules {
    pub(super) fn set(
        &mut self,
        path: &Path,
        is_folder: bool,
        access: Access,
        why: &str,
        priority: Priority,
    ) {
        let stronger = |(known, _): &(Priority, PathRule)| *known > priority;
        if self.0.get(path).is_some_and(stronger) {
            return;
        }
        let rule = PathRule {
            path: path.to_owned(),
            is_folder,
            access,
            source: None,
            why: why.to_owned(),
        };
        self.0.insert(path.to_owned(), (priority, rule));
    }

    /// Shows another file or folder at a path.
    pub(super) fn show(&mut self, path: &Path, source: &Path, access: Access, why: &str) {
        self.set(path, true, access, why, Priority::Fixed);
        if let Some((_, rule)) = self.0.get_mut(path) {
            rule.source = Some(source.to_owned());
        }
    }

    /// All rules that say something, folders before what is in them; and paths that are hidden only by being in
    /// a private folder.
    pub(super) fn finish(self, tree: &Path) -> (Vec<PathRule>, Vec<PathBuf>) {
        let mut in_private = Vec::new();
        // Sorted by path: a folder comes before everything below it.
        let mut rules: Vec<PathRule> = Vec::new();
        for (_, (_, rule)) in self.0 {
            let above = access(&rules, &rule.path);
            let says_nothing = match rule.access {
                Access::ReadOnly => above == Access::ReadOnly,
                // A folder that is writable in a writable one says why, at the price of a mount.
                Access::Writable | Access::Pinned => above == Access::Writable && rule.path != tree,
                // What is private is not the machine's; a folder in it can still be hidden from view.
                Access::Hidden => matches!(above, Access::Hidden | Access::Private),
                // It has to be there, if empty: a home directory that is missing confuses programs.
                Access::Private => false,
            };
            if !says_nothing || rule.source.is_some() {
                rules.push(rule);
            } else if rule.access == Access::Hidden && above == Access::Private {
                in_private.push(rule.path);
            }
        }
        (pin(rules), in_private)
    }
}

/// What holds for a path: the last rule above it.
pub(super) fn access(rules: &[PathRule], path: &Path) -> Access {
    let above = rules.iter().rev().find(|rule| path.starts_with(&rule.path));
    above.map_or(Access::ReadOnly, |rule| rule.access)
}

/// Every folder between a writable one and what is locked in it becomes a mount of its own: else
/// `mv .git x; mkdir .git` would replace what is locked.
fn pin(rules: Vec<PathRule>) -> Vec<PathRule> {
    let mut all: BTreeMap<PathBuf, PathRule> = BTreeMap::new();
    for rule in &rules {
        let folders = rule.path.ancestors().skip(1);
        for folder in folders {
            if rules.iter().any(|other| other.path == folder) {
                // A mount already; what is above it is looked at with it.
                break;
            }
            if access(&rules, folder) != Access::Writable {
                break;
            }
            all.entry(folder.to_owned()).or_insert_with(|| PathRule {
                path: folder.to_owned(),
                is_folder: true,
                access: Access::Pinned,
                source: None,
                why: format!("cannot be moved: it holds {}", rule.path.display()),
            });
        }
    }
    for rule in rules {
        all.insert(rule.path.clone(), rule);
    }
    all.into_values().collect()
}
