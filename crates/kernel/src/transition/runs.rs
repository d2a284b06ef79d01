//! Runs and iterations: what their records change.

use jiff::Timestamp;

use super::{IllegalEvent, illegal};
use crate::event::{
    Cost, Event, GateEnd, GateFacts, Progress, Record, RunFacts, Tokens, TreeFacts, Verdict,
};
use crate::limits::is_short;
use crate::state::{
    Claimed, FailedGate, GateSummary, IterationSummary, LoopState, Nudge, Phase, RunInfo, Spent,
    Unjudged,
};

pub(super) fn run_started(state: &mut LoopState, record: &Record) -> Result<(), IllegalEvent> {
    let Event::RunStarted {
        run,
        iteration,
        agent,
        guard_pid,
        before,
        notes,
        ..
    } = &record.event
    else {
        return Ok(());
    };
    if !matches!(state.phase, Phase::Ready { .. }) {
        return Err(illegal(record, "a run started while another was not over"));
    }
    if *run != state.runs + 1 || *iteration != state.iterations + 1 {
        return Err(illegal(
            record,
            "run and iteration numbers must be consecutive",
        ));
    }
    state.runs = *run;
    for note in &mut state.next_prompt.notes {
        if notes.contains(&note.id) {
            note.given_to = Some(*iteration);
        }
    }
    if state.progress.first_tree.is_none() {
        state.progress.first_tree.clone_from(&before.tree);
    }
    state.phase = Phase::Running(RunInfo {
        run: *run,
        iteration: *iteration,
        agent: *agent,
        guard_pid: *guard_pid,
        started_at: record.at,
        before: before.clone(),
        notes: notes.clone(),
    });
    Ok(())
}

pub(super) fn agent_ended(
    state: &mut LoopState,
    record: &Record,
    run: u64,
    facts: &RunFacts,
) -> Result<(), IllegalEvent> {
    match &state.phase {
        Phase::Running(info) if info.run == run => {
            state.phase = Phase::Judging {
                run: info.clone(),
                facts: Box::new(facts.clone()),
                gates: Vec::new(),
            };
            Ok(())
        }
        _ => Err(illegal(record, "an agent that was not running ended")),
    }
}

/// A gate that a person replaced while it ran proves nothing; it took its time all the same.
pub(super) fn gate_finished(
    state: &mut LoopState,
    record: &Record,
    facts: &GateFacts,
) -> Result<(), IllegalEvent> {
    let Phase::Judging { gates, .. } = &mut state.phase else {
        return Err(illegal(record, "a gate ran while nothing was judged"));
    };
    gates.push(facts.clone());
    drop_replaced_gates(state);
    Ok(())
}

/// Of the gates that ran in this iteration those stay that are in force, up to the first that is not: what
/// comes after that one runs again.
pub(super) fn drop_replaced_gates(state: &mut LoopState) {
    let verify = &state.config.verify;
    let failed = state.next_prompt.failed_gate.as_ref();
    if failed.is_some_and(|failed| !verify.contains(&failed.gate.command)) {
        // No agent is asked to make a gate green that a person took away.
        state.next_prompt.failed_gate = None;
    }
    let Phase::Judging { gates, .. } = &mut state.phase else {
        return;
    };
    let in_force = gates
        .iter()
        .zip(0..)
        .take_while(|(gate, place)| gate.gate == *place && gate.is_one_of(verify))
        .count();
    let dropped = gates.split_off(in_force);
    state.spent.ms += dropped.iter().map(|gate| gate.duration_ms).sum::<u64>();
}

/// Trees that are remembered: enough to see an agent that goes to and fro.
const TREES: usize = 8;

fn remember_tree(state: &mut LoopState, after: &TreeFacts) {
    if let Some(tree) = &after.tree
        && state.progress.recent_tree_hashes.back() != Some(tree)
    {
        state.progress.recent_tree_hashes.push_back(tree.clone());
        if state.progress.recent_tree_hashes.len() > TREES {
            state.progress.recent_tree_hashes.pop_front();
        }
    }
}

