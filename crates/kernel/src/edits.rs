//! What differs between two configs, field by field, and which differences let an agent get away
//! with more. A state file lies in the agent's reach: what loosens is taken from it only where a
//! person says so.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::{IterativeLoopConfig, LoopBackendConfig};
use crate::event::{Decided, Event};
pub use crate::field_change::FieldChange;
use crate::field_change::{cut, is_limit};
use crate::state::{IterativeLoopState, LoopState};
use crate::steering::Sender;

/// Whether a change lets an agent get away with more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It does, or nobody knows: gates, promise, permissions, command, environment, limits, budgets.
    Loosens,
    /// It does not.
    Harmless,
}

/// Whether a person said that an edited state file holds as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// All of it.
    All,
    /// What loosens nothing.
    #[default]
    Harmless,
}

/// What an edit of the state file comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edit {
    /// To be recorded, where anything is applied.
    pub event: Option<Decided>,
    /// Fields that hold as edited.
    pub applied: Vec<FieldChange>,
    /// Fields that stay as the journal has them.
    pub held_back: Vec<FieldChange>,
}

impl Edit {
    /// What the next resume will do, a line each.
    pub fn foretold(&self) -> Vec<String> {
        let names = |changes: &[FieldChange]| {
            let words: Vec<String> = changes.iter().map(FieldChange::describe).collect();
            words.join("; ")
        };
        let mut out = Vec::new();
        if !self.applied.is_empty() {
            let names = names(&self.applied);
            out.push(format!(
                "the state file was edited by hand: the next resume will apply: {names}"
            ));
        }
        if !self.held_back.is_empty() {
            let names = names(&self.held_back);
            out.push(format!(
                "the state file was edited by hand: the next resume will apply these only with \
                 --accept-edits: {names}"
            ));
        }
        out
    }

    /// What a person is told where nobody edited the file, but the journal lost lines that it is of.
    pub fn recovered(&self) -> Option<String> {
        let words: Vec<String> = self.applied.iter().map(FieldChange::describe).collect();
        (!words.is_empty()).then(|| {
            format!(
                "the journal lost a change that the state file still records: applied: {}",
                words.join("; ")
            )
        })
    }

    /// What a person is told, a line each.
    pub fn notices(&self) -> Vec<String> {
        let list = |changes: &[FieldChange]| {
            let words: Vec<String> = changes.iter().map(FieldChange::describe).collect();
            words.join("; ")
        };
        let mut out = Vec::new();
        if !self.applied.is_empty() {
            let list = list(&self.applied);
            out.push(format!(
                "the state file was edited by hand: applied: {list}"
            ));
        }
        if !self.held_back.is_empty() {
            let list = list(&self.held_back);
            out.push(format!(
                "the state file was edited by hand: not applied, the journal's values are used: \
                 {list}; an edit that loosens the loop's limits needs `descartes loop resume \
                 --accept-edits`, or the flag for it"
            ));
        }
        out
    }
}

/// What an edited state file asks for, as far as it is taken, by whoever takes the loop up with it.
pub fn edited(
    state: &LoopState,
    file: &IterativeLoopState,
    accept: Accept,
    from: Option<&Sender>,
) -> Edit {
    let mut edit = Edit::default();
    let mut config = file.config.clone();
    for (change, weight) in changes(&state.config, &file.config) {
        match (weight, accept) {
            (Weight::Harmless, _) | (_, Accept::All) => edit.applied.push(change),
            (Weight::Loosens, Accept::Harmless) => edit.held_back.push(change),
        }
    }
    if !edit.held_back.is_empty() {
        config = put_back(&state.config, config, &edit.held_back);
    }
    if edit
        .applied
        .iter()
        .any(|change| change.field == ENVIRONMENT)
    {
        // Values stand in no journal; the names are what it can tell of them.
        let backend = &mut config.backend;
        let given = backend.environment.keys().cloned();
        let known = given.chain(backend.environment_names.drain(..));
        let names: BTreeSet<String> = known.collect();
        backend.environment_names = names.into_iter().collect();
    }
    // Numbers are never used again, whatever a file says.
    let iterations = file.iteration.max(state.iterations);
    if iterations != state.iterations {
        edit.applied.push(FieldChange {
            field: "iteration".to_owned(),
            from: state.iterations.to_string(),
            to: iterations.to_string(),
        });
    }
    edit.event = (!edit.applied.is_empty()).then(|| {
        Decided::new(Event::StateEdited {
            config: Box::new(config),
            iterations,
            from: from.cloned(),
        })
    });
    edit
}

