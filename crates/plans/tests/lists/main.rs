//! Task lists of other tools: read as their authors meant them, and marked without a byte too many.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

mod any_text;
mod formats;
mod forms;
mod imported;
mod more_forms;
mod ranges;
mod recognition;
mod renumbered;
mod sections;
mod spellings;
mod trackers;
mod wide;
mod wild;

use descartes_plans::lists::{
    ListContext, ListFile, ListFormat, ListOptions, TaskList, read as read_list,
};

fn file(path: &str, text: &str) -> ListFile {
    ListFile {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

fn read(format: ListFormat, text: &str) -> TaskList {
    read_with(format, text, ListOptions::default())
}

fn read_with(format: ListFormat, text: &str, options: ListOptions) -> TaskList {
    let files = [file("list", text)];
    read_list(format, &files, &ListContext::default(), options)
}

/// `id: status, after …` of every task.
fn rows(list: &TaskList) -> Vec<String> {
    let row = |task: &descartes_plans::lists::ListTask| {
        let mut row = format!("{} {}", task.id, task.progress());
        if task.container {
            row.push_str(" container");
        }
        if task.optional {
            row.push_str(" optional");
        }
        let depends: Vec<&str> = list.depends_of(task).collect();
        if !depends.is_empty() {
            row.push_str(&format!(" after {}", depends.join(" ")));
        }
        row
    };
    list.tasks.iter().map(row).collect()
}
