//! M9: a disk that is really full, a folder that cannot be written, agents that clean up too much.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::cases::{self, CANNOT, Case};
use super::recovery::{broke, resume, wrong};
use crate::lab::{Lab, Rows, Trial, Trouble, seen};

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let rounds = lab.form.pick(1, 5);
    let cases: [(&str, Case); 6] = [
        ("agent runs `git clean -fdx` in every iteration", git_clean),
        (
            "agent runs `rm -rf .descartes` in every iteration",
            rm_project_folder,
        ),
        ("agent removes the loop's own state while it runs", rm_state),
        ("disk full (2 MB): logs and journal on it", disk_full),
        ("disk full from the start", disk_full_at_start),
        ("folder of the state file turns read-only", read_only),
    ];
    Ok(cases::rows(lab, "M9", rounds, &cases))
}

/// Three iterations that each destroy something, and then the promise.
fn destroyed(lab: &Lab, deed: &str) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    let script = format!("{deed}\n@1-3 print working\n@4- promise");
    let finished = trial.run(trial.start(&script, &[]))?;
    if let Some(what) = broke(&finished) {
        return Err(what);
    }
    let journal = trial.journal();
    let done = seen::iterations(&journal, "iteration_finished");
    if finished.code() != Some(0) || done != [1, 2, 3, 4] {
        return Err(format!("finished iterations {done:?}; {finished}"));
    }
    wrong(&trial, &[]).map_or(Ok(()), Err)
}

fn git_clean(lab: &Lab) -> Result<(), Trouble> {
    destroyed(lab, "git-clean")
}

fn rm_project_folder(lab: &Lab) -> Result<(), Trouble> {
    destroyed(lab, "rm .descartes")
}

/// The journal is made anew from what is held, or the loop stops with a word.
fn rm_state(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let state = trial.world.state();
    let script = format!(
        "@2 rm {}\n@1-3 print working\n@4- promise",
        state.join("loops").display()
    );
    let finished = trial.run(trial.start(&script, &[]))?;
    if let Some(what) = broke(&finished) {
        return Err(what);
    }
    let told = trial.state()["iteration"].as_u64().unwrap_or(0);
    match finished.code() {
        Some(0) if told == 4 => Ok(()),
        Some(1) if told >= 1 && finished.stderr().contains("journal") => Ok(()),
        _ => Err(format!(
            "the state file tells {told} iterations; {finished}"
        )),
    }
}

/// A small disk of its own, gone when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Result<Self, Trouble> {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=2m,mode=0700", "descartes-faults"])
            .arg(at);
        let output = mount
            .output()
            .map_err(|error| format!("{CANNOT}: {error}"))?;
        if output.status.success() {
            return Ok(Self(at.to_owned()));
        }
        let words = String::from_utf8_lossy(&output.stderr);
        Err(format!("{CANNOT}: {}", words.trim()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a guard may still be on its way out.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// The agent fills the disk on which its log and journal lie; room is made; the loop goes on.
fn disk_full(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let disk = Disk::mount(&trial.world.state())?;
    let fill = disk.0.join("fill");
    let script = format!(
        "@1 print fine\n@2 sh head -c 9M /dev/zero > {} 2>/dev/null || true\n   flood 5M lines\n@3- promise",
        fill.display()
    );
    let finished = trial.run(trial.start(&script, &[]))?;
    if let Some(what) = broke(&finished) {
        return Err(what);
    }
    let before = trial.journal_bytes();
    let done = seen::iterations(&trial.journal(), "iteration_finished");
    if !done.starts_with(&[1]) {
        return Err(format!("finished iterations {done:?}; {finished}"));
    }
    if finished.code() == Some(0) {
        return wrong(&trial, &[]).map_or(Ok(()), Err);
    }
    // Room again.
    std::fs::remove_file(&fill).map_err(|error| error.to_string())?;
    let resumed = resume(&trial, &[])?;
    if resumed.code() != Some(0) {
        return Err(format!(
            "it does not go on when there is room; {finished}; {resumed}"
        ));
    }
    wrong(&trial, &before).map_or(Ok(()), Err)
}

fn disk_full_at_start(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let disk = Disk::mount(&trial.world.state())?;
    let fill = disk.0.join("fill");
    let mut head = Command::new("sh");
    head.args(["-c", "head -c 9M /dev/zero > \"$1\" 2>/dev/null", "sh"])
        .arg(&fill);
    let _ = head.status();
    let finished = trial.run(trial.start("promise", &[]))?;
    if let Some(what) = broke(&finished) {
        return Err(what);
    }
    if finished.code() == Some(0) {
        return Err("it said done, and could write nothing down".to_owned());
    }
    std::fs::remove_file(&fill).map_err(|error| error.to_string())?;
    let again = trial.run(trial.start("promise", &[]))?;
    if again.code() == Some(0) {
        Ok(())
    } else {
        Err(format!("no way on; {finished}; {again}"))
    }
}

/// A folder in which nothing can be made or renamed, until this is dropped.
struct Frozen(PathBuf);

impl Frozen {
    /// Root passes over file modes, but not over this.
    fn freeze(folder: &Path) -> Result<Self, Trouble> {
        let output = Command::new("chattr").arg("+i").arg(folder).output();
        let output = output.map_err(|error| format!("{CANNOT}: {error}"))?;
        if output.status.success() {
            return Ok(Self(folder.to_owned()));
        }
        let words = String::from_utf8_lossy(&output.stderr);
        Err(format!("{CANNOT}: {}", words.trim()))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(&self.0).status();
    }
}

/// The folder of the state file cannot be written any more: the truth lies elsewhere, and the
/// loop goes on, or stops with a word.
fn read_only(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let script = "@2 touch up\n   wait-file go\n@* print working\n@4- promise";
    let mut host = trial.spawn(trial.start(script, &[]))?;
    trial.wait_for("up")?;
    let frozen = Frozen::freeze(&trial.path(".descartes"))?;
    trial.world.write("go", "");
    let code = host.code()?;
    drop(frozen);
    let before = trial.journal_bytes();
    let done = seen::iterations(&trial.journal(), "iteration_finished");
    if !done.starts_with(&[1, 2]) {
        return Err(format!("exit code {code}, finished iterations {done:?}"));
    }
    if code == 0 {
        return Ok(());
    }
    let resumed = resume(&trial, &[])?;
    if resumed.code() != Some(0) {
        return Err(format!("exit code {code}, and no way on; {resumed}"));
    }
    wrong(&trial, &before).map_or(Ok(()), Err)
}