/// Limits that are tighter in a state file of ours than in a journal that lost lines, and nothing else
/// of it: what a person forbade stays forbidden.
pub fn tightened(state: &LoopState, file: &IterativeLoopState, from: Option<&Sender>) -> Edit {
    let all = changes(&state.config, &file.config).into_iter();
    let (applied, rest): (Vec<_>, Vec<_>) =
        all.partition(|(change, weight)| *weight == Weight::Harmless && is_limit(&change.field));
    if applied.is_empty() {
        return Edit::default();
    }
    let only = |changes: Vec<(FieldChange, Weight)>| -> Vec<FieldChange> {
        changes.into_iter().map(|(change, _)| change).collect()
    };
    let config = put_back(&state.config, file.config.clone(), &only(rest));
    Edit {
        event: Some(Decided::new(Event::StateEdited {
            config: Box::new(config),
            iterations: state.iterations,
            from: from.cloned(),
        })),
        applied: only(applied),
        held_back: Vec::new(),
    }
}

/// Every field that differs, with its weight.
pub fn changes(old: &IterativeLoopConfig, new: &IterativeLoopConfig) -> Vec<(FieldChange, Weight)> {
    let (before, after) = (fields(old), fields(new));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut out = Vec::new();
    for name in names {
        let from = before.get(name).unwrap_or(&Value::Null);
        let to = after.get(name).unwrap_or(&Value::Null);
        // Told with the variables themselves.
        let is_told = name == ENVIRONMENT_NAMES
            && old.backend.environment_hash != new.backend.environment_hash;
        if from != to && !is_told {
            let change = FieldChange {
                field: name.clone(),
                from: shown(from),
                to: shown(to),
            };
            out.push((change, weight(name, from, to)));
        }
    }
    let (old, new) = (&old.backend, &new.backend);
    if old.environment_hash != new.environment_hash {
        // Names alone: values stand in the person's file and nowhere else.
        let names = |of: &LoopBackendConfig| {
            let known: BTreeSet<&String> = match of.environment_hash {
                Some(_) => of.environment.keys().chain(&of.environment_names).collect(),
                None => BTreeSet::new(),
            };
            let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
            format!("[{}]", known.join(", "))
        };
        let change = FieldChange {
            field: ENVIRONMENT.to_owned(),
            from: names(old),
            to: names(new),
        };
        out.push((change, Weight::Loosens));
    }
    out
}

const ENVIRONMENT: &str = "backend.environment";
const ENVIRONMENT_NAMES: &str = "backend.environment_names";
const ENVIRONMENT_HASH: &str = "backend.environment_hash";
/// Fields that are told one by one.
const GROUPS: [&str; 3] = ["backend", "git", "tasks"];

/// All fields by their names; those of a group as `group.field`.
fn fields(config: &IterativeLoopConfig) -> Map<String, Value> {
    let Ok(Value::Object(all)) = serde_json::to_value(config) else {
        return Map::new();
    };
    let mut out = Map::new();
    for (name, value) in all {
        match value {
            Value::Object(inner) if GROUPS.contains(&name.as_str()) => {
                let inner = inner.into_iter();
                out.extend(inner.map(|(field, value)| (format!("{name}.{field}"), value)));
            }
            value => drop(out.insert(name, value)),
        }
    }
    out.remove(ENVIRONMENT);
    out.remove(ENVIRONMENT_HASH);
    out
}

