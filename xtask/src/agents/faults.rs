//! Each way in which a provider or a CLI goes wrong: the run ends in bounded time, with the true
//! reason on record.

use std::time::{Duration, Instant};

use descartes_testkit::real_clis::{Options, Patience, RealCli};
use descartes_testkit::wait::poll;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::stage::{Build, STARTUP_TIMEOUT, Stage, must};
use super::table::{Table, seconds};
use crate::lab::Form;

/// An agent that neither prints nor works for so long is hung, where it will never come back.
const SOON_HUNG: &str = "10s";
/// The same, where it waits between two tries, in silence.
const LATE_HUNG: &str = "150s";

/// What must stand on record.
#[derive(Clone, Copy, Debug)]
enum Want {
    /// A provider's limit of one of these kinds: no iteration, a wait.
    Limit(&'static [&'static str]),
    /// The same, with the time of its end.
    LimitUntil(&'static [&'static str]),
    /// A failed iteration whose reason holds one of these.
    Failed(&'static [&'static str]),
    /// The loop ends at once, by exit code 7.
    Login,
    /// Work was done, nothing was claimed.
    Nothing,
}

struct Case {
    name: &'static str,
    turns: Value,
    patience: Patience,
    want: fn(RealCli) -> Want,
    /// True when it is tried with every CLI, not with the first ones alone.
    every: bool,
}

impl Case {
    fn for_every_cli(mut self) -> Self {
        self.every = true;
        self
    }
}

fn fault(name: &'static str, turn: Value, want: fn(RealCli) -> Want) -> Case {
    let mut turn = turn;
    turn["repeat"] = json!(-1);
    Case {
        name,
        turns: json!([turn]),
        patience: Patience::Hasty,
        want,
        every: false,
    }
}

fn cases() -> Vec<Case> {
    use RealCli::{Codex, Gemini, OpenCode};
    use Want::{Failed, Limit, LimitUntil, Login, Nothing};
    let hung = |_| Failed(&["hung", "time"]);
    vec![
        fault(
            "429 with a hint",
            json!({"fault": "429", "retry_after": 1}),
            |cli| match cli {
                // They try again for long, and say nothing of it.
                RealCli::Cn | RealCli::Droid => Failed(&["hung", "time"]),
                _ => Limit(&["rate"]),
            },
        )
        .for_every_cli(),
        fault("429 without", json!({"fault": "429"}), |_| Limit(&["rate"])),
        fault(
            "429, wait 10 min",
            json!({"fault": "429", "retry_after": 600}),
            |_| Limit(&["rate"]),
        ),
        fault(
            "usage limit",
            json!({"fault": "usage_limit", "reset_in": 3600}),
            |cli| match cli {
                Codex | Gemini => LimitUntil(&["usage", "rate"]),
                _ => Limit(&["rate", "usage"]),
            },
        ),
        fault("quota", json!({"fault": "quota"}), |_| {
            Limit(&["usage", "rate"])
        }),
        fault("limit as an answer", json!({"fault": "usage_text"}), |_| {
            Limit(&["usage"])
        }),
        fault("500", json!({"fault": "500"}), |_| Limit(&["overload"])),
        fault("529", json!({"fault": "529"}), |_| Limit(&["overload"])),
        Case {
            patience: Patience::Own,
            ..fault("401", json!({"fault": "401"}), |_| Login).for_every_cli()
        },
        fault("400", json!({"fault": "400"}), |_| Failed(&[""])),
        fault(
            "context too long",
            json!({"fault": "context"}),
            |cli| match cli {
                OpenCode => Failed(&["repeatedly", "long", "context"]),
                // It says why in a line of JSON on standard error.
                RealCli::Cn => Failed(&["exit code"]),
                _ => Failed(&["long", "token", "context"]),
            },
        )
        .for_every_cli(),
        fault("stream cut", json!({"fault": "cut"}), |cli| match cli {
            OpenCode => Failed(&["kept retrying", ""]),
            _ => Limit(&["network", "overload"]),
        }),
        fault("web page", json!({"fault": "html"}), |cli| match cli {
            OpenCode => Failed(&["kept retrying", ""]),
            _ => Limit(&["network", "overload"]),
        }),
        fault("empty answer", json!({"fault": "empty"}), |_| {
            Failed(&["nothing", "empty"])
        }),
        fault(
            "answer cut short",
            json!({"text": "This is as far as I", "stop": "max_tokens"}),
            |cli| match cli {
                // To these two it is an answer like any other.
                Gemini | OpenCode => Nothing,
                _ => Failed(&["max", "length", "token"]),
            },
        ),
        fault("no answer", json!({"fault": "hang"}), hung).for_every_cli(),
        fault("stream stalls", json!({"fault": "stall"}), hung),
    ]
}

