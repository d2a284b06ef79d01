//! Real workers that are stopped, or suspended with all that they started, while their agents work, for longer
//! than their leases, and then go on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::MEASURE;
use super::machines::Machines;
use super::simulated::Programs;
use crate::lab::stats::max;
use crate::lab::{Lab, Row, Rows, Trouble};

/// How long a claim holds.
const LEASE: Duration = Duration::from_secs(60);
/// A machine that wakes up lets all its processes go on at once; so soon its guard has stopped the agents again.
const WAKING: Duration = Duration::from_secs(1);
/// Longer nothing takes.
const LONG: Duration = Duration::from_secs(300);
/// The agents of every third task end together: right after the stop, before the workers go on, and after it.
const GROUPS: usize = 3;

fn told(error: impl std::fmt::Display) -> Trouble {
    error.to_string()
}

/// What happens to workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    /// They are stopped, and of every second one what speaks for it to the engine, too.
    Stopped,
    /// All that they started is stopped with them, and the clock by which they decide moves on by three leases:
    /// so a machine wakes up from suspend.
    Suspended,
}

/// Workers are stopped for two leases; others do their tasks; then they go on. The short form lets them go on
/// soon after others have their tasks.
pub fn continued(lab: &Lab, programs: &Programs) -> Rows {
    go_on(lab, programs, Blow::Stopped)
}

/// The same with machines that are suspended.
pub fn woken(lab: &Lab, programs: &Programs) -> Rows {
    go_on(lab, programs, Blow::Suspended)
}

fn go_on(lab: &Lab, programs: &Programs, blow: Blow) -> Rows {
    let count = lab.form.pick(3, 20);
    let stop = lab.form.pick(LEASE * 5 / 4, LEASE * 2);
    let mut trial = Trial::begin(lab, programs, count, blow)?;
    trial.wait("every worker has its task", |trial| {
        Ok(trial.agents()?.len() == count)
    })?;
    let stopped = trial.stop()?;
    trial.let_end(0)?;
    let others = count.div_ceil(5);
    for n in 0..others {
        trial.machines.worker(&format!("h{n}"), 5)?;
    }
    std::thread::sleep(LEASE.saturating_sub(stopped.elapsed()));
    let mut wrong = trial.still_running()?;
    trial.wait("others do what was taken back", |trial| {
        let agents = trial.agents()?;
        Ok(agents.iter().filter(|agent| !agent.is_zombie()).count() == count)
    })?;
    trial.let_end(1)?;
    std::thread::sleep(stop.saturating_sub(stopped.elapsed()));
    trial.wake()?;
    trial.wait(
        "those who were stopped know that their tasks are gone",
        |trial| Ok((0..count).all(|n| trial.said(n, ": taken back, in vain") > 0)),
    )?;
    trial.let_end(2)?;
    trial.wait_for_end()?;
    wrong.extend(trial.wrong(count)?);
    let latest = trial.last_stamps()?;
    let lease = LEASE.as_secs();
    let (what, of_what, bar) = match blow {
        Blow::Stopped => (
            format!(
                "{count} real workers stopped for {} s with leases of {lease} s, then continued",
                stop.as_secs()
            ),
            "from the stop to the last sign of work of their agents, the latest",
            LEASE,
        ),
        Blow::Suspended => (
            format!(
                "{count} real workers suspended for three leases of {lease} s by their clock, then woken"
            ),
            "from waking up to the last sign of work of their agents, the latest",
            WAKING,
        ),
    };
    let mut row = Row::count(MEASURE, what.clone(), count as u64, &wrong);
    row.raw = json!({ "lost": wrong, "last_work_ms": latest });
    Ok(vec![
        row,
        Row::at_most(
            lab.form,
            MEASURE,
            format!("{what}: {of_what}"),
            (max(&latest), "ms"),
            bar.as_secs_f64() * 1e3,
        ),
    ])
}

/// An agent that was started, with the times at which it was at work, in seconds.
struct SeenAgent {
    task: usize,
    pid: i32,
    /// Its work tree.
    place: String,
    stamps: Vec<f64>,
}

impl SeenAgent {
    fn is_zombie(&self) -> bool {
        self.place.contains("/state-z")
    }

    fn last(&self) -> f64 {
        self.stamps.last().copied().unwrap_or_default()
    }

    fn first(&self) -> f64 {
        self.stamps.first().copied().unwrap_or_default()
    }
}

/// A task loop, its workers, and what its agents leave.
struct Trial<'a> {
    machines: Machines<'a>,
    tasks: Child,
    blow: Blow,
    /// How long machines were suspended.
    slept: PathBuf,
    /// Processes that were stopped, those who started others first.
    stopped: Vec<Pid>,
    /// By the clock of the agents.
    stopped_at: f64,
    woken_at: f64,
}

