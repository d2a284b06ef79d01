//! A row: what was measured, beside its floor and its bar.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Form, machine, stats};
use crate::shell::root;

/// How a row stands against its bar.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Within it.
    Met,
    /// Not within it, and why.
    Missed(String),
    /// Not within it in the short form, which reports it and does not fail.
    Over(String),
    /// Shown without a bar.
    Shown,
    /// Could not be taken here, and why.
    Cannot(String),
}

/// One line of a table.
#[derive(Debug, Clone)]
pub struct Row {
    /// `M6`.
    pub measure: &'static str,
    /// What was done.
    pub what: String,
    /// How often.
    pub tried: u64,
    /// What came of it, for people.
    pub ours: String,
    /// The floor beside it, for people.
    pub floor: String,
    /// Ours against the floor.
    pub ratio: Option<f64>,
    /// The bar, for people.
    pub bar: String,
    /// How it stands.
    pub verdict: Verdict,
    /// Everything that was seen.
    pub raw: Value,
}

impl Row {
    /// A row that counts: of so many, none may be lost.
    pub fn count(
        measure: &'static str,
        what: impl Into<String>,
        tried: u64,
        lost: &[String],
    ) -> Self {
        let verdict = match lost.first() {
            None if tried == 0 => Verdict::Missed("nothing was tried".to_owned()),
            None => Verdict::Met,
            Some(first) => Verdict::Missed(format!("{} of {tried}: {first}", lost.len())),
        };
        Self {
            measure,
            what: what.into(),
            tried,
            ours: format!("{} lost", lost.len()),
            floor: "0".to_owned(),
            ratio: None,
            bar: "0 lost".to_owned(),
            verdict,
            raw: json!({ "lost": lost }),
        }
    }

    /// A row of times in milliseconds whose largest must lie within the bar; the floor is what
    /// the same costs without us.
    pub fn times(
        form: Form,
        measure: &'static str,
        what: impl Into<String>,
        ours: &[f64],
        floor: (&str, &[f64]),
        bar_ms: f64,
    ) -> Self {
        let worst = stats::max(ours);
        let share = worst / bar_ms;
        let verdict = if ours.is_empty() {
            Verdict::Missed("nothing was measured".to_owned())
        } else {
            form.judge(share <= 1.0, || {
                format!("{worst:.1} ms is {share:.2} of the bar")
            })
        };
        Self {
            measure,
            what: what.into(),
            tried: ours.len() as u64,
            ours: format!("p50 {:.1} ms, max {worst:.1} ms", stats::median(ours)),
            floor: format!("{} {:.1} ms", floor.0, stats::median(floor.1)),
            ratio: Some(stats::median(ours) / stats::median(floor.1)),
            bar: format!("max {bar_ms:.0} ms"),
            verdict,
            raw: json!({ "ours_ms": ours, "floor_ms": floor.1 }),
        }
    }

    /// A row that is a ratio of medians, at most so much.
    pub fn ratio(
        form: Form,
        measure: &'static str,
        what: impl Into<String>,
        ours: &[f64],
        floor: (&str, &[f64]),
        at_most: f64,
    ) -> Self {
        let (mine, least) = (stats::median(ours), stats::median(floor.1));
        let ratio = mine / least;
        let verdict = if !ratio.is_finite() {
            Verdict::Missed("nothing was measured".to_owned())
        } else {
            form.judge(ratio <= at_most, || format!("ratio {ratio:.2}"))
        };
        Self {
            measure,
            what: what.into(),
            tried: ours.len() as u64,
            ours: format!(
                "p50 {mine:.2} ms, p99 {:.2} ms",
                stats::quantile(ours, 0.99)
            ),
            floor: format!("{} {least:.2} ms", floor.0),
            ratio: Some(ratio),
            bar: format!("ratio {at_most}"),
            verdict,
            raw: json!({ "ours_ms": ours, "floor_ms": floor.1 }),
        }
    }

    /// A row of one number that may be at most so much.
    pub fn at_most(
        form: Form,
        measure: &'static str,
        what: impl Into<String>,
        (value, unit): (f64, &str),
        most: f64,
    ) -> Self {
        let verdict = form.judge(value <= most, || format!("{value:.2} {unit}"));
        Self {
            measure,
            what: what.into(),
            tried: 1,
            ours: format!("{value:.2} {unit}"),
            floor: "0".to_owned(),
            ratio: None,
            bar: format!("{most} {unit}"),
            verdict,
            raw: json!({ "value": value, "unit": unit }),
        }
    }

