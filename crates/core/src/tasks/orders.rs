//! What a task file orders beside its words: gates, agents, limits. The file lies in the agents' reach,
//! so for as long as the loop runs these hold as they were when a person last started it. Words,
//! dependencies and marks are read anew as before.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;

use descartes_kernel::edits::FieldChange;
use descartes_kernel::sandbox::SandboxLevel;
use descartes_plans::graph::{Rules, TaskId};
use descartes_plans::spec::TaskText;

use super::source::{Loaded, TaskBrief};

/// The orders that hold.
#[derive(Debug, Default)]
pub(super) struct Orders {
    known: HashMap<TaskId, TaskOrder>,
    /// Tasks that were added at a person's wish (`--growth`), and not read yet.
    granted: HashSet<TaskId>,
    /// What was last found to differ.
    reported: Vec<FieldChange>,
}

#[derive(Debug)]
struct TaskOrder {
    brief: TaskBrief,
    rules: Rules,
    agent: Option<String>,
    /// Commands of a task that was added while the loop ran: nobody has agreed to run them.
    refused: Vec<String>,
}

impl Orders {
    /// As a person started the loop.
    pub(super) fn of(loaded: &Loaded) -> Self {
        let mut orders = Self::default();
        for node in loaded.plan.graph().nodes() {
            let brief = loaded.briefs.get(&node.id).cloned().unwrap_or_default();
            let order = TaskOrder {
                brief,
                rules: node.rules,
                agent: node.agent.clone(),
                refused: Vec::new(),
            };
            orders.known.insert(node.id.clone(), order);
        }
        orders
    }

    /// The next task of this name is a person's wish, with the commands that it comes with.
    pub(super) fn grant(&mut self, task: TaskId) {
        self.granted.insert(task);
    }

    /// Commands of a task that nobody has agreed to run.
    pub(super) fn refused(&self, task: &TaskId) -> Option<&[String]> {
        let order = self.known.get(task)?;
        (!order.refused.is_empty()).then_some(order.refused.as_slice())
    }

    /// Puts the orders that hold into a file that was read again. Gives what the file says otherwise,
    /// where that is news.
    pub(super) fn hold(&mut self, loaded: &mut Loaded) -> Vec<FieldChange> {
        let mut nodes = loaded.plan.graph().nodes().to_vec();
        let (mut found, mut mended) = (Vec::new(), false);
        let mut agreed: Option<HashSet<String>> = None;
        for node in &mut nodes {
            let brief = loaded.briefs.entry(node.id.clone()).or_default();
            if !self.known.contains_key(&node.id) {
                let granted = self.granted.remove(&node.id);
                let agreed = agreed.get_or_insert_with(|| self.agreed());
                let mut refused = commands(brief);
                refused.retain(|command| !granted && !agreed.contains(command));
                let order = TaskOrder {
                    brief: brief.clone(),
                    rules: node.rules,
                    agent: node.agent.clone(),
                    refused,
                };
                for command in &order.refused {
                    found.push(FieldChange {
                        field: format!("task {} (new)", node.id),
                        from: "none".to_owned(),
                        to: command.clone(),
                    });
                }
                self.known.insert(node.id.clone(), order);
                continue;
            }
            let Some(order) = self.known.get(&node.id) else {
                continue;
            };
            let before = facets(&order.brief, order.rules);
            let now = facets(brief, node.rules);
            for ((name, from), (_, to)) in before.into_iter().zip(now) {
                if from != to {
                    let field = format!("task {} {name}", node.id);
                    found.push(FieldChange { field, from, to });
                }
            }
            let text = TaskText {
                files: order.brief.text.files.clone(),
                ..std::mem::take(&mut brief.text)
            };
            *brief = TaskBrief {
                text,
                under: brief.under.take(),
                ..order.brief.clone()
            };
            mended |= node.rules != order.rules || node.agent != order.agent;
            node.rules = order.rules;
            node.agent.clone_from(&order.agent);
        }
        if mended && let Ok(plan) = loaded.plan.graph().with_nodes(nodes).plan() {
            loaded.plan = plan;
        }
        if found.is_empty() || found == self.reported {
            return Vec::new();
        }
        self.reported.clone_from(&found);
        found
    }

    /// Commands that a person has agreed to run for some task.
    fn agreed(&self) -> HashSet<String> {
        let orders = self.known.values().flat_map(|order| {
            let mut commands = commands(&order.brief);
            commands.retain(|command| !order.refused.contains(command));
            commands
        });
        orders.collect()
    }
}

/// What would be run for a task, as its file says it.
pub(super) fn commands(brief: &TaskBrief) -> Vec<String> {
    let gates = brief.gates.iter().map(|gate| format!("check: {gate}"));
    let agents = brief.agent.iter().chain(&brief.fallback);
    gates
        .chain(agents.map(|agent| format!("agent: {agent}")))
        .collect()
}

