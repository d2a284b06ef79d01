//! The same task in a list that was written anew: lines are inserted, numbers change.

use std::collections::{HashMap, HashSet, VecDeque};

use super::model::{ListTask, TaskList};

/// A task as it was known before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownTask {
    pub id: String,
    pub title: String,
    /// The heading that it stood under, as far as that is known.
    pub under: Option<String>,
}

impl KnownTask {
    /// A task as it stands in a list now.
    pub fn of(task: &ListTask) -> Self {
        Self {
            id: task.id.clone(),
            title: task.title.clone(),
            under: Some(heading(task).to_owned()),
        }
    }
}

/// The heading that a task stands under; none is a heading like any other.
fn heading(task: &ListTask) -> &str {
    let section = task.section.as_ref();
    section.map_or("", |section| &section.title)
}

/// Gives tasks the ids under which they are known. A task without an id of its own is known by its
/// text, its heading and its number among those that have the same; where some of these are gone, nobody
/// can tell which, and those that are left are new tasks. One with another id than before is known by its
/// text, where no other has the same; one whose id has come to mean other work gets another.
pub(super) fn keep_ids(list: &mut TaskList, known: &[KnownTask]) {
    let is_as_known = list.tasks.len() == known.len() && {
        let mut both = list.tasks.iter().zip(known);
        both.all(|(task, known)| {
            let under = known.under.as_deref();
            task.id == known.id
                && task.title == known.title
                && under.is_none_or(|under| under == heading(task))
        })
    };
    if known.is_empty() || is_as_known {
        return;
    }
    let titles: HashMap<&str, &str> = {
        let all = known.iter();
        all.map(|known| (known.id.as_str(), known.title.as_str()))
            .collect()
    };
    let mut by_title: HashMap<&str, VecDeque<&str>> = HashMap::new();
    for known in known {
        let same = by_title.entry(&known.title).or_default();
        same.push_back(&known.id);
    }
    let mut equals = Equals::of(list, known);
    // Tasks that are as they were keep their names before others are looked at.
    let mut taken: HashSet<String> = HashSet::new();
    let mut new_ids: Vec<Option<String>> = vec![None; list.tasks.len()];
    for (at, task) in list.tasks.iter().enumerate() {
        if task.has_own_id && titles.get(task.id.as_str()) == Some(&task.title.as_str()) {
            new_ids[at] = Some(task.id.clone());
            taken.insert(task.id.clone());
        }
    }
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for task in &list.tasks {
        *counts.entry(&task.title).or_default() += 1;
    }
    for (at, task) in list.tasks.iter().enumerate() {
        let same = by_title.get_mut(task.title.as_str());
        // Wherever it stands now.
        let is_one = |ids: &VecDeque<&str>| ids.len() == 1 && counts[task.title.as_str()] == 1;
        let same = match same.filter(|ids| is_one(ids)) {
            None if !task.has_own_id => equals.known(task),
            one => one,
        };
        if new_ids[at].is_some() {
            continue;
        }
        // What is taken stays so: nobody has to look at it again.
        let same = same
            .and_then(|ids| std::iter::from_fn(|| ids.pop_front()).find(|id| !taken.contains(*id)));
        if let Some(id) = same {
            new_ids[at] = Some(id.to_owned());
            taken.insert(id.to_owned());
        }
    }
    for (at, task) in list.tasks.iter().enumerate() {
        if new_ids[at].is_some() {
            continue;
        }
        let before = titles.get(task.id.as_str());
        let is_same = before.is_none_or(|before| is_similar(before, &task.title));
        // A counted task that is none of those known is a new one, whatever number it has.
        let keeps = is_same && (task.has_own_id || before.is_none());
        let id = match keeps && !taken.contains(&task.id) {
            true => task.id.clone(),
            false => free_id(&task.id, &taken, &titles),
        };
        taken.insert(id.clone());
        new_ids[at] = Some(id);
    }
    rename(list, new_ids);
}

/// Tasks that only their order tells apart.
struct Equals<'a> {
    /// By text and heading.
    placed: HashMap<(&'a str, &'a str), VecDeque<&'a str>>,
    /// By text: those of which no heading is known.
    unplaced: HashMap<&'a str, VecDeque<&'a str>>,
}

impl<'a> Equals<'a> {
    fn of(list: &TaskList, known: &'a [KnownTask]) -> Self {
        let (mut placed, mut unplaced) = (HashMap::new(), HashMap::new());
        for KnownTask { id, title, under } in known {
            let same: &mut VecDeque<&str> = match under {
                Some(under) => placed.entry((title.as_str(), under.as_str())).or_default(),
                None => unplaced.entry(title.as_str()).or_default(),
            };
            same.push_back(id);
        }
        let mut now: HashMap<(&str, &str), usize> = HashMap::new();
        let mut by_title: HashMap<&str, usize> = HashMap::new();
        for task in list.tasks.iter().filter(|task| !task.has_own_id) {
            *now.entry((&task.title, heading(task))).or_default() += 1;
            *by_title.entry(&task.title).or_default() += 1;
        }
        placed.retain(|key, ids| now.get(key).is_some_and(|now| *now >= ids.len()));
        unplaced.retain(|title, ids| by_title.get(title).is_some_and(|now| *now >= ids.len()));
        Self { placed, unplaced }
    }

    fn known(&mut self, task: &'a ListTask) -> Option<&mut VecDeque<&'a str>> {
        let key = (task.title.as_str(), heading(task));
        match self.placed.get_mut(&key) {
            None => self.unplaced.get_mut(task.title.as_str()),
            placed => placed,
        }
    }
}

fn free_id(wanted: &str, taken: &HashSet<String>, titles: &HashMap<&str, &str>) -> String {
    let mut number = 2;
    loop {
        let id = format!("{wanted}-{number}");
        if !taken.contains(&id) && !titles.contains_key(id.as_str()) {
            return id;
        }
        number += 1;
    }
}

fn rename(list: &mut TaskList, new_ids: Vec<Option<String>>) {
    let mut renamed: HashMap<String, String> = HashMap::new();
    for (task, new) in list.tasks.iter_mut().zip(new_ids) {
        if let Some(new) = new.filter(|new| *new != task.id) {
            renamed.insert(std::mem::replace(&mut task.id, new.clone()), new);
        }
    }
    if renamed.is_empty() {
        return;
    }
    for task in &mut list.tasks {
        for on in task.depends.iter_mut().chain(&mut task.parent) {
            if let Some(new) = renamed.get(on) {
                on.clone_from(new);
            }
        }
    }
}

/// Whether two titles have at least half of their words in common.
fn is_similar(one: &str, two: &str) -> bool {
    let words = |text: &str| -> HashSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (one, two) = (words(one), words(two));
    let common = one.intersection(&two).count();
    4 * common >= one.len() + two.len()
}
