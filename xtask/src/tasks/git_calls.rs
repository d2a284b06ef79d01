//! What a task costs in git: how many processes it takes to prepare, merge and land one that does nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

use super::kills::repository;
use crate::lab::{Form, Lab, Row, Rows, Trial, Trouble};

/// Names an earlier `descartes` that the long form is timed beside.
const EARLIER: &str = "DESCARTES_EARLIER_BIN";

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let (tasks, files) = lab.form.pick((40, 200), (300, 5_000));
    let what = format!("{tasks} tasks that do nothing in a repository of {files} files");
    let counted = one(lab, tasks, files, Count::Yes)?;
    let each = counted.calls as f64 / tasks as f64;
    let name = format!("{what}: git processes a task");
    let row = Row::at_most(lab.form, "git", name, (each, "processes"), 20.0);
    let mut rows = vec![row];
    // Counting takes time of its own.
    if lab.form == Form::Long {
        rows.push(beside_earlier(lab, tasks, files, &what)?);
    }
    Ok(rows)
}

/// The time a task takes, beside that of the earlier program where one is named.
fn beside_earlier(lab: &Lab, tasks: u64, files: usize, what: &str) -> Result<Row, Trouble> {
    let per_task = |lab: &Lab| {
        let timed = one(lab, tasks, files, Count::No)?;
        Ok::<f64, Trouble>(timed.seconds * 1000.0 / tasks as f64)
    };
    let ours = per_task(lab)?;
    let name = format!("{what}: time a task");
    let Some(earlier) = std::env::var_os(EARLIER).map(PathBuf::from) else {
        println!("no earlier program to compare with: {EARLIER} names one");
        return Ok(Row::at_most(lab.form, "git", name, (ours, "ms"), 0.0).shown());
    };
    let floor = per_task(&Lab {
        descartes: earlier,
        ..lab.clone()
    })?;
    let floor = ("an earlier version", &[floor][..]);
    Ok(Row::ratio(lab.form, "git", name, &[ours], floor, 0.5))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    Yes,
    No,
}

struct Cost {
    calls: usize,
    seconds: f64,
}

fn one(lab: &Lab, tasks: u64, files: usize, count: Count) -> Result<Cost, Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, files, tasks, |_| None)?;
    let script = trial.world.script("echo '<promise>COMPLETE</promise>'");
    let agent = shell_words::join(["sh", &script.to_string_lossy()]);
    let start = ["loop", "start", "--scud-tag", "big", "--command", &agent];
    let mut command = trial.descartes(&start);
    command.args(["--parallel", "4", "--verify", "true"]);
    command.args(["--max-iterations", &(2 * tasks).to_string()]);
    let log = trial.world.root().join("git-calls");
    if count == Count::Yes {
        command.env("PATH", counting_path(&trial, &log)?);
    }
    let began = Instant::now();
    let code = trial
        .spawn(command)?
        .code_within(std::time::Duration::from_secs(900))?;
    let seconds = began.elapsed().as_secs_f64();
    if code != 0 {
        return Err(format!("the loop ended with {code}"));
    }
    let calls = std::fs::read_to_string(&log)
        .unwrap_or_default()
        .lines()
        .count();
    Ok(Cost { calls, seconds })
}

/// A PATH on which each start of git is written down.
fn counting_path(trial: &Trial<'_>, log: &std::path::Path) -> Result<String, Trouble> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).map(|folder| folder.join("git"));
    let git = folders
        .find(|git| git.is_file())
        .ok_or("git is not installed")?;
    let folder = trial.world.root().join("counting");
    let file = folder.join("git");
    let said = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(&folder).map_err(said)?;
    let text = format!(
        "#!/bin/sh\necho x >> '{}'\nexec '{}' \"$@\"\n",
        log.display(),
        git.display()
    );
    std::fs::write(&file, text).map_err(said)?;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&file, mode).map_err(said)?;
    Ok(format!("{}:{path}", folder.display()))
}
