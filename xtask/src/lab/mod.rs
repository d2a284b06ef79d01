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
use std::time::Duration;

pub use row::{Row, Verdict};
pub use trial::Trial;

/// How much is done, and what is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For every change, on machines that are busy with other work: small numbers. What was lost,
    /// wrong or left over fails; times, processor and memory are reported beside their bars.
    Short,
    /// The whole of it on a quiet machine, everything judged.
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

    /// The verdict on a time, or on anything else that a busy machine makes larger.
    pub fn judge(self, within: bool, why: impl FnOnce() -> String) -> Verdict {
        match (within, self) {
            (true, _) => Verdict::Met,
            (false, Self::Short) => Verdict::Over(why()),
            (false, Self::Long) => Verdict::Missed(why()),
        }
    }

    /// How long what must be gone or must have ended by `bar` is waited for: in the short form what is
    /// late is told from what stays.
    pub fn deadline(self, bar: Duration) -> Duration {
        self.pick(bar * 10, bar)
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
    /// The sandbox that loops are started in, where one is tried.
    pub sandbox: Option<&'static str>,
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

/// Takes those that were asked for, prints and keeps their rows, and tells how many missed. Nothing
/// is taken twice: lost is lost.
pub fn take(lab: &Lab, measures: &[Measure], wanted: &[String]) -> Result<(), String> {
    println!(
        "seed {} (DESCARTES_SEED={} does the same again)",
        lab.seed, lab.seed
    );
    let (mut missed, mut over) = (Vec::new(), Vec::new());
    for measure in measures {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == measure.name) {
            continue;
        }
        println!("\n{}: {}", measure.name, measure.about);
        take_one(lab, measure, &mut missed, &mut over)?;
    }
    if !over.is_empty() {
        println!(
            "\nover the bar, which the long form judges:\n  {}",
            over.join("\n  ")
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

/// Takes one; adds what missed or was over its bar, with the reason.
fn take_one(
    lab: &Lab,
    measure: &Measure,
    missed: &mut Vec<String>,
    over: &mut Vec<String>,
) -> Result<(), String> {
    let begun = std::time::Instant::now();
    // Before it begins: what it does itself is no excuse.
    let load = machine::load();
    let rows = match (measure.take)(lab) {
        Ok(rows) => rows,
        Err(trouble) => {
            println!("  broken: {trouble}");
            missed.push(format!("{}: {trouble}", measure.name));
            return Ok(());
        }
    };
    for row in &rows {
        row.print();
        match &row.verdict {
            Verdict::Missed(why) => missed.push(format!("{}: {}: {why}", measure.name, row.what)),
            Verdict::Over(why) => over.push(format!("{}: {}: {why}", measure.name, row.what)),
            Verdict::Met | Verdict::Shown | Verdict::Cannot(_) => {}
        }
    }
    row::keep(lab.form, measure.name, &rows, load)?;
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());
    Ok(())
}
