//! The order in which a file's tasks are done, as dependencies.

use super::blocks::{FinishedRuns, RunPart, TaskWaits};
use super::cycles::{break_cycles, break_group_cycles};
use super::id_ranges::{IdNumbers, IdRange, NamedIds};
use super::model::{ListTask, TaskList};
use super::sequence::{LostDependency, PlacedTask, sequence};
use crate::graph::hash::{NameMap, NameSet};

/// What each task of a list waits for, while that is found out.
pub(super) struct ListOrder {
    /// By the order of the file.
    waits: Vec<TaskWaits>,
    /// What was set while runs could still grow.
    set: Vec<(usize, RunPart)>,
    /// By what their texts name.
    named: Vec<TaskWaits>,
    places: NameMap<String, u32>,
    /// Ranges of ids that a task has beside its own.
    ranges: Vec<(IdRange, u32)>,
    /// Ids of what nobody is to do: whoever names them waits for nothing.
    gone: NameSet<String>,
    gone_ranges: Vec<NamedIds>,
    /// All of these by number, where ranges are named.
    numbers: Option<IdNumbers>,
}

impl ListOrder {
    /// Nobody waits for anybody yet.
    pub(super) fn new(list: &TaskList) -> Self {
        Self {
            places: places_of(list),
            ..Self::by_position(list.tasks.len())
        }
    }

    /// The same for so many tasks, where no text names any.
    pub(super) fn by_position(tasks: usize) -> Self {
        Self {
            waits: vec![TaskWaits::default(); tasks],
            set: Vec::new(),
            named: vec![TaskWaits::default(); tasks],
            places: NameMap::default(),
            ranges: Vec::new(),
            gone: NameSet::default(),
            gone_ranges: Vec::new(),
            numbers: None,
        }
    }

    /// The same, where these were left out.
    pub(super) fn without(list: &TaskList, gone: impl IntoIterator<Item = NamedIds>) -> Self {
        let mut order = Self::new(list);
        for ids in gone {
            match ids {
                NamedIds::One(id) => {
                    order.gone.insert(id);
                }
                range @ NamedIds::Range(_) => order.gone_ranges.push(range),
            }
        }
        order
    }

    /// Other names of a task.
    pub(super) fn add_names(&mut self, ids: NamedIds, at: usize) {
        match ids {
            NamedIds::One(id) => {
                self.places.entry(id).or_insert(at as u32);
            }
            NamedIds::Range(range) => self.ranges.push((range, at as u32)),
        }
    }

    /// Whether nobody is to do it.
    pub(super) fn is_gone(&self, id: &str) -> bool {
        self.gone.contains(id)
    }

    /// The position of a task.
    pub(super) fn place(&self, id: &str) -> Option<u32> {
        self.places.get(id).copied()
    }

    /// The task at a position waits for these alone.
    pub(super) fn set(&mut self, at: usize, after: RunPart) {
        self.set.push((at, after));
    }

    /// The same, some of them one by one.
    pub(super) fn set_waits(&mut self, at: usize, waits: TaskWaits) {
        self.waits[at] = waits;
    }

    /// From here on no run grows.
    fn settle(&mut self) {
        let mut finished = FinishedRuns::default();
        for (at, part) in std::mem::take(&mut self.set) {
            let waits = &mut self.waits[at];
            *waits = TaskWaits::default();
            match finished.block(&part) {
                Ok(block) => waits.blocks.push(block),
                Err(one) => waits.tasks.extend(one),
            }
        }
        for (waits, named) in self.waits.iter_mut().zip(std::mem::take(&mut self.named)) {
            named.tasks.into_iter().for_each(|task| waits.add(task));
            let blocks = named.blocks.into_iter();
            blocks.for_each(|block| waits.add_block(block));
        }
    }

    /// Takes down what the texts name, by position. Ids that are not in the list are kept apart.
    pub(super) fn name(
        &mut self,
        list: &mut TaskList,
        named: impl IntoIterator<Item = Vec<NamedIds>>,
    ) {
        for (named, at) in named.into_iter().zip(0..) {
            for ids in named {
                match ids {
                    NamedIds::One(id) => self.name_one(list, at, id),
                    NamedIds::Range(range) => self.name_range(list, at, &range),
                }
            }
        }
    }

    fn name_one(&mut self, list: &mut TaskList, at: u32, id: String) {
        let has_ranges = !self.ranges.is_empty() || !self.gone_ranges.is_empty();
        let found = match self.place(&id) {
            Some(place) => Some(Some(place)),
            None if self.is_gone(&id) => Some(None),
            None if has_ranges => self.numbers().get(&id),
            None => None,
        };
        match found {
            Some(Some(other)) if other == at => {}
            Some(Some(other)) => self.named[at as usize].add(other),
            Some(None) => {}
            None => hold(list, at, id),
        }
    }

    fn name_range(&mut self, list: &mut TaskList, at: u32, range: &IdRange) {
        let found = self.numbers().tasks_in(range);
        let waits = &mut self.named[at as usize];
        for block in found.blocks.iter().flat_map(|block| block.without(at)) {
            waits.add_block(block);
        }
        if let Some(missing) = found.missing {
            hold(list, at, missing);
        }
    }

