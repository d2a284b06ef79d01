//! SCUD task files: read, check and edit, text to text.
//!
//! Three forms are read: the graph text of today (`tasks.scg`), the older map of tags
//! (`tasks.json`) and a file for one tag (`{tag}.json`). A change of status is an edit of one
//! cell: every other byte stays, whatever it is, so that other tools and people lose nothing.
//!
//! ```
//! use descartes_plans::graph::TaskStatus;
//! use descartes_plans::scud::{self, Form};
//!
//! let text = "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | Login form | P | 3 | H\n";
//! let file = scud::parse(text, &Form::Scg).unwrap();
//! assert_eq!(file.tag("auth").unwrap().tasks[0].title, "Login form");
//!
//! let now = "2026-01-15T10:30:00Z".parse().unwrap();
//! let edit = scud::set_status(
//!     text, &Form::Scg, "auth", "1", Some(TaskStatus::Pending), TaskStatus::Done, now,
//! ).unwrap();
//! assert!(edit.new_text.contains("1 | Login form | D | 3 | H"));
//! ```

mod config;
mod edit;
mod json;
mod json_edit;
pub(crate) mod json_span;
mod model;
mod rows;
mod scan;
mod scg;
mod scg_edit;
mod scg_text;
mod set_status;
mod tag_graph;

pub use config::{Backpressure, backpressure, role};
pub use edit::{CellChange, EditError, ScudEdit};
pub use model::{ScudDependency, ScudError, ScudFile, ScudTag, ScudTask};
pub use set_status::set_status;

use std::path::Path;

use descartes_text::shell;

/// A command that writes a task file with a first task of this tag.
pub fn first_task_command(file: &Path, tag: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let tag = if tag.chars().all(is_plain) {
        tag
    } else {
        "my-tag"
    };
    let text =
        format!("# SCUD Graph v1\\n# Phase: {tag}\\n\\n@nodes\\n1 | First task | P | 3 | M\\n");
    let folder = file.parent().filter(|folder| !folder.is_dir());
    let folder = folder.map(|folder| {
        format!(
            "mkdir -p {} && ",
            shell::word(&folder.display().to_string())
        )
    });
    format!(
        "{}printf '{text}' > {}",
        folder.unwrap_or_default(),
        shell::word(&file.display().to_string())
    )
}

/// How a task file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// `tasks.scg`: the graph text, all tags in one file.
    Scg,
    /// `tasks.json`: an object of tags.
    TagMap,
    /// `{tag}.json`: the tasks of one tag.
    OneTag {
        /// The tag, which the file itself need not name.
        tag: String,
    },
}

impl Form {
    /// The form of a file by its name: `tasks.scg`, `tasks.json` or `{tag}.json`.
    pub fn of_file_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')? {
            (_, "scg") => Some(Self::Scg),
            ("tasks", "json") => Some(Self::TagMap),
            (tag, "json") if !tag.is_empty() => Some(Self::OneTag {
                tag: tag.to_owned(),
            }),
            _ => None,
        }
    }
}

/// Reads a task file of any form. What SCUD itself would drop is read where its meaning is plain,
/// and told in [`ScudFile::findings`].
pub fn parse(text: &str, form: &Form) -> Result<ScudFile, ScudError> {
    match form {
        Form::Scg => scg::parse(text),
        Form::TagMap => json::parse_tag_map(text),
        Form::OneTag { tag } => json::parse_one_tag(text, tag),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_told_by_the_file_name() {
        assert_eq!(Form::of_file_name("tasks.scg"), Some(Form::Scg));
        assert_eq!(Form::of_file_name("tasks.json"), Some(Form::TagMap));
        let auth = Form::OneTag {
            tag: "auth.v2".to_owned(),
        };
        assert_eq!(Form::of_file_name("auth.v2.json"), Some(auth));
        assert_eq!(Form::of_file_name("tasks"), None);
        assert_eq!(Form::of_file_name(".json"), None);
    }
}