/// `new` with these fields as they were in `old`.
fn put_back(
    old: &IterativeLoopConfig,
    new: IterativeLoopConfig,
    which: &[FieldChange],
) -> IterativeLoopConfig {
    let (before, mut after) = (fields(old), fields(&new));
    let mut environment = (new.backend.environment, new.backend.environment_hash);
    for change in which {
        match before.get(&change.field) {
            _ if change.field == ENVIRONMENT => {
                environment = (
                    old.backend.environment.clone(),
                    old.backend.environment_hash.clone(),
                );
            }
            Some(value) => drop(after.insert(change.field.clone(), value.clone())),
            None => drop(after.remove(&change.field)),
        }
    }
    let mut nested = Map::new();
    for (name, value) in after {
        let group = name
            .split_once('.')
            .filter(|(group, _)| GROUPS.contains(group));
        match group {
            Some((group, field)) => {
                let inner = nested.entry(group).or_insert(Value::Null);
                // A whole group that an edit took away comes back.
                if !inner.is_object() {
                    *inner = Map::new().into();
                }
                if let Value::Object(inner) = inner {
                    inner.insert(field.to_owned(), value);
                }
            }
            None => drop(nested.insert(name, value)),
        }
    }
    // Made of two configs, field by field, it is one; if it were not, the old one is the safe side.
    let mut config: IterativeLoopConfig =
        serde_json::from_value(Value::Object(nested)).unwrap_or_else(|_| old.clone());
    (config.backend.environment, config.backend.environment_hash) = environment;
    config
}

fn weight(field: &str, from: &Value, to: &Value) -> Weight {
    let harmless = match field {
        "prompt"
        | "model"
        | "include_iteration_context"
        | "fresh_context_mode"
        | "spec_prefix"
        | "promise_hint"
        | "kill_grace_secs"
        | "failure_backoff_secs" => true,
        "git.auto_commit"
        | "git.commit_template"
        | "git.create_branch"
        | "git.branch_template"
        | "git.tag_green" => true,
        "verify" => is_more_of(from, to),
        limit if is_limit(limit) => is_tighter(from, to),
        "permissions" => rights(to) < rights(from),
        _ => false,
    };
    match harmless {
        true => Weight::Harmless,
        false => Weight::Loosens,
    }
}

/// Whether all that was there is still there, in its order.
fn is_more_of(from: &Value, to: &Value) -> bool {
    let gates = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (old, new) = (gates(from), gates(to));
    let mut new = new.iter();
    old.iter().all(|gate| new.any(|other| other == gate))
}

/// A smaller limit, or one where there was none. Zero turns most of them off.
fn is_tighter(from: &Value, to: &Value) -> bool {
    match (from.as_f64(), to.as_f64()) {
        (Some(from), Some(to)) => to > 0.0 && (to < from || from == 0.0),
        (None, Some(to)) => to > 0.0,
        (_, None) => false,
    }
}

/// Whatever is unknown counts for most.
fn rights(value: &Value) -> u32 {
    match value.as_str() {
        None | Some("agent") => 0,
        Some("edit") => 1,
        Some("all") => 2,
        Some(_) => 3,
    }
}

