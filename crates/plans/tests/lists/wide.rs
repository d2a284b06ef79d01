//! Phases of many tasks: each waits for all of the phase before, and that costs an edge a task, not an
//! edge a pair.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use descartes_plans::graph::{Dependency, Frontier, Mark, Plan, TaskGraph, TaskIx, TaskNode};
use descartes_plans::lists::{By, ListFormat, ListOptions, TaskList};
use proptest::prelude::*;

use crate::read_with;

/// The same graph with an edge for each pair.
fn pairwise(list: &TaskList, options: ListOptions) -> TaskGraph {
    let graph = list.graph(options);
    let passed = list.tasks.iter();
    let passed = passed.filter(|task| TaskList::passed_over(task, options).is_some());
    let passed: HashMap<&str, Vec<&str>> = passed
        .map(|task| (task.id.as_str(), list.depends_of(task).collect()))
        .collect();
    let node = |old: &TaskNode| {
        let mut node = old.clone();
        node.joints.clear();
        let task = list.task(&old.id).unwrap();
        let mut seen: HashSet<&str> = HashSet::new();
        let mut open: Vec<&str> = list.depends_of(task).collect();
        node.dependencies.clear();
        while let Some(on) = open.pop() {
            match passed.get(on) {
                _ if !seen.insert(on) => {}
                Some(more) => open.extend(more),
                None => node.dependencies.push(Dependency {
                    id: on.into(),
                    place: node.place,
                }),
            }
        }
        node
    };
    TaskGraph::new(graph.nodes().iter().map(node).collect())
}

/// What may start, in the order in which it would.
fn ready(plan: &Plan, frontier: &Frontier) -> Vec<TaskIx> {
    let all = plan.waves().iter().flatten().copied();
    let mut all: Vec<TaskIx> = all.filter(|task| frontier.is_ready(*task)).collect();
    all.sort_by_key(|task| {
        let priority = plan.graph().node(*task).priority;
        (priority, std::cmp::Reverse(plan.tail(*task)), *task)
    });
    all
}

fn sorted(mut tasks: Vec<TaskIx>) -> Vec<TaskIx> {
    tasks.sort_unstable();
    tasks
}

/// Both graphs give the same waves, and as tasks are done and given up, the same tasks may start.
fn compare(list: &TaskList, options: ListOptions, picks: &[usize]) -> Result<(), TestCaseError> {
    let (ours, pairs) = (list.graph(options), pairwise(list, options));
    prop_assert!(pairs.check().is_empty(), "{:?}", pairs.check());
    let (ours, pairs) = (ours.plan().unwrap(), pairs.plan().unwrap());
    prop_assert_eq!(ours.waves(), pairs.waves());
    prop_assert_eq!(ours.critical_path(), pairs.critical_path());
    prop_assert_eq!(ours.effective_statuses(), pairs.effective_statuses());
    let tasks = 0..ours.graph().nodes().len() as TaskIx;
    for task in tasks.clone() {
        let (one, two) = (ours.graph(), pairs.graph());
        let (one, two) = (one.all_dependencies(task), two.all_dependencies(task));
        prop_assert_eq!(sorted(one), sorted(two));
        prop_assert_eq!(ours.tail(task), pairs.tail(task));
    }
    let mut one = Frontier::new(&ours, |_| Mark::Open);
    let mut two = Frontier::new(&pairs, |_| Mark::Open);
    for pick in picks {
        let may_start = ready(&ours, &one);
        prop_assert_eq!(&may_start, &ready(&pairs, &two));
        let Some(task) = may_start.get(pick % may_start.len().max(1)).copied() else {
            break;
        };
        let mark = match pick % 7 {
            0 => Mark::Stuck,
            _ => Mark::Done,
        };
        one.set(&ours, task, mark, &mut Vec::new());
        two.set(&pairs, task, mark, &mut Vec::new());
        for task in tasks.clone() {
            prop_assert_eq!(one.is_alive(task), two.is_alive(task));
            prop_assert_eq!(one.is_satisfied(task), two.is_satisfied(task));
            let (a, b) = (
                one.blockers(&ours, task, 99),
                two.blockers(&pairs, task, 99),
            );
            prop_assert_eq!(sorted(a), sorted(b));
        }
    }
    Ok(())
}

/// Phases of tasks, some of them parallel, optional, for a person, or waiting for one that they name.
pub(crate) fn spec_kit() -> impl Strategy<Value = String> {
    let task = (0_u8..10, 0_u8..12, 0_usize..40, 0_u8..3);
    prop::collection::vec(task, 1..48).prop_map(|rows| {
        let mut text = String::new();
        for (at, (kind, named, other, story)) in rows.into_iter().enumerate() {
            match kind {
                0 | 1 => writeln!(text, "## Phase {at}").unwrap(),
                2 => writeln!(text, "### Group {at}").unwrap(),
                _ => {}
            }
            let parallel = if kind > 3 { "[P] " } else { "" };
            let story = match story {
                0 => String::new(),
                story => format!("[US{story}] "),
            };
            let rest = match named {
                0 => format!(" (depends on T{:03})", other + 1),
                1 => " (manual)".to_owned(),
                3 => format!(" (depends on T{:03}-T{:03})", other / 2, other + 1),
                _ => String::new(),
            };
            let label = if named == 2 { "[DEFERRED] " } else { "" };
            let id = at + 1;
            writeln!(text, "- [ ] T{id:03} {parallel}{story}{label}do{rest}").unwrap();
        }
        text
    })
}

