//! The prompt of an iteration: spec block, the task, and the context block.

use crate::event::{ExitStatus, GateEnd, GateFacts, NearMissFacts};
use crate::state::{Claimed, FailedGate};
use descartes_plans::spec::{self, LoopSpecConfig, SpecFile, SpecSources, estimate_tokens};
use descartes_text::units::plural;

/// Whether and how the context block is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextStyle {
    /// The whole block after the first iteration.
    Full,
    /// Gate failures, near misses and a person's notes alone.
    Fresh,
}

/// Whether iteration 1 is told how to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromiseHint {
    /// Yes, unless the prompt holds the tag itself.
    On,
    Off,
}

/// What a prompt is made of.
#[derive(Clone, Debug)]
pub struct PromptParts<'a> {
    /// The fixed spec block, if any.
    pub spec: Option<&'a str>,
    pub task: &'a str,
    /// The iteration, from 1.
    pub iteration: u32,
    /// The limit; `None` is unlimited.
    pub max: Option<u32>,
    /// The promise, if any.
    pub promise: Option<&'a str>,
    /// Whether iteration 1 is told.
    pub hint: PromiseHint,
    pub style: ContextStyle,
    /// A gate that was red.
    pub failed_gate: Option<&'a FailedGate>,
    /// Notes of the person.
    pub notes: Vec<&'a str>,
    /// A promise of the iteration before that did not count.
    pub near_miss: Option<NearMiss<'a>>,
    /// Iterations without progress, where a nudge is due.
    pub nudge: Option<u32>,
}

