//! Never deaf, never stuck.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::super::cases::{CANNOT, Case};
use super::world::{PROMISE, ensure, expect_code, shell, start};
use crate::lab::{Lab, Trial, Trouble};

pub const CASES: &[(&str, Case)] = &[
    ("no inotify instance left", no_inotify),
    (
        "a commit hook that hangs, and every way to stop",
        hanging_hook,
    ),
    ("`cancel` of a host that was stopped", stopped_host),
    ("a FIFO or folder in place of our files", fifos),
    ("a prompt file that turns into a FIFO", prompt_fifo),
    ("a hundred silent clients, then `cancel`", silent_clients),
    ("a reset in the year 3000", far_reset),
    ("a config with 300,000 unknown keys", huge_config),
];

/// No stop may take longer than this, grace included, on a busy machine.
const STOP: Duration = Duration::from_secs(20);

fn no_inotify(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let agent = super::world::shell_agent(&trial, &format!("echo working\necho '{PROMISE}'"));
    // A user namespace has limits of its own.
    let script = format!(
        "echo 0 > /proc/sys/user/max_inotify_instances || exit 99\n\
         exec {} loop start --command \"$1\" --prompt go",
        trial.lab.descartes.display()
    );
    let mut command = trial.world.command("unshare");
    command.args(["-Ur", "sh", "-c", &script, "sh", &agent]);
    let started = Instant::now();
    let ended = trial.run(command)?;
    if ended.code() == Some(99) || ended.stderr().contains("unshare") {
        return Err(format!("{CANNOT}: {ended}"));
    }
    expect_code(&ended, 0)?;
    ensure(ended.stdout().contains("working"), || {
        format!("nothing was shown; {ended}")
    })?;
    ensure(started.elapsed() < STOP, || {
        format!("it took {:?}", started.elapsed())
    })
}

fn hanging_hook(lab: &Lab) -> Result<(), Trouble> {
    for stop in [
        "SIGINT",
        "SIGTERM",
        "cancel",
        "cancel --now",
        "--max-duration",
    ] {
        let trial = Trial::new(lab);
        trial.world.git_init();
        let hook = trial.path(".git/hooks/pre-commit");
        let up = trial.world.root().join("hook-up");
        let script = format!("#!/bin/sh\ntouch {}\nexec sleep 9999\n", up.display());
        std::fs::write(&hook, script).map_err(|error| error.to_string())?;
        shell(&trial, "chmod +x .git/hooks/pre-commit")?;
        let mut flags = vec![
            "--auto-commit",
            "--kill-grace",
            "500ms",
            "--max-iterations",
            "3",
        ];
        if stop == "--max-duration" {
            flags.extend(["--max-duration", "4s"]);
        }
        let mut host = trial.spawn(start(&trial, "echo x >> file", &flags))?;
        wait_for(&up)?;
        let begun = Instant::now();
        match stop {
            "SIGTERM" => host.signal(Signal::SIGTERM),
            "SIGINT" => {
                for _ in 0..3 {
                    host.signal(Signal::SIGINT);
                    std::thread::sleep(Duration::from_millis(300));
                }
            }
            "--max-duration" => {}
            verb => {
                let words: Vec<&str> = ["loop"].into_iter().chain(verb.split(' ')).collect();
                let ended = trial.run(trial.descartes(&words))?;
                expect_code(&ended, 0)?;
            }
        }
        host.code_within(STOP)
            .map_err(|trouble| format!("{stop}: {trouble}"))?;
        crate::lab::trial::gone_ms(&trial.world.processes(), begun, STOP)
            .map_err(|trouble| format!("{stop}: {trouble}"))?;
    }
    Ok(())
}

fn wait_for(path: &Path) -> Result<(), Trouble> {
    let mut there = || path.exists().then_some(());
    descartes_testkit::wait::poll(crate::lab::trial::LONG, &mut there)
        .ok_or_else(|| format!("no {} in time", path.display()))
}

fn stopped_host(lab: &Lab) -> Result<(), Trouble> {
    for verb in ["cancel", "cancel --now"] {
        let trial = Trial::new(lab);
        let flags = ["--kill-grace", "500ms"];
        let mut host = trial.spawn(start(&trial, "touch up; sleep 9999", &flags))?;
        trial.wait_for("up")?;
        host.signal(Signal::SIGSTOP);
        let words: Vec<&str> = ["loop"].into_iter().chain(verb.split(' ')).collect();
        let ended = trial.run(trial.descartes(&words))?;
        expect_code(&ended, 0)?;
        host.code_within(STOP)?;
        crate::lab::trial::gone_ms(&trial.world.processes(), Instant::now(), STOP)?;
    }
    Ok(())
}

