//! Task lists of other tools, run in place: read, ordered, and marked done in their own files.
//!
//! A list is a person's. Each format reads its files into one shape; what is written when a task is
//! done are the few bytes that the format itself uses for it, and every other byte stays.
//!
//! ```
//! use descartes_plans::lists::{ListContext, ListFile, ListFormat, ListOptions, read};
//!
//! let file = ListFile { path: "tasks.md".into(), text: "- [ ] 1.1 Parse\n- [ ] 1.2 Print\n".into() };
//! let files = [file];
//! let list = read(ListFormat::OpenSpec, &files, &ListContext::default(), ListOptions::default());
//! assert_eq!(list.tasks[1].depends, ["1.1"]);
//!
//! let changed = list.set_done(&files, "1.1", true).unwrap();
//! assert_eq!(changed[0].text, "- [x] 1.1 Parse\n- [ ] 1.2 Print\n");
//! ```

mod asides;
mod bare_boxes;
mod block_table;
mod blocks;
mod bmad;
mod boxes;
mod by_section;
mod checklist;
mod cycles;
mod file_order;
mod file_tasks;
mod format;
mod front_matter;
mod id_ranges;
mod identity;
mod import;
mod json_list;
mod kiro;
mod markdown;
mod merged_blocks;
mod model;
mod named_edges;
mod openspec;
mod openspec_schema;
mod order;
mod passes_json;
mod plain_ids;
mod plan;
mod recognize;
mod run_list;
mod sequence;
mod spec_kit;
mod story_status;
mod task_master;
mod ticks;
pub mod trackers;

pub use blocks::TaskBlock;
pub use boxes::open_boxes;
pub use format::{ListFormat, name_of};
pub use identity::KnownTask;
pub use import::{Imported, import};
pub use kiro::criteria;
pub use model::{
    By, LeftOut, ListFile, ListGate, ListOptions, ListSection, ListTask, Mark, TaskList,
};
pub use openspec::project_context;
pub use openspec_schema::{OpenSpecSchema, openspec_schema_name, path_fits};
pub use plan::ledger_done;
pub use recognize::{Recognized, by_content, by_feature, by_place};
pub use spec_kit::story_section;
pub use task_master::tags as task_master_tags;

/// What a reader needs beside the files of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListContext<'a> {
    /// Task Master's tag.
    pub tag: Option<String>,
    /// The tool's own config.
    pub config: Option<String>,
    /// Tasks that a ledger of the tool calls done.
    pub ledger: Vec<String>,
    /// Tasks as they were known before.
    pub known: &'a [KnownTask],
    /// Whether a tracker is told what is worked on here.
    pub claims: bool,
}

/// Reads a list. It is never refused: what cannot be read stands in its findings.
pub fn read(
    format: ListFormat,
    files: &[ListFile],
    context: &ListContext<'_>,
    options: ListOptions,
) -> TaskList {
    let text = files.first().map_or("", |file| file.text.as_str());
    let mut list = match format {
        ListFormat::OpenSpec => openspec::read(text),
        ListFormat::Kiro => kiro::read(text),
        ListFormat::SpecKit => spec_kit::read(text, options),
        ListFormat::Plan => plan::read(text, &context.ledger),
        ListFormat::Checklist => checklist::read(text),
        ListFormat::PassesJson => passes_json::read(text),
        ListFormat::TaskMaster => {
            task_master::read(text, context.tag.as_deref().unwrap_or("master"))
        }
        ListFormat::Bmad => bmad::read(files),
        ListFormat::Backlog | ListFormat::Tk | ListFormat::Ccpm | ListFormat::Tickets => {
            file_tasks::read(format, files, context.config.as_deref())
        }
        ListFormat::Beads | ListFormat::GitHub | ListFormat::GitLab | ListFormat::Command => {
            trackers::read(format, files, context)
        }
    };
    identity::keep_ids(&mut list, context.known);
    match options.by {
        By::Task => list,
        By::Section => by_section::by_section(list, options),
    }
}
