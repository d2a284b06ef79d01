//! Taking a loop up after an accident, and what must hold then.

use std::time::{Duration, Instant};

use crate::lab::trial::Ended;

use crate::lab::{Trial, Trouble, seen};

/// Exit code of a refusal; a guard that still sweeps holds the lock and is one.
const REFUSED: i32 = 65;

/// How long a guard may sweep before a resume must be possible.
const SWEEP: Duration = Duration::from_secs(10);

/// Resumes until it is not held any more.
pub fn resume(trial: &Trial<'_>, words: &[&str]) -> Result<Ended, Trouble> {
    let end = Instant::now() + trial.lab.form.deadline(SWEEP);
    loop {
        let words = [&["loop", "resume"], words].concat();
        let finished = trial.run(trial.descartes(&words))?;
        let held = finished.code() == Some(REFUSED) && finished.stderr().contains("held by");
        if !held || Instant::now() > end {
            return Ok(finished);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// True when a loop exists: its first record is on disk.
pub fn begun(trial: &Trial<'_>) -> bool {
    !trial.events("loop_created").is_empty()
}

/// What is wrong after an accident and a resume; `before` is the journal between the two.
pub fn wrong(trial: &Trial<'_>, before: &[u8]) -> Option<String> {
    let journal = trial.journal();
    let finished = seen::iterations(&journal, "iteration_finished").len() as u64;
    let interrupted = seen::iterations(&journal, "iteration_interrupted").len() as u64;
    let told = trial.state()["iteration"].as_u64();
    seen::wrong(before, &trial.journal_bytes(), &journal)
        .or_else(|| seen::open_ends(&journal))
        .or_else(|| {
            let loops = trial.journals().len();
            (loops > 1).then(|| format!("{loops} loops where one was begun"))
        })
        .or_else(|| {
            let right = told == Some(finished + interrupted) || told == Some(finished);
            (!right).then(|| {
                format!("the state file tells {told:?} iterations, the journal {finished} finished and {interrupted} interrupted")
            })
        })
}

/// A process that ended in a way no process of ours may end.
pub fn broke(finished: &Ended) -> Option<String> {
    let panicked = finished.stderr().contains("panicked") || finished.code() == Some(101);
    let silent = finished.code().is_some_and(|code| code != 0)
        && finished.stderr().trim().is_empty()
        && finished.stdout().trim().is_empty();
    if panicked {
        return Some(format!("a panic; {finished}"));
    }
    silent.then(|| format!("it failed without a word; {finished}"))
}
