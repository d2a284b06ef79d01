//! What a page tells of a task loop: waves, tasks, blocked ones with reasons, commits.

use descartes_kernel::tasks::{Landing, TasksState, WaveCommit};
use descartes_views::view::{
    TaskRow, WaveRow, blocked_tasks, marked_tasks, task_rows, unlanded, waves,
};

use super::html::{Td, code, pill, section, table, text};
use crate::style::{Cell, Tone};

pub fn tasks(tasks: &TasksState) -> String {
    let parts = [
        section("Blocked", &blocked(tasks)),
        section("Marked by others, not proven", &marked(tasks)),
        section("Waves", &wave_table(tasks)),
        section("Tasks", &task_table(tasks)),
        section("Commits", &commits(tasks)),
    ];
    parts.concat()
}

fn blocked(tasks: &TasksState) -> String {
    let row = |task: TaskRow| {
        vec![
            Td::markup(code(&task.id)),
            Td::text(&task.title),
            Td::text(&task.note),
            Td::number(task.attempts),
        ]
    };
    let rows = blocked_tasks(tasks).into_iter().map(row);
    table(&["task", "title", "why", "attempts"], rows)
}

fn marked(tasks: &TasksState) -> String {
    let row = |task: TaskRow| {
        vec![
            Td::markup(code(&task.id)),
            Td::text(&task.title),
            Td::text(&task.status.text),
        ]
    };
    let rows = marked_tasks(tasks).into_iter().map(row);
    table(&["task", "title", "how"], rows)
}

fn wave_table(tasks: &TasksState) -> String {
    let row = |wave: WaveRow| {
        let width = wave.fraction() * 100.0;
        let bar = format!("<div class=\"bar\"><i style=\"width:{width:.0}%\"></i></div>");
        vec![
            Td::markup(wave.wave.to_string()),
            Td::markup(bar),
            Td::markup(text(&wave.label().text)),
        ]
    };
    table(&["wave", "", ""], waves(tasks).into_iter().map(row))
}

fn task_table(tasks: &TasksState) -> String {
    let row = |task: TaskRow| {
        vec![
            Td::markup(code(&task.id)),
            Td::text(&task.title),
            Td::number(task.wave),
            Td::markup(pill(&task.status)),
            Td::number(task.attempts),
        ]
    };
    let titles = ["task", "title", "wave", "status", "attempts"];
    table(&titles, task_rows(tasks).into_iter().map(row))
}

fn commits(tasks: &TasksState) -> String {
    let row = |commit: &WaveCommit| {
        let hash = match &commit.commit_hash {
            Some(hash) => code(hash.get(..12).unwrap_or(hash)),
            None => "nothing to commit".to_owned(),
        };
        vec![
            Td::number(commit.wave),
            Td::markup(hash),
            Td::text(&commit.tasks_completed.join(", ")),
        ]
    };
    let rows = tasks.wave_commits.iter().map(row);
    let mut out = table(&["wave", "commit", "tasks"], rows);
    if let Some(Landing::Landed { commit, .. }) = &tasks.landing {
        out.push_str(&format!("<p>Your branch is at {}.</p>\n", code(commit)));
    }
    if let Some(work) = unlanded(tasks) {
        let pill = pill(&Cell::new(Tone::Warn, "not landed"));
        out.push_str(&format!("<p>{pill} {}</p>\n", text(&work)));
    }
    out
}
