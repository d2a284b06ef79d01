//! The graph of tasks in wave columns: who stands in which wave, and what it waits for.

use descartes_kernel::tasks::TasksState;
use descartes_plans::graph::TaskStatus;
use descartes_text::units::plural;
use descartes_views::view::{task_tone, waves};
use ratatui::text::Line;

use super::{Context, pad, toned};
use crate::style::{Cell, Tone};
use crate::view::width::{cut_end, one_line};

/// A column is not narrower than this.
const NARROW: usize = 18;
/// Nor wider.
const BROAD: usize = 36;
/// More names than fit beside a task.
const BEFORE_SHOWN: usize = 16;

/// The lines; the first `skip` waves are left of the screen.
pub fn lines(
    tasks: &TasksState,
    skip: usize,
    context: &Context,
    columns: usize,
) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let all = waves(tasks);
    let fit = (columns / NARROW).clamp(1, all.len().max(1));
    let skip = skip.min(all.len().saturating_sub(fit));
    let wide = (columns / fit).min(BROAD);
    let shown: Vec<Vec<Cell>> = all
        .iter()
        .skip(skip)
        .take(fit)
        .map(|wave| {
            let head = Cell::new(Tone::Strong, format!("Wave {}", wave.wave));
            let cells = wave.tasks.iter().flat_map(|id| cells(tasks, id, context));
            std::iter::once(head).chain(cells).collect()
        })
        .collect();
    let height = shown.iter().map(Vec::len).max().unwrap_or(0);
    let none = Cell::default();
    let line = |row| {
        let spans = shown.iter().map(|column| {
            let cell = column.get(row).unwrap_or(&none);
            let text = cut_end(&cell.text, wide.saturating_sub(2));
            toned(theme, cell.tone, pad(&text, wide))
        });
        Line::from(spans.collect::<Vec<_>>())
    };
    let mut lines: Vec<Line<'static>> = (0..height).map(line).collect();
    let hidden = all.len() - shown.len();
    if hidden > 0 {
        let more = plural(hidden as u64, "wave");
        let text = format!("{more} more: [ and ] move the columns");
        lines.push(context.line(Tone::Dim, text));
    }
    lines
}

/// A task, and what it waits for.
fn cells(tasks: &TasksState, id: &str, context: &Context) -> Vec<Cell> {
    let Some(entry) = tasks.tasks.get(id) else {
        return Vec::new();
    };
    let marks = &context.theme.marks;
    let mark = match entry.status {
        TaskStatus::Done => marks.done,
        TaskStatus::InProgress => marks.running,
        TaskStatus::Blocked | TaskStatus::Failed => marks.failed,
        TaskStatus::Review => "?",
        TaskStatus::Pending => marks.pending,
        TaskStatus::Deferred | TaskStatus::Cancelled => "-",
        TaskStatus::Expanded => "+",
    };
    let text = one_line(&format!("{mark} {id} {}", entry.title));
    let mut cells = vec![Cell::new(task_tone(entry.status), text)];
    let before = tasks.first_before(entry, BEFORE_SHOWN);
    if !before.is_empty() {
        let before: Vec<&str> = before.into_iter().map(|id| id.as_str()).collect();
        let text = one_line(&format!("after {}", before.join(", ")));
        cells.push(Cell::new(Tone::Dim, format!("  {text}")));
    }
    cells
}
