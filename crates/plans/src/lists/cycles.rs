//! Circles of tasks that wait for each other, and which of their dependencies are left out.

use super::block_table::BlockTable;
use super::blocks::TaskWaits;
use super::model::{ListOptions, TaskList};
use crate::graph::{Problem, TaskId};

/// Dependencies (task, on) that close a circle.
pub(super) fn break_cycles(waits: &[TaskWaits]) -> Vec<(u32, u32)> {
    let mut cut = Vec::new();
    if is_acyclic(waits) {
        return cut;
    }
    let mut state = vec![0_u8; waits.len()];
    for start in 0..waits.len() as u32 {
        if state[start as usize] != 0 {
            continue;
        }
        // Depth first, without recursion: files have thousands of tasks.
        let mut path = vec![(start, 0_usize)];
        state[start as usize] = 1;
        while let Some((at, next)) = path.pop() {
            let Some(on) = waits[at as usize].get(next) else {
                state[at as usize] = 2;
                continue;
            };
            path.push((at, next + 1));
            match state[on as usize] {
                0 => {
                    state[on as usize] = 1;
                    path.push((on, 0));
                }
                1 => cut.push((at, on)),
                _ => {}
            }
        }
    }
    cut
}

/// Whether all tasks can be put into an order. A block is looked at once, however many wait for it.
fn is_acyclic(waits: &[TaskWaits]) -> bool {
    let blocks = BlockTable::new(waits.iter().flat_map(|waits| &waits.blocks));
    // Vertices: tasks, then blocks.
    let vertices = waits.len() + blocks.rows.len();
    let mut waiting = vec![0_u32; vertices];
    let mut behind: Vec<Vec<u32>> = vec![Vec::new(); vertices];
    let mut add = |from: usize, on: usize| {
        waiting[from] += 1;
        behind[on].push(from as u32);
    };
    for (at, own) in waits.iter().enumerate() {
        for on in &own.tasks {
            add(at, *on as usize);
        }
        for row in own.blocks.iter().filter_map(|block| blocks.number(block)) {
            add(at, waits.len() + row);
        }
    }
    for (row, at) in blocks.rows.iter().zip(waits.len()..) {
        row.rows.iter().for_each(|on| add(at, waits.len() + on));
        row.tasks.iter().for_each(|on| add(at, *on as usize));
    }
    let mut free: Vec<usize> = (0..vertices).filter(|at| waiting[*at] == 0).collect();
    let mut sorted = 0;
    while let Some(at) = free.pop() {
        sorted += 1;
        for after in &behind[at] {
            let left = &mut waiting[*after as usize];
            *left -= 1;
            if *left == 0 {
                free.push(*after as usize);
            }
        }
    }
    sorted == vertices
}

/// Circles that go through a task and its parts, which only the graph sees. `cut` leaves out one
/// dependency, where there is such a one.
pub(super) fn break_group_cycles(
    list: &mut TaskList,
    mut cut: impl FnMut(&mut TaskList, &str, &str) -> Option<()>,
) {
    let options = ListOptions {
        optional: true,
        ..ListOptions::default()
    };
    for _ in 0..list.tasks.len() {
        let problems = list.graph(options).check();
        let paths = problems.into_iter().filter_map(|problem| match problem {
            Problem::Cycle { path, .. } => Some(path),
            _ => None,
        });
        let mut changed = false;
        for path in paths.collect::<Vec<Vec<TaskId>>>() {
            changed |= path.iter().any(|id| {
                let mut others = path.iter().filter(|on| *on != id);
                others.any(|on| cut(list, id, on).is_some())
            });
        }
        if !changed {
            return;
        }
    }
}