impl<'a> Trial<'a> {
    /// As many workers as tasks, and each at one.
    fn begin(lab: &Lab, programs: &'a Programs, count: usize, blow: Blow) -> Result<Self, Trouble> {
        let mut machines = Machines::new(programs, count)?;
        let slept = machines.world.root().join("slept");
        fs::write(&slept, "0").map_err(told)?;
        let (stamps, go) = (folder(&machines, "stamps")?, folder(&machines, "go")?);
        let agent = format!(
            "#!/bin/sh\n\
             of={}/$DESCARTES_TASK_ID-$$\n\
             echo \"$PWD\" > $of.part && mv $of.part $of.place\n\
             while date +%s.%N >> $of; ! [ -e {}/$((DESCARTES_TASK_ID % {GROUPS})) ]; do sleep 0.5; done\n\
             echo \"$PWD\" > work-$DESCARTES_TASK_ID.txt\n\
             echo COMPLETE\n",
            stamps.display(),
            go.display()
        );
        machines.world.program("stamping-agent", &agent);
        for n in 0..count {
            let name = format!("z{n}");
            match (blow, &lab.faulty) {
                (Blow::Stopped, _) => machines.worker(&name, 1)?,
                (Blow::Suspended, Some(faulty)) => machines.sleeper(&name, faulty, &slept)?,
                (Blow::Suspended, None) => {
                    return Err("no binary with fault points (set DESCARTES_FAULTY_BIN)".to_owned());
                }
            }
        }
        let mut tasks = machines.start_with("stamping-agent", count, true);
        let tasks = tasks.spawn().map_err(told)?;
        Ok(Self {
            machines,
            tasks,
            blow,
            slept,
            stopped: Vec::new(),
            stopped_at: 0.0,
            woken_at: 0.0,
        })
    }

    fn wait(
        &self,
        what: &str,
        mut is_so: impl FnMut(&Self) -> Result<bool, Trouble>,
    ) -> Result<(), Trouble> {
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            if is_so(self)? {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("waited in vain: {what}"))
    }