    fn numbers(&mut self) -> &mut IdNumbers {
        let Self {
            numbers,
            places,
            ranges,
            gone,
            gone_ranges,
            ..
        } = self;
        numbers.get_or_insert_with(|| {
            let mut numbers = IdNumbers::default();
            places.iter().for_each(|(id, at)| numbers.add(id, *at));
            ranges
                .iter()
                .for_each(|(range, at)| numbers.add_range(range, *at));
            let gone = gone.iter().map(|id| NamedIds::One(id.clone()));
            gone.chain(gone_ranges.iter().cloned())
                .for_each(|ids| numbers.add_gone(&ids));
            numbers
        })
    }

    /// The order of the file, but for tasks that name later ones: what they name holds.
    pub(super) fn sequence(&mut self, list: &mut TaskList) -> Vec<PlacedTask> {
        let (placed, lost) = sequence(list, &mut self.named);
        for lost in lost {
            warn_of_circle(list, lost);
        }
        for (waits, at) in self.named.iter().zip(0..) {
            warn_of_later(list, at, waits);
        }
        placed
    }

    /// Adds dependencies of tasks that stand in no order: each may wait for any other.
    pub(super) fn add_unordered(&mut self, list: &mut TaskList, edges: Vec<(String, Vec<String>)>) {
        for (id, on) in edges {
            let Some(at) = self.place(&id) else {
                continue;
            };
            for wanted in on.into_iter().filter(|wanted| *wanted != id) {
                match self.place(&wanted) {
                    Some(other) => self.named[at as usize].add(other),
                    None => hold(list, at, wanted),
                }
            }
        }
    }

    /// Writes it into the tasks. A dependency that closes a circle is left out and said: lists are
    /// written by hand and by models.
    pub(super) fn finish(mut self, list: &mut TaskList) {
        self.settle();
        for (at, on) in break_cycles(&self.waits) {
            self.cut(list, at, on);
        }
        for at in 0..list.tasks.len() {
            self.store(list, at);
        }
        if list.tasks.iter().any(|task| task.container) {
            let places = places_of(list);
            break_group_cycles(list, |list, id, on| {
                let (at, on) = (*places.get(id)?, *places.get(on)?);
                let waits = self.waits[at as usize].contains(on);
                waits.then(|| {
                    self.cut(list, at, on);
                    self.store(list, at as usize);
                })
            });
        }
    }

    fn cut(&mut self, list: &mut TaskList, task: u32, on: u32) {
        self.waits[task as usize].remove(on);
        warn_of_circle(list, LostDependency { task, on, more: 0 });
    }

    fn store(&self, list: &mut TaskList, at: usize) {
        let waits = &self.waits[at];
        let id = |on: &u32| list.tasks[*on as usize].id.clone();
        let depends = waits.tasks.iter().map(id).collect();
        let task = &mut list.tasks[at];
        task.depends = depends;
        task.blocks.clone_from(&waits.blocks);
    }
}

/// The positions of tasks, by id.
fn places_of(list: &TaskList) -> NameMap<String, u32> {
    let all = list.tasks.iter().zip(0..);
    all.map(|(task, at)| (task.id.clone(), at)).collect()
}

fn warn_of_circle(list: &mut TaskList, lost: LostDependency) {
    let (task, on) = (
        &list.tasks[lost.task as usize],
        &list.tasks[lost.on as usize],
    );
    let (id, on, line) = (&task.id, &on.id, task.line);
    let more = match lost.more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "task `{id}` and `{on}`{more} depend on each other: `{id}` does not wait for `{on}`{more}"
    );
    list.warn(line, message);
}

/// Says that a task comes behind later ones: of each block the first of these.
fn warn_of_later(list: &mut TaskList, at: u32, waits: &TaskWaits) {
    let blocks = waits.blocks.iter().filter_map(|block| block.behind(at));
    let single = waits.tasks.iter().copied().filter(|on| *on > at);
    let later: Vec<(u32, usize)> = blocks.chain(single.map(|on| (on, 0))).collect();
    if later.is_empty() {
        return;
    }
    let (id, line) = (
        list.tasks[at as usize].id.clone(),
        list.tasks[at as usize].line,
    );
    for (on, more) in later {
        let on = &list.tasks[on as usize].id;
        let message = match more {
            0 => format!(
                "task `{id}` depends on `{on}`, which stands further down: it is done after it"
            ),
            _ => format!(
                "task `{id}` depends on `{on}` and {more} more, which stand further down: it is \
                 done after them"
            ),
        };
        list.warn(line, message);
    }
}

/// A task that waits for something that is not in the list.
fn hold(list: &mut TaskList, at: u32, wanted: String) {
    let task = &list.tasks[at as usize];
    if task.is_done() || task.unknown.contains(&wanted) {
        return;
    }
    let ListTask { id, line, .. } = task;
    let message =
        format!("task `{id}` depends on `{wanted}`, which is not in the list: it is held");
    list.warn(*line, message);
    list.tasks[at as usize].unknown.push(wanted);
}