/// Parents with parts, and waves that name some of them.
pub(crate) fn kiro() -> impl Strategy<Value = String> {
    let task = (0_u8..6, any::<bool>(), 0_u8..8);
    let waves = prop::collection::vec(prop::collection::vec((1_u8..6, 0_u8..5), 1..5), 0..5);
    (prop::collection::vec(task, 1..20), waves).prop_map(|(rows, waves)| {
        let (mut text, mut major, mut minor) = (String::new(), 0, 0);
        for (kind, parallel, other) in rows {
            let star = if other == 7 { "*" } else { "" };
            let parallel = if parallel { " (P)" } else { "" };
            if kind == 0 || major == 0 {
                (major, minor) = (major + 1, 0);
                writeln!(text, "- [ ] {major}.{parallel} whole").unwrap();
                continue;
            }
            minor += 1;
            writeln!(text, "  - [ ]{star} {major}.{minor}{parallel} part").unwrap();
            if other == 1 {
                writeln!(text, "    - _Depends: 1.1_").unwrap();
            }
        }
        if !waves.is_empty() {
            let id = |(major, minor): &(u8, u8)| match minor {
                0 => format!("\"{major}\""),
                _ => format!("\"{major}.{minor}\""),
            };
            let wave = |wave: &Vec<(u8, u8)>| {
                format!("[{}]", wave.iter().map(id).collect::<Vec<_>>().join(","))
            };
            let waves: Vec<String> = waves.iter().map(wave).collect();
            let waves = waves.join(",");
            let head = "## Task Dependency Graph";
            writeln!(text, "{head}\n```json\n{{\"waves\": [{waves}]}}\n```").unwrap();
        }
        text
    })
}

pub(crate) fn stories() -> impl Strategy<Value = String> {
    prop::collection::vec(0_u8..4, 1..20).prop_map(|rows| {
        let story = |(at, priority): (usize, &u8)| {
            format!("{{\"id\":\"S{at}\",\"title\":\"t\",\"priority\":{priority},\"passes\":false}}")
        };
        let rows: Vec<String> = rows.iter().enumerate().map(story).collect();
        format!("[{}]", rows.join(","))
    })
}

pub(crate) fn options() -> impl Strategy<Value = ListOptions> {
    (any::<bool>(), any::<bool>(), any::<bool>(), 0_u8..5).prop_map(
        |(stories, optional, skip_human, by)| ListOptions {
            by: if by == 0 { By::Section } else { By::Task },
            stories,
            optional,
            skip_human,
            claim: false,
        },
    )
}

proptest! {
    #[test]
    fn blocks_mean_the_same_as_their_pairs(
        spec_kit in spec_kit(),
        kiro in kiro(),
        stories in stories(),
        options in options(),
        picks in prop::collection::vec(0_usize..100, 0..30),
    ) {
        for (format, text) in [
            (ListFormat::SpecKit, &spec_kit),
            (ListFormat::Kiro, &kiro),
            (ListFormat::PassesJson, &stories),
        ] {
            compare(&read_with(format, text, options), options, &picks)?;
        }
    }
}

/// Edges of a graph, those of its joints included.
fn edges(graph: &TaskGraph) -> usize {
    let nodes = graph.nodes().iter();
    let nodes = nodes.map(|node| node.dependencies.len() + node.joints.len());
    let joints = graph.joints().iter();
    let joints = joints.map(|joint| joint.tasks.len() + joint.joints.len());
    nodes.sum::<usize>() + joints.sum::<usize>()
}

#[test]
fn wide_phases_cost_a_few_edges_a_task() {
    let mut spec_kit = String::new();
    let mut kiro = String::new();
    let mut stories = Vec::new();
    let mut waves = Vec::new();
    for phase in 0..10 {
        writeln!(spec_kit, "## Phase {phase}").unwrap();
        writeln!(kiro, "- [ ] {}. whole", phase + 1).unwrap();
        let mut wave = Vec::new();
        for task in 0..300 {
            let id = phase * 300 + task + 1;
            let label = match task % 3 {
                0 => "[DEFERRED] ",
                _ => "[P] ",
            };
            writeln!(spec_kit, "- [ ] T{id:05} {label}do").unwrap();
            let star = if task % 3 == 0 { "*" } else { "" };
            writeln!(kiro, "  - [ ]{star} {}.{} part", phase + 1, task + 1).unwrap();
            if task % 3 == 1 {
                wave.push(format!("\"{}.{}\"", phase + 1, task + 1));
            }
            stories.push(format!(
                "{{\"title\":\"s\",\"priority\":{phase},\"passes\":false}}"
            ));
        }
        waves.push(format!("[{}]", wave.join(",")));
    }
    let waves = waves.join(",");
    writeln!(kiro, "## Task Dependency Graph\n```json\n[{waves}]\n```").unwrap();
    let stories = format!("[{}]", stories.join(","));
    for optional in [false, true] {
        for (format, text) in [
            (ListFormat::SpecKit, &spec_kit),
            (ListFormat::Kiro, &kiro),
            (ListFormat::PassesJson, &stories),
        ] {
            let options = ListOptions {
                optional,
                ..ListOptions::default()
            };
            let list = read_with(format, text, options);
            assert!(list.tasks.len() >= 3000);
            let graph = list.graph(options);
            let edges = edges(&graph);
            assert!(edges < 5 * list.tasks.len(), "{format:?}: {edges} edges");
            graph.plan().unwrap();
        }
    }
}
