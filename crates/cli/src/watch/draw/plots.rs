//! How long iterations took and what they cost, a column each.

use descartes_views::view::{HistoryRow, show_cost};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{Context, pad_left, put, toned};
use crate::style::Tone;
use crate::view::words;
use crate::watch::app::{App, Focus};
use crate::watch::theme::{Chosen, Theme};

/// Columns for the scale at the left.
const SCALE: usize = 8;

/// Draws both.
pub fn draw(frame: &mut Frame<'_>, app: &App, context: &Context, area: Rect) {
    let theme = &context.theme;
    let (Some(detail), Some(selected)) = (&app.detail, app.selected_row()) else {
        put(
            frame,
            area,
            vec![context.line(Tone::Dim, "no iteration yet")],
        );
        return;
    };
    let columns = usize::from(area.width).saturating_sub(SCALE + 1).max(1) as u64;
    let total = app.total_rows();
    let first = match app.row {
        None => total.saturating_sub(columns),
        Some(_) => selected
            .saturating_sub(columns / 2)
            .min(total.saturating_sub(columns)),
    };
    let rows: Vec<Option<&HistoryRow>> = (first..total.min(first + columns))
        .map(|place| detail.rows.get(place))
        .collect();
    let half = Constraint::Length(area.height / 2);
    let [upper, lower] = Layout::vertical([half, Constraint::Fill(1)]).areas(area);
    let time = |row: &HistoryRow| (row.duration_ms > 0).then_some(row.duration_ms as f64);
    let cost = |row: &HistoryRow| row.cost.map(|cost| cost.micros as f64);
    let show_time = |ms: f64| words::millis(ms as u64);
    let show_money = |micros: f64| {
        show_cost(Some(descartes_kernel::event::Cost {
            micros: micros as u64,
            estimated: false,
        }))
    };
    let chosen = (app.focus == Focus::Pane).then_some((selected - first) as usize);
    let plots: [(&str, Rect, Values<'_>, ShowValue<'_>); 2] = [
        ("duration", upper, &time, &show_time),
        ("cost", lower, &cost, &show_money),
    ];
    for (title, area, value, show) in plots {
        let values: Vec<Option<f64>> = rows.iter().map(|row| row.and_then(value)).collect();
        let of = rows.get((selected - first) as usize).copied().flatten();
        let now = of
            .and_then(value)
            .map_or_else(|| theme.marks.unknown.to_owned(), show);
        let number = of.map_or(0, |row| row.iteration);
        let head = format!("{title}  (iteration {number}: {now})");
        let mut lines = vec![context.line(Tone::Strong, head)];
        let styles: Vec<Style> = rows.iter().map(|row| style(*row, theme)).collect();
        let height = usize::from(area.height).saturating_sub(2);
        lines.extend(chart(&values, &styles, chosen, height, show, theme));
        put(frame, area, lines);
    }
}

/// What of a row is drawn.
type Values<'a> = &'a dyn Fn(&HistoryRow) -> Option<f64>;
/// How a value reads.
type ShowValue<'a> = &'a dyn Fn(f64) -> String;

/// Red where a gate was red or the agent failed.
fn style(row: Option<&HistoryRow>, theme: &Theme) -> Style {
    let failed =
        |row: &HistoryRow| row.failed_gate().is_some() || row.exit.is_some_and(|code| code != 0);
    match row {
        Some(row) if failed(row) => theme.tone(Tone::Bad),
        Some(row) if row.claimed => theme.tone(Tone::Good),
        _ => theme.accent(),
    }
}

/// Columns over a floor, the largest as high as there is room.
pub fn chart(
    values: &[Option<f64>],
    styles: &[Style],
    chosen: Option<usize>,
    height: usize,
    show: ShowValue<'_>,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let Some(most) = known
        .iter()
        .copied()
        .reduce(f64::max)
        .filter(|most| *most > 0.0)
    else {
        return vec![Line::from(toned(theme, Tone::Dim, "         no data yet"))];
    };
    let steps = theme.marks.heights.len();
    let mut lines = Vec::new();
    for row in (0..height).rev() {
        let scale = match row {
            row if row + 1 == height => show(most),
            0 => "0".to_owned(),
            _ => String::new(),
        };
        let scale = format!("{}{}", pad_left(&scale, SCALE), theme.marks.wall);
        let mut spans = vec![toned(theme, Tone::Dim, scale)];
        for (index, value) in values.iter().enumerate() {
            let eighths = value.map(|value| {
                let whole = (value / most * (height * steps) as f64).ceil() as usize;
                whole.saturating_sub(row * steps).min(steps)
            });
            let mark = match eighths {
                None if row == 0 => "?",
                None | Some(0) => " ",
                Some(step) => theme.marks.heights[step - 1],
            };
            let style = styles.get(index).copied().unwrap_or_default();
            spans.push(Span::styled(mark, style));
        }
        lines.push(Line::from(spans));
    }
    let mut floor = vec![Span::from(" ".repeat(SCALE + 1))];
    for index in 0..values.len() {
        floor.push(match Some(index) == chosen {
            true => Span::styled("^", theme.chosen(Chosen::Active)),
            false => toned(theme, Tone::Dim, theme.marks.floor),
        });
    }
    lines.push(Line::from(floor));
    lines
}
