//! What a page tells of a task loop: waves, tasks, blocked ones with reasons, commits.

use descartes_kernel::tasks::{Landing, TasksState};
use descartes_views::view::{
    CommitRow, TaskRow, WaveRow, blocked_tasks, commits as all_commits, marked_tasks, task_rows,
    unlanded, waves,
};
use maud::{Markup, Render, html};

use super::html::{Td, code, pill, section, table, text};
use crate::style::{Cell, Tone};

pub fn tasks(tasks: &TasksState) -> Markup {
    html! {
        (section("Blocked", &blocked(tasks)))
        (section("Marked by others, not proven", &marked(tasks)))
        (section("Waves", &wave_table(tasks)))
        (section("Tasks", &task_table(tasks)))
        (section("Commits", &commits(tasks)))
    }
}

fn blocked(tasks: &TasksState) -> Markup {
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

fn marked(tasks: &TasksState) -> Markup {
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

fn wave_table(tasks: &TasksState) -> Markup {
    let row = |wave: WaveRow| {
        let width = wave.fraction() * 100.0;
        let bar = html! { div.bar { i style=(format!("width:{width:.0}%")) {} } };
        vec![
            Td::markup(wave.wave.render()),
            Td::markup(bar),
            Td::markup(text(&wave.label().text).render()),
        ]
    };
    table(&["wave", "", ""], waves(tasks).into_iter().map(row))
}

fn task_table(tasks: &TasksState) -> Markup {
    // Where others did the work, it is told who.
    let told = usize::from(!tasks.workers.is_empty());
    let row = |task: TaskRow| {
        let mut row = vec![
            Td::markup(code(&task.id)),
            Td::text(&task.title),
            Td::number(task.wave),
            Td::markup(pill(&task.status)),
            Td::number(task.attempts),
        ];
        row.extend((told == 1).then(|| Td::text(&task.note)));
        row
    };
    let titles = ["task", "title", "wave", "status", "attempts", "worker"];
    let titles = &titles[..5 + told];
    table(titles, task_rows(tasks).into_iter().map(row))
}

fn commits(tasks: &TasksState) -> Markup {
    let row = |commit: CommitRow| {
        let hash = match &commit.hash {
            Some(hash) => code(hash),
            None => "nothing to commit".render(),
        };
        vec![
            commit.wave.map_or(Td::text(""), Td::number),
            Td::markup(hash),
            Td::text(&commit.what),
        ]
    };
    let rows = all_commits(tasks).into_iter().map(row);
    let head = tasks.landing.as_ref().and_then(Landing::head);
    html! {
        (table(&["wave", "commit", "tasks"], rows))
        @if let Some(commit) = head { p { "Your branch is at " (code(commit)) "." } "\n" }
        @if let Some(work) = unlanded(tasks) {
            p { (pill(&Cell::new(Tone::Warn, "not landed"))) " " (text(&work)) } "\n"
        }
    }
}
