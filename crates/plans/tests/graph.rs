//! Task graphs: checks, waves, frontier, pictures.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_plans::graph::{
    Frontier, Joint, Mark, Plan, Priority, Problem, TaskGraph, TaskIx, TaskNode, TaskStatus, render,
};
use descartes_text::finding::Place;
use proptest::prelude::*;

fn task(id: &str) -> TaskNode {
    TaskNode::new(id, format!("task {id}"))
}

fn at(line: u32, mut node: TaskNode) -> TaskNode {
    node.place = Place::line(line);
    for dependency in &mut node.dependencies {
        dependency.place = Place::at(line, 9);
    }
    node
}

fn plan(nodes: Vec<TaskNode>) -> Plan {
    TaskGraph::new(nodes).plan().unwrap()
}

fn waves(plan: &Plan) -> Vec<Vec<&str>> {
    let name = |task: &TaskIx| plan.graph().node(*task).id.as_str();
    plan.waves()
        .iter()
        .map(|wave| wave.iter().map(name).collect())
        .collect()
}

#[test]
fn waves_follow_dependencies_then_priority_then_the_file() {
    let mut urgent = task("9").after(["1"]);
    urgent.priority = Priority::Critical;
    let mut late = task("2").after(["1"]);
    late.priority = Priority::Low;
    let plan = plan(vec![
        task("1"),
        late,
        task("3").after(["1"]),
        urgent,
        task("4").after(["2", "3"]),
    ]);
    assert_eq!(waves(&plan), [vec!["1"], vec!["9", "3", "2"], vec!["4"]]);
    assert_eq!(plan.wave_of(4), 3);
    assert_eq!(plan.critical_path(), 3);
}

#[test]
fn everything_wrong_is_told_at_once_with_its_place() {
    let graph = TaskGraph::new(vec![
        at(1, task("a").after(["c"])),
        at(2, task("b").after(["a", "b", "schemas"])),
        at(3, task("c").after(["b"])),
        at(4, task("schema")),
        at(5, task("schema")),
        at(6, task("x").part_of("nowhere")),
    ]);
    let told: Vec<String> = graph
        .check()
        .iter()
        .map(|problem| problem.finding(&graph).to_string())
        .collect();
    assert_eq!(
        told,
        [
            "1:1: error: dependency cycle: a → c → b → a (hint: remove one of these dependencies)",
            "2:9: error: task `b` depends on itself (hint: remove it)",
            "2:9: error: task `b` depends on `schemas`, which does not exist (hint: did you mean `schema`?)",
            "5:1: error: the id `schema` is already used on line 4 (hint: give one of them a different id)",
            "6:1: error: task `x` is a subtask of `nowhere`, which does not exist",
        ]
    );
    assert_eq!(graph.plan().unwrap_err().len(), 5);
}

#[test]
fn each_knot_of_tasks_gives_one_shortest_ring() {
    let graph = TaskGraph::new(vec![
        task("a").after(["b", "c"]),
        task("b").after(["c"]),
        task("c").after(["a"]),
        task("d").after(["a"]),
        task("e").after(["f"]),
        task("f").after(["e"]),
    ]);
    assert_eq!(
        graph_rings(&graph.check()),
        [vec!["a", "c"], vec!["e", "f"]]
    );
}