pub(super) fn iteration_finished(
    state: &mut LoopState,
    record: &Record,
) -> Result<(), IllegalEvent> {
    let Event::IterationFinished {
        iteration,
        verdict,
        progress,
        after,
        files,
        spent_ms,
        ..
    } = &record.event
    else {
        return Ok(());
    };
    let (run, facts, gates) = match std::mem::replace(&mut state.phase, Phase::READY) {
        Phase::Judging { run, facts, gates } if run.iteration == *iteration => (run, facts, gates),
        other => {
            state.phase = other;
            return Err(illegal(record, "an iteration that was not judged finished"));
        }
    };
    state.iterations = *iteration;
    if verdict.delivers() {
        delivered(state, &run, &facts);
    }
    state.spent.ms += spent_ms;
    spend(&mut state.spent, facts.tokens.as_ref(), facts.cost.as_ref());
    count_failure(state, run.agent, &facts, verdict);
    match progress {
        Progress::None => state.progress.iterations_without += 1,
        Progress::Moved(_) => {
            state.progress.iterations_without = 0;
            state.progress.nudge = Nudge::None;
        }
        Progress::Unknown(_) => {}
    }
    state.progress.quick_nothings = match progress {
        Progress::None if facts.ended_at_once() => state.progress.quick_nothings + 1,
        _ => 0,
    };
    state.progress.touched |= run.before.head != after.head || run.before.tree != after.tree;
    remember_tree(state, after);
    if !gates.is_empty() {
        state.progress.failing_gates = Some(
            gates
                .iter()
                .filter(|g| !g.passed())
                .map(|g| g.gate)
                .collect(),
        );
    }
    state.next_prompt.failed_gate = failed_gate(&gates, facts.claim.is_some());
    state.agents.limit_runs = 0;
    state.agents.short_limits = 0;
    state.tree_after = Some(after.clone());
    if verdict.proves() {
        state.completion = Some((record.at, facts.claim.clone().unwrap_or_default()));
    }
    state.verdict = Some(verdict.clone());
    state.remember(summary(&run, &facts, &gates, verdict, *files, record.at));
    Ok(())
}

/// What the run's prompt held has been delivered, now that the run counts. Of runs that met a
/// limit, were stopped or interrupted nobody knows whether anything of it was heard.
fn delivered(state: &mut LoopState, run: &RunInfo, facts: &RunFacts) {
    state.progress.nudge = state.progress.nudge.delivered();
    state
        .next_prompt
        .notes
        .retain(|note| !run.notes.contains(&note.id));
    state.next_prompt.near_miss.clone_from(&facts.near_miss);
}

fn count_failure(state: &mut LoopState, agent: u32, facts: &RunFacts, verdict: &Verdict) {
    match verdict {
        Verdict::Failed(why) => {
            state.agents.failures += 1;
            *state.agents.agent_failures.entry(agent).or_default() += 1;
            state.agents.last_failure = Some(why.clone());
            state.agents.denied_in_row = match facts.failed_by_denial() {
                true => state.agents.denied_in_row + 1,
                false => 0,
            };
            if let Some(limit) = &facts.limit
                && limit.kind == crate::event::LimitKind::Login
            {
                state.agents.fatal = Some(limit.words.clone());
            }
        }
        Verdict::Stopped => {}
        _ => {
            state.agents.failures = 0;
            state.agents.denied_in_row = 0;
            state.agents.agent_failures.remove(&agent);
            state.agents.resting.remove(&agent);
            state.agents.last_failure = None;
        }
    }
}

fn failed_gate(gates: &[GateFacts], claimed: bool) -> Option<FailedGate> {
    let failed = gates
        .iter()
        .find(|gate| !gate.passed() && gate.end != GateEnd::Cancelled)?;
    let claimed = if claimed { Claimed::Yes } else { Claimed::No };
    Some(FailedGate {
        gate: failed.clone(),
        claimed,
    })
}

fn summary(
    run: &RunInfo,
    facts: &RunFacts,
    gates: &[GateFacts],
    verdict: &Verdict,
    files: Option<u32>,
    at: Timestamp,
) -> IterationSummary {
    let gate = |g: &GateFacts| GateSummary {
        command: g.command.clone(),
        exit_code: match g.end {
            GateEnd::Exit(status) => Some(status.shell_code()),
            _ => None,
        },
        duration_ms: g.duration_ms,
        cancelled: g.end == GateEnd::Cancelled,
    };
    IterationSummary {
        iteration: run.iteration - 1,
        started_at: Some(run.started_at),
        completed_at: Some(at),
        exit_code: facts.exit.map(|e| e.shell_code()),
        output_preview: facts.preview.clone(),
        promise_checked: true,
        ended_by: Some(facts.ended_by),
        verdict: Some(verdict.clone()),
        gates: gates.iter().map(gate).collect(),
        near_miss: facts.near_miss.clone(),
        denied: facts.denied.clone(),
        files,
        tokens: facts.tokens.and_then(|t| t.total()),
        cost_usd: facts.cost.map(|c| c.micros as f64 / 1e6),
        extra: Default::default(),
    }
}