/// Which promise stood where it does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearMiss<'a> {
    /// The one that claims the work done, with its text.
    Done(&'a str),
    /// The same without its tag.
    Bare(&'a str),
    /// The one that gives up, with its text.
    Abort(&'a str),
}

impl<'a> NearMiss<'a> {
    /// What the next prompt says of `missed`, given the promises of the loop.
    pub fn of(
        missed: Option<&NearMissFacts>,
        done: Option<&'a str>,
        abort: Option<&'a str>,
    ) -> Option<Self> {
        match missed? {
            missed if missed.abort => abort.map(Self::Abort),
            missed if missed.wanted.is_some() => done.map(Self::Bare),
            _ => done.map(Self::Done),
        }
    }

    /// One sentence that pushes nobody to claim anything.
    fn sentence(self) -> String {
        let (text, when) = match self {
            Self::Done(text) | Self::Bare(text) => (text, "the task is completely finished"),
            Self::Abort(text) => (text, "the task cannot be done"),
        };
        let tag = format!("<promise>{text}</promise>");
        let what = match self {
            Self::Bare(text) => format!("{text} appeared without its tag, which does not count"),
            _ => format!("{tag} appeared where it does not count"),
        };
        format!(
            "NOTE ON THE PROMISE: in your last output {what}; \
             if, and only if, {when}, print {tag} alone on a line."
        )
    }
}

/// The line that tells an agent how to claim.
pub fn promise_line(promise: &str) -> String {
    format!("- Output <promise>{promise}</promise> when the task is completely finished")
}

/// The words for a limit.
pub fn limit_words(max: Option<u32>) -> String {
    max.map_or_else(|| "unlimited".to_owned(), |n| n.to_string())
}

/// Puts a prompt together.
pub fn build(parts: &PromptParts<'_>) -> String {
    let mut out = String::new();
    if let Some(spec) = parts.spec.filter(|s| !s.is_empty()) {
        out.push_str(spec.trim_end());
        out.push_str("\n\n");
    }
    out.push_str(parts.task);
    if let Some(block) = context(parts) {
        out.push_str("\n\n");
        out.push_str(&block);
    }
    out
}

/// The first prompt of a task as it is: with the promise, where the task does not tell it itself.
pub fn first_prompt(task: &str, promise: Option<&str>) -> String {
    build(&PromptParts {
        spec: None,
        task,
        iteration: 1,
        max: None,
        promise,
        hint: PromiseHint::On,
        style: ContextStyle::Full,
        failed_gate: None,
        notes: Vec::new(),
        near_miss: None,
        nudge: None,
    })
}

fn context(parts: &PromptParts<'_>) -> Option<String> {
    let mut bullets = Vec::new();
    let later = parts.iteration > 1 && parts.style == ContextStyle::Full;
    if later {
        bullets.push(format!(
            "- This is iteration {} of {}",
            parts.iteration,
            limit_words(parts.max)
        ));
        bullets.push("- Your previous work persists in files and git history".to_owned());
        bullets.push("- Review what you've done and continue improving".to_owned());
    }
    if let Some(promise) = parts.promise {
        let told = parts
            .task
            .contains(&format!("<promise>{promise}</promise>"));
        // A fresh context never heard of it before, so there the hint comes every time.
        let unheard = parts.iteration == 1 || parts.style == ContextStyle::Fresh;
        if later || (parts.hint == PromiseHint::On && !told && unheard) {
            bullets.push(promise_line(promise));
        }
    }
    let mut sections = Vec::new();
    if !bullets.is_empty() {
        sections.push(format!("ITERATION CONTEXT:\n{}", bullets.join("\n")));
    }
    if let Some(failed) = parts.failed_gate {
        sections.push(failed_gate_section(failed));
    }
    sections.extend(parts.near_miss.map(NearMiss::sentence));
    if let (Some(still), ContextStyle::Full) = (parts.nudge, parts.style) {
        sections.push(nudge_section(still));
    }
    if !parts.notes.is_empty() {
        let notes: Vec<String> = parts.notes.iter().map(|n| format!("- {n}")).collect();
        sections.push(format!(
            "NOTE FROM THE PERSON WATCHING:\n{}",
            notes.join("\n")
        ));
    }
    (!sections.is_empty()).then(|| format!("---\n{}\n---\n", sections.join("\n\n")))
}

fn failed_gate_section(failed: &FailedGate) -> String {
    let GateFacts {
        command, end, tail, ..
    } = &failed.gate;
    let how = match end {
        GateEnd::Exit(ExitStatus::Code(code)) => format!("exit code {code}"),
        GateEnd::Exit(ExitStatus::Signal(signal)) => format!("killed by signal {signal}"),
        GateEnd::Timeout => "timed out".to_owned(),
        GateEnd::Cancelled => "was stopped".to_owned(),
    };
    let head = match failed.claimed {
        Claimed::Yes => "VERIFICATION FAILED: you claimed to be done, but this check did not pass:",
        Claimed::No => "VERIFICATION FAILED: this check did not pass:",
    };
    let mut out = format!("{head}\n- Command: {command}\n- Result: {how}");
    if !tail.trim().is_empty() {
        out.push_str("\n- Last output:\n");
        for line in tail.trim_end().lines() {
            out.push_str("    ");
            out.push_str(line);
            out.push('\n');
        }
    }
    out.trim_end().to_owned()
}

fn nudge_section(still: u32) -> String {
    format!(
        "NO PROGRESS SEEN: in the last {} no file, commit or check changed.\n\
         - Say what blocks you, then try a different approach\n\
         - Take the smallest next step that changes a file or turns a check green",
        plural(u64::from(still), "iteration")
    )
}

/// The fixed spec block, within its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecBlock {
    pub text: String,
    /// What was cut, with the size of every part.
    pub warning: Option<String>,
}

/// Joins spec files to a block of at most `max_tokens`. The prefix is never cut; files are
/// cut from the end, and the block says so.
pub fn spec_block(prefix: Option<&str>, files: &[SpecFile], max_tokens: u32) -> SpecBlock {
    let prefix = prefix.map_or_else(String::new, |prefix| format!("{}\n\n", prefix.trim_end()));
    let config = LoopSpecConfig {
        max_spec_tokens: Some(max_tokens.saturating_sub(estimate_tokens(&prefix))),
        ..LoopSpecConfig::default()
    };
    let sources = SpecSources {
        files,
        ..SpecSources::default()
    };
    let spec = spec::build(&config, &sources);
    SpecBlock {
        text: format!("{prefix}{}", spec.text).trim_end().to_owned(),
        warning: spec.warnings.into_iter().next(),
    }
}

/// Fills `{iteration}`, `{timestamp}`, `{tag}`, `{wave}`, `{task}`, `{name}` of commit,
/// branch and tag templates. Unknown names are an error that lists the known ones.
pub fn fill_template(template: &str, values: &[(&str, &str)]) -> Result<String, String> {
    const KNOWN: [&str; 6] = ["iteration", "timestamp", "tag", "wave", "task", "name"];
    let mut out = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let tail = &rest[open + 1..];
        let Some(close) = tail.find('}') else {
            return Err(format!("`{template}` has a `{{` without a `}}`"));
        };
        let name = &tail[..close];
        if !KNOWN.contains(&name) {
            let known = KNOWN.map(|k| format!("{{{k}}}")).join(", ");
            return Err(format!(
                "unknown placeholder `{{{name}}}` in `{template}`; known: {known}"
            ));
        }
        out.push_str(
            values
                .iter()
                .find(|(key, _)| *key == name)
                .map_or("", |(_, value)| value),
        );
        rest = &tail[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(iteration: u32) -> PromptParts<'static> {
        PromptParts {
            spec: None,
            task: "Fix it",
            iteration,
            max: Some(20),
            promise: Some("COMPLETE"),
            hint: PromiseHint::Off,
            style: ContextStyle::Full,
            failed_gate: None,
            notes: vec![],
            near_miss: None,
            nudge: None,
        }
    }

    fn failed_gate() -> FailedGate {
        FailedGate {
            gate: GateFacts {
                gate: 0,
                command: "cargo test".into(),
                end: GateEnd::Exit(ExitStatus::Code(101)),
                duration_ms: 5,
                tail: "test a ... FAILED\n".into(),
                tree_before: None,
                tree_after: None,
            },
            claimed: Claimed::Yes,
        }
    }

    #[test]
    fn the_first_prompt_is_as_given_and_later_ones_carry_the_block() {
        assert_eq!(build(&parts(1)), "Fix it");
        assert_eq!(
            build(&parts(3)),
            "Fix it\n\n---\nITERATION CONTEXT:\n- This is iteration 3 of 20\n\
             - Your previous work persists in files and git history\n\
             - Review what you've done and continue improving\n\
             - Output <promise>COMPLETE</promise> when the task is completely finished\n---\n"
        );
        let unlimited = build(&PromptParts {
            max: None,
            promise: None,
            ..parts(3)
        });
        assert!(unlimited.contains("iteration 3 of unlimited"));
        assert!(!unlimited.contains("<promise>"));
    }

    #[test]
    fn the_hint_tells_iteration_one_unless_the_prompt_does() {
        let hinted = build(&PromptParts {
            hint: PromiseHint::On,
            ..parts(1)
        });
        assert!(
            hinted.contains("- Output <promise>COMPLETE</promise>"),
            "{hinted}"
        );
        assert!(!hinted.contains("This is iteration"));
        let told = PromptParts {
            hint: PromiseHint::On,
            task: "Fix it, then print <promise>COMPLETE</promise>",
            ..parts(1)
        };
        assert_eq!(build(&told), told.task);
    }

    #[test]
    fn fresh_context_keeps_gate_failures_and_notes_alone() {
        let failed = failed_gate();
        let fresh = build(&PromptParts {
            style: ContextStyle::Fresh,
            failed_gate: Some(&failed),
            notes: vec!["use jiff"],
            nudge: Some(5),
            ..parts(4)
        });
        assert!(!fresh.contains("This is iteration") && !fresh.contains("NO PROGRESS"));
        assert!(fresh.contains("- Command: cargo test\n- Result: exit code 101"));
        assert!(fresh.contains("    test a ... FAILED"));
        assert!(fresh.contains("- use jiff"));
        assert_eq!(
            build(&PromptParts {
                style: ContextStyle::Fresh,
                ..parts(4)
            }),
            "Fix it"
        );
    }

    #[test]
    fn a_promise_that_did_not_count_is_told_whatever_the_context() {
        for style in [ContextStyle::Full, ContextStyle::Fresh] {
            let told = |near_miss| {
                build(&PromptParts {
                    style,
                    near_miss,
                    ..parts(2)
                })
            };
            let done = told(Some(NearMiss::Done("COMPLETE")));
            let sentence = "if, and only if, the task is completely finished, print \
                            <promise>COMPLETE</promise> alone on a line.";
            assert!(done.contains(sentence), "{done}");
            let abort = told(Some(NearMiss::Abort("STUCK")));
            let sentence = "if, and only if, the task cannot be done, print <promise>STUCK</promise> alone on a line.";
            assert!(abort.contains(sentence), "{abort}");
            assert!(!told(None).contains("only if"));
        }
        let missed = NearMissFacts {
            count: 1,
            line: String::new(),
            abort: true,
            wanted: None,
        };
        let bare = NearMissFacts {
            abort: false,
            wanted: Some("<promise>A</promise>".into()),
            ..missed.clone()
        };
        let bare = NearMiss::of(Some(&bare), Some("A"), None);
        assert_eq!(bare, Some(NearMiss::Bare("A")));
        assert_eq!(NearMiss::of(Some(&missed), Some("A"), None), None);
        assert_eq!(
            NearMiss::of(Some(&missed), Some("A"), Some("B")),
            Some(NearMiss::Abort("B"))
        );
        assert_eq!(NearMiss::of(None, Some("A"), Some("B")), None);
    }

    #[test]
    fn a_nudge_and_a_spec_find_their_places() {
        let out = build(&PromptParts {
            spec: Some("SPEC\n"),
            nudge: Some(5),
            ..parts(6)
        });
        assert!(out.starts_with("SPEC\n\nFix it\n\n---\n"));
        assert!(out.contains("last 5 iterations"));
    }

    #[test]
    fn spec_files_are_cut_to_their_budget_and_it_is_said() {
        let file = |name: &str, text: String| SpecFile {
            name: name.to_owned(),
            text,
        };
        let files = [
            file("a.md", "x".repeat(40)),
            file("b.md", "yyy\n".repeat(1000)),
        ];
        let whole = spec_block(Some("PREFIX"), &files, 5000);
        assert_eq!(whole.warning, None);
        assert!(whole.text.starts_with("PREFIX\n\n# a.md\n\nxxx"));
        let cut = spec_block(None, &files, 100);
        assert!(estimate_tokens(&cut.text) <= 100, "{}", cut.text.len());
        assert!(cut.text.contains("# b.md"));
        let warning = cut.warning.unwrap();
        assert!(
            warning.contains("of 1253") && warning.contains("budget of 100"),
            "{warning}"
        );
    }

    #[test]
    fn templates_fill_what_they_know_and_refuse_the_rest() {
        let values = [("iteration", "3"), ("name", "auth")];
        assert_eq!(
            fill_template("{name}: {iteration}", &values),
            Ok("auth: 3".into())
        );
        assert!(
            fill_template("{who}", &values)
                .unwrap_err()
                .contains("{timestamp}")
        );
        assert!(fill_template("{name", &values).is_err());
    }
}
