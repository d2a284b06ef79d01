//! `cargo xtask page`: `docs/measurements.md` out of the raw rows of the last long runs.
//!
//! Nothing is measured here and no number is written by hand: campaigns are run one at a time,
//! each leaves its rows, and this puts them in order. What was never measured is left out; a section
//! without new rows stays as it is on the page before.

mod bars;
mod matrix;
mod plots;
mod sections;
mod table;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use descartes_views::picture::{Frame, Picture, svg};
use serde_json::Value;

use crate::lab::{Form, machine, row, stats};
use crate::peers::Tool;
use crate::shell::root;
use sections::SECTIONS;

const INTRO: &str = "\
# Measurements

Every number here was seen in a run of `cargo xtask bench`, `faults`, `peers`, `agents`, `tasks`, `gui`, `web` or `fleet`, and was put here by `cargo xtask page`; none is written by hand.
All of it goes through the real binary and real processes. One scripted agent drives every tool and stamps its own start and end, so that all are timed by one clock.
A measure has a floor, taken in the same run on the same machine; the ratio is ours against it, and is what to compare between machines. What costs users money comes first, overhead last.
Peers are as their registries ship them; a wait that a flag sets is set to its least. *cannot* says why a tool cannot do the work at all.
Task success, code quality and tokens saved cannot be measured without a model, and are not claimed.
Each section says on what machine and with which commit it was measured; a section that was not measured again stays as it was.

";

