//! Cancel, SIGTERM to descartes and SIGKILL of it, in the middle of a tool call: nothing survives.

use std::process::Child;
use std::time::{Duration, Instant};

use descartes_testkit::process::send;
use descartes_testkit::real_clis::Options;
use descartes_testkit::wait::poll;
use nix::sys::signal::Signal;
use serde_json::json;

use super::stage::{Build, STARTUP_TIMEOUT, Stage, must};
use super::table::{Table, seconds};
use crate::lab::Form;

/// From the stop until the last process is gone.
const BAR: Duration = Duration::from_secs(2);

/// Who stops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// `descartes loop cancel`.
    Cancel,
    /// SIGTERM to descartes.
    Terminate,
    /// SIGKILL of descartes itself.
    Kill,
}

/// Runs both.
pub fn run(stage: &Build<'_>, form: Form, table: &mut Table) -> Result<(), String> {
    let times = form.pick(2, 20);
    let ways = [
        (How::Cancel, "cancel in tool"),
        (How::Terminate, "SIGTERM in tool"),
        (How::Kill, "SIGKILL in tool"),
    ];
    for (how, name) in ways {
        let mut worst = Duration::ZERO;
        let mut seen = Ok(());
        let mut agent = "";
        for round in 0..times {
            let mut stage = stage(&format!("stop-{how:?}-{round}"));
            agent = stage.cli.name();
            match once(&mut stage, how) {
                Ok(time) => worst = worst.max(time),
                Err(wrong) => seen = Err(format!("round {}: {wrong}", round + 1)),
            }
            if seen.is_err() {
                break;
            }
        }
        let told = format!("{times} times, 0 survivors, worst {}", seconds(worst));
        let late = form.judge(worst <= BAR, || format!("worst {}", seconds(worst)));
        table.judged(agent, name, seen.map(|()| told), late);
    }
    Ok(())
}

/// A cancel, once: enough to see whether a new version leaves anything behind.
pub fn cancel_once(stage: &Build<'_>, table: &mut Table) {
    let mut stage = stage("stop-once");
    let seen = once(&mut stage, How::Cancel);
    let told = seen.map(|time| format!("0 survivors, {}", seconds(time)));
    table.add(stage.cli.name(), "cancel in tool", told);
}

fn once(stage: &mut Stage<'_>, how: How) -> Result<Duration, String> {
    let work = "touch started; sleep 300; echo late";
    let turns = match stage.cli.has_tools() {
        true => json!([
            {"text": "This takes long.", "tool": {"shell": work}},
            {"text": "Done.\n\n<promise>COMPLETE</promise>"},
        ]),
        // Its own tests are what takes long.
        false => {
            stage.more_words = ["--auto-test", "--test-cmd", work]
                .map(str::to_owned)
                .into();
            json!([stage.cli.writes("This takes long.", "work.txt", "one\n")])
        }
    };
    stage.script(turns, &Options::default())?;
    let program = stage.program()?;
    let mut child = stage.spawn(stage.start(&program, &["-m", "1"])?)?;
    let busy = poll(STARTUP_TIMEOUT, &mut || {
        stage.world.has("started").then_some(())
    });
    if busy.is_none() {
        end(&mut child);
        return Err(format!("the tool did not start: {}", stage.said()));
    }
    let began = Instant::now();
    let told = match how {
        How::Cancel => cancel(stage),
        How::Terminate => signal(&child, Signal::SIGTERM),
        How::Kill => signal(&child, Signal::SIGKILL),
    };
    let gone = reaped(&mut child).and_then(|()| stage.gone(BAR * 5));
    let took = began.elapsed();
    end(&mut child);
    told.and(gone)?;
    if how != How::Kill {
        let ended = stage.records("loop_finished");
        must(
            ended
                .last()
                .is_some_and(|end| end["reason"]["type"] == "user_cancelled"),
            || format!("recorded as {ended:?}"),
        )?;
    }
    Ok(took)
}

fn signal(child: &Child, signal: Signal) -> Result<(), String> {
    send(i32::try_from(child.id()).unwrap_or(0), signal);
    Ok(())
}

fn cancel(stage: &Stage<'_>) -> Result<(), String> {
    let run = stage.world.run(stage.descartes(&["loop", "cancel"])?);
    must(run.code() == Some(0), || format!("cancel: {run}"))
}

/// Our own child is a zombie until it is waited for.
fn reaped(child: &mut Child) -> Result<(), String> {
    let over = poll(BAR * 5, &mut || child.try_wait().ok().flatten());
    over.map(|_| ())
        .ok_or_else(|| "descartes did not end".to_owned())
}

fn end(child: &mut Child) {
    // It is gone already where all went well.
    drop(child.kill());
    drop(child.wait());
}
