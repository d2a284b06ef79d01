//! Task lists of other tools as a source of tasks: found, read, and marked in their own files.

mod documents;
mod files;
mod find;
mod source;

pub use documents::{SpecDocument, documents};
pub(crate) use files::config_of;
pub use files::{ListFiles, read_list};
pub use find::{FindError, FoundList, find, source_names};
pub use source::ListSource;