/// `page [--short]`; the short form is for looking at, and lies beside the rows.
pub fn run(rest: &[String]) -> Result<(), String> {
    let (form, path) = match rest {
        [] => (Form::Long, root().join("docs/measurements.md")),
        [word] if word == "--short" => (Form::Short, row::folder().join("page.short.md")),
        [other, ..] => return Err(format!("`{other}` is not --short")),
    };
    let before = fs::read_to_string(&path).unwrap_or_default();
    let page = page(|name| row::read(form, name), &names(form), &before);
    let page = page.ok_or("no rows of that form: run `cargo xtask bench` and the others first")?;
    let folder = path.with_file_name(PLOTS);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let plots = page.plots.into_iter();
    let plots = plots.map(|plot| (folder.join(plot.name), plot.svg));
    for (path, text) in plots.chain([(path, page.text)]) {
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// Where plots lie, beside the page.
const PLOTS: &str = "measurements";

/// The page and its plots.
struct Page {
    text: String,
    plots: Vec<Plot>,
}

/// A plot, as a file.
pub struct Plot {
    /// Its file's name.
    name: String,
    /// What is in it.
    svg: String,
}

/// A plot, and the words that put it on the page.
fn plot(name: &str, picture: &Picture, words: &str) -> (String, Plot) {
    let name = format!("{name}.svg");
    let plot = Plot {
        svg: svg(picture, Frame::Document),
        name,
    };
    (format!("![{words}]({PLOTS}/{})\n\n", plot.name), plot)
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

fn page(rows: impl Fn(&str) -> Vec<Value>, names: &[String], before: &str) -> Option<Page> {
    if names.iter().all(|name| rows(name).is_empty()) {
        return None;
    }
    let mut page = String::from(INTRO);
    let mut plots = Vec::new();
    match bars::in_short(&rows) {
        Some((body, plot)) => {
            page.push_str(&body);
            plots.push(plot);
        }
        None => page.push_str(&kept("In short", before)),
    }
    for section in &SECTIONS {
        let of_section: Vec<Value> = section.files.iter().flat_map(|file| rows(file)).collect();
        if of_section.is_empty() {
            page.push_str(&kept(section.title, before));
            continue;
        }
        let (title, how, about) = (section.title, section.how, about(&of_section));
        let _ = write!(page, "## {title}\n\n{how}\n\n{about}\n\n");
        let timed: Vec<plots::Times> = of_section.iter().filter_map(timed).collect();
        if !timed.is_empty() {
            let picture = plots::times(title, &timed);
            let words = format!("{title}: how the times below are spread");
            let name = title.to_lowercase().replace(' ', "-");
            let (link, plot) = plot(&name, &picture, &words);
            page.push_str(&link);
            plots.push(plot);
        }
        let parts = section.files.iter().map(|file| part(&rows(file)));
        page.extend(parts);
    }
    let known: BTreeSet<&str> = SECTIONS.iter().flat_map(|one| one.files).copied().collect();
    let others = names.iter().filter(|name| !known.contains(name.as_str()));
    let rest: String = others.map(|name| part(&rows(name))).collect();
    if !rest.is_empty() {
        let _ = write!(page, "## Others\n\n{rest}");
    }
    Some(Page { text: page, plots })
}

/// A section as it is on the page before, with what that page says about the machine.
fn kept(title: &str, before: &str) -> String {
    let heading = format!("## {title}\n");
    let Some((head, rest)) = before.split_once(&heading) else {
        return String::new();
    };
    let body = rest.split("\n## ").next().unwrap_or_default().trim();
    let machine = "Measured on ";
    // An older page says it once, at its top.
    let top = head.split("\n## ").next().unwrap_or_default();
    let about = top.lines().find(|line| line.starts_with(machine));
    let is_told = body.lines().any(|line| line.starts_with(machine));
    match about.filter(|_| !is_told) {
        Some(about) => format!("{heading}\n{about}\n\n{body}\n\n"),
        None => format!("{heading}\n{body}\n\n"),
    }
}

/// The times that a row kept, if it did.
fn timed(row: &Value) -> Option<plots::Times> {
    let list = |key: &str| -> Vec<f64> {
        let list = row["raw"][key].as_array().into_iter().flatten();
        list.filter_map(Value::as_f64).collect()
    };
    let (ours, floor) = (list("ours_ms"), list("floor_ms"));
    let bar = row["bar"].as_str().unwrap_or_default();
    let number = |words: &str| words.trim().parse::<f64>().ok();
    let bar = match bar.strip_prefix("ratio ") {
        Some(ratio) if !floor.is_empty() => {
            number(ratio).map(|ratio| ratio * stats::median(&floor))
        }
        // `max 550 ms`, `p50 20 ms`, `5 ms`.
        _ => bar
            .strip_suffix(" ms")
            .and_then(|bar| number(bar.rsplit(' ').next()?)),
    };
    let tool = row["raw"]["tool"].as_str();
    let name = match (tool, row["what"].as_str()) {
        (Some(tool), _) => format!(
            "{tool}: {}",
            row["raw"]["work"].as_str().unwrap_or_default()
        ),
        (None, what) => what.unwrap_or_default().to_owned(),
    };
    (!ours.is_empty()).then_some(plots::Times {
        name,
        ours,
        floor,
        bar,
    })
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
fn about(rows: &[Value]) -> String {
    let loads = rows.iter().filter_map(|row| row["load"].as_f64());
    let (least, most) = loads.fold((f64::INFINITY, 0.0_f64), |(least, most), load| {
        (least.min(load), most.max(load))
    });
    let commits = rows.iter().filter_map(|row| row["commit"].as_str());
    let commits: BTreeSet<&str> = commits.collect();
    let commits: Vec<&str> = commits.into_iter().collect();
    let count = |verdict: &str| rows.iter().filter(|row| row["verdict"] == verdict).count();
    format!(
        "Measured on {}; load average {least:.1} to {most:.1} as the measures began; commit {}. Of {} rows with a bar, {} meet it.{}",
        machine::describe(),
        commits.join(", "),
        count("met") + count("missed"),
        count("met"),
        peers(rows),
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
        false => format!(" Peers: {}.", packages.join(", ")),
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
        let page = page(stored, &names, "").unwrap().text;
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
        assert!(page.contains("Of 1 rows with a bar, 1 meet it"), "{page}");
        assert!(!page.contains("/tmp/"), "{page}");
    }

    #[test]
    fn times_are_plotted_with_the_bar_that_stands_in_their_row() {
        let row = |bar: &str, tool: Option<&str>| json!({"what": "SIGTERM", "bar": bar, "raw": {"ours_ms": [3.0, 5.0], "floor_ms": [2.0], "tool": tool, "work": "gap"}});
        let bar = |bar: &str| timed(&row(bar, None)).unwrap().bar;
        assert_eq!(bar("max 550 ms"), Some(550.0));
        assert_eq!(bar("p50 20 ms"), Some(20.0));
        assert_eq!(bar("ratio 1.5"), Some(3.0));
        assert_eq!(bar("–"), None);
        assert_eq!(
            timed(&row("–", Some("bash loop"))).unwrap().name,
            "bash loop: gap"
        );
        assert!(timed(&json!({"what": "x", "raw": {"lost": []}})).is_none());
        let page = page(
            |name| match name {
                "stop" => vec![row("max 550 ms", None)],
                _ => Vec::new(),
            },
            &["stop".to_owned()],
            "",
        );
        let page = page.unwrap();
        assert!(
            page.text.contains("](measurements/stopping.svg)"),
            "{}",
            page.text
        );
        assert_eq!(page.plots[0].name, "stopping.svg");
    }

    #[test]
    fn a_section_that_was_not_measured_again_stays_with_its_machine() {
        let before = "# Measurements\n\nMeasured on a laptop; commit 123.\n\n## Orphans\n\nEight shapes.\n\n| old |\n\n## Stopping\n\n| old stop |\n";
        let once = page(stored, &["stop".to_owned()], before).unwrap().text;
        assert!(
            once.contains(
                "## Orphans\n\nMeasured on a laptop; commit 123.\n\nEight shapes.\n\n| old |\n\n"
            ),
            "{once}"
        );
        assert!(!once.contains("old stop"), "{once}");
        let twice = page(stored, &["stop".to_owned()], &once).unwrap().text;
        assert_eq!(twice, once);
    }

    #[test]
    fn without_rows_there_is_no_page() {
        assert!(page(|_| Vec::new(), &[], "# Measurements").is_none());
    }
}