    fn wait_for_end(&mut self) -> Result<(), Trouble> {
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            match self.tasks.try_wait().map_err(told)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the loop ended with {status}")),
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        }
        Err("the loop did not end".to_owned())
    }

    /// Stops every worker, and what the blow takes with it.
    fn stop(&mut self) -> Result<Instant, Trouble> {
        let workers = self.machines.workers.iter().enumerate();
        let workers = workers.map(|(n, worker)| (n, worker.id().cast_signed()));
        for (n, pid) in workers.collect::<Vec<_>>() {
            match self.blow {
                Blow::Stopped => {
                    let bridges = children(pid).into_iter().filter(|pid| is_bridge(*pid));
                    let bridges = bridges.filter(|_| n % 2 == 1);
                    for pid in std::iter::once(pid).chain(bridges) {
                        self.stop_one(pid)?;
                    }
                }
                // Those above first: one that runs would let those below it go on.
                Blow::Suspended => {
                    let mut left = vec![pid];
                    while let Some(pid) = left.pop() {
                        self.stop_one(pid)?;
                        left.extend(children(pid));
                    }
                }
            }
        }
        self.stopped_at = now()?;
        Ok(Instant::now())
    }

    /// A process that ends by itself meanwhile is none to stop.
    fn stop_one(&mut self, pid: i32) -> Result<(), Trouble> {
        if kill(Pid::from_raw(pid), Signal::SIGSTOP).is_ok() {
            self.stopped.push(Pid::from_raw(pid));
        }
        let is_still = || state_of(pid).is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'D'));
        self.wait("a process is stopped", |_| Ok(is_still()))
    }

    /// Lets go on what was stopped, by machine, as a kernel wakes them: who was started first is first.
    fn wake(&mut self) -> Result<(), Trouble> {
        self.woken_at = now()?;
        if self.blow == Blow::Suspended {
            let slept = (LEASE * 3).as_millis().to_string();
            fs::write(&self.slept, slept).map_err(told)?;
        }
        self.signal_stopped(Signal::SIGCONT)
    }

    fn signal_stopped(&self, signal: Signal) -> Result<(), Trouble> {
        for pid in &self.stopped {
            kill(*pid, signal).map_err(|error| format!("{signal} to {pid}: {error}"))?;
        }
        Ok(())
    }

    fn let_end(&self, group: usize) -> Result<(), Trouble> {
        fs::write(folder(&self.machines, "go")?.join(group.to_string()), "").map_err(told)
    }

    fn agents(&self) -> Result<Vec<SeenAgent>, Trouble> {
        let entries = fs::read_dir(folder(&self.machines, "stamps")?).map_err(told)?;
        let files = entries.flatten().map(|entry| entry.path());
        let places = files.filter(|path| path.extension().is_some_and(|end| end == "place"));
        places.map(|path| seen_agent(&path)).collect()
    }

    /// Agents of the workers that were stopped which are neither stopped nor gone.
    fn still_running(&self) -> Result<Vec<String>, Trouble> {
        let mut running = Vec::new();
        for agent in self.agents()?.iter().filter(|agent| agent.is_zombie()) {
            let processes = std::iter::once(agent.pid).chain(children(agent.pid));
            for state in processes.filter_map(state_of) {
                if !matches!(state, 'T' | 't' | 'Z') {
                    running.push(format!(
                        "task {}: a process of its agent is in state {state} when its lease is over",
                        agent.task
                    ));
                }
            }
        }
        Ok(running)
    }

    /// How often a worker that was stopped said this.
    fn said(&self, worker: usize, what: &str) -> usize {
        let told = fs::read_to_string(self.machines.told_by(&format!("z{worker}")));
        let told = told.unwrap_or_default();
        told.lines().filter(|line| line.ends_with(what)).count()
    }

    /// When each agent of a worker that was stopped was last at work, in milliseconds after the stop, or after
    /// its machine woke up.
    fn last_stamps(&self) -> Result<Vec<f64>, Trouble> {
        let since = match self.blow {
            Blow::Stopped => self.stopped_at,
            Blow::Suspended => self.woken_at,
        };
        let agents = self.agents()?;
        let zombies = agents.iter().filter(|agent| agent.is_zombie());
        let after = zombies.map(|agent| (agent.last() - since) * 1e3);
        Ok(after.map(|after| after.max(0.0)).collect())
    }

    /// Whether an agent was at work before the one that came before it had ended.
    fn met(&self, before: &SeenAgent, after: &SeenAgent) -> bool {
        let woken = self.woken_at..self.woken_at + WAKING.as_secs_f64();
        let is_waking = |at: &f64| self.blow == Blow::Suspended && woken.contains(at);
        let mut seen = before.stamps.iter().rev().filter(|at| !is_waking(at));
        seen.next().is_some_and(|last| after.first() <= *last)
    }

    fn wrong(&self, count: usize) -> Result<Vec<String>, Trouble> {
        let mut wrong = Vec::new();
        let mut of_task: BTreeMap<usize, Vec<SeenAgent>> = BTreeMap::new();
        for agent in self.agents()? {
            of_task.entry(agent.task).or_default().push(agent);
        }
        for task in 1..=count {
            let mut agents = of_task.remove(&task).unwrap_or_default();
            agents.sort_by(|a, b| a.first().total_cmp(&b.first()));
            if agents.len() != 2 {
                wrong.push(format!("task {task}: {} agents", agents.len()));
            }
            for pair in agents.windows(2).filter(|two| self.met(&two[0], &two[1])) {
                wrong.push(format!(
                    "task {task}: {} and {} were at work at the same time",
                    pair[0].place, pair[1].place
                ));
            }
            if self.machines.landed(task) != 1 {
                wrong.push(format!(
                    "task {task}: landed {} times",
                    self.machines.landed(task)
                ));
            }
            let file = format!("HEAD:work-{task}.txt");
            if self
                .machines
                .world
                .git(["show", &file])
                .contains("/state-z")
            {
                wrong.push(format!("task {task}: the work of a zombie landed"));
            }
        }
        for worker in 0..count {
            let (handed, vain) = (": handed in", ": taken back, in vain");
            if (self.said(worker, handed), self.said(worker, vain)) != (0, 1) {
                wrong.push(format!("z{worker} handed in what it did before its stop"));
            }
        }
        Ok(wrong)
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        // Those that are stopped would not hear that they are to end.
        drop(self.signal_stopped(Signal::SIGCONT));
        drop(self.tasks.kill());
        drop(self.tasks.wait());
    }
}

/// By the clock of the agents, in seconds.
fn now() -> Result<f64, Trouble> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(now.map_err(told)?.as_secs_f64())
}

/// A folder beside the project.
fn folder(machines: &Machines<'_>, name: &str) -> Result<PathBuf, Trouble> {
    let folder = machines.world.root().join(name);
    fs::create_dir_all(&folder).map_err(told)?;
    Ok(folder)
}

fn seen_agent(place: &Path) -> Result<SeenAgent, Trouble> {
    let name = place.file_stem().and_then(|name| name.to_str());
    let (task, pid) = name
        .and_then(|name| name.split_once('-'))
        .ok_or_else(|| format!("{}: not of an agent", place.display()))?;
    // One that has just begun has no stamp.
    let stamps = fs::read_to_string(place.with_extension("")).unwrap_or_default();
    Ok(SeenAgent {
        task: task.parse().map_err(told)?,
        pid: pid.parse().map_err(told)?,
        place: fs::read_to_string(place).map_err(told)?.trim().to_owned(),
        stamps: stamps
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect(),
    })
}

/// The children of all threads of a process.
fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists = threads.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    words.filter_map(|word| word.parse().ok()).collect()
}

fn is_bridge(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).into_owned();
    line.contains("descartes-fleet")
}

/// `None` where there is no such process.
fn state_of(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
