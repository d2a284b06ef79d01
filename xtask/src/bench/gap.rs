//! M1: the gap between the end of one agent and the start of the next, by the agents' own stamps.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use descartes_testkit::stamp;

use crate::lab::stats::{median, ms};
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

/// Iterations between two changes of the tool: each has its turn in quiet and in busy moments.
pub const TURN: u64 = 25;

/// Files of the repository in which progress is measured.
const FILES: u32 = 5000;

/// The loop that everybody writes first, with a state that survives a power cut.
const BASH: &str = r#"for ((i = 0; i < N; i++)); do
  "$AGENT" go | tee out.txt
  grep -qF '<promise>COMPLETE</promise>' out.txt && break
  echo "$i" >> state.txt
  sync -d state.txt
done"#;

#[derive(Default)]
struct Gaps {
    spawn: Vec<f64>,
    bash: Vec<f64>,
    plain: Vec<f64>,
    repo: Vec<f64>,
    repo_floor: Vec<f64>,
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let turns = lab.form.pick(50, 200) / TURN;
    let repo = repository(lab)?;
    let mut gaps = Gaps::default();
    for turn in 0..turns {
        // There and back again, so that no tool always comes after the same one.
        if turn % 2 == 0 {
            bare_spawn(lab, &mut gaps)?;
            gaps.plain.extend(descartes(&Trial::new(lab), &[])?);
            bash(lab, &mut gaps)?;
            in_repository(&repo, &mut gaps)?;
        } else {
            in_repository(&repo, &mut gaps)?;
            bash(lab, &mut gaps)?;
            gaps.plain.extend(descartes(&Trial::new(lab), &[])?);
            bare_spawn(lab, &mut gaps)?;
        }
    }
    Ok(rows(lab, &gaps))
}

fn rows(lab: &Lab, gaps: &Gaps) -> Vec<Row> {
    let form = lab.form;
    let bash = "plain bash loop with tee, grep and `sync -d`";
    vec![
        Row::ratio(
            form,
            "M1",
            "gap in a plain folder, journal durable",
            &gaps.plain,
            (bash, &gaps.bash),
            1.0,
        ),
        Row::ratio(
            form,
            "M1",
            format!("gap in a git repository of {FILES} files, progress measured"),
            &gaps.repo,
            ("the same and one `git status`", &gaps.repo_floor),
            1.0,
        ),
        Row::ratio(
            form,
            "M1",
            bash,
            &gaps.bash,
            ("spawn and one durable append", &gaps.spawn),
            1.0,
        )
        .shown(),
    ]
}

fn stamps(folder: &Path) -> Vec<f64> {
    let path = folder.join("stamps");
    let gaps = stamp::gaps_ns(&stamp::read(&path));
    let _ = fs::remove_file(path);
    gaps.into_iter().map(ms).collect()
}

/// The stamps lie outside the work tree: they are ours, not the agent's work.
pub fn descartes(trial: &Trial<'_>, flags: &[&str]) -> Result<Vec<f64>, Trouble> {
    let root = trial.world.root();
    let script = format!(
        "SCRIPTED_AGENT=print working;;stamp {}/stamps",
        root.display()
    );
    let agent = trial.lab.agent.to_string_lossy();
    let count = TURN.to_string();
    let words = [
        "loop",
        "start",
        "--command",
        &agent,
        "--env",
        &script,
        "--prompt",
        "go",
        "--force",
        "--max-iterations",
        &count,
    ];
    let finished = trial.run(trial.descartes(&[&words, flags].concat()))?;
    if finished.code() != Some(2) {
        return Err(format!("the loop did not run to its limit; {finished}"));
    }
    Ok(stamps(root))
}

fn in_repository(trial: &Trial<'_>, gaps: &mut Gaps) -> Result<(), Trouble> {
    gaps.repo
        .extend(descartes(trial, &["--stall-after", "1000"])?);
    let mut status = Vec::new();
    for _ in 0..5 {
        let since = Instant::now();
        trial.world.git(["status", "--porcelain"]);
        status.push(since.elapsed().as_secs_f64() * 1e3);
    }
    let status = median(&status);
    let latest = gaps.bash.iter().rev().take(24).map(|gap| gap + status);
    let latest: Vec<f64> = latest.collect();
    gaps.repo_floor.extend(latest);
    Ok(())
}

fn repository(lab: &Lab) -> Result<Trial<'_>, Trouble> {
    let trial = Trial::new(lab);
    for number in 0..FILES {
        trial.world.write(
            format!("src/{}/{number}.txt", number % 50),
            format!("file {number}\n"),
        );
    }
    trial.world.git_init();
    Ok(trial)
}

/// Spawn, wait, one append that survives a power cut, and nothing else.
fn bare_spawn(lab: &Lab, gaps: &mut Gaps) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let said = |error: std::io::Error| error.to_string();
    let mut journal = File::create(trial.path("journal")).map_err(said)?;
    for _ in 0..TURN {
        let mut agent: Command = trial.world.command(&lab.agent);
        agent
            .env("SCRIPTED_AGENT", "print working;;stamp stamps")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        agent.status().map_err(said)?;
        journal
            .write_all(&[b'x'; 300])
            .and_then(|()| journal.sync_data())
            .map_err(said)?;
    }
    gaps.spawn.extend(stamps(&trial.world.project()));
    Ok(())
}

fn bash(lab: &Lab, gaps: &mut Gaps) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let mut bash = trial.world.command("bash");
    bash.args(["-c", BASH])
        .env("N", TURN.to_string())
        .env("AGENT", &lab.agent);
    bash.env("SCRIPTED_AGENT", "print working;;stamp stamps");
    trial.run(bash)?;
    gaps.bash.extend(stamps(&trial.world.project()));
    Ok(())
}
