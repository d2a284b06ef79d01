//! What a page tells of a task loop: waves, tasks, what is blocked and why, what has landed.

use descartes_kernel::tasks::{Landing, TasksState};
use descartes_views::tone::{Cell, Tone};
use descartes_views::view::{
    TaskRow, blocked_tasks, commits, marked_tasks, task_rows, tasks_at_work, unlanded, waves,
};
use maud::{Markup, html};

use super::loop_facts::LoopFacts;
use super::text::{bar, code, line, pill, section, text, toned};

pub fn tasks(known: &LoopFacts<'_>) -> Markup {
    let Some(tasks) = known.state.tasks.as_deref() else {
        return html! {};
    };
    html! {
        (section("At work", rows(tasks, &tasks_at_work(known.state, known.life, known.now))))
        (section("Blocked", rows(tasks, &blocked_tasks(tasks))))
        (section("Marked by others, not proven", rows(tasks, &marked_tasks(tasks))))
        (section("Waves", wave_list(tasks)))
        (section("Tasks", rows(tasks, &task_rows(tasks))))
        (section("Landed", landed(tasks)))
    }
}

fn name(tasks: &TasksState, row: &TaskRow) -> Markup {
    html! {
        @match tasks.loops.get(&row.id) {
            Some(id) => a href={ "/loops/" (id) } { (line(&row.name())) },
            None => (line(&row.name())),
        }
    }
}

fn rows(tasks: &TasksState, rows: &[TaskRow]) -> Option<Markup> {
    (!rows.is_empty()).then(|| {
        html! {
            div.scroll tabindex="0" {
                table {
                    thead { tr { th scope="col" { "task" } th scope="col" { "status" } th scope="col" { "attempts" } th scope="col" { "" } } }
                    tbody {
                        @for row in rows {
                            tr {
                                td { (name(tasks, row)) }
                                td { (pill(&row.status)) }
                                td.n { (row.attempts) }
                                td.wide { (text(&row.note)) }
                            }
                        }
                    }
                }
            }
        }
    })
}

fn wave_list(tasks: &TasksState) -> Option<Markup> {
    let all = waves(tasks);
    (!all.is_empty()).then(|| {
        html! {
            ul.waves {
                @for wave in &all {
                    li { "wave " (wave.wave) " " (bar(Some(wave.fraction()), &format!("wave {}", wave.wave))) " " (toned(&wave.label())) }
                }
            }
        }
    })
}

fn landed(tasks: &TasksState) -> Option<Markup> {
    let waiting = unlanded(tasks);
    let at = tasks.landing.as_ref().and_then(Landing::head);
    let commits = commits(tasks);
    (!commits.is_empty() || waiting.is_some() || at.is_some()).then(|| {
        html! {
            @if let Some(waiting) = &waiting {
                p { (pill(&Cell::new(Tone::Warn, "not landed"))) " " (line(waiting)) }
            }
            @if let Some(commit) = at { p { "your branch is at " (code(commit)) } }
            ul.events {
                @for commit in &commits {
                    li {
                        @if let Some(wave) = commit.wave { "wave " (wave) ": " }
                        @match &commit.hash {
                            Some(hash) => (code(hash)),
                            None => "nothing to commit",
                        }
                        " " (line(&commit.what))
                    }
                }
            }
        }
    })
}
