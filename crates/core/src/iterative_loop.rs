//! Every name of the crate's root, for those who write `descartes_core::iterative_loop::…`.

#[doc(no_inline)]
pub use crate::{host, steering, tasks, worktree};

pub use crate::backend::{
    ClaudeBackend, ClaudeBackend as LoopClaudeBackend, CodexBackend, GeminiBackend, GenericBackend,
    GenericBackend as LoopGenericBackend, LoopBackend, OpenCodeBackend,
    OpenCodeBackend as LoopOpenCodeBackend, create_backend,
};
pub use crate::config::{IterativeLoopConfig, LoopBackendConfig};
pub use crate::host::HostError;
pub use crate::iterative::{IterativeLoop, IterativeLoopResult};
pub use crate::ralph::{
    IterationTracker, PromiseDetector, RalphConfig, RalphExecutor, RalphPersistence, RalphResult,
};
pub use crate::state::IterativeLoopState;
pub use crate::tasks::{ScudIterativeLoop, ScudLoopConfig};
pub use descartes_agents::agent::StreamKind;
pub use descartes_agents::promise::PromiseMatch;
pub use descartes_kernel::config::{ConfigChange, LoopGitConfig, Permissions, PromptMode};
pub use descartes_kernel::event::{Event, Record};
pub use descartes_kernel::outcome::IterativeExitReason;
pub use descartes_kernel::state::{IterationSummary, Spent};
pub use descartes_plans::spec::LoopSpecConfig;
pub use descartes_text::units::Secs;
/// A point in time. Printed, it is RFC 3339.
pub use jiff::Timestamp;
