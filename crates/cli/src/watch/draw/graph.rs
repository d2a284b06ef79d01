//! The graph of tasks in wave columns: who stands in which wave, and what it waits for.

use descartes_kernel::tasks::TasksState;
use descartes_text::units::plural;
use descartes_views::view::waves;
use ratatui::text::{Line, Span};

use super::task_mark::mark;
use super::{Context, flat, pad, toned};
use crate::style::Tone;

/// A column is not narrower than this.
const NARROW: usize = 18;
/// Nor wider.
const BROAD: usize = 36;

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
    let shown: Vec<Vec<GraphCell>> = all
        .iter()
        .skip(skip)
        .take(fit)
        .map(|wave| {
            let head = GraphCell::new(Tone::Strong, format!("Wave {}", wave.wave));
            let cells = wave.tasks.iter().flat_map(|id| cells(tasks, id, context));
            std::iter::once(head).chain(cells).collect()
        })
        .collect();
    let height = shown.iter().map(Vec::len).max().unwrap_or(0);
    let mut lines: Vec<Line<'static>> = (0..height)
        .map(|row| {
            let spans = shown.iter().map(|column| match column.get(row) {
                None => Span::from(" ".repeat(wide)),
                Some(cell) => toned(
                    theme,
                    cell.tone,
                    pad(&indented(cell, wide.saturating_sub(2)), wide),
                ),
            });
            Line::from(spans.collect::<Vec<_>>())
        })
        .collect();
    let hidden = all.len() - shown.len();
    if hidden > 0 {
        let more = plural(hidden as u64, "wave");
        let text = format!("{more} more: [ and ] move the columns");
        lines.push(Line::from(toned(theme, Tone::Dim, text)));
    }
    lines
}

struct GraphCell {
    tone: Tone,
    indent: usize,
    text: String,
}

impl GraphCell {
    fn new(tone: Tone, text: String) -> Self {
        Self {
            tone,
            indent: 0,
            text,
        }
    }
}

fn indented(cell: &GraphCell, room: usize) -> String {
    let text = flat(&cell.text, room.saturating_sub(cell.indent));
    format!("{:1$}{text}", "", cell.indent)
}

/// A task, and what it waits for.
fn cells(tasks: &TasksState, id: &str, context: &Context) -> Vec<GraphCell> {
    let Some(entry) = tasks.tasks.get(id) else {
        return Vec::new();
    };
    let (tone, mark) = mark(entry.status, &context.theme);
    let mut cells = vec![GraphCell::new(tone, format!("{mark} {id} {}", entry.title))];
    if !entry.after.is_empty() {
        let before: Vec<&str> = entry.after.iter().map(|id| &**id).collect();
        cells.push(GraphCell {
            tone: Tone::Dim,
            indent: 2,
            text: format!("after {}", before.join(", ")),
        });
    }
    cells
}
