//! How parts of a loop's state stand in a checkpoint: in the shape of version 0.1, which older and newer
//! versions read alike.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Nudge, Phase, RunInfo, Unjudged, Wait};
use crate::event::facts::{GateFacts, RunFacts};
use crate::outcome::IterativeExitReason;

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredPhase {
    phase: PhaseName,
    #[serde(default)]
    wait: Option<Wait>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PhaseName {
    Ready,
    Running(RunInfo),
    Judging {
        run: RunInfo,
        facts: Box<RunFacts>,
        gates: Vec<GateFacts>,
    },
    Finished {
        reason: IterativeExitReason,
        at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unjudged: Option<Box<Unjudged>>,
    },
}

impl From<StoredPhase> for Phase {
    fn from(stored: StoredPhase) -> Self {
        match stored.phase {
            PhaseName::Ready => Self::Ready { wait: stored.wait },
            PhaseName::Running(run) => Self::Running(run),
            PhaseName::Judging { run, facts, gates } => Self::Judging { run, facts, gates },
            PhaseName::Finished {
                reason,
                at,
                unjudged,
            } => Self::Finished {
                reason,
                at,
                unjudged,
            },
        }
    }
}

impl From<Phase> for StoredPhase {
    fn from(phase: Phase) -> Self {
        let (phase, wait) = match phase {
            Phase::Ready { wait } => (PhaseName::Ready, wait),
            Phase::Running(run) => (PhaseName::Running(run), None),
            Phase::Judging { run, facts, gates } => {
                (PhaseName::Judging { run, facts, gates }, None)
            }
            Phase::Finished {
                reason,
                at,
                unjudged,
            } => {
                let name = PhaseName::Finished {
                    reason,
                    at,
                    unjudged,
                };
                (name, None)
            }
        };
        Self { phase, wait }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredNudge {
    /// Whether the next prompt carries it.
    nudge: bool,
    /// Iterations without progress when it was decided; 0 where it was not.
    #[serde(default)]
    nudged: u32,
}

impl From<StoredNudge> for Nudge {
    fn from(stored: StoredNudge) -> Self {
        let iterations = stored.nudged;
        match stored.nudge {
            true => Self::Due { iterations },
            false if iterations > 0 => Self::Delivered { iterations },
            false => Self::None,
        }
    }
}

impl From<Nudge> for StoredNudge {
    fn from(nudge: Nudge) -> Self {
        let (nudge, nudged) = match nudge {
            Nudge::None => (false, 0),
            Nudge::Due { iterations } => (true, iterations),
            Nudge::Delivered { iterations } => (false, iterations),
        };
        Self { nudge, nudged }
    }
}

/// Maps with numbers for keys, as pairs: within a flat record JSON's text keys would not be
/// read back as numbers.
pub(super) mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer, V: Serialize>(
        map: &BTreeMap<u32, V>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(map)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
        d: D,
    ) -> Result<BTreeMap<u32, V>, D::Error> {
        Ok(Vec::<(u32, V)>::deserialize(d)?.into_iter().collect())
    }
}
