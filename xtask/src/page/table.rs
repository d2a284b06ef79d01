//! Rows as a table, the ratio first.

use serde_json::Value;

const HEAD: &str = "| | what | ratio | seen | floor | tried | bar | verdict |\n|---|---|---|---|---|---|---|---|\n";

/// A row a line.
pub fn render(rows: &[Value]) -> String {
    let lines: String = rows.iter().map(line).collect();
    format!("{HEAD}{lines}\n")
}

/// Text that may stand in a table, and tells nothing of the machine's folders.
pub fn cell(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let text: String = without_paths(&text).chars().take(300).collect();
    text.replace('|', "\\|").replace('\n', " ")
}

/// Temporary folders, home folders and where this project lies are nobody's business.
fn without_paths(text: &str) -> String {
    let end = |c: char| c.is_whitespace() || "\"'`,;:)".contains(c);
    let mut out = String::new();
    let mut rest = text;
    let here = crate::shell::root().to_string_lossy().into_owned();
    let starts = ["/tmp/", "/home/", "/root/", "/var/", &here];
    while let Some(at) = starts.iter().filter_map(|start| rest.find(start)).min() {
        let length = rest[at..].find(end).unwrap_or(rest.len() - at);
        let name = rest[at..at + length].rsplit('/').next().unwrap_or("");
        out.push_str(&rest[..at]);
        out.push('…');
        out.push_str(name);
        rest = &rest[at + length..];
    }
    out + rest
}

/// A ratio for people.
pub fn ratio(row: &Value) -> String {
    row["ratio"]
        .as_f64()
        .map_or_else(|| "–".to_owned(), |ratio| format!("**{ratio:.2}**"))
}

fn line(row: &Value) -> String {
    let why = match row["why"].as_str() {
        Some("") | None => String::new(),
        Some(why) => format!(": {}", cell(&Value::from(why))),
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {}{why} |\n",
        cell(&row["measure"]),
        cell(&row["what"]),
        ratio(row),
        cell(&row["ours"]),
        cell(&row["floor"]),
        row["tried"],
        cell(&row["bar"]),
        cell(&row["verdict"]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_cut_to_its_last_name() {
        let told = without_paths("gate `/tmp/dw-abc/bin/check` was changed, see /home/me/x: no");
        assert_eq!(told, "gate `…check` was changed, see …x: no");
        assert_eq!(without_paths("a/b is no such path"), "a/b is no such path");
    }
}
