//! What the parts of a page are made of.

use descartes_kernel::state::LoopState;
use descartes_store::catalog::LoopMeta;
use descartes_views::view::{Life, Story, TaskLanes};
use jiff::Timestamp;

/// What is known of a loop.
pub struct LoopFacts<'a> {
    pub meta: &'a LoopMeta,
    pub state: &'a LoopState,
    pub life: Life,
    pub story: &'a Story,
    pub lanes: &'a TaskLanes,
    /// When the last record was written.
    pub last_at: Timestamp,
    pub now: Timestamp,
}
