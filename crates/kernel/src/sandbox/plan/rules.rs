//! Rules about paths: what holds where two of them meet.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::sandbox::Mechanism;

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
    pub why: RuleReason,
}

impl PathRule {
    /// Where it grants something: without a view of its own a cache that is kept apart is where it is kept.
    pub(in crate::sandbox) fn place(&self, mechanism: Mechanism) -> &Path {
        match (&self.source, mechanism, self.why.kind) {
            (Some(source), Mechanism::Landlock, RuleKind::Apart) => source,
            _ => &self.path,
        }
    }
}

/// Why there is a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleReason {
    pub(in crate::sandbox) kind: RuleKind,
    /// For people.
    text: Cow<'static, str>,
}

/// What a rule protects, as far as that decides whether a flag may be named that opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox) enum RuleKind {
    Secret,
    Program,
    Own,
    /// What the user hid.
    AskedToHide,
    /// Locked whatever is asked for.
    Fixed,
    /// The same, made for the run: another host may take it away when it ends.
    ForTheRun,
    /// Another cache than the user's is seen there.
    Apart,
    Other,
}

impl RuleReason {
    pub(in crate::sandbox) const SECRET: Self = Self::new(
        RuleKind::Secret,
        "keys, logins or history that the agent does not need",
    );
    pub(super) const PROGRAM: Self = Self::new(RuleKind::Program, "programs that are started");
    pub(super) const SELF: Self = Self::new(RuleKind::Own, "descartes itself");
    pub(super) const STATE: Self = Self::new(RuleKind::Own, "settings and state of descartes");
    pub(super) const FOR_THE_RUN: Self =
        Self::new(RuleKind::ForTheRun, "decides which programs git starts");
    pub(super) const JOURNALS: Self =
        Self::new(RuleKind::Own, "journals, locks and worktrees of descartes");
    pub(in crate::sandbox) const HIDE: Self = Self::new(RuleKind::AskedToHide, "--sandbox-hide");

    const fn new(kind: RuleKind, text: &'static str) -> Self {
        let text = Cow::Borrowed(text);
        Self { kind, text }
    }

    pub(super) fn login_of(agent: &str) -> Self {
        Self {
            kind: RuleKind::Secret,
            text: Cow::Owned(format!("sessions and login of {agent}")),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether what is protected may be gone by the time that it is shown.
    pub(in crate::sandbox) fn may_be_gone(&self) -> bool {
        self.kind == RuleKind::ForTheRun
    }
}

impl From<&'static str> for RuleReason {
    fn from(text: &'static str) -> Self {
        Self::new(RuleKind::Other, text)
    }
}

impl From<String> for RuleReason {
    fn from(text: String) -> Self {
        let text = Cow::Owned(text);
        Self {
            kind: RuleKind::Other,
            text,
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
        why: impl Into<RuleReason>,
        priority: Priority,
    ) {
        let stronger = |(known, _): &(Priority, PathRule)| *known > priority;
        if self.0.get(path).is_some_and(stronger) {
            return;
        }
        let mut why = why.into();
        if priority == Priority::Fixed && why.kind == RuleKind::Other {
            why.kind = RuleKind::Fixed;
        }
        let rule = PathRule {
            path: path.to_owned(),
            is_folder,
            access,
            source: None,
            why,
        };
        self.0.insert(path.to_owned(), (priority, rule));
    }

    /// Shows another file or folder at a path.
    pub(super) fn show(&mut self, path: &Path, source: &Path, access: Access, why: &'static str) {
        self.set(path, true, access, why, Priority::Fixed);
        if let Some((_, rule)) = self.0.get_mut(path) {
            rule.source = Some(source.to_owned());
        }
    }

    /// Shows a folder of ours in place of a cache, as far as nothing stronger holds there.
    pub(super) fn show_apart(&mut self, path: &Path, source: &Path, why: &'static str) {
        let why = RuleReason::new(RuleKind::Apart, why);
        self.set(path, true, Access::Writable, why, Priority::Writable);
        if let Some((_, rule)) = self.0.get_mut(path)
            && rule.why.kind == RuleKind::Apart
        {
            rule.source = Some(source.to_owned());
        }
    }

    /// All rules that say something, folders before what is in them; those that say nothing; and paths that are
    /// hidden only by being in a private folder.
    pub(super) fn finish(self, tree: &Path) -> (Vec<PathRule>, Vec<PathRule>, Vec<PathBuf>) {
        let (mut silent, mut in_private) = (Vec::new(), Vec::new());
        // Sorted by path: a folder comes before everything below it.
        let mut rules: Vec<PathRule> = Vec::new();
        for (_, (_, rule)) in self.0 {
            let above = rule_above(&rules, &rule.path);
            // What is seen there is not what is there: nothing of the machine's is below.
            let stands_in = above.is_some_and(|above| above.source.is_some());
            let above = above.map_or(Access::ReadOnly, |above| above.access);
            let says_nothing = match rule.access {
                Access::ReadOnly => above == Access::ReadOnly,
                // A folder that is writable in a writable one says why, at the price of a mount.
                Access::Writable | Access::Pinned => {
                    above == Access::Writable && rule.path != tree && !stands_in
                }
                // What is private is not the machine's; a folder in it can still be hidden from view.
                Access::Hidden => matches!(above, Access::Hidden | Access::Private) || stands_in,
                // It has to be there, if empty: a home directory that is missing confuses programs.
                Access::Private => false,
            };
            if !says_nothing || rule.source.is_some() {
                rules.push(rule);
                continue;
            }
            if rule.access == Access::Hidden && (above == Access::Private || stands_in) {
                in_private.push(rule.path.clone());
            }
            silent.push(rule);
        }
        (pin(rules), silent, in_private)
    }
}

/// What holds for a path: the last rule above it.
pub(super) fn access(rules: &[PathRule], path: &Path) -> Access {
    rule_above(rules, path).map_or(Access::ReadOnly, |rule| rule.access)
}

fn rule_above<'r>(rules: &'r [PathRule], path: &Path) -> Option<&'r PathRule> {
    rules.iter().rev().find(|rule| path.starts_with(&rule.path))
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
            let above = rule_above(&rules, folder);
            if !above
                .is_some_and(|above| above.access == Access::Writable && above.source.is_none())
            {
                break;
            }
            all.entry(folder.to_owned()).or_insert_with(|| PathRule {
                path: folder.to_owned(),
                is_folder: true,
                access: Access::Pinned,
                source: None,
                why: format!("cannot be moved: it holds {}", rule.path.display()).into(),
            });
        }
    }
    for rule in rules {
        all.insert(rule.path.clone(), rule);
    }
    all.into_values().collect()
}
