//! What measures and campaigns share: the programs under test, a loop in a world of its own,
//! numbers out of `/proc`, and rows that are judged against a bar.

pub mod build;
pub mod chance;
pub mod kept;
pub mod machine;
pub mod proc;
pub mod row;
pub mod seen;
pub mod stats;
pub mod trial;

use std::path::PathBuf;

pub use row::{Row, Verdict};
pub use trial::Trial;

/// How much is done, and how strictly it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For every change: small numbers, and twofold slack on ratios.
    Short,
    /// The whole of it, judged by the bars as they are.
    Long,
}

impl Form {
    /// One of two values.
    pub fn pick<T>(self, short: T, long: T) -> T {
        match self {
            Self::Short => short,
            Self::Long => long,
        }
    }

    /// By how much a bar may be missed.
    pub fn slack(self) -> f64 {
        self.pick(2.0, 1.0)
    }

    /// Its name in rows.
    pub fn name(self) -> &'static str {
        self.pick("short", "long")
    }
}

/// The programs under test and the form of the run.
#[derive(Debug, Clone)]
pub struct Lab {
    /// Short or long.
    pub form: Form,
    /// `descartes`.
    pub descartes: PathBuf,
    /// The same with fault points.
    pub faulty: Option<PathBuf>,
    /// The scripted agent.
    pub agent: PathBuf,
    /// The desktop window, where it is asked for.
    pub window: Option<PathBuf>,
    /// The seed of everything random.
    pub seed: u64,
}

/// Why a measure could not be taken.
pub type Trouble = String;

/// The rows of one measure.
pub type Rows = Result<Vec<Row>, Trouble>;

/// A measure or campaign: its name, what it is about, and how it is taken.
pub struct Measure {
    /// As typed.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// Takes it.
    pub take: fn(&Lab) -> Rows,
}

/// Reads `[--short] [NAME…]`, before anything is built.
pub fn wanted(rest: &[String], measures: &[Measure]) -> Result<(Form, Vec<String>), String> {
    let mut form = Form::Long;
    let mut wanted = Vec::new();
    for word in rest {
        if word == "--short" {
            form = Form::Short;
        } else if measures.iter().any(|measure| measure.name == word) {
            wanted.push(word.clone());
        } else {
            let known: Vec<&str> = measures.iter().map(|measure| measure.name).collect();
            return Err(format!(
                "`{word}` is neither --short nor one of: {}",
                known.join(", ")
            ));
        }
    }
    Ok((form, wanted))
}

/// Takes those that were asked for, prints and keeps their rows, and tells how many missed.
///
/// The short form stands between a change and its landing, on machines that are busy with other
/// work: there a miss must be seen twice with the same seed, and one seen once is told at the end.
/// In the long form lost is lost.
pub fn take(lab: &Lab, measures: &[Measure], wanted: &[String]) -> Result<(), String> {
    println!(
        "seed {} (DESCARTES_SEED={} does the same again)",
        lab.seed, lab.seed
    );
    let (mut missed, mut seen_once) = (Vec::new(), Vec::new());
    for measure in measures {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == measure.name) {
            continue;
        }
        println!("\n{}: {}", measure.name, measure.about);
        let mut misses = take_one(lab, measure)?;
        if !misses.is_empty() && lab.form == Form::Short {
            println!("  missed, and taken once more:");
            let first = std::mem::replace(&mut misses, take_one(lab, measure)?);
            if misses.is_empty() {
                seen_once.extend(first);
            }
        }
        missed.extend(misses);
    }
    if !seen_once.is_empty() {
        println!(
            "\nmissed the first time and not the second, which wants a look:\n  {}",
            seen_once.join("\n  ")
        );
    }
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} missed\n  {}",
        missed.len(),
        missed.join("\n  ")
    ))
}

/// Takes one; what missed, with its reason.
fn take_one(lab: &Lab, measure: &Measure) -> Result<Vec<String>, String> {
    let begun = std::time::Instant::now();
    // Before it begins: what it does itself is no excuse.
    let load = machine::load();
    let rows = match (measure.take)(lab) {
        Ok(rows) => rows,
        Err(trouble) => {
            println!("  broken: {trouble}");
            return Ok(vec![format!("{}: {trouble}", measure.name)]);
        }
    };
    let mut missed = Vec::new();
    for row in &rows {
        row.print();
        if let Verdict::Missed(why) = &row.verdict {
            missed.push(format!("{}: {}: {why}", measure.name, row.what));
        }
    }
    row::keep(lab.form, measure.name, &rows, load)?;
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());
    Ok(missed)
}
