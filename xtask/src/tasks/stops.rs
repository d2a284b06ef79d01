//! Task loops that are told to end at random moments, whatever they are about: copying caches, waiting for locks,
//! making worktrees ready, stacking trains, gates on what was merged.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use descartes_testkit::wait;
use nix::sys::signal::Signal;

use super::kills::repository;
use crate::lab::chance::Chance;
use crate::lab::trial::Running;
use crate::lab::{Lab, Row, Rows, Trial, Trouble, stats};

const TASKS: u64 = 12;
/// A loop that was told to end without grace for anybody has ended by then.
const BAR: Duration = Duration::from_secs(5);
/// Longer nothing takes that is let go on.
const LONG: Duration = Duration::from_secs(600);
/// Stops of one world, before it is let go on to its end.
const OF_A_WORLD: u64 = 15;

/// How a loop is told to end.
#[derive(Debug, Clone, Copy)]
enum Stop {
    /// The second of them asks agents to end.
    CtrlCTwice,
    Terminate,
    CancelNow,
}

/// Who else is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    Nobody,
    /// `index.lock` in the checkout: nothing can land.
    Git,
    /// Somebody holds the task file.
    Scud,
}

#[derive(Default)]
struct Campaign {
    stops: u64,
    wrong: Vec<String>,
    took: Vec<f64>,
}

fn told(error: std::io::Error) -> Trouble {
    error.to_string()
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let wanted = lab.form.pick(9, 300);
    let mut all = Campaign::default();
    let mut world = 0;
    while all.stops < wanted && all.wrong.len() < 20 {
        let most = (wanted - all.stops).min(OF_A_WORLD);
        one(lab, lab.seed.wrapping_add(world), most, &mut all)?;
        world += 1;
    }
    let what = "Ctrl-C twice, SIGTERM and `cancel --now` at random moments of task loops";
    let row = Row::count("M16", what, all.stops, &all.wrong);
    let slowest = (stats::max(&all.took), "s");
    let what = format!("{what}: from there to the end, the slowest");
    Ok(vec![
        row,
        Row::at_most(lab.form, "M16", what, slowest, BAR.as_secs_f64()),
    ])
}

/// Tasks whose gates need a cache that is large, sparse and dense, in worktrees that a setup makes ready which
/// does not listen.
fn world<'a>(lab: &'a Lab, chance: &mut Chance) -> Result<(Trial<'a>, Vec<String>), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 200, TASKS, |_| None)?;
    trial.world.write(".gitignore", "node_modules\n");
    trial.world.git(["add", "."]);
    let message = ["commit", "--quiet", "--message", "ignored"];
    trial.world.git(message);
    let dense = chance.below(32);
    let script = format!(
        "mkdir -p node_modules\n\
         [ -e node_modules/ok ] || {{ truncate -s 1G node_modules/sparse; \
         head -c {dense}M /dev/zero | tr '\\0' x > node_modules/dense; }}\n\
         echo x > node_modules/ok\n\
         sleep 0.{}\n\
         echo work > work-$DESCARTES_TASK_ID\n\
         echo '<promise>COMPLETE</promise>'",
        chance.below(9)
    );
    let script = trial.world.script(&script);
    let agent = shell_words::join(["sh", &script.to_string_lossy()]);
    let setup = "trap '' TERM INT; n=0; while [ $n -lt 8 ]; do sleep 0.1; n=$((n+1)); done";
    let config = trial.world.home().join(".config/descartes");
    std::fs::create_dir_all(&config).map_err(told)?;
    let settings = format!("worktree_setup = {setup:?}\n");
    std::fs::write(config.join("config.toml"), settings).map_err(told)?;
    let flags = [
        "--command",
        &agent,
        "--verify",
        "test -e node_modules/ok && sleep 0.3",
        "--parallel",
        "4",
        "--merge-batch",
        "4",
        "--max-iterations",
        "unlimited",
        "--max-iterations-per-task",
        "1000",
    ];
    let start = ["loop", "start", "--scud-tag", "big"].iter().chain(&flags);
    let start = start.map(|word| (*word).to_owned()).collect();
    Ok((trial, start))
}

