//! The page in short: of so many, how many went wrong.

use serde_json::Value;

use super::plots::{self, Count};
use super::{Plot, plot};
use crate::peers::Tool;

/// What is counted, and in whose rows.
const COUNTS: [(&str, &str); 4] = [
    ("Called done, and was not", "peers-false"),
    ("Was done, and was not heard (or not soon)", "peers-missed"),
    ("Stopped, and something lived on", "peers-stops"),
    ("Killed, and did not go on where it was", "peers-recovery"),
];

/// The four counts over all tools that can do the work, and the corpus; `None` without such rows.
pub fn in_short(rows: &impl Fn(&str) -> Vec<Value>) -> Option<(String, Plot)> {
    let counted = COUNTS.map(|(title, file)| (title, tools(&rows(file))));
    let corpus = (
        "Labelled corpus, tagged promises: read wrongly, either way",
        readers(&rows("corpus")),
    );
    let questions = counted.into_iter().chain([corpus]);
    let questions: Vec<(&str, Vec<Count>)> =
        questions.filter(|(_, lines)| !lines.is_empty()).collect();
    if questions.is_empty() {
        return None;
    }
    // What the picture shows, for those who do not see it.
    let words: Vec<String> = questions.iter().map(in_words).collect();
    let (link, plot) = plot("in-short", &plots::counts(&questions), &words.join(". "));
    let body = format!(
        "## In short\n\nOf the cases that each tool can be given at all, those that went wrong; shorter is better.\n\n{link}"
    );
    Some((body, plot))
}

fn in_words((question, lines): &(&str, Vec<Count>)) -> String {
    let one = |(name, wrong, of): &Count| format!("{name} {wrong} of {of}");
    let lines: Vec<String> = lines.iter().map(one).collect();
    format!("{question}: {}", lines.join(", "))
}

fn tools(rows: &[Value]) -> Vec<Count> {
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

fn readers(rows: &[Value]) -> Vec<Count> {
    let mut lines: Vec<Count> = Vec::new();
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
        let (page, plot) = in_short(&rows).unwrap();
        let told = "Called done, and was not: descartes 0 of 1, bash loop 1 of 1";
        assert!(page.contains(told), "{page}");
        assert!(plot.svg.contains(">1 of 1</text>"), "{}", plot.svg);
        assert!(!page.contains("ralphify"), "{page}");
        assert!(in_short(&|_: &str| Vec::new()).is_none());
    }
}
