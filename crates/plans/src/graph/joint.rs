//! Joints: many tasks that many others wait for, at the cost of one edge each instead of one a pair.

use super::hash::NameSet;
use super::{Joint, TaskGraph, TaskIx};

impl TaskGraph {
    /// The joints of the graph.
    pub fn joints(&self) -> &[Joint] {
        &self.joints
    }

    /// The tasks before a joint, with those before the joints that it waits for itself.
    pub fn before_joint(&self, joint: u32) -> Vec<TaskIx> {
        let mut all = Vec::new();
        self.add_joints(&[joint], &mut all);
        all
    }

    /// What a task depends on, with what it inherits from the tasks that it is a part of.
    pub fn all_dependencies(&self, task: TaskIx) -> Vec<TaskIx> {
        let node = self.node(task);
        // By far the most frequent case, and the dearest if it is not told apart.
        if let ([joint], [], None) = (
            node.joints.as_slice(),
            self.dependencies(task),
            &node.parent,
        ) && self.joints[*joint as usize].joints.is_empty()
        {
            let mut all = self.joints[*joint as usize].tasks.clone();
            all.retain(|before| *before != task);
            return all;
        }
        let mut all = Vec::new();
        for current in self.with_parents(task) {
            self.add_joints(&self.node(current).joints, &mut all);
            all.extend(self.dependencies(current));
        }
        let mut seen = NameSet::default();
        all.retain(|before| *before != task && seen.insert(*before));
        all
    }

    /// What a task names, with what it inherits from the tasks that it is a part of.
    pub fn named_dependencies(&self, task: TaskIx) -> Vec<TaskIx> {
        let chain = self.with_parents(task).into_iter();
        let named = chain.flat_map(|current| self.dependencies(current).iter().copied());
        named.filter(|before| *before != task).collect()
    }

    /// The joints that a task waits for, with those of the tasks that it is a part of.
    pub fn all_joints(&self, task: TaskIx) -> Vec<u32> {
        let all = self.with_parents(task).into_iter();
        let mut all: Vec<u32> = all
            .flat_map(|current| self.node(current).joints.iter().copied())
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// A task and the tasks that it is a part of. A chain of parents cannot be longer than the graph,
    /// even where it is a ring.
    pub(super) fn with_parents(&self, task: TaskIx) -> Vec<TaskIx> {
        let chain = std::iter::successors(Some(task), |at| self.parent(*at));
        chain.take(self.nodes().len()).collect()
    }

    fn add_joints(&self, joints: &[u32], all: &mut Vec<TaskIx>) {
        let mut open: Vec<u32> = joints.iter().rev().copied().collect();
        let mut seen: NameSet<u32> = NameSet::default();
        while let Some(joint) = open.pop() {
            if seen.insert(joint) {
                let joint = &self.joints[joint as usize];
                all.extend(&joint.tasks);
                open.extend(joint.joints.iter().rev());
            }
        }
    }
}