fn one(lab: &Lab, seed: u64, most: u64, all: &mut Campaign) -> Result<(), Trouble> {
    let mut chance = Chance::new(seed);
    let (trial, start) = world(lab, &mut chance)?;
    let resume = ["loop", "resume"].map(str::to_owned);
    let mut stops = 0;
    while stops < most {
        let words = match trial.state_file().exists() {
            true => &resume[..],
            false => &start[..],
        };
        let other = [Other::Nobody, Other::Nobody, Other::Git, Other::Scud];
        let other = other[chance.below(4) as usize];
        let ways = [Stop::Terminate, Stop::CancelNow, Stop::CtrlCTwice];
        let stop = ways[chance.below(if is_interrupt_ignored() { 2 } else { 3 }) as usize];
        let moment = Duration::from_millis(50 + chance.below(4_000));
        let held = Held::by(&trial, other)?;
        let said = trial.world.root().join("said");
        let mut host = trial.spawn_to(trial.descartes(words), &said)?;
        if let Some(code) = host.wait_at_most(moment) {
            drop(held);
            match code {
                // It ended by itself, or was refused while somebody else is in the list.
                0 => break,
                65 if other == Other::Scud => continue,
                code => {
                    let said = std::fs::read_to_string(&said).unwrap_or_default();
                    all.wrong.push(format!(
                        "seed {seed}, after {stops} stops, {other:?}: {words:?} ended with {code}: {said}"
                    ));
                    break;
                }
            }
        }
        stops += 1;
        let named = format!("seed {seed}, stop {stops}: {stop:?} after {moment:?}, {other:?}");
        match stopped(lab, &trial, &mut host, stop) {
            Ok(took) => {
                if took > BAR / 2 {
                    println!("  {named}: {took:?}");
                }
                all.took.push(took.as_secs_f64());
            }
            Err(trouble) => {
                println!("  {named}: {trouble}");
                all.wrong.push(format!("{named}: {trouble}"));
            }
        }
        drop(held);
        trial.world.end_all();
    }
    all.stops += stops;
    // Whatever was broken off, nothing is lost.
    if stops > 0 && trial.state_file().exists() {
        let code = trial.spawn(trial.descartes(&resume))?.code_within(LONG)?;
        let missing = (1..=TASKS).filter(|task| !trial.path(&format!("work-{task}")).exists());
        let missing: Vec<u64> = missing.collect();
        if code != 0 || !missing.is_empty() {
            all.wrong.push(format!(
                "seed {seed}: after {stops} stops `loop resume` ended with {code}, tasks {missing:?} did not land"
            ));
        }
    }
    Ok(())
}

/// Tells it to end; how long it took, with everything that it had started.
fn stopped(
    lab: &Lab,
    trial: &Trial<'_>,
    host: &mut Running,
    stop: Stop,
) -> Result<Duration, Trouble> {
    let limit = lab.form.deadline(BAR);
    let mut since = Instant::now();
    match stop {
        Stop::CtrlCTwice => {
            host.signal(Signal::SIGINT);
            // Who presses once more has seen what the first did; signals that nobody has taken yet are one.
            let said = trial.world.root().join("said");
            let mut is_heard = || {
                let text = std::fs::read_to_string(&said).unwrap_or_default();
                let is_over = host.wait_at_most(Duration::ZERO).is_some();
                (is_over || text.contains("stopping after this iteration")).then_some(())
            };
            wait::poll(limit, &mut is_heard).ok_or("the first Ctrl-C was not heard")?;
            since = Instant::now();
            host.signal(Signal::SIGINT);
        }
        Stop::Terminate => host.signal(Signal::SIGTERM),
        Stop::CancelNow => {
            // A loop that is not there yet is started after all, and told again then. One that was refused itself,
            // over a list that somebody holds, is no loop to cancel.
            let mut is_told = || {
                let asked = trial.run(trial.descartes(&["loop", "cancel", "--now"]));
                let is_taken = asked.is_ok_and(|asked| asked.code() == Some(0));
                (is_taken || host.wait_at_most(Duration::ZERO) == Some(65)).then_some(())
            };
            wait::poll(limit, &mut is_told).ok_or("`loop cancel --now` was refused")?;
        }
    }
    let Some(code) = host.wait_at_most(limit) else {
        let said = std::fs::read_to_string(trial.world.root().join("said")).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(5).collect();
        let left = trial.world.processes();
        let left: Vec<&str> = left.iter().map(|one| one.command.as_str()).collect();
        return Err(format!(
            "still running after {limit:?}: {left:?}, and said last: {last:?}"
        ));
    };
    let mut none_left = || trial.world.processes().is_empty().then_some(());
    if wait::poll(limit, &mut none_left).is_none() {
        let left = trial.world.processes();
        let left: Vec<&str> = left.iter().map(|one| one.command.as_str()).collect();
        return Err(format!("ended with {code}, left behind: {left:?}"));
    }
    Ok(since.elapsed())
}

/// As a shell starts jobs in the background: loops that this starts ignore it, too.
fn is_interrupt_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    ignored.unwrap_or(0) & (1 << (Signal::SIGINT as u32 - 1)) != 0
}

/// What somebody else holds, for as long as this lives.
enum Held {
    Nothing,
    File(PathBuf),
    Locked { _file: File },
}

impl Held {
    fn by(trial: &Trial<'_>, other: Other) -> Result<Self, Trouble> {
        match other {
            Other::Nobody => Ok(Self::Nothing),
            Other::Git => {
                let path = trial.path(".git/index.lock");
                File::create(&path).map_err(told)?;
                Ok(Self::File(path))
            }
            Other::Scud => {
                let path = trial.path(".scud/tasks/tasks.scg");
                let file = File::options().read(true).write(true).open(path);
                let file = file.map_err(told)?;
                file.lock().map_err(told)?;
                Ok(Self::Locked { _file: file })
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Self::File(path) = self {
            drop(std::fs::remove_file(path));
        }
    }
}
