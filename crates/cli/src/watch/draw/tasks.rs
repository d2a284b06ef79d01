//! A task loop: its waves, who works on what, what is blocked and why, and the graph.

use descartes_kernel::tasks::{Landing, TasksState};
use descartes_text::units::plural;
use descartes_views::view::{WaveStands, waves};
use ratatui::text::{Line, Span};

use super::{Context, bar, flat, graph, pad, toned, wrapped};
use crate::style::Tone;
use crate::view::words;
use crate::watch::app::App;

pub fn lines(app: &App, context: &Context, columns: u16) -> Vec<Line<'static>> {
    let Some(tasks) = app.view().and_then(|view| view.state.tasks.as_deref()) else {
        return Vec::new();
    };
    let columns = usize::from(columns);
    let mut lines = wave_lines(tasks, context, columns);
    lines.push(Line::default());
    lines.extend(running(tasks, context, columns));
    lines.extend(blocked(tasks, context, columns));
    if let Some(Landing::Ready { branch, why, .. }) = &tasks.landing {
        let text = format!("ready to land: {branch} ({why})");
        lines.extend(wrapped(&text, columns, context.theme.tone(Tone::Warn)));
    }
    lines.push(Line::default());
    lines.extend(graph::lines(tasks, app.column, context, columns));
    lines
}

fn wave_lines(tasks: &TasksState, context: &Context, columns: usize) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let room = columns.saturating_sub(10 + 28).clamp(4, 40);
    let line = |row: descartes_views::view::WaveRow| {
        let tone = match row.stands {
            WaveStands::Complete => Tone::Good,
            WaveStands::Stuck => Tone::Bad,
            WaveStands::InProgress => Tone::Strong,
            WaveStands::Pending => Tone::Dim,
        };
        let mut spans = vec![Span::from(pad(&format!("Wave {}", row.wave), 9))];
        spans.extend(bar(theme, row.fraction(), room));
        spans.push(toned(theme, tone, format!("  {}", row.label())));
        Line::from(spans)
    };
    waves(tasks).into_iter().map(line).collect()
}

fn running(tasks: &TasksState, context: &Context, columns: usize) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let mut lines: Vec<Line<'static>> = tasks
        .running
        .iter()
        .map(|running| {
            let entry = tasks.tasks.get(&running.task);
            let title = entry.map_or("", |entry| entry.title.as_str());
            let hard = entry.map_or(0, |entry| entry.complexity);
            let hard = if hard == 0 {
                String::new()
            } else {
                format!(", complexity {hard}")
            };
            let since = words::seconds(words::between(running.since, context.now));
            let facts = format!(" (attempt {}, {since}{hard})", running.attempt);
            let room = columns.saturating_sub(2 + facts.len());
            Line::from(vec![
                toned(theme, Tone::Strong, format!("{} ", theme.marks.running)),
                Span::from(flat(&format!("{} {title}", running.task), room)),
                toned(theme, Tone::Dim, facts),
            ])
        })
        .collect();
    if let Some(task) = &tasks.merging {
        let text = format!("{} merging {task}", theme.marks.judging);
        lines.push(Line::from(toned(theme, Tone::Strong, text)));
    }
    if lines.is_empty() {
        lines.push(Line::from(toned(theme, Tone::Dim, "no task is running")));
    }
    lines
}

fn blocked(tasks: &TasksState, context: &Context, columns: usize) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let mut lines = Vec::new();
    for blocked in &tasks.blocked {
        let attempts = plural(u64::from(blocked.attempts), "attempt");
        let head = format!(
            "{} {} (blocked after {attempts})",
            blocked.task_id, blocked.title
        );
        lines.push(Line::from(vec![
            toned(theme, Tone::Bad, format!("{} ", theme.marks.failed)),
            Span::from(flat(&head, columns.saturating_sub(2))),
        ]));
        let reason = flat(&blocked.reason, columns.saturating_sub(4) * 2);
        let reason = wrapped(&reason, columns.saturating_sub(4), theme.tone(Tone::Warn));
        lines.extend(reason.into_iter().map(|mut line| {
            line.spans.insert(0, Span::from("    "));
            line
        }));
    }
    for marked in &tasks.marked {
        let head = format!(
            "{} {} ({}: marked by others, not proven)",
            marked.task_id,
            marked.title,
            marked.words()
        );
        lines.push(Line::from(vec![
            toned(theme, Tone::Warn, format!("{} ", theme.marks.failed)),
            Span::from(flat(&head, columns.saturating_sub(2))),
        ]));
    }
    lines
}
