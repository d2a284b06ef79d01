//! Tables of plain text.

use super::width::{pad, width};
use crate::style::{Cell, Paint, Tone};

/// Rows with every column as wide as its widest cell, two spaces apart; the titles, if any, are dim.
pub fn table(titles: &[&str], rows: Vec<Vec<Cell>>, paint: Paint) -> String {
    let dim = |title: &&str| Cell::new(Tone::Dim, *title);
    let titles = (!titles.is_empty()).then(|| titles.iter().map(dim).collect());
    let rows: Vec<Vec<Cell>> = titles.into_iter().chain(rows).collect();
    let widest = |at: usize| {
        rows.iter()
            .filter_map(|row| row.get(at))
            .map(|cell: &Cell| width(&cell.text))
            .max()
    };
    let widths: Vec<usize> = (0..).map_while(widest).collect();
    rows.iter().map(|row| line(row, &widths, paint)).collect()
}

/// The last cell is not padded.
fn line(row: &[Cell], widths: &[usize], paint: Paint) -> String {
    let last = row.len().saturating_sub(1);
    let cells = row.iter().zip(widths).enumerate();
    let cells = cells.map(|(at, (cell, to))| match at == last {
        true => paint.text(cell.tone, &cell.text),
        false => paint.text(cell.tone, &pad(&cell.text, *to)),
    });
    format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
}
