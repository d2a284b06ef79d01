//! Strange input: prompts, sockets, two loops on one file, crowds.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::recovery::broke;
use crate::lab::chance::Chance;
use crate::lab::{Lab, Row, Rows, Trial, Trouble, Verdict};

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    Ok(vec![
        prompts(lab),
        two_loops(lab),
        garbage(lab),
        crowd(lab, lab.form.pick(20, 200)),
    ])
}

fn counted(what: &str, results: Vec<Result<(), Trouble>>) -> Row {
    let tried = results.len() as u64;
    let lost: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    Row::count("faults", what, tried, &lost)
}

/// Every prompt reaches the agent as it was, or is refused with words before anything begins.
fn prompts(lab: &Lab) -> Row {
    let five_mb = "never gonna give you up\n"
        .repeat(5_000_000 / 24)
        .into_bytes();
    let cases: [(&str, Vec<u8>); 6] = [
        ("5 MB", five_mb),
        ("NUL", b"one\0two".to_vec()),
        ("invalid UTF-8", b"one \xff\xfe two".to_vec()),
        ("ANSI", b"\x1b[31mred\x1b[0m".to_vec()),
        ("CRLF", b"one\r\ntwo\r\n".to_vec()),
        ("empty", Vec::new()),
    ];
    counted(
        "prompts: 5 MB, NUL, invalid UTF-8, ANSI, CRLF, empty",
        cases
            .map(|(name, prompt)| one_prompt(lab, name, &prompt))
            .into(),
    )
}

fn one_prompt(lab: &Lab, name: &str, prompt: &[u8]) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.write("PROMPT.md", prompt);
    let script = "save-prompt got-arg arg\nsave-prompt got-stdin stdin\npromise";
    let finished = trial.run(trial.start(
        script,
        &["--prompt-file", "PROMPT.md", "--max-iterations", "1"],
    ))?;
    if let Some(what) = broke(&finished) {
        return Err(format!("{name}: {what}"));
    }
    let got = |file: &str| std::fs::read(trial.path(file)).unwrap_or_default();
    let text = prompt.trim_ascii();
    let arrived = ["got-arg", "got-stdin"].iter().any(|file| {
        let got = got(file);
        !text.is_empty()
            && got.windows(text.len().min(4096)).next().is_some()
            && contains(&got, text)
    });
    match finished.code() {
        Some(0) if arrived => Ok(()),
        Some(64 | 65) if trial.events("run_started").is_empty() => Ok(()),
        _ => Err(format!("{name}: neither delivered nor refused; {finished}")),
    }
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    // A prompt stands at a line's start in what is sent, so few places are looked at.
    let starts = std::iter::once(0).chain(
        all.iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at + 1),
    );
    starts.take(64).any(|at| all[at..].starts_with(part))
}

/// Of many that start on one state file at the same time, one gets it; the others are refused.
fn two_loops(lab: &Lab) -> Row {
    let rounds = lab.form.pick(3, 30);
    counted(
        "8 starts at once on one state file: one runs, seven are refused",
        (0..rounds).map(|_| race(lab)).collect(),
    )
}

fn race(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let script = "append ran ${PID}\nwait-file go\npromise";
    let starts: Result<Vec<_>, Trouble> = (0..8)
        .map(|_| trial.spawn(trial.start(script, &[])))
        .collect();
    let mut starts = starts?;
    trial.wait_for("ran")?;
    // The losers end by themselves; the winner waits for us.
    thread::sleep(Duration::from_millis(lab.form.pick(700, 1500)));
    trial.world.write("go", "");
    let mut codes = Vec::new();
    for start in &mut starts {
        codes.push(start.code()?);
    }
    codes.sort_unstable();
    let ran = trial.world.read("ran").lines().count();
    if codes == [0, 65, 65, 65, 65, 65, 65, 65] && ran == 1 {
        return Ok(());
    }
    Err(format!("exit codes {codes:?}, {ran} agents ran"))
}

fn socket(trial: &Trial<'_>) -> Option<PathBuf> {
    let journal = trial.journals().into_iter().next()?;
    let text = std::fs::read(journal.with_file_name("host.json")).ok()?;
    let host: serde_json::Value = serde_json::from_slice(&text).ok()?;
    host["socket"].as_str().map(PathBuf::from)
}

/// The loop neither stops nor believes what comes over its socket.
fn garbage(lab: &Lab) -> Row {
    let rounds = lab.form.pick(60, 2000);
    let mut chance = Chance::new(lab.seed);
    let result = (|| -> Result<(), Trouble> {
        let trial = Trial::new(lab);
        let mut host = trial.spawn(trial.start("touch up\nwait-file go\npromise", &[]))?;
        trial.wait_for("up")?;
        let path = socket(&trial).ok_or("no socket")?;
        let mut held = Vec::new();
        for round in 0..rounds {
            held.extend(throw(&path, round, &mut chance));
            held.truncate(40);
        }
        drop(held);
        trial.world.write("go", "");
        let code = host.code()?;
        let commands = trial.events("command_accepted").len();
        if code == 0 && commands == 0 {
            Ok(())
        } else {
            Err(format!("exit code {code}, {commands} commands accepted"))
        }
    })();
    let lost: Vec<String> = result.err().into_iter().collect();
    Row::count("faults", "garbage on the control socket", rounds, &lost)
}

/// One visit; those that stay are given back open.
fn throw(path: &PathBuf, round: u64, chance: &mut Chance) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(path).ok()?;
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
    let size = chance.below(5000) as usize;
    let sent = match round % 6 {
        0 => stream.write_all(&chance.bytes(size)),
        1 => stream.write_all(&vec![b'{'; 3 << 20]),
        2 => stream.write_all(b"{\"v\":1,\"command\":\"cancel\""),
        3 => stream.write_all(b"{\"v\":99,\"command\":\"cancel\",\"grace\":\"ask\"}\n"),
        4 => stream.write_all(b"\n\n\n\0\0\n[]\nnull\n{}\n"),
        _ => Ok(()),
    };
    // A host that hangs up in the middle of it is right.
    drop(sent);
    let _ = stream.read(&mut [0; 512]);
    (round % 6 >= 4).then_some(stream)
}

/// Many loops at once, each in its own project, all of one user.
fn crowd(lab: &Lab, count: u32) -> Row {
    let trial = Trial::new(lab);
    let script = "@1-2 print working\n@3 promise";
    let mut running = Vec::new();
    let mut results = Vec::new();
    for number in 0..count {
        let folder = trial.path(&format!("p{number}"));
        let mut command = trial.start(script, &[]);
        let made = std::fs::create_dir_all(&folder).map_err(|error| error.to_string());
        command.current_dir(&folder);
        match made.and_then(|()| trial.spawn(command)) {
            Ok(host) => running.push((folder, host)),
            Err(trouble) => results.push(Err(trouble)),
        }
    }
    for (folder, mut host) in running {
        let state = |folder: &PathBuf| -> serde_json::Value {
            let text = std::fs::read(folder.join(".descartes/loop-state.json")).unwrap_or_default();
            serde_json::from_slice(&text).unwrap_or_default()
        };
        results.push(host.code().and_then(|code| {
            let told = state(&folder)["iteration"].as_u64();
            if code == 0 && told == Some(3) {
                Ok(())
            } else {
                Err(format!("exit code {code}, {told:?} iterations"))
            }
        }));
    }
    let mut row = counted("loops at once, three iterations each", results);
    let loops = trial.journals().len();
    if loops != count as usize && row.verdict == Verdict::Met {
        row.verdict = Verdict::Missed(format!("{loops} journals"));
    }
    row
}
