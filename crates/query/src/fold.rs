//! One record of a journal as changes of the tables.

use std::io::{Read, Seek, SeekFrom};

use descartes_kernel::event::{Event, GateEnd, GateFacts, Record, RunFacts, WaitReason};
use descartes_kernel::sched::{self, AttemptEnd, CommitEnd, Next};
use descartes_store::catalog::LoopEntry;
use rusqlite::{Connection, Params, params};
use serde::Serialize;
use serde_json::Value;

/// Bytes of an agent's output that are kept from its end.
const TAIL: u64 = 2000;

/// Takes the records of one loop.
pub(crate) struct Fold<'c> {
    connection: &'c Connection,
    entry: &'c LoopEntry,
}

type SqlResult = rusqlite::Result<()>;

impl<'c> Fold<'c> {
    pub(crate) fn new(connection: &'c Connection, entry: &'c LoopEntry) -> Self {
        Self { connection, entry }
    }

    fn id(&self) -> &str {
        &self.entry.meta.id
    }

    fn run(&self, sql: &str, params: impl Params) -> SqlResult {
        self.connection
            .prepare_cached(sql)?
            .execute(params)
            .map(drop)
    }

    pub(crate) fn take(&self, record: &Record) -> SqlResult {
        self.event(record)?;
        let (id, at) = (self.id(), record.at.to_string());
        match &record.event {
            Event::LoopCreated { .. } => self.created(record),
            Event::RunStarted {
                run,
                iteration,
                agent,
                prompt_bytes,
                ..
            } => self.run(
                "insert or replace into runs (loop_id, run, iteration, agent, started_at, \
                 prompt_bytes) values (?1, ?2, ?3, ?4, ?5, ?6)",
                params![id, *run as i64, iteration, agent, at, *prompt_bytes as i64],
            ),
            Event::AgentEnded { run, facts, .. } => self.agent_ended(*run, facts, &at),
            Event::GateFinished { iteration, facts } => self.gate(*iteration, facts, &at),
            Event::IterationFinished { .. } => self.iteration(record),
            Event::IterationInterrupted {
                iteration,
                run,
                spent_ms,
                tokens,
                cost,
            } => {
                let tokens = tokens.as_ref().and_then(|tokens| tokens.total());
                self.run(
                    "update runs set ended_at = ?3, tokens = ?4, cost_usd = ?5 \
                     where loop_id = ?1 and run = ?2",
                    params![
                        id,
                        *run as i64,
                        at,
                        tokens.map(|n| n as i64),
                        cost.map(|cost| cost.micros as f64 / 1e6)
                    ],
                )?;
                self.close(*iteration, *run, &at, *spent_ms)?;
                self.run(
                    "update iterations set verdict = 'interrupted' \
                     where loop_id = ?1 and iteration = ?2",
                    params![id, iteration],
                )
            }
            Event::RunDiscarded {
                run,
                limit,
                retry_at,
                ..
            } => self.run(
                "update runs set counted = 0, limit_words = ?3, retry_at = ?4 \
                 where loop_id = ?1 and run = ?2",
                params![id, *run as i64, limit.words, retry_at.to_string()],
            ),
            Event::WaitStarted { until, reason } => {
                let why = match reason {
                    WaitReason::Limit(_) => "limit",
                    WaitReason::Failures(_) => "failures",
                    WaitReason::NothingDone(_) => "nothing_done",
                };
                let words = reason.describe();
                self.run(
                    "insert into waits (loop_id, started_at, until, why, words) \
                     values (?1, ?2, ?3, ?4, ?5)",
                    params![id, at, until.to_string(), why, words],
                )
            }
            Event::WaitEnded { by } => self.run(
                "update waits set ended_at = ?2, ended_by = ?3 \
                 where loop_id = ?1 and ended_at is null",
                params![id, at, word(by).0],
            ),
            Event::CommandAccepted {
                id: number,
                command,
                ..
            } => {
                let (name, data) = word(command);
                self.run(
                    "insert into commands (loop_id, id, command, accepted_at, data) \
                     values (?1, ?2, ?3, ?4, ?5)",
                    params![id, *number as i64, name, at, data],
                )
            }
            Event::CommandEffective { id: number } => self.run(
                "update commands set effective_at = ?3 where loop_id = ?1 and id = ?2",
                params![id, *number as i64, at],
            ),
            Event::LoopFinished { reason } => self.run(
                "update loops set ended_at = ?2, exit_reason = ?3, exit_code = ?4, message = ?5 \
                 where loop_id = ?1",
                params![
                    id,
                    at,
                    word(reason).0,
                    reason.exit_code(),
                    reason.sentence()
                ],
            ),
            Event::LoopReopened => self.run(
                "update loops set ended_at = null, exit_reason = null, exit_code = null, \
                 message = null where loop_id = ?1",
                params![id],
            ),
            Event::TasksPlanned { tag, tasks, .. } => {
                self.run(
                    "update loops set tag = ?2 where loop_id = ?1",
                    params![id, tag],
                )?;
                for task in tasks {
                    self.run(
                        "insert into tasks (loop_id, task, title, wave, complexity) \
                         values (?1, ?2, ?3, ?4, ?5) on conflict (loop_id, task) do update \
                         set title = ?3, wave = ?4, complexity = ?5",
                        params![id, &*task.id, task.title, task.wave, task.complexity],
                    )?;
                }
                Ok(())
            }
            Event::Tasks { event } => self.task(event, &at),
            Event::TaskRun {
                task,
                loop_id,
                spent,
                ..
            } => {
                let seconds = spent.ms as f64 / 1e3;
                let tokens = spent.tokens.map(|n| n as i64);
                let cost = spent.cost_micros.map(|n| n as f64 / 1e6);
                self.run(
                    "update tasks set task_loop = ?3, seconds = seconds + ?4, \
                     tokens = case when ?5 is null then tokens else coalesce(tokens, 0) + ?5 end, \
                     cost_usd = case when ?6 is null then cost_usd \
                     else coalesce(cost_usd, 0) + ?6 end where loop_id = ?1 and task = ?2",
                    params![id, &**task, loop_id, seconds, tokens, cost],
                )?;
                self.spend(seconds, tokens, cost)?;
                self.run(
                    "update loops set iterations = iterations + 1 where loop_id = ?1",
                    params![id],
                )
            }
            _ => Ok(()),
        }
    }

