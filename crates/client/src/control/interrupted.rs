//! A run that a dead host left open: what can still be known of it.

use std::io::Read;

use descartes_kernel::event::{Cost, EndedBy, Event, Tokens};
use descartes_kernel::promise::{PromiseMatch, PromiseSpec};
use descartes_kernel::reader::{RunReader, Source};
use descartes_kernel::state::{LoopState, Phase, RunInfo};
use descartes_store::logs::{GapMarks, read_log};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::LoopHandle;
use crate::logs::understood;

/// The record that closes the iteration under way, if there is one.
pub(super) fn close(handle: &LoopHandle, state: &LoopState) -> Option<Event> {
    let (run, spent_ms, tokens, cost) = match &state.phase {
        Phase::Running(run) => {
            let (tokens, cost) = read_back(handle, state, run).unwrap_or_default();
            (run, time_of(handle, run), tokens, cost)
        }
        Phase::Judging { run, facts, gates } => {
            let gates: u64 = gates.iter().map(|gate| gate.duration_ms).sum();
            (run, facts.duration_ms + gates, facts.tokens, facts.cost)
        }
        Phase::Ready | Phase::Finished { .. } => return None,
    };
    Some(Event::IterationInterrupted {
        iteration: run.iteration,
        run: run.run,
        spent_ms,
        tokens,
        cost,
    })
}

/// Until its last sign of life.
fn time_of(handle: &LoopHandle, run: &RunInfo) -> u64 {
    let folder = handle.dir.run(run.run);
    let seen = [folder.stdout(), folder.stderr()]
        .into_iter()
        .filter_map(|log| {
            let modified =
                descartes_store::safe_open::metadata(&log).and_then(|meta| meta.modified());
            Timestamp::try_from(modified.ok()?).ok()
        });
    let spent = seen.max().map_or(0, |seen| {
        seen.as_millisecond() - run.started_at.as_millisecond()
    });
    u64::try_from(spent).unwrap_or(0)
}

/// Tokens and cost, where its stream is understood.
fn read_back(
    handle: &LoopHandle,
    state: &LoopState,
    run: &RunInfo,
) -> Option<(Option<Tokens>, Option<Cost>)> {
    let config = &state.config;
    let invocation = understood(config, &handle.known.profiles, run.agent)?;
    let spec = PromiseSpec {
        done: config.completion_promise.clone(),
        abort: config.abort_promise.clone(),
        mode: config.promise_match.unwrap_or(PromiseMatch::Tagged),
    };
    let mut reader = RunReader::understood(&spec, invocation.parser().ok()?);
    let mut log = read_log(&handle.dir.run(run.run).stdout(), GapMarks::Hidden).ok()?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match log.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => reader.push(Source::Stdout, &buffer[..read], &mut Vec::new()),
        }
    }
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let report = reader.finish(None, EndedBy::HostLost, now, &zone);
    let model = report.model.as_ref().or(config.model.as_ref());
    let priced = model.zip(report.tokens.as_ref());
    let estimate =
        || priced.and_then(|(model, tokens)| handle.known.prices.estimate(model, tokens));
    Some((report.tokens, report.cost.or_else(estimate)))
}
