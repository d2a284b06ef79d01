//! The sequence in which a file's tasks are done, where some name tasks further down.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::block_table::BlockTable;
use super::blocks::TaskWaits;
use super::model::TaskList;
use crate::graph::edges::Edges;
use crate::graph::hash::NameMap;

/// A task in the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedTask {
    /// Its position in the list.
    pub(super) at: usize,
    /// The task whose phase and group it is done in: itself, unless it waits for a later one.
    pub(super) beside: usize,
}

/// A dependency that closes a circle, and is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LostDependency {
    pub(super) task: u32,
    pub(super) on: u32,
    /// So many more of the same range.
    pub(super) more: usize,
}

/// The order of the file, in which a task that names later ones comes directly behind the last of them.
pub(super) fn sequence(
    list: &TaskList,
    named: &mut [TaskWaits],
) -> (Vec<PlacedTask>, Vec<LostDependency>) {
    let all = named.iter().zip(0..);
    let mut later = all.map(|(waits, at)| waits.last().is_some_and(|last| last > at));
    if !later.any(|names_later| names_later) {
        let all = (0..named.len()).map(|at| PlacedTask { at, beside: at });
        return (all.collect(), Vec::new());
    }
    let mut sorter = Sorter::of(list, named);
    while sorter.placed.len() < named.len() {
        match sorter.ready.pop() {
            Some(Reverse(task)) => sorter.place(task),
            None => sorter.break_circle(named),
        }
    }
    (sorter.placed, sorter.lost)
}

/// Vertices are tasks, then rows of blocks, then the ends of tasks with parts.
struct Sorter {
    tasks: u32,
    /// What each vertex waits for, and who waits for it; [`NOTHING`] where that was left out.
    ahead: Edges,
    behind: Edges,
    /// How many of them are not done.
    waiting: Vec<u32>,
    is_done: Vec<bool>,
    /// Every task before this one is done, and none behind that one.
    done_until: usize,
    done_last: usize,
    ready: BinaryHeap<Reverse<u32>>,
    placed: Vec<PlacedTask>,
    lost: Vec<LostDependency>,
    /// The vertex of each block that a task waits for.
    blocks: Vec<Vec<u32>>,
    /// Where each vertex stands in the path that looks for a circle; [`NOTHING`] outside of it.
    on_path: Vec<u32>,
}

impl Sorter {
    fn of(list: &TaskList, named: &[TaskWaits]) -> Self {
        let table = BlockTable::new(named.iter().flat_map(|waits| &waits.blocks));
        let tasks = named.len();
        let ends = Ends::of(list, tasks + table.rows.len());
        let row_vertex = |row: u32| tasks as u32 + row;
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(4 * ends.vertices);
        for (row, at) in table.rows.iter().zip(tasks as u32..) {
            pairs.extend(row.tasks.iter().map(|on| (at, ends.end(*on))));
            pairs.extend(row.rows().map(|on| (at, row_vertex(on))));
        }
        let rows_of = |waits: &TaskWaits| -> Vec<u32> {
            let rows = waits.blocks.iter().filter_map(|block| table.number(block));
            rows.map(row_vertex).collect()
        };
        let blocks: Vec<Vec<u32>> = named.iter().map(rows_of).collect();
        for at in (0..tasks as u32).filter(|at| !list.tasks[*at as usize].container) {
            let above = ends.with_parents(at);
            for task in above.iter().map(|task| *task as usize) {
                let single = named[task].tasks.iter();
                let single = single.filter(|on| !above.contains(on));
                pairs.extend(single.map(|on| (at, ends.end(*on))));
                pairs.extend(blocks[task].iter().map(|row| (at, *row)));
            }
        }
        for (at, parent) in ends.parents.iter().enumerate() {
            let parent = parent.map(|parent| (ends.end(parent), ends.end(at as u32)));
            pairs.extend(parent);
        }
        let mut waiting = vec![0; ends.vertices];
        pairs.iter().for_each(|(at, _)| waiting[*at as usize] += 1);
        let mut sorter = Self {
            tasks: tasks as u32,
            ahead: Edges::group(ends.vertices, &pairs),
            behind: Edges::group_reversed(ends.vertices, &pairs),
            waiting,
            is_done: vec![false; ends.vertices],
            done_until: 0,
            done_last: 0,
            ready: BinaryHeap::new(),
            placed: Vec::with_capacity(tasks),
            lost: Vec::new(),
            blocks,
            on_path: vec![NOTHING; ends.vertices],
        };
        let free = (0..ends.vertices as u32).filter(|at| sorter.waiting[*at as usize] == 0);
        for vertex in free.collect::<Vec<u32>>() {
            sorter.free(vertex);
        }
        sorter
    }

    /// A vertex that waits for nothing more: a task takes its turn, anything else is done at once.
    fn free(&mut self, vertex: u32) {
        match vertex < self.tasks {
            true => self.ready.push(Reverse(vertex)),
            false => self.finish(vertex),
        }
    }

    fn finish(&mut self, vertex: u32) {
        let mut open = vec![vertex];
        while let Some(vertex) = open.pop() {
            self.is_done[vertex as usize] = true;
            for after in self.behind.of(vertex).iter().copied() {
                if after == NOTHING {
                    continue;
                }
                let left = &mut self.waiting[after as usize];
                // One that was placed to break a circle waits no more.
                *left = left.saturating_sub(1);
                if *left > 0 || self.is_done[after as usize] {
                    continue;
                }
                match after < self.tasks {
                    true => self.ready.push(Reverse(after)),
                    false => open.push(after),
                }
            }
        }
    }

