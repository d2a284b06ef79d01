//! A person's commands. Only limits, notes and waits can be changed from a browser: no route takes a
//! command, a gate, a path, an agent, a prompt or a permission.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Query as UrlQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use descartes_client::{ControlEffect, LoopHandle, Query, Sent, Ticket, answers};
use descartes_kernel::config::ConfigChange;
use descartes_kernel::control::{Command, Grace};
use descartes_kernel::state::LoopState;
use descartes_text::display::escape_json;
use descartes_text::units::{self, Secs};
use descartes_views::view::Status;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::program;
use crate::reply::{RequestFailure, blocking, typed};
use crate::sse::{self, Outlet};
use crate::state::WebState;

/// How long a loop is waited for until it has taken a command.
const ANSWER: Duration = Duration::from_secs(10);
/// How long an effect is waited for where nothing else is asked; later ones are told by the event stream.
const EFFECT: Duration = Duration::from_secs(2);
/// And at most.
const LONGEST: u64 = 60;

/// What stands behind the address.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteerQuery {
    /// Seconds to wait for the effect.
    wait: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyForm {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SayForm {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelForm {
    /// `true`: without grace.
    now: Option<bool>,
}

/// LimitsForm as people type them; an empty one stays as it is.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsForm {
    max_iterations: String,
    max_duration: String,
    max_cost: String,
    max_tokens: String,
    timeout: String,
    idle_timeout: String,
    max_failures: String,
    stall_after: String,
}

impl LimitsForm {
    fn change(&self) -> Result<ConfigChange, String> {
        let unlimited = self.max_iterations.trim().eq_ignore_ascii_case("unlimited");
        let iterations = match unlimited {
            true => Some(None),
            false => given(&self.max_iterations, number)?.map(Some),
        };
        Ok(ConfigChange {
            max_iterations: iterations,
            max_duration_secs: given(&self.max_duration, time)?,
            max_cost_usd: given(&self.max_cost, |text| {
                units::parse_usd(text).map_err(|error| error.to_string())
            })?,
            max_tokens: given(&self.max_tokens, |text| {
                units::parse_count(text).map_err(|error| error.to_string())
            })?,
            iteration_timeout_secs: given(&self.timeout, time)?,
            idle_timeout_secs: given(&self.idle_timeout, time)?,
            max_failures: given(&self.max_failures, number)?,
            stall_after: given(&self.stall_after, number)?,
            ..ConfigChange::default()
        })
    }

    /// The same as flags of the command line.
    fn flags(&self) -> Vec<String> {
        let all = [
            ("--max-iterations", &self.max_iterations),
            ("--max-duration", &self.max_duration),
            ("--max-cost", &self.max_cost),
            ("--max-tokens", &self.max_tokens),
            ("--timeout", &self.timeout),
            ("--idle-timeout", &self.idle_timeout),
            ("--max-failures", &self.max_failures),
            ("--stall-after", &self.stall_after),
        ];
        let typed = all.iter().filter(|(_, value)| !value.trim().is_empty());
        typed
            .map(|(flag, value)| format!("{flag}={}", value.trim()))
            .collect()
    }
}

fn given<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    match text.trim() {
        "" => Ok(None),
        text => read(text).map(Some),
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a whole number; use for example 5"))
}

fn time(text: &str) -> Result<Secs, String> {
    match units::parse_duration(text) {
        Ok(limit) if limit.is_zero() => Err("must be greater than zero (e.g. 30m)".to_owned()),
        Ok(limit) => Ok(Secs(limit)),
        Err(error) => Err(error.to_string()),
    }
}

/// What is to be done.
enum SteerOrder {
    Send(Command),
    Resume(Vec<String>),
}

/// Reads a form; a field that is none of its own is an error, never passed over.
fn form<T: DeserializeOwned>(body: &[u8]) -> Result<T, RequestFailure> {
    serde_urlencoded::from_bytes(body).map_err(|error| {
        let hint = "see docs/web.md: limits, notes and waits are all that can be changed here";
        RequestFailure::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string(), hint)
    })
}

