//! What the agent of an attempt is told.

use std::path::Path;

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sched::{Evidence, EvidenceKind};
use descartes_kernel::tasks::TasksConfig;
use descartes_plans::spec::{Spec, SpecFile, SpecSources, TaskText, build};
use descartes_store::safe_open::read_text_within;

/// The spec of a task, from the files as they are now. A plan or spec file that cannot be read
/// is told among the warnings.
pub fn task_spec(
    tasks: &TasksConfig,
    config: &IterativeLoopConfig,
    dir: &Path,
    task: &TaskText,
    guidance: &[SpecFile],
    gates: &[String],
) -> Spec {
    let mut warnings = Vec::new();
    let mut read = |path: &Path, what: &str| match read_text_within(dir, path) {
        Ok(text) => Some(text),
        Err(error) => {
            let file = path.display();
            warnings.push(format!("cannot read {what} {file}: {error}"));
            None
        }
    };
    let plan = tasks
        .plan_path
        .as_deref()
        .and_then(|path| read(path, "the plan"));
    let handoff = tasks
        .handoff_path
        .as_deref()
        .and_then(|path| read(path, "the notes of an earlier run"));
    let mut files = guidance.to_vec();
    for path in tasks.spec.additional_specs.iter().chain(&config.spec_files) {
        if let Some(text) = read(path, "a spec file") {
            let name = path.display().to_string();
            files.push(SpecFile { name, text });
        }
    }
    let sources = SpecSources {
        task: Some(task),
        plan: plan.as_deref(),
        handoff: handoff.as_deref(),
        files: &files,
        verification: gates,
    };
    let mut spec = build(&tasks.spec, &sources);
    warnings.append(&mut spec.warnings);
    spec.warnings = warnings;
    spec
}

/// What the attempt before left behind, where the task's own loop does not know it.
pub(super) fn evidence_section(evidence: &Evidence) -> Option<String> {
    let head = match evidence.kind {
        EvidenceKind::Conflict => {
            "MERGE CONFLICT: your work passed its checks, but it conflicts with what was merged \
             in the meantime:"
        }
        EvidenceKind::RedMerge => {
            "VERIFICATION FAILED AFTER THE MERGE: your work passed its checks here, but its \
             commit does not pass them in a clean tree together with what was merged in the \
             meantime:"
        }
        EvidenceKind::OutOfScope => {
            "OUT OF SCOPE: your work passed its checks, but it changed files that this task may \
             not touch. Restore them:"
        }
        EvidenceKind::Uncarried => {
            "YOUR WORK CANNOT LAND AS IT IS: it passed its checks, but git cannot transfer all \
             of it out of this worktree:"
        }
        EvidenceKind::MarkedRed => {
            "MARKED DONE, AND VERIFICATION FAILED: someone marked this task done, but it is not \
             done yet:"
        }
        EvidenceKind::CutOff => "THE LAST ATTEMPT WAS ENDED BEFORE IT WAS DONE:",
        EvidenceKind::NothingDone | EvidenceKind::AgentFailed => "THE LAST ATTEMPT DID NOT COUNT:",
        // The loop of the task tells its own red gates, and that it wants a promise.
        EvidenceKind::RedGate | EvidenceKind::NoPromise => return None,
    };
    let text = match evidence.text.trim() {
        "" => evidence.kind.describe(),
        text => text,
    };
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    Some(format!("---\n{head}\n{}\n---", lines.join("\n")))
}

/// Notes of the person, for one attempt.
pub(super) fn notes_section(notes: &[String]) -> Option<String> {
    if notes.is_empty() {
        return None;
    }
    let notes: Vec<String> = notes.iter().map(|note| format!("- {note}")).collect();
    Some(format!(
        "---\nNOTE FROM THE PERSON WATCHING:\n{}\n---",
        notes.join("\n")
    ))
}
