//! A run that a dead host left open: what can still be known of it.

use std::io::Read;

use descartes_agents::promise::{PromiseMatch, PromiseSpec};
use descartes_agents::reader::{RunReader, Source};
use descartes_kernel::event::{Cost, EndedBy, Tokens};
use descartes_kernel::state::{LoopState, RunInfo};
use descartes_kernel::step::LastSeen;
use descartes_store::logs::{GapMarks, last_output, read_log};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::LoopHandle;
use crate::logs::understood;

/// The last that is known of the run under way.
pub(super) fn last_seen(handle: &LoopHandle, state: &LoopState, run: &RunInfo) -> LastSeen {
    let (tokens, cost) = read_back(handle, state, run).unwrap_or_default();
    LastSeen {
        at: last_output(&handle.dir.run(run.run)),
        tokens,
        cost,
    }
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
