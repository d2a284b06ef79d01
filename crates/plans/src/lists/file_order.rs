//! Tasks from top to bottom, where runs of some are done together.

use super::blocks::RunPart;
use super::model::TaskList;

/// What the next task waits for, while a file is read from top to bottom.
///
/// A task waits for the run of parallel tasks before it, or else for the task before it; a parallel
/// task waits for what came before its run.
#[derive(Clone, Debug, Default)]
pub(super) struct FileOrder {
    /// What a task that runs alone waits for.
    tail: RunPart,
    /// What a parallel task waits for.
    base: RunPart,
    in_run: bool,
}

impl FileOrder {
    /// Begins behind other tasks.
    pub(super) fn after(tasks: RunPart) -> Self {
        Self {
            tail: tasks.clone(),
            base: tasks,
            in_run: false,
        }
    }

    /// Everything so far is done before anything that follows.
    pub(super) fn barrier(&mut self) {
        self.base = self.tail.clone();
        self.in_run = false;
    }

    /// The next task; answers what it waits for.
    pub(super) fn next(&mut self, task: usize, parallel: bool) -> RunPart {
        self.next_as(vec![task as u32], parallel)
    }

    /// The next tasks, as one.
    pub(super) fn next_as(&mut self, ends: Vec<u32>, parallel: bool) -> RunPart {
        if !parallel {
            let before = std::mem::replace(&mut self.tail, RunPart::of(ends));
            self.barrier();
            return before;
        }
        match self.in_run {
            true => self.tail.extend(ends),
            false => self.tail = RunPart::of(ends),
        }
        self.in_run = true;
        self.base.clone()
    }

    /// What is done when all of it is.
    pub(super) fn end(self) -> Vec<u32> {
        self.tail.to_vec()
    }

    /// What the next task would wait for.
    pub(super) fn entrance(&self, parallel: bool) -> RunPart {
        match parallel {
            true => self.base.clone(),
            false => self.tail.clone(),
        }
    }
}

/// Every task waits for the one before it.
pub(super) fn chain(list: &mut TaskList) {
    let mut before: Option<String> = None;
    for task in list.tasks.iter_mut().filter(|task| !task.container) {
        task.depends = before.iter().cloned().collect();
        if !task.optional {
            before = Some(task.id.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_tasks_wait_for_what_came_before_their_run() {
        let mut order = FileOrder::default();
        let table: [(usize, bool, &[u32]); 5] = [
            (0, false, &[]),
            (1, true, &[0]),
            (2, true, &[0]),
            (3, false, &[1, 2]),
            (4, false, &[3]),
        ];
        for (task, parallel, expected) in table {
            assert_eq!(order.next(task, parallel).to_vec(), expected, "{task}");
        }
        order.next(5, true);
        order.barrier();
        assert_eq!(order.next(6, true).to_vec(), [5]);
        assert_eq!(order.next(7, true).to_vec(), [5]);
        order.barrier();
        assert_eq!(order.next(8, true).to_vec(), [6, 7]);
    }
}
