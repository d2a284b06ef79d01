//! `cargo xtask page`: `docs/measurements.md` out of the raw rows of the last long runs.
//!
//! Nothing is measured here and no number is written by hand: campaigns are run one at a time,
//! each leaves its rows, and this puts them in order. What was never measured is left out.

mod bars;
mod matrix;
mod sections;
mod table;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::lab::{Form, machine, row};
use crate::peers::Tool;
use crate::shell::root;
use sections::SECTIONS;

const INTRO: &str = "\
# Measurements

Every number here was seen in a run of `cargo xtask bench`, `faults`, `peers`, `agents`, `tasks` or `gui`, and was put here by `cargo xtask page`; none is written by hand.
All of it goes through the real binary and real processes. One scripted agent drives every tool and stamps its own start and end, so that all are timed by one clock.
A measure has a floor, taken in the same run on the same machine; the ratio is ours against it, and is what to compare between machines. What costs users money comes first, overhead last.
Peers are as their registries ship them; a wait that a flag sets is set to its least. *cannot* says why a tool cannot do the work at all.
Task success, code quality and tokens saved cannot be measured without a model, and are not claimed.

";

/// `page [--short]`; the short form is for looking at, and lies beside the rows.
pub fn run(rest: &[String]) -> Result<(), String> {
    let (form, path) = match rest {
        [] => (Form::Long, root().join("docs/measurements.md")),
        [word] if word == "--short" => (Form::Short, row::folder().join("page.short.md")),
        [other, ..] => return Err(format!("`{other}` is not --short")),
    };
    let page = page(|name| row::read(form, name), &names(form));
    let page = page.ok_or("no rows of that form: run `cargo xtask bench` and the others first")?;
    fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

/// The measures that have left rows.
fn names(form: Form) -> Vec<String> {
    let end = format!(".{}.jsonl", form.name());
    let entries = fs::read_dir(row::folder()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(&end)?.to_owned()))
        .collect();
    names.sort();
    names
}

fn page(rows: impl Fn(&str) -> Vec<Value>, names: &[String]) -> Option<String> {
    let all: Vec<Value> = names.iter().flat_map(|name| rows(name)).collect();
    if all.is_empty() {
        return None;
    }
    let mut page = String::from(INTRO);
    page.push_str(&about(&all));
    page.push_str(&bars::in_short(&rows));
    for section in &SECTIONS {
        let body: String = section.files.iter().map(|file| part(&rows(file))).collect();
        if !body.is_empty() {
            let _ = write!(page, "## {}\n\n{}\n\n{body}", section.title, section.how);
        }
    }
    let known: BTreeSet<&str> = SECTIONS.iter().flat_map(|one| one.files).copied().collect();
    let others = names.iter().filter(|name| !known.contains(name.as_str()));
    let rest: String = others.map(|name| part(&rows(name))).collect();
    if !rest.is_empty() {
        let _ = write!(page, "## Others\n\n{rest}");
    }
    Some(page)
}

/// The rows of one measure: tools side by side where there are several, else a row a line.
fn part(rows: &[Value]) -> String {
    match rows.first() {
        None => String::new(),
        Some(first) if first["raw"]["tool"].is_string() => matrix::render(rows),
        Some(_) => table::render(rows),
    }
}

/// On what, when it was busy with what else, and how it all stands.
fn about(all: &[Value]) -> String {
    let loads = all.iter().filter_map(|row| row["load"].as_f64());
    let (least, most) = loads.fold((f64::INFINITY, 0.0_f64), |(least, most), load| {
        (least.min(load), most.max(load))
    });
    let commits: BTreeSet<&str> = all
        .iter()
        .filter_map(|row| row["commit"].as_str())
        .collect();
    let commits: Vec<&str> = commits.into_iter().collect();
    let count = |verdict: &str| all.iter().filter(|row| row["verdict"] == verdict).count();
    format!(
        "Measured on {}; load average {least:.1} to {most:.1} as the measures began; commit {}.\nOf {} rows with a bar, {} meet it. Raw rows: `target/measurements/*.jsonl`.{}\n\n",
        machine::describe(),
        commits.join(", "),
        count("met") + count("missed"),
        count("met"),
        peers(all),
    )
}

/// Whose packages were driven.
fn peers(all: &[Value]) -> String {
    let driven = |tool: &Tool| {
        all.iter()
            .any(|row| row["raw"]["tool"] == tool.name() && row["raw"]["mark"] != "cannot")
    };
    let packages: Vec<String> = Tool::ALL
        .into_iter()
        .filter(driven)
        .filter_map(Tool::package)
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    match packages.is_empty() {
        true => String::new(),
        false => format!("\nPeers: {}.", packages.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stored(name: &str) -> Vec<Value> {
        let row = |what: &str, ratio: Option<f64>| {
            json!({"measure": "M1", "what": what, "tried": 3, "ours": "2 ms | p50", "floor": "1 ms", "ratio": ratio,
                "bar": "ratio 3", "verdict": "met", "why": "", "load": 0.5, "commit": "abc", "raw": {}})
        };
        match name {
            "gap" => vec![row("the gap", Some(2.0))],
            "stop" => vec![row("SIGTERM of /tmp/dw-x1/project", None)],
            "new-thing" => vec![row("something new", None)],
            _ => Vec::new(),
        }
    }

    #[test]
    fn what_costs_money_comes_first_and_what_is_new_is_not_lost() {
        let names = ["gap", "new-thing", "stop"].map(str::to_owned);
        let page = page(stored, &names).unwrap();
        let at = |words: &str| {
            page.find(words)
                .unwrap_or_else(|| panic!("{words}: {page}"))
        };
        assert!(at("## Stopping") < at("## Overhead"));
        assert!(at("## Overhead") < at("## Others"));
        assert!(
            page.contains("| the gap | **2.00** | 2 ms \\| p50 |"),
            "{page}"
        );
        assert!(page.contains("Of 3 rows with a bar, 3 meet it"), "{page}");
        assert!(!page.contains("/tmp/"), "{page}");
    }

    #[test]
    fn without_rows_there_is_no_page() {
        assert_eq!(page(|_| Vec::new(), &[]), None);
    }
}
