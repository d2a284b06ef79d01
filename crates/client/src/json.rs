//! Loops as programs read them: the command line's `--json` and the web's API print the same.

use descartes_kernel::state::{Kept, LoopState};
use descartes_text::path_text::encode;
use descartes_views::view::{Life, Status, lost};
use serde_json::{Value, json};

use crate::{Look, LoopHandle};

/// A loop in a list.
pub fn list_entry(found: &LoopHandle) -> Value {
    let meta = found.meta();
    let mut out = json!({
        "loop_id": meta.id,
        "name": meta.name,
        "started_at": meta.started_at,
        "working_dir": encode(&meta.working_dir),
        "state_file": encode(&meta.state_file),
        "parent": found.parent(),
        "task": found.task(),
    });
    if let Some(worker) = found.worker() {
        out["worker"] = worker.into();
    }
    let more = match found.look() {
        Ok(look) => {
            let status = Status::of(&look.state, look.life);
            let mut more = serde_json::to_value(&status).unwrap_or_default();
            more["label"] = status.label().into();
            more["iteration"] = look.state.iterations.into();
            more["lost"] = lost_of(&look.state, look.life).into();
            more["max_iterations"] = look.state.config.max_iterations.into();
            more["pid"] = found.pid().into();
            more
        }
        Err(error) => json!({ "status": "unreadable", "error": error.to_string() }),
    };
    if let (Value::Object(out), Value::Object(more)) = (&mut out, more) {
        out.extend(more);
    }
    out
}

/// How many of its iterations died with their host.
fn lost_of(state: &LoopState, life: Life) -> u32 {
    lost(state, life).map_or(0, |of| of.lost)
}

/// How a loop stands: the state file's own fields, and what only the journal and the lock know.
pub fn status(found: &LoopHandle, look: &Look) -> Value {
    let state = &look.state;
    let file = serde_json::to_value(state.project(&Kept::default()));
    let Ok(Value::Object(mut out)) = file else {
        return Value::Null;
    };
    let status = Status::of(state, look.life);
    out.insert("label".to_owned(), status.label().into());
    if let Ok(Value::Object(status)) = serde_json::to_value(&status) {
        out.extend(status);
    }
    let now = state.run().map(
        |run| json!({ "run": run.run, "iteration": run.iteration, "started_at": run.started_at }),
    );
    let pid = match look.life {
        Life::Alive => found.pid(),
        Life::Gone => None,
    };
    let more = json!({
        "working_dir": encode(&found.meta().working_dir),
        "state_file": encode(found.state_file()),
        "journal_seq": state.seq,
        "runs": state.runs,
        "lost": lost_of(state, look.life),
        "pid": pid,
        "now": now,
        "pause": state.requests.pause,
        "wait": state.wait(),
        "failures": state.agents.failures,
        "last_failure": state.agents.last_failure,
        "notes": state.next_prompt.notes.iter().map(|note| &note.text).collect::<Vec<_>>(),
        "pending": state.requests.pending.len(),
        "notices": look.notices,
        "sandbox": state.sandbox_label(),
        "sandbox_level": state.config.sandbox.effective(),
        "sandbox_why": state.config.sandbox.reason(),
        "denied": state.denied,
    });
    if let Value::Object(more) = more {
        out.extend(more);
    }
    Value::Object(out)
}
