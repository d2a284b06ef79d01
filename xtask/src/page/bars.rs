//! The page in short: of so many, how many went wrong, as bars of text.

use std::fmt::Write;

use serde_json::Value;

use crate::peers::Tool;

/// The longest bar.
const WIDTH: usize = 32;

/// What is counted, and in whose rows.
const COUNTS: [(&str, &[&str]); 4] = [
    ("Called done, and was not", &["peers-false"]),
    (
        "Was done, and was not heard (or not soon)",
        &["peers-missed"],
    ),
    ("Stopped, and something lived on", &["peers-stops"]),
    (
        "Killed, and did not go on where it was",
        &["peers-recovery"],
    ),
];

/// The four counts over all tools that can do the work, and the corpus; empty without such rows.
pub fn in_short(rows: &impl Fn(&str) -> Vec<Value>) -> String {
    let mut body = String::new();
    for (title, files) in COUNTS {
        let all: Vec<Value> = files.iter().flat_map(|file| rows(file)).collect();
        let lines = tools(&all);
        if !lines.is_empty() {
            let _ = write!(body, "{title}\n{}\n", bars(&lines));
        }
    }
    let lines = readers(&rows("corpus"));
    if !lines.is_empty() {
        let title = "Labelled corpus, tagged promises: read wrongly, either way";
        let _ = write!(body, "{title}\n{}\n", bars(&lines));
    }
    if body.is_empty() {
        return body;
    }
    format!(
        "## In short\n\nOf the cases that each tool can be given at all, those that went wrong; shorter is better.\n\n```text\n{}\n```\n\n",
        body.trim_end()
    )
}

/// A name, how many went wrong, of how many.
type Line = (String, u64, u64);

fn tools(rows: &[Value]) -> Vec<Line> {
    let one = |tool: Tool| {
        let judged = |row: &&Value| {
            row["raw"]["tool"] == tool.name()
                && matches!(row["raw"]["mark"].as_str(), Some("right" | "wrong"))
        };
        let wrong = |row: &&Value| row["raw"]["mark"] == "wrong";
        let all = rows.iter().filter(judged);
        let (count, wrong) = (all.clone().count(), all.filter(wrong).count());
        (count > 0).then(|| (tool.name().to_owned(), wrong as u64, count as u64))
    };
    Tool::ALL.into_iter().filter_map(one).collect()
}

fn readers(rows: &[Value]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let raw = &row["raw"];
        let length = |key: &str| raw[key].as_array().map_or(0, |list| list.len() as u64);
        let name = raw["reader"].as_str().unwrap_or_default();
        if name.ends_with("every mode") {
            continue;
        }
        let (wrong, of) = (
            length("fooled") + length("missed"),
            row["tried"].as_u64().unwrap_or(0),
        );
        match lines.iter_mut().find(|line| line.0 == name) {
            Some(line) => (line.1, line.2) = (line.1 + wrong, line.2 + of),
            None => lines.push((name.to_owned(), wrong, of)),
        }
    }
    lines
}

fn bars(lines: &[Line]) -> String {
    let mut out = String::new();
    for (name, wrong, of) in lines {
        let filled = (*wrong as f64 / (*of).max(1) as f64 * WIDTH as f64).ceil() as usize;
        let bar = "█".repeat(filled) + &"·".repeat(WIDTH - filled.min(WIDTH));
        let _ = writeln!(out, "  {name:<26} {bar} {wrong} of {of}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_a_tool_could_do_is_counted() {
        let row = |tool: &str, mark: &str| json!({"raw": {"tool": tool, "mark": mark}});
        let rows = |name: &str| match name {
            "peers-false" => vec![
                row("descartes", "right"),
                row("descartes", "seen"),
                row("bash loop", "wrong"),
                row("ralphify", "cannot"),
            ],
            _ => Vec::new(),
        };
        let page = in_short(&rows);
        assert!(page.contains("descartes"), "{page}");
        assert!(page.contains("0 of 1"), "{page}");
        assert!(page.contains("1 of 1"), "{page}");
        assert!(!page.contains("ralphify"), "{page}");
        assert_eq!(in_short(&|_: &str| Vec::new()), "");
    }
}
