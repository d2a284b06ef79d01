//! Markdown roadmaps: read, check and edit, text to text.
//!
//! A roadmap is a person's file. Everything in it is read or told about with its line; of it, one
//! character changes when a task is finished: the one in its checkbox.
//!
//! ```
//! use descartes_plans::roadmap;
//!
//! let text = "# Roadmap: Tides\n## Tasks\n- [ ] **fetch**: Read the table\n  - timeout: 20min\n";
//! let roadmap = roadmap::parse(text);
//! assert_eq!(roadmap.tasks[0].id, "fetch");
//! assert!(roadmap.findings.is_empty());
//!
//! let edit = roadmap::tick(text, "fetch").unwrap();
//! assert!(edit.new_text.contains("- [x] **fetch**"));
//! ```

mod edit;
mod foreign;
mod foreign_format;
mod growth;
mod keys;
pub mod lines;
mod model;
mod open_task;
mod parse;
mod property;
mod sections;
mod settings;
pub(crate) mod task_heading;
mod task_line;
mod tasks;
mod value;

pub use edit::{Edit, EditError, NewTask, append_task, mark_of, set_mark, tick};
pub(crate) use foreign::is_dependency_graph;
pub use foreign::{Whose, is_spec_kit, whose};
pub use foreign_format::ForeignFormat;
pub use growth::{growth_prompt, growth_reply};
pub use keys::{Depends, Keys, known_keys};
pub use model::{CheckMark, Constraints, Criterion, Phase, Roadmap, RoadmapTask};
pub use parse::{check, parse, task_ids};
pub use settings::{Defaults, TaskSettings};
