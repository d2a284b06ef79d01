//! Task specs within a token budget: what an agent is told about one task.
//!
//! A spec has up to four parts: the task, the section of the plan that belongs to it, other texts
//! (the notes of an earlier run, spec files) and how it will be checked. Over budget, spec files
//! are cut first, the plan next, the task never; the report tells the size of every part.
//!
//! ```
//! use descartes_plans::spec::{LoopSpecConfig, SpecSources, TaskText, build};
//!
//! let task = TaskText { id: "3".into(), title: "Print tides".into(), ..TaskText::default() };
//! let plan = "# Plan\n## Task 3: printing\nFour lines.\n## Task 4\nLater.\n";
//! let sources = SpecSources { task: Some(&task), plan: Some(plan), ..SpecSources::default() };
//! let spec = build(&LoopSpecConfig::default(), &sources);
//! assert!(spec.text.contains("Four lines.") && !spec.text.contains("Later."));
//! ```

mod budget;
mod build;
mod plan;
mod task;
mod template;
mod tokens;

pub use build::{LoopSpecConfig, Part, PartSize, Spec, SpecFile, SpecSources, build};
pub use plan::find_section;
pub use task::{Delivered, DeliveredBlocks, TaskText};
pub use template::{TemplateError, check_template};
pub use tokens::estimate_tokens;
