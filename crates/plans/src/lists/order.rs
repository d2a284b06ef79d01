//! The order in which a file's tasks are done, as dependencies.

use std::collections::{HashMap, HashSet};

use super::model::{ListOptions, TaskList};
use crate::graph::Problem;

/// What the next task waits for, while a file is read from top to bottom.
///
/// A task waits for the run of parallel tasks before it, or else for the task before it; a parallel
/// task waits for what came before its run.
#[derive(Clone, Debug, Default)]
pub(super) struct FileOrder {
    /// What a task that runs alone waits for.
    tail: Vec<String>,
    /// What a parallel task waits for.
    base: Vec<String>,
    in_run: bool,
}

impl FileOrder {
    /// Begins behind other tasks.
    pub(super) fn after(tasks: Vec<String>) -> Self {
        Self {
            base: tasks.clone(),
            tail: tasks,
            in_run: false,
        }
    }

    /// Everything so far is done before anything that follows.
    pub(super) fn barrier(&mut self) {
        self.base.clone_from(&self.tail);
        self.in_run = false;
    }

    /// The next task; answers what it waits for.
    pub(super) fn next(&mut self, id: &str, parallel: bool) -> Vec<String> {
        self.next_as(vec![id.to_owned()], parallel)
    }

    /// The next tasks, as one.
    pub(super) fn next_as(&mut self, ends: Vec<String>, parallel: bool) -> Vec<String> {
        if !parallel {
            let before = std::mem::replace(&mut self.tail, ends);
            self.barrier();
            return before;
        }
        match self.in_run {
            true => self.tail.extend(ends),
            false => self.tail = ends,
        }
        self.in_run = true;
        self.base.clone()
    }

    /// What is done when all of it is.
    pub(super) fn end(self) -> Vec<String> {
        self.tail
    }

    /// What the next task would wait for.
    pub(super) fn entrance(&self, parallel: bool) -> Vec<String> {
        match parallel {
            true => self.base.clone(),
            false => self.tail.clone(),
        }
    }
}

/// Every task waits for the one before it.
pub(super) fn chain(list: &mut TaskList) {
    let mut before: Vec<String> = Vec::new();
    for task in list.tasks.iter_mut().filter(|task| !task.container) {
        task.depends = match task.optional {
            true => before.clone(),
            false => std::mem::replace(&mut before, vec![task.id.clone()]),
        };
    }
}

/// Adds dependencies that the text names. Where one names a task further down, it holds and the
/// order of the file does not; ids that are not in the list are kept apart.
pub(super) fn add_named(list: &mut TaskList, named: Vec<(String, Vec<String>)>) {
    let ids: HashSet<String> = list.tasks.iter().map(|task| task.id.clone()).collect();
    let places: HashMap<String, usize> = positions(list);
    for (id, on) in named {
        let Some(at) = places.get(&id).copied() else {
            continue;
        };
        for wanted in on {
            if wanted == id {
                continue;
            }
            if !ids.contains(&wanted) {
                let line = list.tasks[at].line;
                list.warn(
                    line,
                    format!(
                        "task `{id}` depends on `{wanted}`, which is not in the list: it is held"
                    ),
                );
                list.tasks[at].unknown.push(wanted);
                continue;
            }
            if places.get(&wanted).is_some_and(|other| *other > at) {
                forward(list, at, &wanted);
            }
            let depends = &mut list.tasks[at].depends;
            if !depends.contains(&wanted) {
                depends.push(wanted);
            }
        }
    }
    break_cycles(list);
}

/// Adds dependencies of tasks that stand in no order: each may wait for any other.
pub(super) fn add_unordered(list: &mut TaskList, edges: Vec<(String, Vec<String>)>) {
    let places = positions(list);
    let mut unknown = Vec::new();
    for (id, on) in edges {
        let Some(at) = places.get(&id).copied() else {
            continue;
        };
        let (found, strange): (Vec<String>, Vec<String>) =
            on.into_iter().partition(|on| places.contains_key(on));
        let depends = &mut list.tasks[at].depends;
        for on in found.into_iter().filter(|on| *on != id) {
            if !depends.contains(&on) {
                depends.push(on);
            }
        }
        if !strange.is_empty() {
            unknown.push((id, strange));
        }
    }
    add_named(list, unknown);
}