fn order(verb: &str, body: &[u8]) -> Result<SteerOrder, RequestFailure> {
    let refused = |message: String, hint: &str| {
        RequestFailure::new(StatusCode::UNPROCESSABLE_ENTITY, message, hint)
    };
    let wrong = |message: String| refused(message, "for example: max_iterations=50");
    let plain = |command| form::<EmptyForm>(body).map(|_| SteerOrder::Send(command));
    match verb {
        "pause" => plain(Command::Pause),
        "unpause" => plain(Command::Unpause),
        "retry" => plain(Command::RetryNow),
        "say" => {
            let text = form::<SayForm>(body)?.text;
            match text.trim() {
                "" => Err(refused(
                    "the note is empty".to_owned(),
                    "write something, for example: text=use the new parser",
                )),
                _ => Ok(SteerOrder::Send(Command::Say { text })),
            }
        }
        "cancel" => {
            let grace = match form::<CancelForm>(body)?.now {
                Some(true) => Grace::Skip,
                _ => Grace::Ask,
            };
            Ok(SteerOrder::Send(Command::Cancel { grace }))
        }
        "set" => {
            let change = form::<LimitsForm>(body)?.change().map_err(wrong)?;
            match change.is_empty() {
                true => Err(wrong("nothing to change".to_owned())),
                false => Ok(SteerOrder::Send(Command::Set {
                    change: Box::new(change),
                })),
            }
        }
        "resume" => {
            let limits = form::<LimitsForm>(body)?;
            limits.change().map_err(wrong)?;
            Ok(SteerOrder::Resume(limits.flags()))
        }
        _ => Err(RequestFailure::new(
            StatusCode::NOT_FOUND,
            "there is nothing at this address",
            "pause, unpause, say, set, retry, cancel, resume",
        )),
    }
}

/// Carries out a command: a line of JSON for each of its answers.
pub async fn steer(
    State(app): State<Arc<WebState>>,
    Path((id, verb)): Path<(String, String)>,
    UrlQuery(query): UrlQuery<SteerQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let done = async {
        is_form(&headers, &body)?;
        match order(&verb, &body)? {
            SteerOrder::Send(command) => {
                let limit = query
                    .wait
                    .map_or(EFFECT, |secs| Duration::from_secs(secs.min(LONGEST)));
                send(&app, id, command, limit).await
            }
            SteerOrder::Resume(flags) => resume(&app, id, flags).await,
        }
    };
    done.await.unwrap_or_else(IntoResponse::into_response)
}

fn is_form(headers: &HeaderMap, body: &[u8]) -> Result<(), RequestFailure> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let right = kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    match right || body.is_empty() {
        true => Ok(()),
        false => Err(RequestFailure::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body is no form",
            "send it as application/x-www-form-urlencoded: curl -d text=…",
        )),
    }
}

/// What came of sending.
enum Outcome {
    Told(Value),
    Taken(Box<(LoopHandle, LoopState, Ticket)>),
}

async fn send(
    app: &Arc<WebState>,
    id: String,
    command: Command,
    limit: Duration,
) -> Result<Response, RequestFailure> {
    let (asked, sent) = (Arc::clone(app), command.clone());
    let outcome = blocking(move || {
        let found = find(&asked, id)?;
        deliver(found, &sent)
    });
    let (outlet, response) = sse::pieces("application/x-ndjson");
    match outcome.await? {
        Outcome::Told(told) => {
            tokio::spawn(async move { drop(outlet.send(json_line(&told)).await) });
        }
        Outcome::Taken(taken) => {
            let place = Arc::clone(&app.waits).try_acquire_owned().ok();
            // Where many wait already, it is told that it was taken, and no more.
            let limit = place.as_ref().map_or(Duration::ZERO, |_| limit);
            let thread = std::thread::Builder::new().name("effect".into());
            let spawned = thread.spawn(move || {
                wait(*taken, &command, limit, &outlet);
                drop(place);
            });
            spawned.map_err(|error| RequestFailure::internal(error.to_string()))?;
        }
    }
    Ok(response)
}