/// A value as it stands in the file, shortened.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    };
    cut(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Permissions, PromptMode};
    use crate::event::{FORMAT, Record};
    use crate::state::Kept;
    use crate::tasks::{RoadmapDefaults, TaskFile, TasksConfig};
    use crate::transition::begin;
    use descartes_text::units::Secs;

    fn config() -> IterativeLoopConfig {
        IterativeLoopConfig {
            command: "agent".into(),
            prompt: "work".into(),
            completion_promise: Some("COMPLETE".into()),
            verify: vec!["make test".into()],
            max_cost_usd: Some(5.0),
            permissions: Permissions::Edit,
            ..Default::default()
        }
    }

    /// The names of what differs, `!` before what loosens.
    fn told(edit: impl FnOnce(&mut IterativeLoopConfig)) -> Vec<String> {
        let mut new = config();
        edit(&mut new);
        let named = |(change, weight): (FieldChange, Weight)| match weight {
            Weight::Loosens => format!("!{}", change.field),
            Weight::Harmless => change.field,
        };
        changes(&config(), &new).into_iter().map(named).collect()
    }

    #[test]
    fn what_loosens_and_what_does_not() {
        let gates = |gates: &[&str]| gates.iter().map(|gate| (*gate).to_owned()).collect();
        assert!(told(|_| {}).is_empty());
        assert_eq!(told(|c| c.verify = gates(&["true"])), ["!verify"]);
        assert_eq!(told(|c| c.verify = gates(&[])), ["!verify"]);
        assert_eq!(
            told(|c| c.verify = gates(&["make test || true"])),
            ["!verify"]
        );
        assert_eq!(
            told(|c| c.verify = gates(&["make test", "lint"])),
            ["verify"]
        );
        assert_eq!(
            told(|c| c.verify = gates(&["lint", "make test"])),
            ["verify"]
        );
        assert_eq!(told(|c| c.max_iterations = Some(50)), ["!max_iterations"]);
        assert_eq!(told(|c| c.max_iterations = None), ["!max_iterations"]);
        assert_eq!(told(|c| c.max_iterations = Some(3)), ["max_iterations"]);
        assert_eq!(told(|c| c.max_cost_usd = None), ["!max_cost_usd"]);
        assert_eq!(told(|c| c.max_cost_usd = Some(6.0)), ["!max_cost_usd"]);
        assert_eq!(told(|c| c.max_cost_usd = Some(4.0)), ["max_cost_usd"]);
        assert_eq!(told(|c| c.max_tokens = Some(9)), ["max_tokens"]);
        assert_eq!(told(|c| c.stall_after = Some(0)), ["!stall_after"]);
        assert_eq!(
            told(|c| c.idle_timeout_secs = Secs::new(0)),
            ["!idle_timeout_secs"]
        );
        assert_eq!(told(|c| c.permissions = Permissions::All), ["!permissions"]);
        assert_eq!(
            told(|c| c.permissions = Permissions::Agent),
            ["permissions"]
        );
        assert_eq!(
            told(|c| c.completion_promise = None),
            ["!completion_promise"]
        );
        assert_eq!(told(|c| c.abort_promise = None), ["!abort_promise"]);
        assert_eq!(told(|c| c.command = "other".into()), ["!command"]);
        assert_eq!(told(|c| c.args = gates(&["-x"])), ["!args"]);
        assert_eq!(told(|c| c.fallback = gates(&["x"])), ["!fallback"]);
        assert_eq!(
            told(|c| c.prompt_file = Some("/etc/x".into())),
            ["!prompt_file"]
        );
        assert_eq!(
            told(|c| c.spec_files = vec!["/etc/x".into()]),
            ["!spec_files"]
        );
        assert_eq!(
            told(|c| c.working_directory = Some("/".into())),
            ["!working_directory"]
        );
        assert_eq!(told(|c| c.prompt = "more".into()), ["prompt"]);
        assert_eq!(told(|c| c.model = Some("m".into())), ["model"]);
        assert_eq!(told(|c| c.git.auto_commit = true), ["git.auto_commit"]);
        let mode = Some(PromptMode::Stdin);
        assert_eq!(
            told(|c| c.backend.prompt_mode = mode),
            ["!backend.prompt_mode"]
        );
        let hash = Some("of LD_PRELOAD".to_owned());
        assert_eq!(
            told(|c| c.backend.environment_hash = hash),
            ["!backend.environment"]
        );
        let unknown = ("sandbox".to_owned(), Value::from("off"));
        assert_eq!(told(|c| c.extra.extend([unknown])), ["!sandbox"]);
    }

    fn state() -> LoopState {
        let at = "2026-01-02T10:00:00Z".parse().unwrap();
        let event = Event::LoopCreated {
            loop_id: "x".into(),
            name: "auth".into(),
            config: Box::new(config()),
            started_at: at,
            iterations: 3,
            summaries: vec![],
            spent: None,
            ended: None,
        };
        let (v, seq) = (FORMAT, 0);
        begin(&Record { v, seq, at, event }).unwrap()
    }

    #[test]
    fn an_edit_that_loosens_holds_only_where_it_is_accepted() {
        let state = state();
        let mut file = state.project(&Kept::default());
        file.config.verify = vec!["true".into()];
        file.config.prompt = "other work".into();
        file.config
            .backend
            .environment
            .insert("A".into(), "secret".into());
        file.config.backend.environment_hash = Some("of A".into());
        file.iteration = 1;
        let edit = edited(&state, &file, Accept::Harmless, None);
        let Some(Event::StateEdited {
            config: taken,
            iterations,
            ..
        }) = edit.event.as_deref()
        else {
            panic!("{edit:?}");
        };
        assert_eq!((taken.prompt.as_str(), *iterations), ("other work", 3));
        assert_eq!(taken.verify, ["make test"]);
        assert!(taken.backend.environment.is_empty());
        assert_eq!(taken.backend.environment_hash, None);
        let words = edit.notices().join("\n");
        assert!(
            words.contains(r#"applied: prompt: "work" -> "other work""#),
            "{words}"
        );
        let held = r#"verify: ["make test"] -> ["true"]"#;
        assert!(
            words.contains(held) && words.contains("--accept-edits"),
            "{words}"
        );
        assert!(!words.contains("secret"), "{words}");
        let all = edited(&state, &file, Accept::All, None);
        assert!(
            all.held_back.is_empty() && all.applied.len() == 3,
            "{all:?}"
        );
        let Some(Event::StateEdited { config: taken, .. }) = all.event.as_deref() else {
            panic!("nothing taken");
        };
        assert_eq!(taken.verify, ["true"]);
        assert_eq!(taken.backend.environment_hash.as_deref(), Some("of A"));
        let same = edited(
            &state,
            &state.project(&Kept::default()),
            Accept::Harmless,
            None,
        );
        assert_eq!(same, Edit::default());
    }

    #[test]
    fn what_differs_of_the_tasks_is_told_field_by_field_and_put_back_alike() {
        let tasks = |edit: &dyn Fn(&mut TasksConfig)| {
            let mut config = config();
            let mut tasks = TasksConfig::new(TaskFile::Roadmap {
                file: "roadmap.md".into(),
                defaults: RoadmapDefaults::default(),
            });
            tasks.workers = Some("nats://one:4222".to_owned());
            edit(&mut tasks);
            config.tasks = Some(Box::new(tasks));
            config
        };
        let old = tasks(&|_| {});
        let new = tasks(&|tasks| {
            tasks.workers = Some("nats://two:4222".to_owned());
            tasks.parallel += 1;
        });
        let words: Vec<String> = changes(&old, &new)
            .iter()
            .map(|(change, _)| change.describe())
            .collect();
        let engines = r#"tasks.workers: "nats://one:4222" -> "nats://two:4222""#;
        assert_eq!(words.len(), 2, "{words:?}");
        assert!(words.contains(&engines.to_owned()), "{words:?}");
        let changed = |new: &IterativeLoopConfig| -> Vec<FieldChange> {
            let changes = changes(&old, new).into_iter();
            changes.map(|(change, _)| change).collect()
        };
        assert_eq!(put_back(&old, new.clone(), &changed(&new)), old);
        // A file from which they were taken away as a whole.
        let without = config();
        assert_eq!(put_back(&old, without.clone(), &changed(&without)), old);
    }

    #[test]
    fn an_edit_that_only_loosens_records_nothing() {
        let state = state();
        let mut file = state.project(&Kept::default());
        file.config.max_iterations = Some(500);
        let edit = edited(&state, &file, Accept::Harmless, None);
        assert_eq!((edit.event.is_none(), edit.held_back.len()), (true, 1));
    }

    #[test]
    fn of_a_file_beside_a_journal_that_lost_lines_only_tighter_limits_hold() {
        let state = state();
        let mut file = state.project(&Kept::default());
        assert_eq!(tightened(&state, &file, None), Edit::default());
        file.config.max_iterations = Some(500);
        file.config.prompt = "other work".into();
        file.config.verify = vec!["true".into()];
        file.config.working_directory = Some("/slot".into());
        assert_eq!(tightened(&state, &file, None), Edit::default());
        file.config.max_cost_usd = Some(1.0);
        let edit = tightened(&state, &file, None);
        let Some(Event::StateEdited { config: taken, .. }) = edit.event.as_deref() else {
            panic!("{edit:?}");
        };
        let mut wanted = config();
        wanted.max_cost_usd = Some(1.0);
        // It is remembered that variables come from a file.
        wanted.backend.environment = taken.backend.environment.clone();
        assert!(wanted.backend.environment.is_empty());
        assert_eq!(**taken, wanted);
        let words = edit.recovered().unwrap_or_default();
        assert!(words.contains("applied: max_cost_usd: 5"), "{words}");
    }
}