/// All that a file orders for a task, in words.
fn facets(brief: &TaskBrief, rules: Rules) -> Vec<(&'static str, String)> {
    fn shown<T: Debug>(value: &Option<T>) -> String {
        value
            .as_ref()
            .map_or_else(|| "none".to_owned(), |value| format!("{value:?}"))
    }
    let list = |items: &[String]| match items.is_empty() {
        true => "none".to_owned(),
        false => items.join(", "),
    };
    let agents: Vec<String> = brief.agent.iter().chain(&brief.fallback).cloned().collect();
    vec![
        ("check", list(&brief.gates)),
        ("agent", list(&agents)),
        ("model", shown(&brief.model)),
        ("cwd", shown(&brief.cwd)),
        ("files", list(&brief.text.files)),
        ("promise", shown(&brief.promise)),
        ("abort promise", shown(&brief.abort_promise)),
        ("proof", format!("{:?}", rules.proof)),
        ("attempts", shown(&rules.max_attempts)),
        ("on_fail", format!("{:?}", rules.on_fail)),
        ("timeout", shown(&brief.timeout)),
        ("verify timeout", shown(&brief.gate_timeout)),
        ("max_time", shown(&brief.max_time)),
        ("max_cost", shown(&brief.max_cost)),
        ("idle timeout", shown(&brief.idle_timeout)),
        ("stuck_after", shown(&brief.stall_after)),
        ("sandbox", shown(&brief.sandbox.map(SandboxLevel::as_str))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::roadmap::RoadmapSource;
    use crate::tasks::source::TaskSource;
    use descartes_kernel::tasks::RoadmapDefaults;

    fn load(text: &str) -> Loaded {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("R.md");
        fs_err::write(&path, format!("# Roadmap: R\n\n## Tasks\n{text}")).unwrap();
        RoadmapSource::new(&path, &RoadmapDefaults::default())
            .load()
            .unwrap()
    }

    const BEGAN: &str =
        "- [ ] **a**: First\n  - check: test -e proof\n- [ ] **b**: Second\n  - agent: worker\n";

    fn words(found: &[FieldChange]) -> Vec<String> {
        found.iter().map(FieldChange::describe).collect()
    }

    #[test]
    fn what_a_file_orders_stays_as_it_was_and_its_words_do_not() {
        let cases: [(&str, &[&str]); 5] = [
            (
                "- [ ] **a**: First\n- [ ] **b**: Second\n  - agent: worker\n",
                &["task a check: test -e proof -> none"],
            ),
            (
                "- [ ] **a**: First\n  - check: true\n- [ ] **b**: Second\n  - agent: worker\n",
                &["task a check: test -e proof -> true"],
            ),
            (
                "- [ ] **a**: First\n  - check: test -e proof\n- [ ] **b**: Second\n  - agent: other --yes\n",
                &["task b agent: worker -> other --yes"],
            ),
            (
                "- [x] **a**: First, and better\n  - check: test -e proof\n- [ ] **b**: Second\n  - agent: worker\n  - depends: a\n",
                &[],
            ),
            (
                "- [ ] **a**: First\n  - check: test -e proof\n  - retries: 9\n- [ ] **b**: Second\n  - agent: worker\n",
                &["task a attempts: 1 -> 10"],
            ),
        ];
        for (text, expected) in cases {
            let mut orders = Orders::of(&load(BEGAN));
            let mut loaded = load(text);
            let found = orders.hold(&mut loaded);
            assert_eq!(words(&found), expected, "{text}");
            assert_eq!(loaded.briefs["a"].gates, ["test -e proof"], "{text}");
            assert_eq!(
                loaded.briefs["b"].agent.as_deref(),
                Some("worker"),
                "{text}"
            );
            let graph = loaded.plan.graph();
            let a = graph.node(graph.find("a").unwrap());
            assert_eq!(a.rules.max_attempts, Some(1), "{text}");
            assert!(orders.hold(&mut load(text)).is_empty(), "told once: {text}");
        }
        let mut loaded = load(cases_text());
        Orders::of(&load(BEGAN)).hold(&mut loaded);
        assert_eq!(loaded.briefs["a"].text.title, "First, and better");
    }

    fn cases_text() -> &'static str {
        "- [ ] **a**: First, and better\n- [ ] **b**: Second\n"
    }

    #[test]
    fn a_command_that_was_refused_once_is_not_known_to_the_next_task() {
        let mut orders = Orders::of(&load(BEGAN));
        let evil = "  - check: touch pwned\n";
        let new = format!("{BEGAN}- [ ] **c**: Third\n{evil}- [ ] **d**: Fourth\n{evil}");
        let found = orders.hold(&mut load(&new));
        assert_eq!(found.len(), 2, "{:?}", words(&found));
        orders.hold(&mut load(&format!("{new}- [ ] **e**: Fifth\n{evil}")));
        for task in ["c", "d", "e"] {
            assert!(orders.refused(&task.into()).is_some(), "{task}");
        }
    }

    #[test]
    fn commands_of_a_new_task_are_refused_unless_they_are_known_or_wished_for() {
        let new = |keys: &str| format!("{BEGAN}- [ ] **c**: Third\n{keys}");
        let cases: [(&str, bool); 4] = [
            ("", false),
            ("  - check: test -e proof\n", false),
            ("  - check: touch pwned\n", true),
            ("  - agent: evil\n", true),
        ];
        for (keys, refused) in cases {
            let mut orders = Orders::of(&load(BEGAN));
            let found = orders.hold(&mut load(&new(keys)));
            assert_eq!(orders.refused(&"c".into()).is_some(), refused, "{keys}");
            assert_eq!(!found.is_empty(), refused, "{keys}");
        }
        let mut orders = Orders::of(&load(BEGAN));
        orders.grant("c".into());
        orders.hold(&mut load(&new("  - check: cargo test\n")));
        assert!(orders.refused(&"c".into()).is_none());
    }
}
