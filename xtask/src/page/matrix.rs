//! Tools side by side: a work a line, a tool a column.

use std::fmt::Write;

use serde_json::Value;

use super::table::{cell, ratio};
use crate::peers::Tool;

/// A table of cells, and below it why some cannot.
pub fn render(rows: &[Value]) -> String {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    let tools = shown(rows, &mut notes);
    let head: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    let mut out = format!("| | {} |\n", head.join(" | "));
    let _ = writeln!(out, "|---|{}", "---|".repeat(tools.len()));
    for work in works(rows) {
        let of = |tool: &Tool| {
            let mine = |row: &&Value| row["raw"]["work"] == *work && is_of(row, *tool);
            rows.iter().find(mine).map_or_else(String::new, mark)
        };
        let cells: Vec<String> = tools.iter().map(of).collect();
        let _ = writeln!(out, "| {work} | {} |", cells.join(" | "));
        extras(&mut out, rows, work, &tools);
    }
    out.push('\n');
    for (why, who) in notes {
        let _ = writeln!(out, "*cannot:* {}: {why}.\n", who.join(", "));
    }
    out
}

fn is_of(row: &Value, tool: Tool) -> bool {
    row["raw"]["tool"] == tool.name()
}

fn works(rows: &[Value]) -> Vec<&str> {
    let mut works: Vec<&str> = Vec::new();
    for work in rows.iter().filter_map(|row| row["raw"]["work"].as_str()) {
        if !works.contains(&work) {
            works.push(work);
        }
    }
    works
}

/// A tool that can do none of it, always for one reason, is a note instead of a column.
fn shown<'r>(rows: &'r [Value], notes: &mut Vec<(String, Vec<&'r str>)>) -> Vec<Tool> {
    let mut tools = Vec::new();
    for tool in Tool::ALL {
        let mut mine = rows.iter().filter(|row| is_of(row, tool)).peekable();
        let Some(first) = mine.peek().copied() else {
            continue;
        };
        if mine.any(|row| row["raw"]["mark"] != "cannot") {
            tools.push(tool);
            continue;
        }
        let (why, name) = (cell(&first["raw"]["cell"]), tool.name());
        match notes.iter_mut().find(|(known, _)| *known == why) {
            Some((_, who)) => who.push(name),
            None => notes.push((why, vec![name])),
        }
    }
    tools
}

fn mark(row: &Value) -> String {
    let words = cell(&row["raw"]["cell"]);
    match row["raw"]["mark"].as_str() {
        Some("wrong") => format!("**{words}**"),
        Some("cannot") => format!("cannot: {words}"),
        _ => words,
    }
}

/// Ratios to the floor and the waits that tools come with, where there are such.
fn extras(out: &mut String, rows: &[Value], work: &str, tools: &[Tool]) {
    let row_of = |tool: &Tool| {
        let mine = |row: &&Value| row["raw"]["work"] == *work && is_of(row, *tool);
        rows.iter().find(mine)
    };
    if rows.iter().any(|row| row["ratio"].is_number()) {
        let floor = rows.iter().find(|row| row["ratio"].is_number());
        let floor = floor.map_or_else(String::new, |row| cell(&row["floor"]));
        let cells: Vec<String> = tools
            .iter()
            .map(|tool| row_of(tool).map_or_else(String::new, ratio))
            .collect();
        let _ = writeln!(out, "| ratio to a {floor} | {} |", cells.join(" | "));
    }
    if rows.iter().any(|row| row["raw"]["pause"].is_string()) {
        let cells: Vec<String> = tools
            .iter()
            .map(|tool| row_of(tool).map_or_else(String::new, |row| cell(&row["raw"]["pause"])))
            .collect();
        let _ = writeln!(
            out,
            "| wait between iterations, as shipped | {} |",
            cells.join(" | ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_stand_side_by_side_and_who_cannot_is_named_below() {
        let row = |tool: &str, mark: &str, words: &str| json!({"raw": {"work": "echo", "tool": tool, "mark": mark, "cell": words}});
        let rows = [
            row("descartes", "right", "goes on"),
            row("bash loop", "wrong", "called done"),
            row("ralphify", "cannot", "no promise"),
        ];
        let out = render(&rows);
        assert!(out.contains("| | descartes | bash loop |"), "{out}");
        assert!(
            out.contains("| echo | goes on | **called done** |"),
            "{out}"
        );
        assert!(out.contains("*cannot:* ralphify: no promise."), "{out}");
    }
}
