//! M9: state file and journal cut short, and with single bits turned, then resumed.
//!
//! What may come of it: the loop goes on and knows every iteration that the undamaged rest
//! tells of, or it refuses with words that name the trouble and
//! the way on. A bit that makes another valid file is taken as the person's edit, and said. Never a panic, never a silent start at zero.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::lab::trial::Ended;

use super::recovery::broke;
use crate::lab::chance::Chance;
use crate::lab::{Lab, Row, Rows, Trial, Trouble, seen};

/// Iterations that are finished before the damage.
const DONE: u64 = 2;

#[derive(Debug, Clone, Copy)]
enum Damage {
    Cut(usize),
    Flip(usize, u8),
}

impl Damage {
    fn apply(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Cut(at) => bytes[..at.min(bytes.len())].to_vec(),
            Self::Flip(at, bit) => {
                let mut bytes = bytes.to_vec();
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
                bytes
            }
        }
    }
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let (state, journal) = lengths(lab)?;
    let mut chance = Chance::new(lab.seed);
    let cuts = |length: usize, steps: usize| -> Vec<Damage> {
        (0..length)
            .step_by((length / steps).max(1))
            .map(Damage::Cut)
            .collect()
    };
    let mut flips = |length: usize, count: usize| -> Vec<Damage> {
        let one = |_| Damage::Flip(chance.below(length as u64) as usize, chance.below(8) as u8);
        (0..count).map(one).collect()
    };
    let few = lab.form.pick(24, usize::MAX / 2);
    let many = lab.form.pick(24, 2000);
    Ok(vec![
        campaign(lab, "state file cut short", File::State, &cuts(state, few)),
        campaign(
            lab,
            "state file with a bit turned",
            File::State,
            &flips(state, many),
        ),
        campaign(lab, "journal cut short", File::Journal, &cuts(journal, few)),
        campaign(
            lab,
            "journal with a bit turned",
            File::Journal,
            &flips(journal, many),
        ),
    ])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum File {
    State,
    Journal,
}

fn campaign(lab: &Lab, what: &str, file: File, all: &[Damage]) -> Row {
    let next = AtomicUsize::new(0);
    let tally = Mutex::new((0, 0, Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // One interrupted loop, put back after each damage.
                let Ok(patient) = Patient::new(lab) else {
                    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                    return tally
                        .2
                        .push("the loop to be damaged could not be made".to_owned());
                };
                while let Some(damage) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = patient.suffer(file, *damage);
                    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                    match result {
                        Ok(Fate::WentOn) => tally.0 += 1,
                        Ok(Fate::Refused) => tally.1 += 1,
                        Err(trouble) => tally.2.push(format!("{damage:?}: {trouble}")),
                    }
                }
            });
        }
    });
    let (went_on, refused, lost) = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut row = Row::count("M9", what, all.len() as u64, &lost);
    row.ours = format!(
        "{} lost; {went_on} went on, {refused} refused with a reason",
        lost.len()
    );
    row
}

enum Fate {
    WentOn,
    Refused,
}

fn lengths(lab: &Lab) -> Result<(usize, usize), Trouble> {
    let patient = Patient::new(lab)?;
    Ok((patient.state.len(), patient.journal.len()))
}

/// An interrupted loop with two finished iterations, and copies of all it wrote.
struct Patient<'a> {
    trial: Trial<'a>,
    journal_path: PathBuf,
    journal: Vec<u8>,
    state: Vec<u8>,
    kept: PathBuf,
}

impl<'a> Patient<'a> {
    fn new(lab: &'a Lab) -> Result<Self, Trouble> {
        let trial = Trial::new(lab);
        let limit = DONE.to_string();
        let script = "if-file go promise\nprint working";
        let finished = trial.run(trial.start(script, &["--max-iterations", &limit]))?;
        if finished.code() != Some(2) {
            return Err(finished.to_string());
        }
        trial.world.write("go", "");
        let journal_path = trial.journals().into_iter().next().ok_or("no journal")?;
        let said = |error: std::io::Error| error.to_string();
        let kept = trial.world.root().join("kept");
        copy_folder(&trial.world.state(), &kept.join("state")).map_err(said)?;
        copy_folder(&trial.path(".descartes"), &kept.join("project")).map_err(said)?;
        let journal = fs::read(&journal_path).map_err(said)?;
        let state = fs::read(trial.state_file()).map_err(said)?;
        Ok(Self {
            trial,
            journal_path,
            journal,
            state,
            kept,
        })
    }

    fn put_back(&self) -> std::io::Result<()> {
        for (kept, place) in [
            ("state", self.trial.world.state()),
            ("project", self.trial.path(".descartes")),
        ] {
            fs::remove_dir_all(&place)?;
            copy_folder(&self.kept.join(kept), &place)?;
        }
        Ok(())
    }

    fn suffer(&self, file: File, damage: Damage) -> Result<Fate, Trouble> {
        let said = |error: std::io::Error| error.to_string();
        self.put_back().map_err(said)?;
        match file {
            File::State => fs::write(self.trial.state_file(), damage.apply(&self.state)),
            File::Journal => fs::write(&self.journal_path, damage.apply(&self.journal)),
        }
        .map_err(said)?;
        let words = ["loop", "resume", "--max-iterations", "20"];
        let finished = self.trial.run(self.trial.descartes(&words))?;
        self.judge(file, &finished)
    }

    fn judge(&self, file: File, finished: &Ended) -> Result<Fate, Trouble> {
        if let Some(what) = broke(finished) {
            return Err(what);
        }
        let words = finished.stderr();
        let names = words.contains("error:") && (words.contains("hint:") || words.contains('/'));
        match finished.code() {
            Some(1 | 64 | 65) if names => Ok(Fate::Refused),
            // The altered wish may well be another end: a promise that never comes, a limit.
            Some(1..) if words.contains("edited by hand") => Ok(Fate::WentOn),
            Some(0) => self
                .all_known(file)
                .map_or(Ok(Fate::WentOn), |what| Err(format!("{what}; {finished}"))),
            _ => Err(format!("neither on nor refused; {finished}")),
        }
    }

    /// The journal tells of everything if it is whole; else the state file does.
    fn all_known(&self, file: File) -> Option<String> {
        let journal = self.trial.journal();
        let told = self.trial.state()["iteration"].as_u64().unwrap_or(0);
        let finished = seen::iterations(&journal, "iteration_finished");
        if file == File::State && !self.trial.journal_bytes().starts_with(&self.journal) {
            return Some("the journal was changed".to_owned());
        }
        if finished.last().is_none_or(|last| *last <= DONE) {
            return Some(format!("the new iteration has an old number: {finished:?}"));
        }
        (told <= DONE).then(|| format!("the state file tells {told} iterations"))
    }
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}
