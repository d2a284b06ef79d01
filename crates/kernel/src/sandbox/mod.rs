//! Where agents and gates may write and what they may see, as plain values: facts about machine and
//! project in, a [`SandboxPlan`] out, and arguments for the programs that carry it out.

mod advice;
mod bwrap;
mod caches;
mod config;
mod confinement;
mod denied;
mod environment;
mod git_table;
mod git_words;
mod level;
mod limits;
mod places;
mod plan;
mod planted;
mod secrets;
mod summary;

pub use advice::NamespaceFacts;
pub use bwrap::bwrap_args;
pub use caches::{CACHE_HOME, OWN_CACHES, apart_caches, wanted_caches};
pub use config::{LevelReason, SandboxConfig};
pub use confinement::{Confinement, Limits, OuterOrder, ProbeOrder};
pub use denied::{
    Denial, LIMIT_REACHED, OutsideView, PROXY_REFUSED, denied_paths, denied_since, merge_denials,
};
pub use descartes_text::sandbox_level::SandboxLevel;
pub use environment::{EnvironmentRules, is_secret_name, named_variables};
pub use git_table::{
    COMMON_DIR_IS_HERE, GIT_TABLE, GitEntry, GitHold, GitPlace, GitRow, setting_that_starts,
};
pub use git_words::{NamedFile, files_named, plain};
pub use level::{LevelQuestion, NoSandbox, SettledLevel, Unchecked, WantedLevel};
pub use limits::{GroupFacts, GroupOrder, HeldLimits, LimitFacts};
pub use places::{HomeFolders, home_path};
pub use plan::{
    Access, AgentPlaces, EntryKind, ExtraLock, FoundPath, GitPlaces, Make, Network, PathRule,
    RuleReason, RunPurpose, SHARED_OBJECTS, SandboxError, SandboxFacts, SandboxPlan, SlotGit,
    hosts_of, named_hosts, plan,
};
pub use planted::{PlantedInGit, merge_planted};
pub use secrets::{STAND_INS, stand_in};
pub use summary::{Mechanism, SandboxSummary};