/// Runs all of them.
pub fn run(stage: &Build<'_>, form: Form, table: &mut Table) -> Result<(), String> {
    for case in cases() {
        let mut stage = stage(&format!("fault-{}", case.name.replace([' ', ','], "-")));
        // Gptme tells its errors in the frames of a traceback, which nothing here reads.
        let tried = case.every && stage.cli != RealCli::Gptme;
        if !tried && !RealCli::FIRST.contains(&stage.cli) {
            continue;
        }
        let options = Options {
            patience: case.patience,
            ..Options::default()
        };
        stage.script(case.turns, &options)?;
        let seen = once(&stage, form, (case.want)(stage.cli));
        table.add(stage.cli.name(), case.name, seen);
    }
    let mut stage = stage("fault-dead-port");
    if !RealCli::FIRST.contains(&stage.cli) {
        return Ok(());
    }
    // A port that nobody listens on: bound for a moment, then let go.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| error.to_string())?;
    stage.point_at(&format!("http://{port}"), &Options::default())?;
    let seen = once(&stage, form, Want::Limit(&["network"]))
        .or_else(|_| once_more(&stage, Want::Failed(&["hung"])));
    table.add(stage.cli.name(), "nobody listens", seen);
    Ok(())
}

/// Some wait for the network in silence, some tell that there is none.
fn once_more(stage: &Stage<'_>, want: Want) -> Result<String, String> {
    let ended = stage.records("agent_ended");
    let ended = ended.first().ok_or("the run did not end")?;
    judge(stage, ended, want)?;
    Ok("hung, and ended".to_owned())
}

fn once(stage: &Stage<'_>, form: Form, want: Want) -> Result<String, String> {
    let program = stage.program()?;
    let idle = match want {
        Want::Failed(&["hung", ..]) | Want::Limit(&["network"]) => SOON_HUNG,
        _ => LATE_HUNG,
    };
    let flags = ["-m", "3", "--max-failures", "1", "--idle-timeout", idle];
    let began = Instant::now();
    let mut child = stage.spawn(stage.start(&program, &flags)?)?;
    let ended = stage.await_record("agent_ended", STARTUP_TIMEOUT);
    let took = began.elapsed();
    let seen = match &ended {
        None => Err(format!("still running after {}", seconds(took))),
        Some(ended) => judge(stage, ended, want),
    };
    let code = finish(&mut child, want);
    let gone = stage.gone(form.deadline(Duration::from_secs(5)));
    let requests = stage.requests();
    let told = seen
        .and_then(|told| gone.map(|()| told))
        .and_then(|told| match (want, code) {
            (Want::Login, code) if code != Some(7) => Err(format!("exit code {code:?}")),
            _ => Ok(told),
        });
    told.map(|told| format!("{}, {requests} requests: {told}", seconds(took)))
        .map_err(|wrong| {
            format!(
                "{wrong} ({}, {requests} requests) {}",
                seconds(took),
                stage.said()
            )
        })
}

/// A loop that waits for a limit is ended; one that ends by itself is waited for.
fn finish(child: &mut std::process::Child, want: Want) -> Option<i32> {
    let by_itself = matches!(want, Want::Login | Want::Failed(_));
    if !by_itself {
        descartes_testkit::process::send(i32::try_from(child.id()).unwrap_or(0), Signal::SIGTERM);
    }
    let over = poll(Duration::from_secs(20), &mut || {
        child.try_wait().ok().flatten()
    });
    if over.is_none() {
        // Its trouble is told by what stands on record.
        drop(child.kill());
        drop(child.wait());
    }
    over.and_then(|status| status.code())
}

fn judge(stage: &Stage<'_>, facts: &Value, want: Want) -> Result<String, String> {
    let limit = &facts["limit"];
    let kind = limit["kind"].as_str().unwrap_or("none");
    let brief = format!(
        "ended by {}, limit {kind}, error {}",
        facts["ended_by"], facts["error"]
    );
    let wrong = || format!("wanted {want:?}: {brief}");
    match want {
        Want::Limit(kinds) => must(kinds.contains(&kind), wrong)?,
        Want::LimitUntil(kinds) => {
            must(kinds.contains(&kind) && limit["until"].is_string(), wrong)?;
        }
        Want::Login => must(kind == "login", wrong)?,
        Want::Nothing => must(limit.is_null() && facts["claim"].is_null(), wrong)?,
        Want::Failed(reasons) => {
            // An agent that sets up its files first has worked in its first iteration.
            let within = Duration::from_secs(if stage.cli == RealCli::Aider { 60 } else { 20 });
            let failed = |record: &Value| {
                let why = record["verdict"]["failed"].as_str().map(str::to_lowercase);
                why.is_some_and(|why| reasons.iter().any(|reason| why.contains(reason)))
            };
            let held = poll(within, &mut || {
                let finished = stage.records("iteration_finished");
                finished.iter().any(failed).then_some(())
            });
            must(held.is_some() && limit.is_null(), wrong)?;
        }
    }
    Ok(brief)
}
