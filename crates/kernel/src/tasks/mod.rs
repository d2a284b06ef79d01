//! Task loops as the rest of the kernel sees them: what was asked for, and where every task
//! stands as a fold of the journal. What is done next is decided in [`crate::sched`].

mod attempt;
mod attempt_config;
mod config;
mod copy_room;
mod early_end;
mod file_wait;
mod git_words;
mod keeper_call;
mod landing_branch;
mod lock_wait;
mod mend_landing;
mod outcome;
mod ref_name;
mod ref_owner;
mod shared_setting;
mod state;
mod statuses;
mod undo_landing;
mod undone_work;
mod work_share;

pub use attempt::{attempt_end, gate_words, is_unheard_proof, shown_wait};
pub use attempt_config::{
    AttemptOf, OwnLimits, TaskBrief, attempt_change, attempt_config, attempt_gates, ends_all_tasks,
    gates_of_all, growth_config, tasks_sandbox,
};
pub use config::{RoadmapDefaults, TaskFile, TasksConfig, TrackerTasks, WorkPlace, gate_caches};
pub use copy_room::has_room;
pub use early_end::{AttemptTrouble, EarlyEnd, EndedAttempt};
pub use file_wait::{MissingTasks, TaskKeeper};
pub use git_words::{
    commit_reason, git_reason, is_disk_full, overwritten, remote_reason, stash_branch, telling_line,
};
pub use keeper_call::{Hurry, KeeperCall};
pub use landing_branch::{WayBack, other_branch, was_renamed_from};
pub use lock_wait::{LOCK_SLACK, LockWord, lock_word};
pub use mend_landing::{CommitEntry, HalfLandedFile, LeftFile, MendLanding};
pub use outcome::{Gates, end_after_landing, end_reason};
pub use ref_name::{Case, ref_name};
pub use ref_owner::{ChosenName, RefOwner, TakenName, TreesOf, choose_name, name_number};
pub use shared_setting::changed_setting;
pub use state::{
    BlockedEntry, ByHand, Counted, KeptTree, Landing, MarkCommit, MarkedEntry, PlannedBlock,
    PlannedTask, ProvenAt, ProvenStep, ProvenTree, RunningTask, TaskEntry, TasksState, WaveCommit,
    WorkBase,
};
pub use statuses::{FileVersions, StatusText, TaskMarks, landed_list, landed_text};
pub use undo_landing::{FileNow, LandingFile, UndoLanding};
pub use undone_work::{FileFate, FileWork, ProvenFile, UndoneWork, undone_work};
pub use work_share::{BeforeAgent, WorkShare};
