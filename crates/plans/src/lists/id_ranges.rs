//! Ranges of ids such as `T034–T037`, kept as ranges: a list may name thousands of tasks that way.

use std::collections::BTreeMap;

use super::blocks::TaskBlock;

/// Ids that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamedIds {
    One(String),
    Range(IdRange),
}

impl NamedIds {
    /// What `FROM-TO` names: a range, or just the second where the two are none.
    pub(super) fn up_to(from: &str, to: &str) -> Self {
        match IdRange::of(from, to) {
            Some(range) => Self::Range(range),
            None => Self::One(to.to_owned()),
        }
    }
}

impl From<String> for NamedIds {
    fn from(id: String) -> Self {
        Self::One(id)
    }
}

/// Ids with the same letters and every number from one to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IdRange {
    letters: String,
    /// Digits that a number has at least.
    width: usize,
    first: u32,
    last: u32,
}

/// The letters, the digits and the number of an id that is made of just these.
fn split(id: &str) -> Option<(&str, &str, u32)> {
    let at = id.find(|c: char| c.is_ascii_digit())?;
    let (letters, digits) = id.split_at(at);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((letters, digits, digits.parse().ok().filter(|_| is_number)?))
}

impl IdRange {
    pub(super) fn of(from: &str, to: &str) -> Option<Self> {
        let ((letters, digits, first), (others, _, last)) = (split(from)?, split(to)?);
        (letters == others && first < last).then(|| Self {
            letters: letters.to_owned(),
            width: digits.len(),
            first,
            last,
        })
    }

    /// What its ids begin with.
    pub(super) fn letters(&self) -> &str {
        &self.letters
    }

    fn id(&self, number: u32) -> String {
        format!("{}{number:0width$}", self.letters, width = self.width)
    }

    /// As it is told: `T034-T037`.
    fn describe(&self, first: u32, last: u32) -> String {
        match first == last {
            true => self.id(first),
            false => format!("{}-{}", self.id(first), self.id(last)),
        }
    }

    /// The numbers of each length.
    fn by_digits(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        let (first, last, width) = (self.first, self.last, self.width);
        (width..=10.max(width)).filter_map(move |digits| {
            let least = match digits == width {
                true => 0,
                false => 10_u64.pow(digits as u32 - 1),
            };
            let most = 10_u64.checked_pow(digits as u32).unwrap_or(u64::MAX) - 1;
            let low = u64::from(first).max(least) as u32;
            let high = u64::from(last).min(most) as u32;
            (u64::from(last) >= least && low <= high).then_some((digits, low, high))
        })
    }
}

/// Numbers of one kind of id, and the position of the task that each stands for.
#[derive(Clone, Debug)]
struct NumberLine {
    letters: String,
    digits: usize,
    /// Where each piece begins: its last number, and the task, which [`NOBODY`] is to do.
    pieces: BTreeMap<u32, (u32, u32)>,
    /// The same in the order of numbers, once nothing more is added.
    sorted: Option<SortedPieces>,
}

#[derive(Clone, Debug)]
struct SortedPieces {
    /// The first and the last number of each piece.
    numbers: Vec<(u32, u32)>,
    /// The last number before the next one that is missing.
    joined_until: Vec<u32>,
    /// How many tasks stand before each piece, and before the end.
    places: Vec<usize>,
    tasks: TaskBlock,
    /// A task has several pieces.
    repeats: bool,
}

/// The position of what nobody is to do.
const NOBODY: u32 = u32::MAX;

/// The tasks of a list by the numbers in their ids.
#[derive(Clone, Debug, Default)]
pub(super) struct IdNumbers {
    lines: Vec<NumberLine>,
}

/// What a range stands for in a list.
#[derive(Debug, Default)]
pub(super) struct RangeTasks {
    pub(super) blocks: Vec<TaskBlock>,
    /// The first of its ids that no task has, as they are told.
    pub(super) missing: Option<String>,
}

impl IdNumbers {
    /// Gives an id to a task, unless another one has it.
    pub(super) fn add(&mut self, id: &str, task: u32) {
        if let Some((letters, digits, number)) = split(id) {
            self.fill(letters, digits.len(), (number, number), task);
        }
    }