    fn place(&mut self, task: u32) {
        if self.is_done[task as usize] {
            return;
        }
        let at = task as usize;
        let beside = match self.placed.last() {
            Some(last) if last.beside > at => last.beside,
            _ => at,
        };
        self.placed.push(PlacedTask { at, beside });
        self.finish(task);
        self.done_last = self.done_last.max(at);
        let open = self.is_done[self.done_until..]
            .iter()
            .position(|done| !done);
        self.done_until += open.unwrap_or(0);
    }

    /// Leaves out a dependency of the first task in a circle; one that is a part of others may have its
    /// dependency from these, and is just placed.
    fn break_circle(&mut self, named: &mut [TaskWaits]) {
        let circle = self.circle();
        let first = (0..circle.len()).filter(|at| circle[*at] < self.tasks);
        let Some(first) = first.min_by_key(|at| circle[*at]) else {
            let open = self.first_open();
            return open.into_iter().for_each(|task| self.place(task));
        };
        let (task, next) = (circle[first], circle[(first + 1) % circle.len()]);
        let waits = &mut named[task as usize];
        let mut lost: Option<LostDependency> = None;
        let mut lose = |on: u32, count: usize| match &mut lost {
            Some(lost) => lost.more += count,
            None => {
                let more = count - 1;
                lost = Some(LostDependency { task, on, more });
            }
        };
        if next < self.tasks {
            waits.tasks.retain(|on| *on != next);
            lose(next, 1);
        }
        let rows = std::mem::take(&mut self.blocks[task as usize]);
        for (block, row) in std::mem::take(&mut waits.blocks).into_iter().zip(rows) {
            if row != next {
                self.blocks[task as usize].push(row);
                waits.blocks.push(block);
                continue;
            }
            let is_done = |on: u32| self.is_done[on as usize];
            let left = match block.is_behind(self.done_last as u32) {
                true => None,
                false => block.filtered(is_done),
            };
            let kept = left.as_ref().map_or(0, |left| left.positions().len());
            let all = block.positions();
            if let Some(on) = all.iter().copied().find(|on| !is_done(*on)) {
                lose(on, all.len() - kept);
            }
            // What is left is done: nobody has to look at it again here.
            if let Some(left) = left {
                self.blocks[task as usize].push(u32::MAX);
                waits.blocks.push(left);
            }
        }
        match lost {
            Some(lost) => {
                self.lost.push(lost);
                self.waiting[task as usize] -= leave_out(self.ahead.of_mut(task), next);
                leave_out(self.behind.of_mut(next), task);
                if self.waiting[task as usize] == 0 {
                    self.free(task);
                }
            }
            None => self.place(task),
        }
    }

    fn first_open(&self) -> Option<u32> {
        let first = self.done_until as u32;
        (first..self.tasks).find(|task| !self.is_done[*task as usize])
    }

    /// Vertices that wait for each other, each for the next; nothing is ready.
    fn circle(&mut self) -> Vec<u32> {
        let mut path: Vec<u32> = Vec::new();
        let mut next = self.first_open();
        while let Some(vertex) = next.filter(|vertex| self.on_path[*vertex as usize] == NOTHING) {
            self.on_path[vertex as usize] = path.len() as u32;
            path.push(vertex);
            let open = |on: &u32| *on != NOTHING && !self.is_done[*on as usize];
            next = self.ahead.of(vertex).iter().copied().find(open);
        }
        let first = next.map_or(path.len(), |again| self.on_path[again as usize] as usize);
        for vertex in &path {
            self.on_path[*vertex as usize] = NOTHING;
        }
        path.split_off(first)
    }
}

/// In the place of an edge that was left out.
const NOTHING: u32 = u32::MAX;

/// Leaves out the edges to a vertex; answers how many these were.
fn leave_out(edges: &mut [u32], vertex: u32) -> u32 {
    let mut count = 0;
    for edge in edges.iter_mut().filter(|edge| **edge == vertex) {
        *edge = NOTHING;
        count += 1;
    }
    count
}

/// Where tasks with parts end.
struct Ends {
    parents: Vec<Option<u32>>,
    /// The vertex that stands for all parts of each task that has some.
    ends: NameMap<u32, u32>,
    vertices: usize,
}

impl Ends {
    fn of(list: &TaskList, first: usize) -> Self {
        let mut ends = NameMap::default();
        let mut vertices = first;
        if !list.tasks.iter().any(|task| task.container) {
            let parents = vec![None; list.tasks.len()];
            return Self {
                parents,
                ends,
                vertices,
            };
        }
        let places: NameMap<&str, u32> = {
            let all = list.tasks.iter().zip(0..);
            all.map(|(task, at)| (task.id.as_str(), at)).collect()
        };
        for (task, at) in list.tasks.iter().zip(0..) {
            if task.container {
                ends.insert(at, vertices as u32);
                vertices += 1;
            }
        }
        let parent = |parent: &str| places.get(parent).copied();
        let parents = list.tasks.iter();
        let parents = parents.map(|task| task.parent.as_deref().and_then(parent));
        Self {
            parents: parents.collect(),
            ends,
            vertices,
        }
    }

    /// The vertex that is done when a task is.
    fn end(&self, task: u32) -> u32 {
        self.ends.get(&task).copied().unwrap_or(task)
    }

    /// A task and those that it is a part of.
    fn with_parents(&self, task: u32) -> Vec<u32> {
        let chain = std::iter::successors(Some(task), |at| self.parents[*at as usize]);
        chain.take(self.parents.len()).collect()
    }
}
