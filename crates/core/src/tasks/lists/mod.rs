//! Task lists of other tools as a source of tasks: found, read, and marked in their own files.

mod documents;
mod files;
mod find;
mod openspec;
mod program;
mod question_line;
mod source;
mod tracker;

pub use documents::{SpecDocument, documents, open_checklists};
pub(crate) use files::config_of;
pub use files::{ListFiles, read_list};
pub use find::{FindError, FoundList, FoundTracker, find, source_names};
pub use program::is_installed;
pub use question_line::QuestionLine;
pub use source::ListSource;
pub use tracker::{TrackerAnswers, TrackerSource, read_tracker};