    /// Gives a task all ids of a range that no other one has.
    pub(super) fn add_range(&mut self, range: &IdRange, task: u32) {
        for (digits, first, last) in range.by_digits() {
            self.fill(&range.letters, digits, (first, last), task);
        }
    }

    /// The same for what nobody is to do.
    pub(super) fn add_gone(&mut self, ids: &NamedIds) {
        match ids {
            NamedIds::One(id) => self.add(id, NOBODY),
            NamedIds::Range(range) => self.add_range(range, NOBODY),
        }
    }

    fn line(&self, letters: &str, digits: usize) -> Option<usize> {
        let mut lines = self.lines.iter();
        lines.position(|line| line.digits == digits && line.letters == letters)
    }

    fn fill(&mut self, letters: &str, digits: usize, (first, last): (u32, u32), task: u32) {
        let at = self.line(letters, digits).unwrap_or_else(|| {
            self.lines.push(NumberLine {
                letters: letters.to_owned(),
                digits,
                pieces: BTreeMap::new(),
                sorted: None,
            });
            self.lines.len() - 1
        });
        self.lines[at].fill(first, last, task);
    }

    /// The task that has an id; none inside where nobody is to do it.
    pub(super) fn get(&self, id: &str) -> Option<Option<u32>> {
        let (letters, digits, number) = split(id)?;
        let line = &self.lines[self.line(letters, digits.len())?];
        let (_, (last, task)) = line.pieces.range(..=number).next_back()?;
        (*last >= number).then(|| Some(*task).filter(|task| *task != NOBODY))
    }

    /// The first id of a range that is there.
    pub(super) fn first_in(&self, range: &IdRange) -> Option<String> {
        range.by_digits().find_map(|(digits, first, last)| {
            let line = &self.lines[self.line(&range.letters, digits)?];
            let (number, _) = line.overlapping(first, last).next()?;
            Some(range.id((*number).max(first)))
        })
    }

    /// The tasks of a range.
    pub(super) fn tasks_in(&mut self, range: &IdRange) -> RangeTasks {
        let mut found = RangeTasks::default();
        for (digits, first, last) in range.by_digits() {
            let missing = match self.line(&range.letters, digits) {
                Some(at) => self.lines[at].tasks_in(first, last, &mut found.blocks),
                None => Some((first, last)),
            };
            if found.missing.is_none() {
                found.missing = missing.map(|(first, last)| range.describe(first, last));
            }
        }
        found
    }
}

impl NumberLine {
    fn overlapping(
        &self,
        first: u32,
        last: u32,
    ) -> impl DoubleEndedIterator<Item = (&u32, &(u32, u32))> {
        let before = self.pieces.range(..first).next_back();
        let reaches = before.filter(|(_, (end, _))| *end >= first);
        let from = reaches.map_or(first, |(start, _)| *start);
        self.pieces.range(from..=last)
    }

    /// Fills the numbers that are free.
    fn fill(&mut self, first: u32, last: u32, task: u32) {
        let mut free = Vec::new();
        let mut next = Some(first);
        for (start, (end, _)) in self.overlapping(first, last) {
            if let Some(from) = next.filter(|from| from < start) {
                free.push((from, start - 1));
            }
            next = end.checked_add(1);
        }
        free.extend(next.filter(|from| *from <= last).map(|from| (from, last)));
        for (from, to) in free {
            self.pieces.insert(from, (to, task));
        }
        self.sorted = None;
    }

    /// Adds the tasks of these numbers, and answers the first numbers that no task has.
    fn tasks_in(&mut self, first: u32, last: u32, to: &mut Vec<TaskBlock>) -> Option<(u32, u32)> {
        let pieces = &self.pieces;
        let sorted = self.sorted.get_or_insert_with(|| SortedPieces::of(pieces));
        sorted.tasks_in(first, last, to)
    }
}

