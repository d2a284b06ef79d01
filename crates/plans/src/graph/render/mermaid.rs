//! A plan as a Mermaid flowchart: one box for each wave.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{colour, status_of};
use crate::graph::{Plan, TaskIx, TaskStatus};
use descartes_text::units::shorten;

/// A flowchart that Mermaid draws; titles are escaped.
pub fn mermaid(plan: &Plan, statuses: &[TaskStatus]) -> String {
    let graph = plan.graph();
    let mut out = String::from("flowchart LR\n");
    let tasks = 0..graph.nodes().len() as TaskIx;
    for task in tasks.clone().filter(|task| !graph.is_work(*task)) {
        let _ = writeln!(out, "  t{task}([\"{}\"])", label(plan, task));
    }
    for (number, wave) in plan.waves().iter().enumerate() {
        let wave_number = number + 1;
        let _ = writeln!(out, "  subgraph w{wave_number} [\"Wave {wave_number}\"]");
        for task in wave {
            let _ = writeln!(out, "    t{task}[\"{}\"]", label(plan, *task));
        }
        out.push_str("  end\n");
    }
    let joints = drawn_joints(plan);
    for joint in &joints {
        let _ = writeln!(out, "  j{joint}((\" \"))");
        for before in graph.before_joint(*joint) {
            let _ = writeln!(out, "  t{before} --> j{joint}");
        }
    }
    for task in tasks.clone() {
        let (before, joints) = arrows(plan, &joints, task);
        for before in before {
            let _ = writeln!(out, "  t{before} --> t{task}");
        }
        for joint in joints {
            let _ = writeln!(out, "  j{joint} --> t{task}");
        }
    }
    classes(plan, statuses, &mut out);
    out
}

/// Joints with so many tasks before them are drawn, instead of an arrow for each pair.
const DRAWN_JOINT: usize = 9;

/// The joints that are drawn.
pub fn drawn_joints(plan: &Plan) -> BTreeSet<u32> {
    let graph = plan.graph();
    let joints = 0..graph.joints().len() as u32;
    joints
        .filter(|joint| graph.before_joint(*joint).len() >= DRAWN_JOINT)
        .collect()
}

/// What a task or group is drawn behind: tasks, and joints of those that are drawn.
pub fn arrows(plan: &Plan, drawn: &BTreeSet<u32>, task: TaskIx) -> (Vec<TaskIx>, Vec<u32>) {
    let graph = plan.graph();
    if let subtasks @ [_, ..] = graph.subtasks(task) {
        return (subtasks.to_vec(), Vec::new());
    }
    let joints = graph.all_joints(task);
    if !joints.iter().any(|joint| drawn.contains(joint)) {
        return (graph.all_dependencies(task), Vec::new());
    }
    let (shown, short): (Vec<u32>, Vec<u32>) =
        joints.into_iter().partition(|joint| drawn.contains(joint));
    let mut before = graph.named_dependencies(task);
    before.extend(
        short
            .into_iter()
            .flat_map(|joint| graph.before_joint(joint)),
    );
    before.sort_unstable();
    before.dedup();
    (before, shown)
}

fn classes(plan: &Plan, statuses: &[TaskStatus], out: &mut String) {
    for status in TaskStatus::ALL {
        let tasks = 0..plan.graph().nodes().len() as TaskIx;
        let names: Vec<String> = tasks
            .filter(|task| status_of(plan, statuses, *task) == status)
            .map(|task| format!("t{task}"))
            .collect();
        if !names.is_empty() {
            // A class must not be called `end` or hold a dash.
            let class = status.as_str().replace('-', "_");
            let _ = writeln!(out, "  classDef {class} fill:{},color:#000", colour(status));
            let _ = writeln!(out, "  class {} {class}", names.join(","));
        }
    }
}

fn label(plan: &Plan, task: TaskIx) -> String {
    let node = plan.graph().node(task);
    escape(&format!("{}: {}", node.id, shorten(&node.title, 60)))
}

/// Mermaid reads `#name;` as a character, and everything else in quotes as it is.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => out.push_str("#quot;"),
            '#' => out.push_str("#35;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            '&' => out.push_str("#amp;"),
            '`' => out.push_str("#96;"),
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}
