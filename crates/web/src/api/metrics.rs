//! `/metrics`, as Prometheus reads them. Sums come from the index over all journals, states from the
//! loops themselves.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use descartes_client::{Brief, Loops, Query};
use descartes_query::{Index, SqlValue};
use descartes_store::layout::StateRoot;
use descartes_views::view::{Status, queue_lengths};

use crate::live::first;
use crate::reply::{RequestFailure, blocking, typed};
use crate::state::WebState;

const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub async fn metrics(State(app): State<Arc<WebState>>) -> Response {
    let mut feed = app.hub.fleet();
    let fleet = first(&mut feed, |view| view.version > 0).await;
    let loops = app.loops.clone();
    let refused = app.refusals();
    let made = blocking(move || {
        let mut out = states(&fleet.briefs);
        out.push_str(&queues(&fleet.briefs, &loops));
        out.push_str(&sums(loops.root())?);
        let help = "Requests that were not let in, by why";
        head(&mut out, "requests_refused_total", "counter", help);
        for (why, count) in refused {
            sample(
                &mut out,
                "requests_refused_total",
                &label("why", why),
                count as f64,
            );
        }
        Ok(typed(FORMAT, out))
    });
    made.await.unwrap_or_else(IntoResponse::into_response)
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(
        out,
        "# HELP descartes_{name} {help}.\n# TYPE descartes_{name} {kind}"
    );
}

fn sample(out: &mut String, name: &str, labels: &str, value: f64) {
    let _ = writeln!(out, "descartes_{name}{labels} {value}");
}

/// Loops by their state. Those of tasks are part of their task loop.
fn states(briefs: &[Brief]) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for brief in briefs.iter().filter(|brief| brief.parent.is_none()) {
        let state = match &brief.standing {
            Ok(standing) => serde_json::to_value(&standing.status)
                .ok()
                .and_then(|status| Some(status["status"].as_str()?.to_owned()))
                .unwrap_or_default(),
            Err(_) => "unreadable".to_owned(),
        };
        *counts.entry(state).or_default() += 1;
    }
    let mut out = String::new();
    head(&mut out, "loops", "gauge", "Loops by state");
    for (state, count) in counts {
        sample(&mut out, "loops", &label("state", &state), count as f64);
    }
    out
}

/// The tasks of loops that have not ended, by what they are at or wait for.
fn queues(briefs: &[Brief], loops: &Loops) -> String {
    let mut lengths = BTreeMap::from([("agent", 0), ("work", 0), ("merge", 0)]);
    for brief in briefs {
        let is_open = brief.standing.as_ref().is_ok_and(|standing| {
            standing.tasks.is_some() && !matches!(standing.status, Status::Ended { .. })
        });
        let found = is_open.then(|| loops.find(&Query::Listed(brief.id.clone())).ok());
        // One that vanishes meanwhile has no queue.
        let state = found.flatten().and_then(|found| found.state().ok());
        let tasks = state.as_ref().and_then(|state| state.tasks.as_deref());
        for (stage, length) in tasks.map(queue_lengths).into_iter().flatten() {
            *lengths.entry(stage).or_default() += length;
        }
    }
    let mut out = String::new();
    let help = "Tasks of loops that have not ended, by what they wait for or are at";
    head(&mut out, "task_queue", "gauge", help);
    for (stage, length) in lengths {
        sample(&mut out, "task_queue", &label("for", stage), length as f64);
    }
    out
}

/// A question to the index whose answer is one metric: the name of its label where it has one.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    label: Option<&'static str>,
    sql: &'static str,
}

const METRICS: [Metric; 11] = [
    Metric {
        name: "loops_ended_total",
        kind: "counter",
        help: "Loops that have ended, by reason",
        label: Some("reason"),
        sql: "select exit_reason, count(*) from loops where parent is null and ended_at is not null group by 1",
    },
    Metric {
        name: "iterations_total",
        kind: "counter",
        help: "Iterations that counted",
        label: None,
        sql: "select sum(iterations) from loops where tag is null",
    },
    Metric {
        name: "runs_limited_total",
        kind: "counter",
        help: "Runs that met a provider limit",
        label: None,
        sql: "select count(*) from runs where counted = 0",
    },
    Metric {
        name: "gates_total",
        kind: "counter",
        help: "Gates that were run, by outcome",
        label: Some("outcome"),
        sql: "select outcome, count(*) from gates group by 1",
    },
    Metric {
        name: "tokens_total",
        kind: "counter",
        help: "Tokens, as far as agents told",
        label: None,
        sql: "select sum(tokens) from loops where parent is null",
    },
    Metric {
        name: "cost_dollars_total",
        kind: "counter",
        help: "Cost in dollars, as far as agents told",
        label: None,
        sql: "select sum(cost_usd) from loops where parent is null",
    },
    Metric {
        name: "waits_total",
        kind: "counter",
        help: "Waits, by why",
        label: Some("why"),
        sql: "select why, count(*) from waits group by 1",
    },
    Metric {
        name: "waits_open",
        kind: "gauge",
        help: "Waits that last",
        label: None,
        sql: "select count(*) from waits join loops using (loop_id) where waits.ended_at is null and loops.ended_at is null",
    },
    Metric {
        name: "waves_landed_total",
        kind: "counter",
        help: "Waves of tasks that were completed",
        label: None,
        sql: "select count(*) from waves",
    },
    Metric {
        name: "tasks",
        kind: "gauge",
        help: "Tasks of task loops, by status",
        label: Some("status"),
        sql: "select status, count(*) from tasks group by 1",
    },
    Metric {
        name: "commands_total",
        kind: "counter",
        help: "Commands given by people",
        label: Some("command"),
        sql: "select command, count(*) from commands group by 1",
    },
];

fn sums(root: &StateRoot) -> Result<String, RequestFailure> {
    let failed = |error: descartes_query::QueryError| RequestFailure::internal(error.to_string());
    let (index, unread) = Index::open(root).map_err(failed)?;
    let mut out = String::new();
    for metric in METRICS {
        head(&mut out, metric.name, metric.kind, metric.help);
        for row in index.ask(metric.sql).map_err(failed)?.rows {
            let (labels, value) = match (metric.label, row.as_slice()) {
                (Some(name), [SqlValue::Text(text), value]) => (label(name, text), value),
                (None, [value]) => (String::new(), value),
                _ => continue,
            };
            sample(&mut out, metric.name, &labels, as_number(value));
        }
    }
    head(
        &mut out,
        "journals_unreadable",
        "gauge",
        "Journals that cannot be read",
    );
    sample(&mut out, "journals_unreadable", "", unread.len() as f64);
    Ok(out)
}

fn as_number(value: &SqlValue) -> f64 {
    match value {
        SqlValue::Integer(number) => *number as f64,
        SqlValue::Real(number) => *number,
        _ => 0.0,
    }
}

fn label(name: &str, value: &str) -> String {
    let value = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', " ");
    format!("{{{name}=\"{value}\"}}")
}
