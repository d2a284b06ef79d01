//! Circles of tasks that wait for each other, and which of their dependencies are left out.

use super::block_table::BlockTable;
use super::blocks::TaskWaits;
use super::model::{ListOptions, TaskList};
use crate::graph::edges::Edges;
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
    let first = waits.len() as u32;
    let vertices = waits.len() + blocks.rows.len();
    let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(4 * vertices);
    for (own, at) in waits.iter().zip(0..) {
        pairs.extend(own.tasks.iter().map(|on| (at, *on)));
        let rows = own.blocks.iter().filter_map(|block| blocks.number(block));
        pairs.extend(rows.map(|row| (at, first + row)));
    }
    for (row, at) in blocks.rows.iter().zip(first..) {
        pairs.extend(row.rows().map(|on| (at, first + on)));
        pairs.extend(row.tasks.iter().map(|on| (at, *on)));
    }
    let mut waiting = vec![0_u32; vertices];
    pairs.iter().for_each(|(at, _)| waiting[*at as usize] += 1);
    let behind = Edges::group_reversed(vertices, &pairs);
    let free = (0..vertices as u32).filter(|at| waiting[*at as usize] == 0);
    let mut free: Vec<u32> = free.collect();
    let mut sorted = 0;
    while let Some(at) = free.pop() {
        sorted += 1;
        for after in behind.of(at) {
            let left = &mut waiting[*after as usize];
            *left -= 1;
            if *left == 0 {
                free.push(*after);
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
