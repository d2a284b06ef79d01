//! M6: from the request to stop until every process of the loop is gone, and the truth about it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use descartes_testkit::{process, stamp};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::lab::trial::{Running, gone_ms};
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

const GRACE_MS: f64 = 300.0;
const LIMIT_MS: f64 = 700.0;
const WAIT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Cancel,
    Interrupt(u32),
    Terminate,
    HangUp,
    Timeout,
    Idle,
}

/// What the agent does when it is asked to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    Goes,
    Stays,
}

/// What must be on record: exit code, reason in the state file, what ended the agent.
struct Truth {
    code: i32,
    reason: &'static str,
    ended_by: &'static str,
}

impl Ending {
    const ALL: [Self; 8] = [
        Self::Cancel,
        Self::Interrupt(1),
        Self::Interrupt(2),
        Self::Interrupt(3),
        Self::Terminate,
        Self::HangUp,
        Self::Timeout,
        Self::Idle,
    ];

    fn name(self) -> String {
        match self {
            Self::Cancel => "loop cancel".into(),
            Self::Interrupt(times) => format!("SIGINT ×{times}"),
            Self::Terminate => "SIGTERM".into(),
            Self::HangUp => "SIGHUP".into(),
            Self::Timeout => "timeout".into(),
            Self::Idle => "idle timeout".into(),
        }
    }

    fn truth(self) -> Truth {
        let (code, reason, ended_by) = match self {
            Self::Interrupt(1) => (130, "user_cancelled", "exit"),
            Self::Cancel | Self::Interrupt(_) => (130, "user_cancelled", "cancel"),
            Self::Terminate => (143, "user_cancelled", "cancel"),
            Self::HangUp => (129, "running", "cancel"),
            Self::Timeout => (2, "max_iterations_reached", "timeout"),
            Self::Idle => (2, "max_iterations_reached", "idle"),
        };
        Truth {
            code,
            reason,
            ended_by,
        }
    }

    fn flags(self) -> Vec<&'static str> {
        let mut flags = vec!["--kill-grace", "300ms", "--max-iterations", "1"];
        match self {
            Self::Timeout => flags.extend(["--timeout", "700ms"]),
            Self::Idle => flags.extend(["--idle-timeout", "700ms"]),
            // More than one, so that one too many would show.
            _ => flags[3] = "3",
        }
        flags
    }

    /// The time that is allowed by design, before the 200 ms.
    fn given_ms(self, agent: Agent) -> f64 {
        let grace = match (self, agent) {
            // The third Ctrl-C skips the grace; the first waits for the agent's own end.
            (_, Agent::Goes) | (Self::Interrupt(1 | 3), _) => 0.0,
            (_, Agent::Stays) => GRACE_MS,
        };
        match self {
            Self::Timeout | Self::Idle => LIMIT_MS + grace,
            _ => grace,
        }
    }
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let rounds = lab.form.pick(2, 30);
    let cancels = Trial::new(lab).knows("cancel");
    let mut rows = Vec::new();
    for ending in Ending::ALL {
        for agent in [Agent::Goes, Agent::Stays] {
            let what = match agent {
                Agent::Goes => ending.name(),
                Agent::Stays => format!(
                    "{}, agent and child ignore it (grace 300 ms)",
                    ending.name()
                ),
            };
            if ending == Ending::Interrupt(1) && agent == Agent::Stays {
                continue;
            }
            if ending == Ending::Cancel && !cancels {
                rows.push(Row::cannot("M6", what, "this binary has no `loop cancel`"));
                continue;
            }
            rows.push(one(lab, ending, agent, what, rounds)?);
        }
    }
    Ok(rows)
}

fn one(lab: &Lab, ending: Ending, agent: Agent, what: String, rounds: u32) -> Result<Row, Trouble> {
    let mut ours = Vec::new();
    let mut floor = Vec::new();
    let mut lies = Vec::new();
    for _ in 0..rounds {
        floor.push(by_hand(lab, agent)? + ending.given_ms(agent));
        let (took, lie) = stopped(lab, ending, agent)?;
        ours.push(took);
        lies.extend(lie);
    }
    let bar = 200.0 + ending.given_ms(agent);
    let mut row = Row::times(lab.form, "M6", what, &ours, ("kill by hand", &floor), bar);
    if let Some(lie) = lies.first() {
        row.verdict = crate::lab::Verdict::Missed(lie.clone());
    }
    Ok(row)
}