fn positions(list: &TaskList) -> HashMap<String, usize> {
    let all = list.tasks.iter().enumerate();
    all.map(|(at, task)| (task.id.clone(), at)).collect()
}

/// The task at `at` waits for one further down: whoever waited for it by the order of the file, up
/// to that one, waits for what it waited for.
fn forward(list: &mut TaskList, at: usize, wanted: &str) {
    let (id, line) = (list.tasks[at].id.clone(), list.tasks[at].line);
    list.warn(
        line,
        format!(
            "task `{id}` depends on `{wanted}`, which stands further down: it is done after it"
        ),
    );
    let before = list.tasks[at].depends.clone();
    let end = positions(list).get(wanted).copied().unwrap_or(at);
    for task in &mut list.tasks[at + 1..=end] {
        if let Some(found) = task.depends.iter().position(|on| *on == id) {
            task.depends.remove(found);
            let more = before.iter().filter(|on| !task.depends.contains(on));
            let more: Vec<String> = more.cloned().collect();
            task.depends.extend(more);
        }
    }
}

/// A dependency that closes a circle is left out and said: lists are written by hand and by models.
pub(super) fn break_cycles(list: &mut TaskList) {
    let places = positions(list);
    let mut state = vec![0_u8; list.tasks.len()];
    let mut cut: Vec<(usize, String)> = Vec::new();
    for start in 0..list.tasks.len() {
        if state[start] != 0 {
            continue;
        }
        // Depth first, without recursion: files have thousands of tasks.
        let mut path = vec![(start, 0_usize)];
        state[start] = 1;
        while let Some((at, next)) = path.pop() {
            let Some(on) = list.tasks[at].depends.get(next) else {
                state[at] = 2;
                continue;
            };
            path.push((at, next + 1));
            match places.get(on).copied() {
                Some(other) if state[other] == 1 => cut.push((at, on.clone())),
                Some(other) if state[other] == 0 => {
                    state[other] = 1;
                    path.push((other, 0));
                }
                _ => {}
            }
        }
    }
    for (at, on) in cut {
        cut_edge(list, at, &on);
    }
    if list.tasks.iter().any(|task| task.container) {
        break_group_cycles(list);
    }
}

fn cut_edge(list: &mut TaskList, at: usize, on: &str) {
    let task = &mut list.tasks[at];
    task.depends.retain(|other| other != on);
    let (id, line) = (task.id.clone(), task.line);
    list.warn(
        line,
        format!("task `{id}` and `{on}` depend on each other: `{id}` does not wait for `{on}`"),
    );
}

/// Circles that go through a task and its parts, which only the graph sees.
fn break_group_cycles(list: &mut TaskList) {
    let options = ListOptions {
        optional: true,
        ..ListOptions::default()
    };
    for _ in 0..list.tasks.len() {
        let problems = list.graph(options).check();
        let path = problems.into_iter().find_map(|problem| match problem {
            Problem::Cycle { path, .. } => Some(path),
            _ => None,
        });
        let Some(path) = path else {
            return;
        };
        let places = positions(list);
        let edge = path.iter().find_map(|id| {
            let at = places.get(&**id).copied()?;
            let depends = list.tasks[at].depends.iter();
            let mut inside = depends.filter(|on| path.iter().any(|id| **id == ***on));
            inside.next().map(|on| (at, on.clone()))
        });
        let Some((at, on)) = edge else {
            return;
        };
        cut_edge(list, at, &on);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_tasks_wait_for_what_came_before_their_run() {
        let mut order = FileOrder::default();
        let table = [
            ("a", false, vec![]),
            ("b", true, vec!["a"]),
            ("c", true, vec!["a"]),
            ("d", false, vec!["b", "c"]),
            ("e", false, vec!["d"]),
        ];
        for (id, parallel, expected) in table {
            assert_eq!(order.next(id, parallel), expected, "{id}");
        }
        order.next("f", true);
        order.barrier();
        assert_eq!(order.next("g", true), ["f"]);
        assert_eq!(order.next("h", true), ["f"]);
        order.barrier();
        assert_eq!(order.next("i", true), ["g", "h"]);
    }
}
