//! A task loop: its waves, who works on what, what is blocked and why, and the graph.

use descartes_kernel::tasks::TasksState;
use descartes_text::units::plural;
use descartes_views::view::{
    Life, TaskRow, WaveRow, blocked_tasks, marked_tasks, tasks_at_work, unlanded, waves,
};
use ratatui::text::{Line, Span};

use super::{Context, bar, flat, graph, indented, pad, toned, wrapped};
use crate::style::Tone;
use crate::view::width::width;
use crate::watch::app::App;

pub fn lines(app: &App, context: &Context, columns: u16) -> Vec<Line<'static>> {
    let Some(state) = app.view().map(|view| &view.state) else {
        return Vec::new();
    };
    let Some(tasks) = state.tasks.as_deref() else {
        return Vec::new();
    };
    let columns = usize::from(columns);
    let mut lines = wave_lines(tasks, context, columns);
    lines.push(Line::default());
    let life = app.view().map_or(Life::Gone, |view| view.life);
    let active = tasks_at_work(state, life, context.now);
    lines.extend(running(&active, context, columns));
    lines.extend(blocked(tasks, context, columns));
    if let Some(work) = unlanded(tasks) {
        let text = format!("not landed, {work}");
        lines.extend(wrapped(&text, columns, context.theme.tone(Tone::Warn)));
    }
    lines.push(Line::default());
    lines.extend(graph::lines(tasks, app.column, context, columns));
    lines
}

/// A bar for each wave.
fn wave_lines(tasks: &TasksState, context: &Context, columns: usize) -> Vec<Line<'static>> {
    let theme = &context.theme;
    // The label, the longest name of a state, and blanks.
    let room = columns.saturating_sub(10 + 28).clamp(4, 40);
    let line = |row: WaveRow| {
        let mut spans = vec![Span::from(pad(&format!("Wave {}", row.wave), 9))];
        spans.extend(bar(theme, row.fraction(), room));
        let label = row.label();
        spans.push(toned(theme, label.tone, format!("  {}", label.text)));
        Line::from(spans)
    };
    waves(tasks).into_iter().map(line).collect()
}

/// A task behind its mark, with what there is to say of it in brackets.
fn task_line(
    task: &TaskRow,
    mark: &str,
    note: &str,
    context: &Context,
    columns: usize,
) -> Line<'static> {
    let theme = &context.theme;
    let note = format!(" ({note})");
    let room = columns.saturating_sub(2 + width(&note)).max(columns / 2);
    Line::from(vec![
        toned(theme, task.status.tone, format!("{mark} ")),
        Span::from(flat(&task.name(), room)),
        toned(theme, Tone::Dim, note),
    ])
}

fn running(active: &[TaskRow], context: &Context, columns: usize) -> Vec<Line<'static>> {
    let theme = &context.theme;
    if active.is_empty() {
        return vec![Line::from(toned(theme, Tone::Dim, "no task is running"))];
    }
    let line = |task: &TaskRow| task_line(task, theme.marks.running, &task.note, context, columns);
    active.iter().map(line).collect()
}

/// Those that are blocked or marked by others, and why.
fn blocked(tasks: &TasksState, context: &Context, columns: usize) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let mut lines = Vec::new();
    for task in blocked_tasks(tasks) {
        let attempts = plural(u64::from(task.attempts), "attempt");
        let note = format!("blocked after {attempts}");
        lines.push(task_line(
            &task,
            theme.marks.failed,
            &note,
            context,
            columns,
        ));
        let reason = flat(&task.note, columns.saturating_sub(4) * 2);
        lines.extend(indented(&reason, 4, columns, theme.tone(Tone::Warn)));
    }
    for task in marked_tasks(tasks) {
        let note = format!("{}: {}", task.status.text, task.note);
        lines.push(task_line(
            &task,
            theme.marks.failed,
            &note,
            context,
            columns,
        ));
    }
    lines
}