/// A run of a task's agent: counted as one of the loop's own.
pub(super) fn task_run(state: &mut LoopState, task: &str, summary: &IterationSummary) {
    state.runs += 1;
    let mut summary = summary.clone();
    summary.iteration = u32::try_from(state.runs - 1).unwrap_or(u32::MAX);
    summary.extra.insert("task".to_owned(), task.into());
    state.agents.denied_in_row = match summary.is_denied() {
        true => state.agents.denied_in_row + 1,
        false => 0,
    };
    state.remember(summary);
}

/// What the loop of a task used, as the task loop's own; its time is counted by its own clock.
pub(super) fn task_spent(state: &mut LoopState, spent: &Spent, wall_ms: u64) {
    let spent = Spent {
        ms: wall_ms,
        ..*spent
    };
    state.spent = state.spent.plus(&spent);
}

fn spend(spent: &mut Spent, tokens: Option<&Tokens>, cost: Option<&Cost>) {
    if let Some(total) = tokens.and_then(Tokens::total) {
        spent.tokens = Some(spent.tokens.unwrap_or(0).saturating_add(total));
    }
    if let Some(cost) = cost {
        spent.cost_micros = Some(spent.cost_micros.unwrap_or(0).saturating_add(cost.micros));
        spent.estimated |= cost.estimated;
    }
}

/// The iteration that is being judged while its loop ends. What it used is told with the end; it counts once it
/// is over.
pub(super) fn unjudged(state: &mut LoopState) -> Option<Box<Unjudged>> {
    let (run, facts, gates) = match std::mem::replace(&mut state.phase, Phase::READY) {
        Phase::Judging { run, facts, gates } => (run, facts, gates),
        other => {
            state.phase = other;
            return None;
        }
    };
    let spent_before = state.spent;
    state.spent.ms += facts.duration_ms + gates.iter().map(|gate| gate.duration_ms).sum::<u64>();
    spend(&mut state.spent, facts.tokens.as_ref(), facts.cost.as_ref());
    Some(Box::new(Unjudged {
        run,
        facts,
        gates,
        spent_before,
    }))
}

pub(super) fn run_discarded(state: &mut LoopState, record: &Record) -> Result<(), IllegalEvent> {
    let Event::RunDiscarded {
        run,
        limit,
        retry_at,
        ..
    } = &record.event
    else {
        return Ok(());
    };
    let (agent, facts) = match std::mem::replace(&mut state.phase, Phase::READY) {
        Phase::Judging {
            run: info, facts, ..
        } if info.run == *run => (info.agent, facts),
        other => {
            state.phase = other;
            return Err(illegal(record, "a run that was not judged was discarded"));
        }
    };
    // It is no iteration, but it is paid for.
    spend(&mut state.spent, facts.tokens.as_ref(), facts.cost.as_ref());
    state.agents.limited.insert(agent, *retry_at);
    let told = limit.until.filter(|until| *until > record.at);
    state.agents.limit_runs = match told {
        Some(_) => 0,
        None => state.agents.limit_runs + 1,
    };
    state.agents.short_limits = match told {
        Some(until) if !is_short(until.duration_since(record.at)) => 0,
        _ => state.agents.short_limits + 1,
    };
    Ok(())
}

pub(super) fn iteration_interrupted(
    state: &mut LoopState,
    record: &Record,
) -> Result<(), IllegalEvent> {
    let Event::IterationInterrupted {
        iteration,
        run,
        spent_ms,
        tokens,
        cost,
    } = &record.event
    else {
        return Ok(());
    };
    let info = match state.run() {
        Some(info) if info.run == *run => info.clone(),
        _ => {
            return Err(illegal(
                record,
                "an iteration that was not running was interrupted",
            ));
        }
    };
    state.phase = Phase::READY;
    state.iterations = *iteration;
    state.lost += 1;
    state.spent.ms += spent_ms;
    spend(&mut state.spent, tokens.as_ref(), cost.as_ref());
    state.verdict = Some(Verdict::Stopped);
    state.remember(IterationSummary {
        iteration: iteration - 1,
        started_at: Some(info.started_at),
        completed_at: Some(record.at),
        ended_by: Some(crate::event::EndedBy::HostLost),
        verdict: Some(Verdict::Stopped),
        tokens: tokens.and_then(|t| t.total()),
        cost_usd: cost.map(|c| c.micros as f64 / 1e6),
        ..IterationSummary::default()
    });
    Ok(())
}