fn graph_rings(problems: &[Problem]) -> Vec<Vec<&str>> {
    problems
        .iter()
        .filter_map(|problem| match problem {
            Problem::Cycle { path, .. } => Some(path.iter().map(|id| id.as_str()).collect()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_task_that_waits_for_its_own_whole_or_part_is_a_ring() {
    let inside = TaskGraph::new(vec![task("1"), task("1.1").part_of("1").after(["1"])]);
    assert_eq!(graph_rings(&inside.check()), [["1", "1.1"]]);
    let outside = TaskGraph::new(vec![task("1").after(["1.1"]), task("1.1").part_of("1")]);
    assert_eq!(graph_rings(&outside.check()), [["1", "1.1"]]);
    let own = TaskGraph::new(vec![task("1").part_of("1")]);
    assert_eq!(graph_rings(&own.check()), [["1"]]);
    let parents = TaskGraph::new(vec![task("1").part_of("2"), task("2").part_of("1")]);
    assert_eq!(graph_rings(&parents.check()), [["1", "2"]]);
}

fn expanded() -> Vec<TaskNode> {
    let mut whole = task("2").after(["1"]);
    whole.status = TaskStatus::Expanded;
    vec![
        task("1"),
        whole,
        task("2.1").part_of("2"),
        task("2.2").part_of("2").after(["2.1"]),
        task("3").after(["2"]),
    ]
}

#[test]
fn dependents_of_an_expanded_task_wait_for_its_subtasks() {
    // Upstream releases task 3 in wave 1, or never.
    let plan = plan(expanded());
    assert_eq!(
        waves(&plan),
        [vec!["1"], vec!["2.1"], vec!["2.2"], vec!["3"]]
    );
    assert_eq!(
        plan.wave_of(1),
        3,
        "a group stands in the wave of its last subtask"
    );
}

#[test]
fn an_expanded_task_without_subtasks_is_a_warning_and_no_work_is_lost() {
    let mut nodes = vec![task("1")];
    nodes[0].status = TaskStatus::Expanded;
    let graph = TaskGraph::new(nodes);
    assert!(matches!(
        graph.check()[..],
        [Problem::ExpandedWithoutSubtasks { .. }]
    ));
    assert!(graph.plan().is_ok());
}

#[test]
fn subtasks_of_a_held_task_are_held_and_done_ones_stay_done() {
    let mut nodes = expanded();
    nodes[1].status = TaskStatus::Cancelled;
    nodes[2].status = TaskStatus::Done;
    let plan = plan(nodes);
    assert_eq!(
        plan.effective_statuses(),
        [
            TaskStatus::Pending,
            TaskStatus::Cancelled,
            TaskStatus::Done,
            TaskStatus::Cancelled,
            TaskStatus::Pending
        ]
    );
}

#[test]
fn the_frontier_moves_through_groups_and_back() {
    let plan = plan(expanded());
    let mut frontier = Frontier::new(&plan, |_| Mark::Open);
    let ready = |frontier: &Frontier| -> Vec<TaskIx> {
        (0..5)
            .filter(|task| plan.graph().is_work(*task) && frontier.is_ready(*task))
            .collect()
    };
    assert_eq!(ready(&frontier), [0]);
    let mut changed = Vec::new();
    frontier.set(&plan, 0, Mark::Done, &mut changed);
    assert_eq!(ready(&frontier), [2]);
    assert!(changed.contains(&2));
    frontier.set(&plan, 2, Mark::Done, &mut changed);
    frontier.set(&plan, 3, Mark::Stuck, &mut changed);
    assert!(
        !frontier.is_alive(4),
        "what waits for a blocked subtask's whole is out of reach"
    );
    assert_eq!(frontier.blockers(&plan, 4, 9), [1]);
    frontier.set(&plan, 3, Mark::Open, &mut changed);
    assert!(frontier.is_alive(4));
    frontier.set(&plan, 3, Mark::Done, &mut changed);
    assert_eq!(ready(&frontier), [4]);
    frontier.set(&plan, 0, Mark::Open, &mut changed);
    assert_eq!(
        ready(&frontier),
        [0, 4],
        "what is before a finished task does not undo it"
    );
}

fn pictured() -> Plan {
    let mut nodes = expanded();
    nodes[0].status = TaskStatus::Done;
    nodes[2].title = "say \"<b>hi</b>\" & #1".to_owned();
    nodes[2].status = TaskStatus::InProgress;
    plan(nodes)
}

#[test]
fn a_plan_reads_as_text() {
    let plan = pictured();
    insta::assert_snapshot!(render::text(&plan, &plan.effective_statuses()), @r#"
    wave 1 of 4: 1 of 1 task done
      ✓ 1    task 1  [done]
    wave 2 of 4: 0 of 1 task done
      ▶ 2.1  say "<b>hi</b>" & #1  [in-progress]  after 1
    wave 3 of 4: 0 of 1 task done
      · 2.2  task 2.2  [pending]  after 2.1, 1
    wave 4 of 4: 0 of 1 task done
      · 3    task 3  [pending]  after 2
    "#);
    assert_eq!(
        render::text(&TaskGraph::new(vec![]).plan().unwrap(), &[]),
        "no tasks\n"
    );
}

#[test]
fn a_plan_reads_as_mermaid() {
    let plan = pictured();
    insta::assert_snapshot!(render::mermaid(&plan, &plan.effective_statuses()), @r##"
    flowchart LR
      t1(["2: task 2"])
      subgraph w1 ["Wave 1"]
        t0["1: task 1"]
      end
      subgraph w2 ["Wave 2"]
        t2["2.1: say #quot;#lt;b#gt;hi#lt;/b#gt;#quot; #amp; #35;1"]
      end
      subgraph w3 ["Wave 3"]
        t3["2.2: task 2.2"]
      end
      subgraph w4 ["Wave 4"]
        t4["3: task 3"]
      end
      t2 --> t1
      t3 --> t1
      t0 --> t2
      t2 --> t3
      t0 --> t3
      t1 --> t4
      classDef pending fill:#e8eaed,color:#000
      class t3,t4 pending
      classDef in_progress fill:#a8c7fa,color:#000
      class t2 in_progress
      classDef done fill:#a8dab5,color:#000
      class t0 done
      classDef expanded fill:#d7aefb,color:#000
      class t1 expanded
    "##);
}

/// Two phases of so many tasks, the second behind the first.
fn two_phases(tasks: u32) -> Plan {
    let mut nodes: Vec<TaskNode> = (0..2 * tasks).map(|at| task(&format!("t{at}"))).collect();
    for node in &mut nodes[tasks as usize..] {
        node.joints.push(0);
    }
    let joint = Joint {
        tasks: (0..tasks).collect(),
        joints: Vec::new(),
    };
    TaskGraph::with_joints(nodes, vec![joint]).plan().unwrap()
}

#[test]
fn arrows_of_a_large_phase_meet_in_one_point() {
    let arrows = |tasks| {
        let text = render::mermaid(&two_phases(tasks), &[]);
        text.matches("-->").count()
    };
    assert_eq!(arrows(3), 9);
    assert_eq!(arrows(100), 200);
    let text = render::text(&two_phases(100), &[]);
    assert!(
        text.contains("t100  task t100  [pending]  after t0, t1, t2, t3, t4 and 95 more"),
        "{text}"
    );
}

#[test]
fn a_ring_through_a_joint_is_told_by_its_tasks() {
    let mut nodes = vec![task("a"), task("b").after(["c"]), task("c")];
    nodes[2].joints.push(0);
    let joint = Joint {
        tasks: vec![0, 1],
        joints: Vec::new(),
    };
    let graph = TaskGraph::with_joints(nodes, vec![joint]);
    let problems: Vec<String> = graph.check().iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["dependency cycle: b → c → b"]);
}

/// Random tasks, each depending on earlier ones, now and then a part of an earlier one.
fn sound_nodes() -> impl Strategy<Value = Vec<TaskNode>> {
    prop::collection::vec((any::<u64>(), 0_u8..4, 0_u8..8), 1..24).prop_map(|rows| {
        let mut nodes: Vec<TaskNode> = Vec::new();
        for (i, (bits, priority, family)) in rows.into_iter().enumerate() {
            let ids: Vec<String> = (0..i)
                .filter(|j| bits >> j & 5 == 5)
                .map(|j| format!("t{j}"))
                .collect();
            let mut node = task(&format!("t{i}")).after(ids.iter().map(String::as_str));
            node.priority = [
                Priority::Critical,
                Priority::High,
                Priority::Medium,
                Priority::Low,
            ][priority as usize];
            // Parts that depend on nothing themselves cannot wait for their own whole.
            if family == 0 && i > 0 {
                node.dependencies.clear();
                node.parent = Some(format!("t{}", i - 1).as_str().into());
            }
            nodes.push(node);
        }
        nodes
    })
}

/// A slow and simple second opinion: which tasks are satisfied, which are out of reach.
fn naive(plan: &Plan, marks: &[Mark]) -> (Vec<bool>, Vec<bool>) {
    let graph = plan.graph();
    let n = marks.len();
    let mut satisfied = vec![false; n];
    let mut hopeless = vec![false; n];
    for _ in 0..=2 * n {
        for task in 0..n as TaskIx {
            let subtasks = graph.subtasks(task);
            let before = graph.all_dependencies(task);
            let slot = task as usize;
            if subtasks.is_empty() {
                satisfied[slot] = marks[slot] == Mark::Done;
                hopeless[slot] = match marks[slot] {
                    Mark::Open => before.iter().any(|dep| hopeless[*dep as usize]),
                    mark => mark == Mark::Stuck,
                };
            } else {
                satisfied[slot] = marks[slot] == Mark::Done
                    || subtasks.iter().all(|sub| satisfied[*sub as usize]);
                hopeless[slot] =
                    !satisfied[slot] && subtasks.iter().any(|sub| hopeless[*sub as usize]);
            }
        }
    }
    (satisfied, hopeless)
}

proptest! {
    #[test]
    fn every_task_stands_in_one_wave_after_all_it_depends_on(nodes in sound_nodes()) {
        let graph = TaskGraph::new(nodes);
        prop_assume!(graph.clone().plan().is_ok());
        let plan = graph.plan().unwrap();
        let work = (0..plan.graph().nodes().len() as TaskIx).filter(|t| plan.graph().is_work(*t));
        let mut listed: Vec<TaskIx> = plan.waves().iter().flatten().copied().collect();
        listed.sort_unstable();
        prop_assert_eq!(listed, work.clone().collect::<Vec<_>>());
        for task in work {
            let before = plan.graph().all_dependencies(task);
            let latest = before.iter().map(|dep| plan.wave_of(*dep)).max().unwrap_or(0);
            prop_assert_eq!(plan.wave_of(task), latest + 1);
        }
        for wave in plan.waves() {
            prop_assert!(wave.is_sorted_by_key(|task| (plan.graph().node(*task).priority, *task)));
        }
    }

    #[test]
    fn the_frontier_agrees_with_a_slow_second_opinion(
        nodes in sound_nodes(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..4), 0..40),
    ) {
        let graph = TaskGraph::new(nodes);
        prop_assume!(graph.clone().plan().is_ok());
        let plan = graph.plan().unwrap();
        let n = plan.graph().nodes().len();
        let mut marks = vec![Mark::Open; n];
        let mut frontier = Frontier::new(&plan, |_| Mark::Open);
        for (which, mark) in changes {
            let task = which.index(n);
            let leaf = plan.graph().subtasks(task as TaskIx).is_empty();
            let mark = match (leaf, mark) {
                (_, 0) => Mark::Open,
                (_, 1) => Mark::Done,
                (true, 2) => Mark::Stuck,
                (true, _) => Mark::Busy,
                (false, _) => Mark::Open,
            };
            marks[task] = mark;
            let before = frontier.clone();
            let mut changed = Vec::new();
            frontier.set(&plan, task as TaskIx, mark, &mut changed);
            let (satisfied, hopeless) = naive(&plan, &marks);
            for task in 0..n as TaskIx {
                let slot = task as usize;
                prop_assert_eq!(frontier.is_satisfied(task), satisfied[slot]);
                if !plan.graph().subtasks(task).is_empty() {
                    continue;
                }
                let ready = marks[slot] == Mark::Open
                    && plan.graph().all_dependencies(task).iter().all(|dep| satisfied[*dep as usize]);
                prop_assert_eq!(frontier.is_ready(task), ready, "ready {}", task);
                let alive = marks[slot] == Mark::Busy || marks[slot] == Mark::Open && !hopeless[slot];
                prop_assert_eq!(frontier.is_alive(task), alive, "alive {}", task);
                if before.is_ready(task) != ready || before.is_alive(task) != alive {
                    prop_assert!(changed.contains(&task), "told of {}", task);
                }
            }
            prop_assert_eq!(&Frontier::new(&plan, |t| marks[t as usize]).is_ready(0), &frontier.is_ready(0));
        }
    }

    #[test]
    fn a_ring_that_is_told_is_a_ring_and_none_is_missed(
        edges in prop::collection::vec((0_usize..9, 0_usize..9), 0..24),
    ) {
        let mut nodes: Vec<TaskNode> = (0..9).map(|i| task(&format!("t{i}"))).collect();
        for (from, to) in edges.iter().filter(|(from, to)| from != to) {
            nodes[*from] = nodes[*from].clone().after([format!("t{to}").as_str()]);
        }
        let graph = TaskGraph::new(nodes);
        let problems = graph.check();
        for ring in graph_rings(&problems) {
            for (i, id) in ring.iter().enumerate() {
                let next = graph.find(ring[(i + 1) % ring.len()]).unwrap();
                prop_assert!(graph.dependencies(graph.find(id).unwrap()).contains(&next));
            }
        }
        // Reach by repeated squaring: a task that reaches itself is in a ring.
        let mut reach = [[false; 9]; 9];
        for (from, to) in edges.iter().filter(|(from, to)| from != to) {
            reach[*from][*to] = true;
        }
        for k in 0..9 {
            for i in 0..9 {
                for j in 0..9 {
                    reach[i][j] |= reach[i][k] && reach[k][j];
                }
            }
        }
        let mut knots = Vec::new();
        for i in (0..9).filter(|i| reach[*i][*i]) {
            if !knots.iter().any(|k: &usize| reach[*k][i] && reach[i][*k]) {
                knots.push(i);
            }
        }
        prop_assert_eq!(graph_rings(&problems).len(), knots.len());
        prop_assert_eq!(graph.plan().is_ok(), knots.is_empty());
    }
}
