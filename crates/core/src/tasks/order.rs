//! An attempt to be made, as far as it does not matter where.

use std::collections::BTreeMap;

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::fleet::{KnownOffer, LimitedLogin};
use descartes_kernel::state::Spent;
use descartes_kernel::tasks::OwnLimits;
use descartes_plans::graph::TaskId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::place::Work;
use crate::host::attempt_tree::AttemptTree;

/// An attempt to be made. Written down it holds no value of an environment, only names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AttemptOrder {
    pub(super) slot: u32,
    /// Which piece of work it is of those that this host has started.
    #[serde(default)]
    pub(super) serial: u64,
    /// The number of the attempt, from 1.
    pub(super) attempt: u32,
    /// The last offer of it, where workers on other machines make attempts.
    pub(super) offered: Option<KnownOffer>,
    /// The loop of its last attempt.
    pub(super) last_loop: Option<String>,
    pub(super) tasks: Vec<TaskId>,
    pub(super) work: Work,
    pub(super) config: IterativeLoopConfig,
    /// A folder within the tree.
    pub(super) cwd: Option<String>,
    pub(super) name: String,
    /// Tells that the loop belongs to another.
    pub(super) family: Map<String, Value>,
    /// Iterations of its loop that the task loop has heard of.
    pub(super) reported_iterations: u32,
    #[serde(default)]
    pub(super) tree: AttemptTree,
    /// What its loop used, as far as the task loop has heard of it; `None` where it cannot tell,
    /// since an older version wrote its journal.
    pub(super) reported_spent: Option<Spent>,
    /// Files that its gates hang on, as they were when the task loop began.
    pub(super) gate_files: BTreeMap<String, String>,
    pub(super) own: OwnLimits,
    /// Files that it may touch; none: every file.
    pub(super) files: Vec<String>,
    /// Logins that workers may not use: their providers have limited them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) limited_logins: Vec<LimitedLogin>,
}
