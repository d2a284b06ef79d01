//! A plan as an SVG image: waves as columns, statuses as colours, dependencies as curves.

use std::fmt::Write;

use super::mermaid::arrows;
use super::{colour, shorten, status_of};
use crate::graph::{Plan, TaskIx, TaskStatus};

const BOX_WIDTH: u32 = 220;
const BOX_HEIGHT: u32 = 44;
const COLUMN: u32 = 290;
const ROW: u32 = 60;
const MARGIN: u32 = 24;
const HEAD: u32 = 40;

/// An image that needs nothing from outside; titles are escaped.
pub fn svg(plan: &Plan, statuses: &[TaskStatus]) -> String {
    let places = places(plan);
    let columns = places
        .iter()
        .map(|(column, _)| column + 1)
        .max()
        .unwrap_or(1);
    let rows = places.iter().map(|(_, row)| row + 1).max().unwrap_or(1);
    let width = 2 * MARGIN + (columns - 1) * COLUMN + BOX_WIDTH;
    let height = 2 * MARGIN + HEAD + (rows - 1) * ROW + BOX_HEIGHT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    heads(plan, &mut out);
    for task in 0..places.len() as TaskIx {
        for before in arrows(plan, task) {
            curve(places[before as usize], places[task as usize], &mut out);
        }
    }
    for (task, place) in places.iter().enumerate() {
        task_box(plan, statuses, task as TaskIx, *place, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// Column and row of every task. Column 0 holds other tags' tasks, where there are any; a group
/// stands below the wave of its last subtask.
fn places(plan: &Plan) -> Vec<(u32, u32)> {
    let graph = plan.graph();
    let shift = first_column(plan);
    let mut filled: Vec<u32> = vec![0; plan.waves().len() + 2];
    let mut places = vec![(0, 0); graph.nodes().len()];
    let work = plan.waves().iter().flatten().copied();
    let others = (0..places.len() as TaskIx).filter(|task| !graph.is_work(*task));
    for task in work.chain(others) {
        let column = plan.wave_of(task).saturating_sub(shift);
        let row = &mut filled[column as usize];
        places[task as usize] = (column, *row);
        *row += 1;
    }
    places
}

/// 1 where the first wave is the first column, 0 where other tags' tasks come before it.
fn first_column(plan: &Plan) -> u32 {
    let tasks = 0..plan.graph().nodes().len() as TaskIx;
    let outside = tasks.into_iter().any(|task| plan.wave_of(task) == 0);
    u32::from(!outside)
}

fn heads(plan: &Plan, out: &mut String) {
    let shift = first_column(plan);
    for wave in 1..=plan.waves().len() as u32 {
        let x = MARGIN + (wave - shift) * COLUMN;
        let y = MARGIN + 16;
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{y}\" font-weight=\"600\">Wave {wave}</text>"
        );
    }
}

fn corner((column, row): (u32, u32)) -> (u32, u32) {
    (MARGIN + column * COLUMN, MARGIN + HEAD + row * ROW)
}

fn curve(from: (u32, u32), to: (u32, u32), out: &mut String) {
    let (x1, y1) = corner(from);
    let (x2, y2) = corner(to);
    let (x1, y1, y2) = (x1 + BOX_WIDTH, y1 + BOX_HEIGHT / 2, y2 + BOX_HEIGHT / 2);
    let bend = 36;
    let _ = writeln!(
        out,
        "<path d=\"M{x1} {y1} C{} {y1} {} {y2} {x2} {y2}\" fill=\"none\" stroke=\"#9aa0a6\"/>",
        x1 + bend,
        x2.saturating_sub(bend),
    );
}

fn task_box(
    plan: &Plan,
    statuses: &[TaskStatus],
    task: TaskIx,
    place: (u32, u32),
    out: &mut String,
) {
    let node = plan.graph().node(task);
    let status = status_of(plan, statuses, task);
    let (x, y) = corner(place);
    let dash = if plan.graph().is_work(task) {
        ""
    } else {
        " stroke-dasharray=\"4 3\""
    };
    let title = escape(&format!("{}: {} [{status}]", node.id, node.title));
    let id = escape(&shorten(&node.id, 20));
    let short = escape(&shorten(&node.title, 30));
    let _ = writeln!(
        out,
        "<g><title>{title}</title><rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" \
         height=\"{BOX_HEIGHT}\" rx=\"6\" fill=\"{}\" stroke=\"#5f6368\"{dash}/>\
         <text x=\"{tx}\" y=\"{ty}\" font-weight=\"600\">{id} · {status}</text>\
         <text x=\"{tx}\" y=\"{by}\">{short}</text></g>",
        colour(status),
        tx = x + 10,
        ty = y + 18,
        by = y + 35,
    );
}

/// Text as XML allows it: marks as entities, control characters left out.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => {}
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}
