//! An answer as a table, as JSON, as CSV.

use descartes_query::{Answer, SqlValue};
use descartes_text::display::one_line;
use serde_json::{Map, Value, json};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Cells of a table are cut at this width; JSON and CSV give them whole.
const WIDTH: usize = 60;

/// Aligned columns.
pub fn table(answer: &Answer) -> String {
    let shown: Vec<Vec<String>> = answer
        .rows
        .iter()
        .map(|row| row.iter().map(|cell| cut(&text(cell))).collect())
        .collect();
    let width = |at: usize| {
        let cells = shown.iter().filter_map(|row| row.get(at));
        let widest = cells.map(|cell| cell.width()).max().unwrap_or(0);
        widest.max(answer.columns.get(at).map_or(0, |name| name.width()))
    };
    let widths: Vec<usize> = (0..answer.columns.len()).map(width).collect();
    let right = |at: usize| {
        let mut known = answer.rows.iter().filter_map(|row| row.get(at));
        answer
            .rows
            .iter()
            .any(|row| row.get(at) != Some(&SqlValue::Null))
            && known.all(|cell| {
                matches!(
                    cell,
                    SqlValue::Integer(_) | SqlValue::Real(_) | SqlValue::Null
                )
            })
    };
    let rights: Vec<bool> = (0..answer.columns.len()).map(right).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().enumerate().map(|(at, cell)| {
            let room = " ".repeat(widths[at].saturating_sub(cell.width()));
            match rights[at] {
                true => format!("{room}{cell}"),
                false => format!("{cell}{room}"),
            }
        });
        let line: Vec<String> = padded.collect();
        format!("{}\n", line.join("  ").trim_end())
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let head = [line(&answer.columns), line(&rule)];
    head.into_iter()
        .chain(shown.iter().map(|row| line(row)))
        .collect()
}

fn text(cell: &SqlValue) -> String {
    match cell {
        SqlValue::Null => String::new(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Real(number) => short(*number),
        SqlValue::Text(text) => text.clone(),
        SqlValue::Blob(bytes) => hex(bytes),
    }
}

/// Sums of decimal fractions end in noise that nobody asked for.
fn short(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One line of at most [`WIDTH`] columns.
fn cut(text: &str) -> String {
    // Whole before it is cut: half a secret does not look like one.
    let line = one_line(text);
    if line.width() <= WIDTH {
        return line;
    }
    let mut width = 0;
    let fits = |c: &char| {
        width += c.width().unwrap_or(0);
        width < WIDTH
    };
    let kept: String = line.chars().take_while(fits).collect();
    format!("{kept}…")
}

/// A list of objects, one a line.
pub fn json(answer: &Answer) -> String {
    let value = |cell: &SqlValue| match cell {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => json!(number),
        SqlValue::Real(number) => json!(number),
        SqlValue::Text(text) => json!(text),
        SqlValue::Blob(bytes) => json!(hex(bytes)),
    };
    let rows: Vec<String> = answer
        .rows
        .iter()
        .map(|row| {
            let names = answer.columns.iter().cloned();
            let fields: Map<String, Value> = names.zip(row.iter().map(value)).collect();
            Value::Object(fields).to_string()
        })
        .collect();
    format!("[{}]\n", rows.join(",\n "))
}

/// As RFC 4180 has it, with plain line ends.
pub fn csv(answer: &Answer) -> String {
    let quoted = |text: &str| match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        format!("{}\n", cells.join(","))
    };
    let whole = |cell: &SqlValue| match cell {
        SqlValue::Real(number) => number.to_string(),
        other => text(other),
    };
    let head = line(answer.columns.clone());
    let rows = answer.rows.iter();
    std::iter::once(head)
        .chain(rows.map(|row| line(row.iter().map(whole).collect())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        Answer {
            columns: vec!["name".into(), "cost".into()],
            rows: vec![
                vec![
                    SqlValue::Text("a, \"b\"\nc".into()),
                    SqlValue::Real(0.1 + 0.2),
                ],
                vec![SqlValue::Text("größe".into()), SqlValue::Null],
            ],
        }
    }

    #[test]
    fn tables_are_aligned_and_stay_on_their_lines() {
        let expected = "name      cost\n--------  ----\na, \"b\" c   0.3\ngröße\n";
        assert_eq!(table(&answer()), expected);
        let long = Answer {
            columns: vec!["t".into()],
            rows: vec![vec![SqlValue::Text("x".repeat(100))]],
        };
        assert!(table(&long).lines().all(|line| line.width() <= WIDTH));
    }

    #[test]
    fn csv_quotes_what_would_break_it_and_json_keeps_types() {
        assert_eq!(
            csv(&answer()),
            "name,cost\n\"a, \"\"b\"\"\nc\",0.30000000000000004\ngröße,\n"
        );
        let value: Value = serde_json::from_str(&json(&answer())).unwrap();
        assert_eq!(value[1], json!({"name": "größe", "cost": null}));
        let none = Answer {
            columns: vec!["a".into()],
            rows: Vec::new(),
        };
        assert_eq!(json(&none), "[]\n");
    }
}