fn fifos(lab: &Lab) -> Result<(), Trouble> {
    let places = [
        ".descartes/loop-state.json",
        ".descartes/loop-state.json.lock",
        ".descartes/config.toml",
    ];
    for place in places {
        for make in ["mkfifo", "mkdir"] {
            let trial = Trial::new(lab);
            shell(&trial, &format!("mkdir -p .descartes; {make} {place}"))?;
            for verb in ["start", "status", "resume"] {
                let command = match verb {
                    "start" => start(&trial, "echo hi", &["--max-iterations", "1"]),
                    verb => trial.descartes(&["loop", verb]),
                };
                let begun = Instant::now();
                let ended = trial
                    .run(command)
                    .map_err(|trouble| format!("{make} {place}, {verb}: {trouble}"))?;
                ensure(begun.elapsed() < STOP, || {
                    format!("{make} {place}, {verb}: {:?}", begun.elapsed())
                })?;
                ensure(!ended.stderr().contains("panicked"), || {
                    format!("{make} {place}, {verb}: {ended}")
                })?;
            }
        }
    }
    Ok(())
}

fn prompt_fifo(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.write("PROMPT.md", "go\n");
    let agent = super::world::shell_agent(&trial, "rm -f PROMPT.md; mkfifo PROMPT.md");
    let words = [
        "loop",
        "start",
        "--command",
        &agent,
        "--prompt-file",
        "PROMPT.md",
        "--max-iterations",
        "3",
    ];
    let ended = trial.run(trial.descartes(&words))?;
    ensure(ended.code() != Some(0), || format!("{ended}"))
}

fn silent_clients(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let mut host = trial.spawn(start(
        &trial,
        "touch up; sleep 9999",
        &["--kill-grace", "200ms"],
    ))?;
    trial.wait_for("up")?;
    let socket = socket(&trial).ok_or("no socket")?;
    let mut silent: Vec<UnixStream> = (0..100)
        .filter_map(|_| UnixStream::connect(&socket).ok())
        .collect();
    for stream in silent.iter_mut().step_by(2) {
        // Half of them begin a request and never end it.
        let _ = stream.write_all(b"{\"v\":1,");
    }
    let ended = trial.run(trial.descartes(&["loop", "cancel"]))?;
    expect_code(&ended, 0)?;
    host.code_within(STOP).map(drop)
}

fn socket(trial: &Trial<'_>) -> Option<PathBuf> {
    let journal = trial.journals().into_iter().next()?;
    let text = std::fs::read(journal.with_file_name("host.json")).ok()?;
    let host: serde_json::Value = serde_json::from_slice(&text).ok()?;
    host["socket"].as_str().map(PathBuf::from)
}

fn far_reset(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let limit = "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":32503680000}}";
    let program = format!("#!/bin/sh\ncat >/dev/null\ntouch up\necho '{limit}'\nexit 1\n");
    trial.world.program("claude", &program);
    let words = [
        "loop",
        "start",
        "--command",
        "claude",
        "--permissions",
        "edit",
        "--prompt",
        "go",
    ];
    let mut host = trial.spawn(trial.descartes(&words))?;
    trial.wait_for("up")?;
    let mut waits = || {
        let status = trial
            .run(trial.descartes(&["loop", "status"]))
            .ok()?
            .stdout();
        status.contains("aiting").then_some(status)
    };
    let status = descartes_testkit::wait::poll(STOP, &mut waits);
    host.signal(Signal::SIGTERM);
    host.code_within(STOP)?;
    match status {
        None => Ok(()),
        // The reason may name the time; it must not be waited for.
        Some(status) => ensure(!status.contains("until: 3000"), || {
            format!("believed: {status}")
        }),
    }
}

fn huge_config(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let text: String = (0..300_000).map(|n| format!("key{n} = 1\n")).collect();
    trial.world.write(".descartes/config.toml", text);
    let begun = Instant::now();
    let ended = trial.run(trial.descartes(&["loop", "list"]))?;
    ensure(begun.elapsed() < STOP, || {
        format!("it took {:?}; {ended}", begun.elapsed())
    })
}