impl SortedPieces {
    fn of(pieces: &BTreeMap<u32, (u32, u32)>) -> Self {
        let numbers: Vec<(u32, u32)> = pieces.iter().map(|(first, end)| (*first, end.0)).collect();
        let mut joined_until = vec![0; numbers.len()];
        let mut until: Option<(u32, u32)> = None;
        for (at, (first, last)) in numbers.iter().enumerate().rev() {
            let joined = until.filter(|(next, _)| last.checked_add(1) == Some(*next));
            joined_until[at] = joined.map_or(*last, |(_, until)| until);
            until = Some((*first, joined_until[at]));
        }
        let (mut tasks, mut places) = (Vec::new(), vec![0]);
        for (_, task) in pieces.values() {
            tasks.extend(Some(*task).filter(|task| *task != NOBODY));
            places.push(tasks.len());
        }
        let mut once = tasks.clone();
        once.sort_unstable();
        once.dedup();
        Self {
            numbers,
            joined_until,
            places,
            repeats: once.len() < tasks.len(),
            tasks: TaskBlock::of(&tasks),
        }
    }

    fn tasks_in(&self, first: u32, last: u32, to: &mut Vec<TaskBlock>) -> Option<(u32, u32)> {
        let numbers = &self.numbers;
        let from = numbers.partition_point(|(_, end)| *end < first);
        let until = numbers.partition_point(|(start, _)| *start <= last);
        if from >= until {
            return Some((first, last));
        }
        let part = self.tasks.part(self.places[from]..self.places[until]);
        to.push(match self.repeats {
            false => part,
            true => {
                let mut tasks = part.positions().to_vec();
                tasks.sort_unstable();
                tasks.dedup();
                TaskBlock::of(&tasks)
            }
        });
        let begins = numbers[from].0;
        if begins > first {
            return Some((first, begins - 1));
        }
        let joined = self.joined_until[from];
        let next = numbers.partition_point(|(start, _)| *start <= joined);
        let next = numbers
            .get(next)
            .map_or(last, |(start, _)| last.min(start - 1));
        (joined < last).then(|| (joined + 1, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_of_the_same_letters_and_go_up() {
        for (from, to, ids) in [
            ("T008", "T011", "T008 T009 T010 T011"),
            ("T-1", "T-3", "T-1 T-2 T-3"),
            ("T098", "T1001", "T098 T1001"),
        ] {
            let range = IdRange::of(from, to).unwrap();
            let mut numbers = IdNumbers::default();
            ids.split(' ').for_each(|id| numbers.add(id, 0));
            let first = ids.split(' ').next();
            assert_eq!(numbers.first_in(&range).as_deref(), first, "{from} {to}");
        }
        for (from, to) in [
            ("T003", "T001"),
            ("T001", "T001"),
            ("T1", "U2"),
            ("T1a", "T2"),
        ] {
            assert_eq!(IdRange::of(from, to), None, "{from} {to}");
        }
    }

    fn found(numbers: &mut IdNumbers, from: &str, to: &str) -> (Vec<u32>, Option<String>) {
        let found = numbers.tasks_in(&IdRange::of(from, to).unwrap());
        let tasks = found.blocks.iter().flat_map(TaskBlock::positions);
        (tasks.copied().collect(), found.missing)
    }

    #[test]
    fn a_range_stands_for_the_tasks_that_have_its_ids() {
        let mut numbers = IdNumbers::default();
        for (id, task) in [
            ("T001", 0),
            ("T002", 1),
            ("T004", 2),
            ("T999", 3),
            ("T1000", 4),
        ] {
            numbers.add(id, task);
        }
        numbers.add_range(&IdRange::of("T004", "T008").unwrap(), 5);
        numbers.add_gone(&NamedIds::One("T003".into()));
        numbers.add_gone(&NamedIds::up_to("T008", "T009"));
        let none: Option<String> = None;
        let missing = |ids: &str| Some(ids.to_owned());
        for (from, to, tasks, without) in [
            ("T001", "T002", vec![0, 1], none.clone()),
            ("T001", "T009", vec![0, 1, 2, 5], none.clone()),
            ("T006", "T007", vec![5], none.clone()),
            ("T008", "T011", vec![5], missing("T010-T011")),
            ("T009", "T998", vec![], missing("T010-T998")),
            ("T998", "T1000", vec![3, 4], missing("T998")),
            ("T999", "T1001", vec![3, 4], missing("T1001")),
            ("T0001", "T0002", vec![], missing("T0001-T0002")),
        ] {
            assert_eq!(
                found(&mut numbers, from, to),
                (tasks, without),
                "{from} {to}"
            );
        }
        assert_eq!(numbers.get("T005"), Some(Some(5)));
        assert_eq!(numbers.get("T003"), Some(None));
        assert_eq!(numbers.get("T010"), None);
    }
}