    /// A row that could not be taken here.
    pub fn cannot(measure: &'static str, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            measure,
            what: what.into(),
            tried: 0,
            ours: "–".to_owned(),
            floor: "–".to_owned(),
            ratio: None,
            bar: "–".to_owned(),
            verdict: Verdict::Cannot(why.into()),
            raw: Value::Null,
        }
    }

    /// The same without a verdict.
    pub fn shown(mut self) -> Self {
        self.bar = "–".to_owned();
        self.verdict = Verdict::Shown;
        self
    }

    /// On the terminal.
    pub fn print(&self) {
        let ratio = self
            .ratio
            .map_or_else(String::new, |ratio| format!(" = {ratio:.2}×"));
        let verdict = match &self.verdict {
            Verdict::Met => "ok".to_owned(),
            Verdict::Missed(why) => format!("MISSED: {why}"),
            Verdict::Over(why) => format!("over, reported: {why}"),
            Verdict::Shown => "shown".to_owned(),
            Verdict::Cannot(why) => format!("not measured: {why}"),
        };
        println!(
            "  {} {} ×{}: {} | floor {}{ratio} | bar {} | {verdict}",
            self.measure, self.what, self.tried, self.ours, self.floor, self.bar
        );
    }

    /// As a line of raw data; `load` is what the machine had to do besides.
    pub fn json(&self, form: Form, load: f64) -> Value {
        let (verdict, why) = match &self.verdict {
            Verdict::Met => ("met", ""),
            Verdict::Missed(why) => ("missed", why.as_str()),
            Verdict::Over(why) => ("over", why.as_str()),
            Verdict::Shown => ("shown", ""),
            Verdict::Cannot(why) => ("not measured", why.as_str()),
        };
        json!({
            "measure": self.measure, "what": self.what, "form": form.name(), "tried": self.tried,
            "ours": self.ours, "floor": self.floor, "ratio": self.ratio, "bar": self.bar,
            "verdict": verdict, "why": why, "load": load, "commit": machine::commit(),
            "raw": self.raw,
        })
    }
}

fn file(form: Form, name: &str) -> PathBuf {
    folder().join(format!("{name}.{}.jsonl", form.name()))
}

/// Where all raw rows are.
pub fn folder() -> PathBuf {
    root().join("target/measurements")
}

/// Writes the rows of a measure, in place of those of its last run.
pub fn keep(form: Form, name: &str, rows: &[Row], load: f64) -> Result<(), String> {
    let lines: Vec<Value> = rows.iter().map(|row| row.json(form, load)).collect();
    write(form, name, &lines)
}

/// Writes rows in place of those about the same, and leaves the others as they are: for what is
/// often done in parts.
pub fn keep_beside(form: Form, name: &str, rows: &[Row], load: f64) -> Result<(), String> {
    let is_new = |old: &Value| rows.iter().any(|row| old["what"] == *row.what);
    let mut lines = read(form, name);
    lines.retain(|old| !is_new(old));
    lines.extend(rows.iter().map(|row| row.json(form, load)));
    write(form, name, &lines)
}

fn write(form: Form, name: &str, lines: &[Value]) -> Result<(), String> {
    let path = file(form, name);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::create_dir_all(folder())
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// The raw rows of the last run of a measure; none where there was none.
pub fn read(form: Form, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(file(form, name)).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_reports_times_and_fails_on_what_was_lost() {
        let slow = |form| Row::times(form, "M6", "stop", &[9.0], ("floor", &[1.0]), 5.0).verdict;
        assert!(matches!(slow(Form::Short), Verdict::Over(_)));
        assert!(matches!(slow(Form::Long), Verdict::Missed(_)));
        let none = Row::times(Form::Short, "M6", "stop", &[], ("floor", &[]), 5.0);
        assert!(matches!(none.verdict, Verdict::Missed(_)));
        let lost = Row::count("M7", "orphans", 3, &["one".to_owned()]);
        assert!(matches!(lost.verdict, Verdict::Missed(_)));
    }
}