    fn event(&self, record: &Record) -> SqlResult {
        let data = match &record.event {
            // It repeats what stands before it.
            Event::Checkpoint { .. } => None,
            event => serde_json::to_value(event).ok(),
        };
        let kind = serde_kind(&record.event, data.as_ref());
        self.run(
            "insert or replace into events (loop_id, seq, at, kind, data) \
             values (?1, ?2, ?3, ?4, ?5)",
            params![
                self.id(),
                record.seq as i64,
                record.at.to_string(),
                kind,
                data.map(|data| data.to_string())
            ],
        )
    }

    fn created(&self, record: &Record) -> SqlResult {
        let Event::LoopCreated {
            name,
            config,
            started_at,
            iterations,
            ..
        } = &record.event
        else {
            return Ok(());
        };
        let meta = &self.entry.meta;
        let family = |key: &str| meta.extra.get(key).and_then(Value::as_str);
        let directory = config.working_directory.clone();
        self.run(
            "insert or replace into loops (loop_id, name, parent, task, directory, state_file, \
             command, backend, model, prompt, promise, max_iterations, started_at, iterations) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            params![
                meta.id,
                name,
                family("parent"),
                family("task"),
                directory.map(|dir| dir.display().to_string()),
                meta.state_file.display().to_string(),
                config.command_line(),
                config.backend.backend_type,
                config.model,
                config.prompt,
                config.completion_promise,
                config.max_iterations,
                started_at.to_string(),
                iterations,
            ],
        )
    }

    fn agent_ended(&self, run: u64, facts: &RunFacts, at: &str) -> SqlResult {
        let tokens = facts.tokens.unwrap_or_default();
        let number = |n: Option<u64>| n.map(|n| n as i64);
        self.run(
            "update runs set ended_at = ?3, seconds = ?4, exit_code = ?5, ended_by = ?6, \
             promise = ?7, error = ?8, stdout_bytes = ?9, stderr_bytes = ?10, tokens_in = ?11, \
             tokens_out = ?12, tokens_cached = ?13, tokens = ?14, cost_usd = ?15, \
             cost_estimated = ?16, output = ?17, near_misses = ?18, near_miss = ?19 \
             where loop_id = ?1 and run = ?2",
            params![
                self.id(),
                run as i64,
                at,
                facts.duration_ms as f64 / 1e3,
                facts.exit.map(|exit| exit.shell_code()),
                word(&facts.ended_by).0,
                facts.claim,
                facts.error,
                facts.stdout_bytes as i64,
                facts.stderr_bytes as i64,
                number(tokens.input),
                number(tokens.output),
                number(tokens.cache_read),
                number(tokens.total()),
                facts.cost.map(|cost| cost.micros as f64 / 1e6),
                facts.cost.map(|cost| cost.estimated),
                facts.preview,
                facts.near_miss.as_ref().map(|near| near.count as i64),
                facts.near_miss.as_ref().map(|near| near.line.as_str()),
            ],
        )
    }

    fn gate(&self, iteration: u32, facts: &GateFacts, at: &str) -> SqlResult {
        let (outcome, code) = match facts.end {
            GateEnd::Exit(status) if status.is_success() => ("green", Some(0)),
            GateEnd::Exit(status) => ("red", Some(status.shell_code())),
            GateEnd::Timeout => ("timeout", None),
            GateEnd::Cancelled => ("cancelled", None),
        };
        self.run(
            "insert into gates (loop_id, iteration, gate, command, outcome, exit_code, seconds, \
             ended_at, tail) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                self.id(),
                iteration,
                facts.gate + 1,
                facts.command,
                outcome,
                code,
                facts.duration_ms as f64 / 1e3,
                at,
                facts.tail,
            ],
        )
    }

    fn iteration(&self, record: &Record) -> SqlResult {
        let Event::IterationFinished {
            iteration,
            run,
            verdict,
            progress,
            files,
            commit,
            spent_ms,
            ..
        } = &record.event
        else {
            return Ok(());
        };
        let at = record.at.to_string();
        self.close(*iteration, *run, &at, *spent_ms)?;
        let (verdict, reason) = word(verdict);
        self.run(
            "update iterations set verdict = ?3, reason = ?4, progress = ?5, files = ?6, \
             commit_hash = ?7 where loop_id = ?1 and iteration = ?2",
            params![
                self.id(),
                iteration,
                verdict,
                reason,
                word(progress).0,
                files,
                commit,
            ],
        )
    }

    /// The row of an iteration that is over, from that of its run.
    fn close(&self, iteration: u32, run: u64, at: &str, spent_ms: u64) -> SqlResult {
        let (id, seconds) = (self.id(), spent_ms as f64 / 1e3);
        self.run(
            "insert or replace into iterations (loop_id, iteration, task, run, started_at, \
             ended_at, seconds, exit_code, ended_by, promise, near_misses, near_miss, gates_green, gates_red, tokens, \
             cost_usd, output, output_tail) \
             select ?1, ?2, (select task from loops where loop_id = ?1), run, started_at, ?4, ?5, \
             exit_code, ended_by, promise, near_misses, near_miss, \
             (select count(*) from gates where loop_id = ?1 and iteration = ?2 \
              and outcome = 'green'), \
             (select count(*) from gates where loop_id = ?1 and iteration = ?2 \
              and outcome <> 'green'), \
             tokens, cost_usd, output, ?6 from runs where loop_id = ?1 and run = ?3",
            params![id, iteration, run as i64, at, seconds, self.tail(run)],
        )?;
        self.run(
            "update loops set iterations = max(iterations, ?2) where loop_id = ?1",
            params![id, iteration],
        )?;
        let found = self
            .connection
            .prepare_cached("select tokens, cost_usd from runs where loop_id = ?1 and run = ?2")?
            .query_row(params![id, run as i64], |row| {
                Ok((row.get(0)?, row.get(1)?))
            });
        let (tokens, cost) = match found {
            Ok(found) => found,
            Err(rusqlite::Error::QueryReturnedNoRows) => (None, None),
            Err(error) => return Err(error),
        };
        self.spend(seconds, tokens, cost)
    }

    fn spend(&self, seconds: f64, tokens: Option<i64>, cost: Option<f64>) -> SqlResult {
        self.run(
            "update loops set seconds = seconds + ?2, \
             tokens = case when ?3 is null then tokens else coalesce(tokens, 0) + ?3 end, \
             cost_usd = case when ?4 is null then cost_usd else coalesce(cost_usd, 0) + ?4 end \
             where loop_id = ?1",
            params![self.id(), seconds, tokens, cost],
        )
    }

    /// The end of what the agent printed, as long as its log is there.
    fn tail(&self, run: u64) -> Option<String> {
        let mut file =
            descartes_store::safe_open::open_read(&self.entry.dir.run(run).stdout()).ok()?;
        let size = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL))).ok()?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes).ok()?;
        // The cut may go through a character.
        let text = String::from_utf8_lossy(&bytes);
        Some(text.trim_start_matches('\u{fffd}').to_owned())
    }

    fn task(&self, event: &sched::Event, at: &str) -> SqlResult {
        let id = self.id();
        for (task, status) in event.statuses() {
            self.run(
                "update tasks set status = ?3, reason = null where loop_id = ?1 and task = ?2",
                params![id, &**task, status.to_string()],
            )?;
        }
        match event {
            sched::Event::AttemptStarted {
                task,
                slot,
                attempt,
            } => {
                self.run(
                    "insert into attempts (loop_id, task, attempt, slot, started_at) \
                     values (?1, ?2, ?3, ?4, ?5)",
                    params![id, &**task, attempt, slot, at],
                )?;
                self.run(
                    "update tasks set attempts = attempts + 1, \
                     started_at = coalesce(started_at, ?3) where loop_id = ?1 and task = ?2",
                    params![id, &**task, at],
                )
            }
            sched::Event::AttemptEnded { task, end, next } => {
                self.run(
                    "update attempts set ended_at = ?3, outcome = ?4, evidence = ?5 \
                     where loop_id = ?1 and task = ?2 and ended_at is null",
                    params![id, &**task, at, tag_of(end, "end"), evidence(end)],
                )?;
                self.next(task, next, at)
            }
            sched::Event::MergeEnded { task, next, .. } => self.next(task, next, at),
            // No attempt was made.
            sched::Event::ClaimRefused { task, .. } => {
                self.run(
                    "delete from attempts where loop_id = ?1 and task = ?2 and ended_at is null",
                    params![id, &**task],
                )?;
                self.run(
                    "update tasks set attempts = attempts - 1 \
                     where loop_id = ?1 and task = ?2 and attempts > 0",
                    params![id, &**task],
                )
            }
            sched::Event::WaveCommitEnded { wave, end } => {
                let commit = match end {
                    CommitEnd::Committed { commit } => commit.clone(),
                    CommitEnd::Failed { .. } => return Ok(()),
                };
                self.run(
                    "insert into waves (loop_id, wave, ended_at, commit_hash) \
                     values (?1, ?2, ?3, ?4)",
                    params![id, wave, at, commit],
                )
            }
            _ => Ok(()),
        }
    }

    fn next(&self, task: &str, next: &Next, at: &str) -> SqlResult {
        let reason = match next {
            Next::Block { reason } => Some(reason.describe()),
            _ => None,
        };
        let over = matches!(next, Next::Done | Next::Block { .. } | Next::Pass { .. });
        self.run(
            "update tasks set ended_at = ?3, reason = ?4 where loop_id = ?1 and task = ?2",
            params![self.id(), task, over.then_some(at), reason],
        )
    }
}

