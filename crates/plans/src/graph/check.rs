//! Everything that is wrong with a graph, at once: the search for rings of tasks.

use super::hash::NameMap;
use super::{Problem, TaskGraph};

impl TaskGraph {
    /// Everything that is wrong, in the order of the file. O(V + E).
    pub fn check(&self) -> Vec<Problem> {
        let (_, left) = self.sorted();
        let mut problems = self.problems.clone();
        problems.extend(self.cycles(&left));
        problems.sort_by_key(Problem::place);
        // Parents in a ring are one at their entrances and again at their exits.
        problems.dedup();
        problems
    }

    /// Vertices with what they wait for before them, and those that wait for ever.
    pub(super) fn sorted(&self) -> (Vec<u32>, Vec<u32>) {
        let vertices = self.vertices() as u32;
        let mut waiting: Vec<u32> = (0..vertices)
            .map(|vertex| self.preds.of(vertex).len() as u32)
            .collect();
        let mut order: Vec<u32> = (0..vertices)
            .filter(|vertex| waiting[*vertex as usize] == 0)
            .collect();
        order.reserve(vertices as usize - order.len());
        let mut next = 0;
        while let Some(vertex) = order.get(next).copied() {
            next += 1;
            for after in self.succs.of(vertex) {
                waiting[*after as usize] -= 1;
                if waiting[*after as usize] == 0 {
                    order.push(*after);
                }
            }
        }
        let left = (0..vertices)
            .filter(|vertex| waiting[*vertex as usize] > 0)
            .collect();
        (order, left)
    }

    /// One ring for each knot of tasks that wait for each other.
    fn cycles(&self, left: &[u32]) -> Vec<Problem> {
        let mut knot_of = vec![u32::MAX; self.vertices()];
        let knots = self.knots(left, &mut knot_of);
        knots.iter().map(|knot| self.ring(knot, &knot_of)).collect()
    }

    /// The shortest ring through the first vertex of a knot, by breadth.
    fn ring(&self, knot: &[u32], knot_of: &[u32]) -> Problem {
        let start = knot
            .iter()
            .copied()
            // Behind every joint there are tasks: a ring begins with one.
            .min_by_key(|v| (self.task_of(*v).unwrap_or(u32::MAX), *v))
            .unwrap_or(0);
        let inside = |vertex: u32| knot_of[vertex as usize] == knot_of[start as usize];
        let mut came_from = NameMap::from_iter([(start, start)]);
        let mut queue = vec![start];
        let mut next = 0;
        let mut last = start;
        'search: while let Some(vertex) = queue.get(next).copied() {
            next += 1;
            for before in self.preds.of(vertex).iter().copied().filter(|v| inside(*v)) {
                if before == start {
                    last = vertex;
                    break 'search;
                }
                came_from.entry(before).or_insert_with(|| {
                    queue.push(before);
                    vertex
                });
            }
        }
        let mut ring = vec![last];
        while last != start {
            last = came_from[&last];
            ring.push(last);
        }
        ring.reverse();
        self.cycle_of(&ring, knot)
    }

    fn cycle_of(&self, ring: &[u32], knot: &[u32]) -> Problem {
        let tasks = |vertices: &[u32]| -> Vec<u32> {
            let tasks = vertices.iter().filter_map(|vertex| self.task_of(*vertex));
            tasks.collect()
        };
        let mut path = tasks(ring);
        path.dedup();
        if path.len() > 1 && path.first() == path.last() {
            path.pop();
        }
        let mut tasks = tasks(knot);
        tasks.sort_unstable();
        tasks.dedup();
        Problem::Cycle {
            place: self.node(path[0]).place,
            tangled: tasks.len().max(path.len()),
            path: path
                .iter()
                .map(|task| self.node(*task).id.clone())
                .collect(),
        }
    }

    /// Strongly connected vertices among those left over (Tarjan, without recursion).
    fn knots(&self, left: &[u32], knot_of: &mut [u32]) -> Vec<Vec<u32>> {
        let mut knots = Vec::new();
        let mut search = CycleSearch {
            number: vec![0; self.vertices()],
            low: vec![0; self.vertices()],
            stack: Vec::new(),
            on_stack: vec![false; self.vertices()],
            counter: 0,
        };
        for root in left {
            if search.number[*root as usize] == 0 {
                self.search_from(*root, &mut search, &mut |knot| {
                    if knot.len() > 1 {
                        for vertex in &knot {
                            knot_of[*vertex as usize] = knots.len() as u32;
                        }
                        knots.push(knot);
                    }
                });
            }
        }
        knots
    }

    fn search_from(&self, root: u32, search: &mut CycleSearch, found: &mut dyn FnMut(Vec<u32>)) {
        let mut path = vec![(root, 0_usize)];
        search.enter(root);
        while let Some((vertex, edge)) = path.last_mut() {
            let (vertex, next) = (*vertex, self.preds.of(*vertex).get(*edge).copied());
            *edge += 1;
            match next {
                Some(next) if search.number[next as usize] == 0 => {
                    search.enter(next);
                    path.push((next, 0));
                }
                Some(next) => search.meet(vertex, next),
                None => {
                    path.pop();
                    if let Some((above, _)) = path.last() {
                        search.leave(*above, vertex);
                    }
                    if search.low[vertex as usize] == search.number[vertex as usize] {
                        found(search.take_knot(vertex));
                    }
                }
            }
        }
    }
}

/// The state of the search for knots.
struct CycleSearch {
    number: Vec<u32>,
    low: Vec<u32>,
    stack: Vec<u32>,
    on_stack: Vec<bool>,
    counter: u32,
}

impl CycleSearch {
    fn enter(&mut self, vertex: u32) {
        self.counter += 1;
        self.number[vertex as usize] = self.counter;
        self.low[vertex as usize] = self.counter;
        self.stack.push(vertex);
        self.on_stack[vertex as usize] = true;
    }

    fn meet(&mut self, vertex: u32, seen: u32) {
        if self.on_stack[seen as usize] {
            let low = self.low[vertex as usize].min(self.number[seen as usize]);
            self.low[vertex as usize] = low;
        }
    }

    fn leave(&mut self, above: u32, vertex: u32) {
        self.low[above as usize] = self.low[above as usize].min(self.low[vertex as usize]);
    }

    fn take_knot(&mut self, vertex: u32) -> Vec<u32> {
        let start = self.stack.iter().rposition(|v| *v == vertex).unwrap_or(0);
        let knot = self.stack.split_off(start);
        for vertex in &knot {
            self.on_stack[*vertex as usize] = false;
        }
        knot
    }
}
