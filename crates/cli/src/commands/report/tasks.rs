//! What a page tells of a task loop: waves, tasks, blocked ones with reasons, commits.

use descartes_kernel::tasks::{Landing, TasksState};
use descartes_plans::graph::TaskStatus;
use descartes_views::view::waves;

use super::html::{code, pill, section, text};

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
    let row = |entry: &descartes_kernel::tasks::BlockedEntry| {
        format!(
            "<tr><td>{}</td><td class=\"t\">{}</td><td class=\"t\">{}</td><td class=\"n\">{}</td></tr>\n",
            code(&entry.task_id),
            text(&entry.title),
            text(&entry.reason),
            entry.attempts
        )
    };
    let rows: String = tasks.blocked.iter().map(row).collect();
    table(
        "<th>task</th><th>title</th><th>why</th><th class=\"n\">attempts</th>",
        &rows,
    )
}

fn marked(tasks: &TasksState) -> String {
    let row = |entry: &descartes_kernel::tasks::MarkedEntry| {
        format!(
            "<tr><td>{}</td><td class=\"t\">{}</td><td class=\"t\">{}</td></tr>\n",
            code(&entry.task_id),
            text(&entry.title),
            text(&entry.words())
        )
    };
    let rows: String = tasks.marked.iter().map(row).collect();
    table("<th>task</th><th>title</th><th>how</th>", &rows)
}

fn wave_table(tasks: &TasksState) -> String {
    let row = |wave: descartes_views::view::WaveRow| {
        format!(
            "<tr><td>{}</td><td><div class=\"bar\"><i style=\"width:{:.0}%\"></i></div></td><td>{}</td></tr>\n",
            wave.wave,
            wave.fraction() * 100.0,
            text(&wave.label())
        )
    };
    let rows: String = waves(tasks).into_iter().map(row).collect();
    table("<th>wave</th><th></th><th></th>", &rows)
}

fn task_table(tasks: &TasksState) -> String {
    let row = |id: &descartes_plans::graph::TaskId| {
        let entry = tasks.tasks.get(id)?;
        let class = match entry.status {
            TaskStatus::Done => "good",
            TaskStatus::Blocked | TaskStatus::Failed => "bad",
            TaskStatus::InProgress => "work",
            _ => "",
        };
        Some(format!(
            "<tr><td>{}</td><td class=\"t\">{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td></tr>\n",
            code(id),
            text(&entry.title),
            entry.wave,
            pill(class, &entry.status.to_string()),
            entry.attempts
        ))
    };
    let rows: String = tasks.order.iter().filter_map(row).collect();
    let heads = "<th>task</th><th>title</th><th class=\"n\">wave</th><th>status</th><th class=\"n\">attempts</th>";
    table(heads, &rows)
}

fn commits(tasks: &TasksState) -> String {
    let row = |commit: &descartes_kernel::tasks::WaveCommit| {
        let ids: Vec<&str> = commit.tasks_completed.iter().map(|id| &**id).collect();
        let hash = match &commit.commit_hash {
            Some(hash) => code(hash.get(..12).unwrap_or(hash)),
            None => "nothing to commit".to_owned(),
        };
        format!(
            "<tr><td class=\"n\">{}</td><td>{hash}</td><td class=\"t\">{}</td></tr>\n",
            commit.wave,
            text(&ids.join(", "))
        )
    };
    let rows: String = tasks.wave_commits.iter().map(row).collect();
    let mut out = table(
        "<th class=\"n\">wave</th><th>commit</th><th>tasks</th>",
        &rows,
    );
    match &tasks.landing {
        None => {}
        Some(Landing::Landed { commit, .. }) => {
            out.push_str(&format!("<p>Your branch is at {}.</p>\n", code(commit)));
        }
        Some(Landing::Ready { branch, why, .. }) => out.push_str(&format!(
            "<p>{} Finished work is waiting on {}: {}</p>\n",
            pill("warn", "ready to land"),
            code(branch),
            text(why)
        )),
    }
    out
}

fn table(heads: &str, rows: &str) -> String {
    match rows.is_empty() {
        true => String::new(),
        false => format!("<div class=\"scroll\"><table><tr>{heads}</tr>\n{rows}</table></div>\n"),
    }
}
