//! Growth, moved projects, odd names and full disks.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use nix::sys::signal::Signal;

use super::super::cases::Case;
use super::world::{PROMISE, ensure, expect_code, shell, shell_agent, start};
use crate::lab::{Lab, Trial, Trouble};

pub const CASES: &[(&str, Case)] = &[
    ("a commit hook that prints 60 MB", loud_hook),
    ("snapshots of a large file that changes", snapshots),
    ("a moved project is resumed", moved_project),
    (
        "the state folder vanishes while a loop runs",
        vanished_state,
    ),
    ("a working directory that is not UTF-8", odd_directory),
    ("standard output on a full disk", full_stdout),
    ("files named like patterns of git", pattern_names),
    ("SIGKILL of the host, then `resume` at once", resume_at_once),
];

fn loud_hook(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    let hook =
        "#!/bin/sh\nyes 'a line of a loud hook that refuses' | head -c 60000000 >&2\nexit 1\n";
    std::fs::write(trial.path(".git/hooks/pre-commit"), hook).map_err(|error| error.to_string())?;
    shell(&trial, "chmod +x .git/hooks/pre-commit")?;
    let ended = trial.run(start(
        &trial,
        "echo x >> file",
        &["--auto-commit", "--max-iterations", "1"],
    ))?;
    let size = trial.journal_bytes().len();
    ensure(size < 1_000_000, || {
        format!("{size} bytes in the journal; {ended}")
    })
}

fn snapshots(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    let agent = "head -c 4000000 /dev/urandom > data";
    let flags = ["--max-iterations", "8", "--max-snapshots", "10MB"];
    let ended = trial.run(start(&trial, agent, &flags))?;
    expect_code(&ended, 2)?;
    let kb = shell(&trial, "du -sk ../state/loops | cut -f1")?;
    let kb: u64 = kb.parse().map_err(|_| format!("`{kb}` is no size"))?;
    // One snapshot may be in the making beside the budget.
    ensure(kb < 20_000, || {
        format!("{kb} kB of snapshots with a budget of 10 MB; {ended}")
    })
}

fn moved_project(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let agent = format!("pwd >> where; [ $DESCARTES_ITERATION -lt 3 ] || echo '{PROMISE}'");
    let ended = trial.run(start(&trial, &agent, &["--max-iterations", "2"]))?;
    expect_code(&ended, 2)?;
    let moved = trial.world.root().join("moved");
    std::fs::rename(trial.world.project(), &moved).map_err(|error| error.to_string())?;
    let mut command = trial.descartes(&["loop", "resume", "--here", "--max-iterations", "5"]);
    command.current_dir(&moved);
    let ended = trial.run(command)?;
    std::fs::rename(&moved, trial.world.project()).map_err(|error| error.to_string())?;
    expect_code(&ended, 0)?;
    let ran = trial.world.read("where").lines().count();
    ensure(ran == 3, || format!("{ran} iterations; {ended}"))
}

fn vanished_state(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let state = trial.world.state();
    let agent = format!(
        "[ $DESCARTES_ITERATION != 2 ] || rm -rf {0}/*; touch at-$DESCARTES_ITERATION\n\
         [ $DESCARTES_ITERATION -lt 4 ] || while [ ! -e go ]; do sleep 0.05; done",
        state.display()
    );
    let mut host = trial.spawn(start(&trial, &agent, &["--max-iterations", "4"]))?;
    trial.wait_for("at-4")?;
    let said = trial.run(trial.descartes(&["loop", "say", "hello"]))?;
    trial.world.write("go", "");
    host.code()?;
    expect_code(&said, 0)?;
    let history = trial.run(trial.descartes(&["loop", "history"]))?;
    expect_code(&history, 0)
}

fn odd_directory(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let folder = trial
        .world
        .project()
        .join(OsStr::from_bytes(b"odd-\xff\xfe"));
    std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
    let mut command = start(&trial, &format!("echo '{PROMISE}'"), &[]);
    command.current_dir(&folder);
    let ended = trial.run(command)?;
    expect_code(&ended, 0)
}

fn full_stdout(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let ended = trial.run(start(&trial, "echo hi", &["--max-iterations", "1"]))?;
    expect_code(&ended, 2)?;
    for words in [
        "loop status",
        "loop list",
        "loop history",
        "report --output -",
        "query 'select 1'",
    ] {
        let script = format!("{} {words} > /dev/full", trial.lab.descartes.display());
        let mut command = trial.world.command("sh");
        command.args(["-c", &script]);
        let ended = trial.run(command)?;
        ensure(ended.code() != Some(0), || {
            format!("`{words}` says it went well; {ended}")
        })?;
    }
    Ok(())
}

fn pattern_names(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    let agent = "echo $DESCARTES_ITERATION > ':!foo'; echo $DESCARTES_ITERATION > ':(exclude)x'; echo $DESCARTES_ITERATION > plain";
    let ended = trial.run(start(&trial, agent, &["--max-iterations", "2"]))?;
    expect_code(&ended, 2)?;
    let diff = trial.run(trial.descartes(&["loop", "diff", "2"]))?;
    ensure(
        diff.stdout().contains("plain") && diff.stdout().contains(":!foo"),
        || format!("not measured; {diff}"),
    )?;
    let rewound = trial.run(trial.descartes(&["loop", "rewind", "1", "--yes"]))?;
    expect_code(&rewound, 0)?;
    ensure(
        trial.world.read("plain").trim() == "1" && trial.world.read(":!foo").trim() == "1",
        || format!("not rewound; {rewound}"),
    )
}

fn resume_at_once(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let agent = shell_agent(
        &trial,
        &format!(
            "trap '' TERM; [ ! -e up ] || {{ echo '{PROMISE}'; exit; }}; touch up; while :; do sleep 1; done"
        ),
    );
    let words = [
        "loop",
        "start",
        "--command",
        &agent,
        "--prompt",
        "go",
        "--kill-grace",
        "2s",
    ];
    let mut host = trial.spawn(trial.descartes(&words))?;
    trial.wait_for("up")?;
    host.signal(Signal::SIGKILL);
    host.code()?;
    let ended = trial.run(trial.descartes(&["loop", "resume"]))?;
    expect_code(&ended, 0)
}