fn evidence(end: &AttemptEnd) -> Option<String> {
    match end {
        AttemptEnd::Red { tail }
        | AttemptEnd::OutOfScope { tail }
        | AttemptEnd::Uncarried { tail } => Some(tail.clone()),
        AttemptEnd::CutOff { message, tail, .. } => Some(match tail.is_empty() {
            true => message.clone(),
            false => format!("{message}\n{tail}"),
        }),
        AttemptEnd::Failed { message }
        | AttemptEnd::AtLimit { message }
        | AttemptEnd::NotTakenIn { message }
        | AttemptEnd::BlockedByAgent { message } => Some(message.clone()),
        AttemptEnd::Limited { until, .. } => Some(format!("until {until}")),
        AttemptEnd::Green { .. }
        | AttemptEnd::Interrupted
        | AttemptEnd::Cancelled
        | AttemptEnd::NoPromise
        | AttemptEnd::NothingDone => None,
    }
}

fn serde_kind(event: &Event, data: Option<&Value>) -> String {
    match (event, data) {
        (Event::Checkpoint { .. }, _) => "checkpoint".to_owned(),
        (_, Some(data)) => match data.get("kind").and_then(Value::as_str) {
            Some(kind) => kind.to_owned(),
            None => "unknown".to_owned(),
        },
        (_, None) => "unknown".to_owned(),
    }
}

fn tag_of(value: &impl Serialize, key: &str) -> Option<String> {
    let value = serde_json::to_value(value).ok()?;
    Some(value.get(key)?.as_str()?.to_owned())
}

/// The name of an enum's variant as the journal writes it, and what it carries.
fn word(value: &impl Serialize) -> (Option<String>, Option<String>) {
    let shown = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => (Some(name), None),
        Ok(Value::Object(mut fields)) => {
            for key in ["type", "kind", "command"] {
                if let Some(Value::String(name)) = fields.shift_remove(key) {
                    let rest = (!fields.is_empty()).then(|| Value::Object(fields).to_string());
                    return (Some(name), rest);
                }
            }
            match fields.iter().next() {
                Some((name, inner)) => (Some(name.clone()), shown(inner)),
                None => (None, None),
            }
        }
        _ => (None, None),
    }
}
