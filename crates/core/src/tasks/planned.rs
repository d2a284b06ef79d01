//! The plan as the journal tells it to views.

use std::collections::HashMap;

use descartes_kernel::tasks::{PlannedBlock, PlannedTask};
use descartes_plans::graph::{Plan, TaskIx};

use super::orders::commands;
use super::source::Loaded;

/// Up to so many tasks are written with each task that waits for them; more are a block of their own.
const WRITTEN_OUT: usize = 16;

/// Every task that is work, and the blocks that they wait for.
pub(super) fn planned(loaded: &Loaded) -> (Vec<PlannedTask>, Vec<PlannedBlock>) {
    let plan = &loaded.plan;
    let mut blocks = PlanBlocks::of(plan);
    let mut tasks = Vec::new();
    for (wave, number) in plan.waves().iter().zip(1..) {
        for task in wave {
            let node = plan.graph().node(*task);
            let before = blocks.before(*task);
            tasks.push(PlannedTask {
                id: node.id.clone(),
                title: node.title.clone(),
                wave: number,
                complexity: node.weight,
                after: before.tasks,
                after_blocks: before.blocks,
                under: (loaded.briefs.get(&node.id)).and_then(|brief| brief.under.clone()),
                commands: loaded.briefs.get(&node.id).map(commands),
            });
        }
    }
    (tasks, blocks.written)
}

/// Joints and groups that tasks wait for.
struct PlanBlocks<'a> {
    plan: &'a Plan,
    written: Vec<PlannedBlock>,
    /// What a task that waits for a joint writes, by position.
    joints: Vec<PlannedBlock>,
    /// The same for a group.
    groups: HashMap<TaskIx, PlannedBlock>,
}

impl<'a> PlanBlocks<'a> {
    fn of(plan: &'a Plan) -> Self {
        let joints = plan.graph().joints();
        let mut blocks = Self {
            plan,
            written: Vec::new(),
            joints: vec![PlannedBlock::default(); joints.len()],
            groups: HashMap::new(),
        };
        // Those before others first.
        for at in plan.joints() {
            let joint = &joints[at as usize];
            let mut block = PlannedBlock::default();
            for task in &joint.tasks {
                blocks.add_task(*task, &mut block);
            }
            for before in &joint.joints {
                add(&mut block, &blocks.joints[*before as usize]);
            }
            blocks.joints[at as usize] = blocks.shortened(block);
        }
        blocks
    }

    /// What a task waits for; a group stands for the tasks in it.
    fn before(&mut self, task: TaskIx) -> PlannedBlock {
        let graph = self.plan.graph();
        let mut before = PlannedBlock::default();
        for joint in graph.all_joints(task) {
            add(&mut before, &self.joints[joint as usize]);
        }
        for on in graph.named_dependencies(task) {
            self.add_task(on, &mut before);
        }
        tidied(before)
    }

    /// A task, or the tasks of a group.
    fn add_task(&mut self, task: TaskIx, to: &mut PlannedBlock) {
        let graph = self.plan.graph();
        if graph.is_work(task) {
            to.tasks.push(graph.node(task).id.clone());
            return;
        }
        if let Some(known) = self.groups.get(&task) {
            return add(to, known);
        }
        let mut inside = PlannedBlock::default();
        let mut open = graph.subtasks(task).to_vec();
        while let Some(part) = open.pop() {
            if graph.is_work(part) {
                inside.tasks.push(graph.node(part).id.clone());
            }
            open.extend(graph.subtasks(part));
        }
        let inside = self.shortened(inside);
        add(to, &inside);
        self.groups.insert(task, inside);
    }

    /// The same in few words: what is long is written once.
    fn shortened(&mut self, block: PlannedBlock) -> PlannedBlock {
        let block = tidied(block);
        if block.tasks.len() + block.blocks.len() <= WRITTEN_OUT {
            return block;
        }
        self.written.push(block);
        PlannedBlock {
            tasks: Vec::new(),
            blocks: vec![self.written.len() as u32 - 1],
        }
    }
}

fn add(to: &mut PlannedBlock, more: &PlannedBlock) {
    to.tasks.extend(more.tasks.iter().cloned());
    to.blocks.extend(&more.blocks);
}

/// Each once, in the order of their names.
fn tidied(mut block: PlannedBlock) -> PlannedBlock {
    block.tasks.sort();
    block.tasks.dedup();
    block.blocks.sort_unstable();
    block.blocks.dedup();
    block
}

#[cfg(test)]
mod tests {
    use descartes_plans::graph::{Joint, TaskGraph, TaskNode};

    use super::*;

    /// Two phases of so many tasks, the second behind the first.
    fn loaded(tasks: u32) -> Loaded {
        let mut nodes: Vec<TaskNode> = (0..2 * tasks)
            .map(|at| TaskNode::new(format!("t{at:03}").as_str(), "x"))
            .collect();
        for node in &mut nodes[tasks as usize..] {
            node.joints.push(0);
        }
        let joint = Joint {
            tasks: (0..tasks).collect(),
            joints: Vec::new(),
        };
        let graph = TaskGraph::with_joints(nodes, vec![joint]);
        Loaded {
            plan: graph.plan().unwrap(),
            briefs: HashMap::new(),
            guidance: Vec::new(),
            findings: Vec::new(),
        }
    }

    #[test]
    fn a_short_block_is_written_with_each_task() {
        let (tasks, blocks) = planned(&loaded(3));
        assert!(blocks.is_empty());
        let after: Vec<&str> = tasks[5].after.iter().map(|id| id.as_str()).collect();
        assert_eq!(after, ["t000", "t001", "t002"]);
    }

    #[test]
    fn a_long_block_is_written_once() {
        let (tasks, blocks) = planned(&loaded(300));
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].tasks.len(), 300);
        for task in &tasks[300..] {
            assert!(task.after.is_empty());
            assert_eq!(task.after_blocks, [0]);
        }
        let json = serde_json::to_string(&(tasks, blocks)).unwrap();
        assert!(json.len() < 100 * 600, "{} bytes", json.len());
    }
}
