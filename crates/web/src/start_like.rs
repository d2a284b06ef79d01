//! What a loop is started with that is to be like another one: everything that the form has no field
//! for comes from that one, which worked in the same folder.

use std::path::Path;

use axum::http::StatusCode;
use descartes_client::{LoopHandle, Loops, Query};
use descartes_kernel::config::{IterativeLoopConfig, shell_line};
use descartes_kernel::state::Phase;
use descartes_kernel::tasks::TaskFile;
use serde_json::Value;

use crate::reply::RequestFailure;

/// Flags of `loop start`, and where their values stand in a loop's config.
const KEPT: &str = "\
    --verify-timeout /verify_timeout_secs
    --promise-match /promise_match
    --promise-hint /promise_hint
    --promise-grace /promise_grace_secs
    --abort-promise /abort_promise
    --timeout /iteration_timeout_secs
    --idle-timeout /idle_timeout_secs
    --max-failures /max_failures
    --stall-after /stall_after
    --kill-grace /kill_grace_secs
    --max-log /max_log_bytes
    --max-snapshots /max_snapshot_bytes
    --fallback /fallback
    --env /backend/environment_names
    --sandbox /sandbox/level
    --sandbox-write /sandbox/write
    --sandbox-read /sandbox/read
    --sandbox-hide /sandbox/hide
    --gate-sandbox /sandbox/gates
    --gate-network /sandbox/gate_network
    --fresh-context= /fresh_context_mode
    --spec-file /spec_files
    --max-spec-tokens /max_spec_tokens
    --auto-commit= /git/auto_commit
    --commit-template /git/commit_template
    --branch= /git/create_branch
    --branch-template /git/branch_template
    --tag-green= /git/tag_green
    --model /model
    --prompt-mode /backend/prompt_mode";
/// The last ones hold for one agent.
const OF_AGENT: usize = 2;

/// A loop that another one is to be like.
pub struct FormerLoop {
    pub handle: LoopHandle,
    pub config: IterativeLoopConfig,
}

impl FormerLoop {
    /// The loop of that name; refused where it cannot be started again from here.
    pub fn find(loops: &Loops, name: &str) -> Result<Self, RequestFailure> {
        let handle = loops.find(&Query::Listed(name.to_owned()))?;
        let config = handle.state()?.config;
        let refused = |message: &str, hint: String| {
            Err(RequestFailure::new(StatusCode::CONFLICT, message, hint))
        };
        match (handle.parent(), &config.tasks) {
            (Some(parent), _) => refused(
                "this is the loop of a task: its task loop starts it",
                format!("look at the task loop: /loops/{parent}"),
            ),
            (None, Some(tasks)) => refused(
                "a task loop is started again in a terminal",
                typed(&tasks.source, &config, &handle.meta().working_dir),
            ),
            (None, None) => Ok(Self { handle, config }),
        }
    }

    /// Whether it worked there.
    pub fn is_of(&self, folder: &Path) -> bool {
        self.handle.meta().working_dir == folder
    }

    /// Whether the loop whose state file would be replaced has ended.
    pub fn has_ended(&self, loops: &Loops) -> bool {
        let query = Query::StateFile(self.handle.state_file().to_owned());
        let state = loops.find(&query).and_then(|found| found.state());
        state.is_ok_and(|state| matches!(state.phase, Phase::Finished { .. }))
    }

    /// Flags for what the form has no field for.
    pub fn flags(&self, same_agent: bool) -> Vec<String> {
        let config = serde_json::to_value(&self.config).unwrap_or_default();
        let mut kept: Vec<&str> = KEPT.lines().map(str::trim).collect();
        let mut flags = vec![format!(
            "--state-file={}",
            self.handle.state_file().display()
        )];
        match same_agent {
            true => flags.push(format!("--backend={}", self.config.backend.backend_type)),
            false => kept.truncate(kept.len() - OF_AGENT),
        }
        // What was the default will be so again, where it still is.
        kept.retain(|row| self.config.sandbox.why.is_none() || !row.starts_with("--sandbox /"));
        for row in kept {
            let (flag, at) = row.split_once(' ').unwrap_or_default();
            match config.pointer(at) {
                Some(Value::Array(all)) => {
                    flags.extend(all.iter().filter_map(|one| given(flag, one)))
                }
                value => flags.extend(value.and_then(|one| given(flag, one))),
            }
        }
        flags
    }
}

fn given(flag: &str, value: &Value) -> Option<String> {
    let text = match value {
        Value::Null if flag.starts_with("--max-") => "unlimited".to_owned(),
        Value::Bool(set) if flag.ends_with('=') => {
            return set.then(|| flag.trim_end_matches('=').to_owned());
        }
        Value::Bool(set) => if *set { "on" } else { "off" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(format!("{flag}={text}"))
}

/// What to type for the same tasks.
fn typed(source: &TaskFile, config: &IterativeLoopConfig, folder: &Path) -> String {
    let file = source.path().display().to_string();
    let mut words = match source {
        TaskFile::Scud { tag, .. } => vec!["loop", "start", "--scud-tag", tag],
        TaskFile::Tracker(tracker) => vec!["roadmap", "run", "--source", &tracker.name],
        TaskFile::Roadmap { .. } | TaskFile::List { .. } => vec!["roadmap", "run", &file],
    };
    let agent = config.command_line();
    words.extend([
        "--command",
        &agent,
        "--backend",
        &config.backend.backend_type,
    ]);
    let folder = folder.display().to_string();
    let folder = shell_line([folder.as_str()]);
    format!("cd {folder} && descartes {}", shell_line(words))
}