/// Every way to stop both kinds of agents, once: what was recorded wrongly, what stayed, a grace that was not
/// given.
pub fn all_once(lab: &Lab) -> Vec<Result<(), Trouble>> {
    let pairs = Ending::ALL
        .into_iter()
        .flat_map(|ending| [(ending, Agent::Goes), (ending, Agent::Stays)]);
    let pairs = pairs.filter(|pair| *pair != (Ending::Interrupt(1), Agent::Stays));
    let one = |(ending, agent): (Ending, Agent)| {
        let (took, lie) = stopped(lab, ending, agent)?;
        let given = ending.given_ms(agent);
        let early = match ending {
            Ending::Timeout | Ending::Idle => 200.0,
            _ => 20.0,
        };
        match lie {
            Some(lie) => Err(lie),
            // A limit counts from before the agent's own stamp; and a timer may be a little early by another clock.
            None if took < given - early => Err(format!("{took:.0} ms of {given:.0} were given")),
            None => Ok(()),
        }
        .map_err(|wrong| format!("{}, {agent:?}: {wrong}", ending.name()))
    };
    pairs.map(one).collect()
}

fn script(agent: Agent, ending: Ending) -> String {
    let (manners, kind) = match agent {
        Agent::Goes => ("", "plain"),
        Agent::Stays => ("ignore TERM\nignore INT\nignore HUP\n", "ignore-term"),
    };
    let stay = if ending == Ending::Interrupt(1) {
        "wait-file go"
    } else {
        "hang"
    };
    format!("{manners}stamp stamps\nspawn-child {kind} null kids\ntouch up\n{stay}")
}

/// How long until everything was gone, and what was recorded wrongly.
fn stopped(lab: &Lab, ending: Ending, agent: Agent) -> Result<(f64, Option<String>), Trouble> {
    let trial = Trial::new(lab);
    let mut host = trial.spawn(trial.start(&script(agent, ending), &ending.flags()))?;
    trial.wait_for("up")?;
    let everyone = trial.world.processes();
    let since = ask(&trial, &host, ending)?;
    let took = gone_ms(&everyone, since, WAIT)?;
    let code = host.code()?;
    Ok((took, lie(&trial, ending, code)))
}

/// Asks for the end; gives the instant from which time counts.
fn ask(trial: &Trial<'_>, host: &Running, ending: Ending) -> Result<Instant, Trouble> {
    match ending {
        Ending::Terminate => host.signal(Signal::SIGTERM),
        Ending::HangUp => host.signal(Signal::SIGHUP),
        Ending::Interrupt(times) => {
            // Signals of one kind are merged by the kernel: each is sent once the last was heard.
            for press in 1..times {
                host.signal(Signal::SIGINT);
                trial.wait_for_events("stop_requested", press as usize)?;
            }
            let last = Instant::now();
            host.signal(Signal::SIGINT);
            if times == 1 {
                trial.wait_for_events("stop_requested", 1)?;
                trial.world.write("go", "");
                return Ok(Instant::now());
            }
            return Ok(last);
        }
        Ending::Cancel => {
            let since = Instant::now();
            let mut cancel = trial.descartes(&["loop", "cancel"]);
            cancel.stdout(Stdio::null()).stderr(Stdio::null());
            let status = cancel.status().map_err(|error| error.to_string())?;
            return if status.success() {
                Ok(since)
            } else {
                Err(format!("loop cancel: {status}"))
            };
        }
        Ending::Timeout | Ending::Idle => return started(trial),
    }
    Ok(Instant::now())
}

/// When the agent started, by its own stamp.
fn started(trial: &Trial<'_>) -> Result<Instant, Trouble> {
    let stamps = stamp::read(&trial.path("stamps"));
    let first = stamps.first().ok_or("the agent stamped nothing")?;
    let ago = Duration::from_nanos(stamp::now_ns().saturating_sub(first.ns));
    Instant::now()
        .checked_sub(ago)
        .ok_or_else(|| "a stamp before the boot".to_owned())
}

fn lie(trial: &Trial<'_>, ending: Ending, code: i32) -> Option<String> {
    let truth = ending.truth();
    let runs = trial.events("run_started").len();
    let ended = trial.events("agent_ended");
    let ended_by = ended
        .first()
        .map_or(&Value::Null, |event| &event["ended_by"]);
    let state = trial.state();
    let reason = &state["exit_reason"]["type"];
    let right =
        code == truth.code && reason == truth.reason && ended_by == truth.ended_by && runs == 1;
    (!right).then(|| {
        format!(
            "exit code {code}, reason {reason}, agent ended by {ended_by}, {runs} agents started"
        )
    })
}

/// The floor: the same agent and its child, killed at once by someone who knows both.
fn by_hand(lab: &Lab, agent: Agent) -> Result<f64, Trouble> {
    let trial = Trial::new(lab);
    let mut command = trial.world.command(&lab.agent);
    command
        .env("SCRIPTED_AGENT", script(agent, Ending::Terminate))
        .stdin(Stdio::null());
    let mut bare = trial.spawn(command)?;
    trial.wait_for("up")?;
    let everyone = trial.world.processes();
    let since = Instant::now();
    for one in &everyone {
        process::send(one.pid, Signal::SIGKILL);
    }
    let _ = bare.code()?;
    gone_ms(&everyone, since, WAIT)
}
