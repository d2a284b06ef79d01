//! What the second stage, inside, is told: it confines itself and starts the program.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::SandboxLevel;
use super::limits::{GroupOrder, STRICT_PROCESSES};
use super::plan::{Access, Network, SandboxPlan};
use super::summary::Mechanism;

/// What a process takes from itself before it starts the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Where it may write.
    #[serde(with = "descartes_text::path_text::many")]
    pub write: Vec<PathBuf>,
    /// What it may not read. Empty where the view hides it already.
    #[serde(default, with = "descartes_text::path_text::many")]
    pub hidden: Vec<PathBuf>,
    /// What it may read below those.
    #[serde(default, with = "descartes_text::path_text::many")]
    pub read: Vec<PathBuf>,
    /// The folder of caches, where the view does not show it in place of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "descartes_text::path_text::maybe")]
    pub cache_home: Option<PathBuf>,
    /// Whether a proxy outside is to be handed a socket.
    #[serde(default)]
    pub proxy: bool,
    /// Whether programs may make namespaces of their own, in which nothing can be mounted.
    #[serde(default)]
    pub namespaces: bool,
    #[serde(default)]
    pub limits: Limits,
}

/// Bounds on what it may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

impl Confinement {
    /// What the second stage does for a plan. Namespaces of their own are for ordinary users: a root without
    /// capabilities cannot use one, and owns files of `/proc` that Landlock has to keep shut.
    pub fn of(plan: &SandboxPlan, mechanism: Mechanism, is_root: bool) -> Self {
        let writable = plan.rules.iter().filter(|rule| rule.access.takes_writes());
        let writable = writable.map(|rule| rule.place(mechanism).to_owned());
        let mut write: Vec<PathBuf> = writable.collect();
        let (mut hidden, mut read) = (Vec::new(), Vec::new());
        if mechanism == Mechanism::Landlock {
            let hidden_in_view = plan.paths(Access::Hidden).map(PathBuf::from);
            hidden = hidden_in_view
                .chain(plan.in_private.iter().cloned())
                .collect::<Vec<_>>();
            let shown =
                |path: &&std::path::Path| hidden.iter().any(|hidden| path.starts_with(hidden));
            let locked = plan.paths(Access::ReadOnly);
            read = locked.filter(shown).map(PathBuf::from).collect();
            // Without a view of its own a private folder is the machine's. Where something that must
            // stay shut lies in it, it is not granted.
            write.retain(|path| {
                let private = plan.paths(Access::Private).any(|private| private == path);
                let holds = |rule: &&super::PathRule| {
                    rule.path != *path && rule.path.starts_with(path) && !rule.access.takes_writes()
                };
                !private || !plan.rules.iter().any(|rule| holds(&rule))
            });
        }
        let limits = Limits {
            processes: (plan.level == SandboxLevel::Strict).then_some(STRICT_PROCESSES),
        };
        Self {
            write,
            hidden,
            read,
            cache_home: match mechanism {
                Mechanism::Bwrap => None,
                Mechanism::Landlock => plan.cache_home.clone(),
            },
            proxy: matches!(plan.network, Network::Hosts(_)),
            namespaces: mechanism == Mechanism::Bwrap && !is_root,
            limits,
        }
    }
}

/// What the first stage, outside, is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OuterOrder {
    /// Hosts that its proxy lets through; `None`: no proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// The control group that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupOrder>,
}

impl OuterOrder {
    /// For a plan; `group` is what limits `strict` here.
    pub fn of(plan: &SandboxPlan, group: Option<&GroupOrder>) -> Self {
        Self {
            hosts: match &plan.network {
                Network::Hosts(hosts) => Some(hosts.clone()),
                Network::Host | Network::Loopback => None,
            },
            group: group
                .filter(|_| plan.level == SandboxLevel::Strict)
                .cloned(),
        }
    }
}

/// What is tried inside before the first run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeOrder {
    /// Folders that must take a file.
    #[serde(with = "descartes_text::path_text::many")]
    pub write: Vec<PathBuf>,
    /// Paths that must not be changed.
    #[serde(with = "descartes_text::path_text::many")]
    pub locked: Vec<PathBuf>,
    /// Paths that must not be readable.
    #[serde(with = "descartes_text::path_text::many")]
    pub hidden: Vec<PathBuf>,
}

impl ProbeOrder {
    /// What a plan promises.
    pub fn of(plan: &SandboxPlan, mechanism: Mechanism) -> Self {
        let folders = plan.rules.iter().filter(|rule| rule.is_folder);
        let write = folders.filter(|rule| rule.access == Access::Writable);
        let locked = match mechanism {
            Mechanism::Bwrap => plan.paths(Access::ReadOnly).map(PathBuf::from).collect(),
            Mechanism::Landlock => Vec::new(),
        };
        Self {
            write: write.map(|rule| rule.place(mechanism).to_owned()).collect(),
            locked,
            hidden: plan
                .paths(Access::Hidden)
                .map(PathBuf::from)
                .chain(plan.in_private.iter().cloned())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::RunPurpose;

    #[test]
    fn namespaces_are_for_ordinary_users_behind_a_view_of_their_own() {
        let plan = SandboxPlan {
            level: SandboxLevel::Workspace,
            purpose: RunPurpose::Agent,
            rules: Vec::new(),
            network: Network::Host,
            work_dir: "/p".into(),
            make: Vec::new(),
            silent: Vec::new(),
            in_private: Vec::new(),
            cache_home: None,
        };
        let table = [
            (Mechanism::Bwrap, false, true),
            (Mechanism::Bwrap, true, false),
            (Mechanism::Landlock, false, false),
            (Mechanism::Landlock, true, false),
        ];
        for (mechanism, is_root, wanted) in table {
            let found = Confinement::of(&plan, mechanism, is_root).namespaces;
            assert_eq!(found, wanted, "{mechanism:?} {is_root}");
        }
    }
}