fn find(app: &WebState, id: String) -> Result<LoopHandle, RequestFailure> {
    let found = app.loops.find(&Query::Listed(id))?;
    (app.may_steer)(&found)
        .map_err(|(message, hint)| RequestFailure::new(StatusCode::FORBIDDEN, message, hint))?;
    Ok(found)
}

fn deliver(found: LoopHandle, command: &Command) -> Result<Outcome, RequestFailure> {
    let before = found.state()?;
    let told =
        |answer: &str, message: String| Ok(Outcome::Told(answer_of(&found, answer, &message)));
    if let Some(words) = answers::nothing_to_do(command, &before) {
        return told("unchanged", words.to_owned());
    }
    match found.send_within(command, ANSWER)? {
        Sent::Recorded(recorded) => {
            let (answer, words) = match recorded.records.is_empty() {
                true => ("unchanged", "the loop had already ended".to_owned()),
                false => {
                    let words = answers::recorded(command, &recorded.state);
                    ("recorded", format!("{words}; the loop is not running"))
                }
            };
            let remote = recorded.remote_agents();
            let words = [Some(words), remote].into_iter().flatten();
            told(answer, words.collect::<Vec<_>>().join("; "))
        }
        Sent::Signalled { pid } => told("signalled", format!("sent SIGTERM to process {pid}")),
        Sent::Live(ticket) => Ok(Outcome::Taken(Box::new((found, before, ticket)))),
    }
}

fn answer_of(found: &LoopHandle, answer: &str, message: &str) -> Value {
    json!({ "loop_id": found.id(), "answer": answer, "message": message })
}

fn json_line(value: &Value) -> String {
    escape_json(&value.to_string()) + "\n"
}

/// Tells that it was taken, and, where that comes soon, that it has taken effect.
fn wait(
    (found, before, mut ticket): (LoopHandle, LoopState, Ticket),
    command: &Command,
    limit: Duration,
    outlet: &Outlet,
) {
    let id = ticket.id();
    let tell = |answer: &str, message: &str| {
        let mut value = answer_of(&found, answer, message);
        value["id"] = id.into();
        outlet.send_blocking(json_line(&value))
    };
    if tell("accepted", &answers::accepted(command, &before)).is_err() {
        return;
    }
    let last = match ticket.effect(limit) {
        Ok(ControlEffect::Done(words)) => found
            .state()
            .map(|state| ("effective", answers::effective(command, &words, &state))),
        Ok(ControlEffect::Pending) => return,
        Ok(ControlEffect::HostGone) => found
            .state()
            .map(|state| ("accepted", answers::without_host(command, &state))),
        Err(error) => Err(error),
    };
    let (answer, message) = last.unwrap_or_else(|error| ("unknown", error.to_string()));
    drop(tell(answer, &message));
}

/// Takes up a loop that is not running, in the background, as `descartes loop resume --detach` does.
async fn resume(
    app: &Arc<WebState>,
    id: String,
    flags: Vec<String>,
) -> Result<Response, RequestFailure> {
    let asked = Arc::clone(app);
    let found = blocking(move || find(&asked, id)).await?;
    let mut words = vec!["--color", "never", "loop", "resume", "--detach"];
    words.extend(flags.iter().map(String::as_str));
    words.push(found.id());
    let folder = found.meta().working_dir.clone();
    let told = program::run(app, &words, Some(&folder), 64 << 10).await?;
    let answers = blocking(move || {
        let line = |answer, message: &str| json_line(&answer_of(&found, answer, message));
        if told.output.is_empty() {
            // It prints the id of a loop that goes on, and says why one does not.
            return Ok(line(
                "unchanged",
                told.talk.lines().next().unwrap_or_default(),
            ));
        }
        let look = found.look()?;
        let now = Status::of(&look.state, look.life).label();
        let accepted = line(
            "accepted",
            "accepted: a process in the background takes it up",
        );
        Ok(accepted
            + &line(
                "effective",
                &format!("resumed in the background; now: {now}"),
            ))
    });
    Ok(typed("application/x-ndjson", answers.await?))
}
