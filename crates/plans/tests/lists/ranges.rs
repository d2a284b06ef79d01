//! Ranges of ids in dependencies: they mean what the same ids mean one by one, and cost no more.

use std::fmt::Write as _;

use descartes_plans::lists::{By, ListFormat, ListOptions, TaskList};
use proptest::prelude::*;

use crate::{read, read_with};

/// A task: whether it is parallel, the phase it begins, and the first and last number that it names.
type Row = (bool, bool, Option<(usize, usize)>);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let named = prop::option::of((1_usize..60, 1_usize..60));
    prop::collection::vec((any::<bool>(), prop::bool::weighted(0.1), named), 1..60)
}

/// The ids are counted on, and some numbers have no task or one that nobody is to do.
fn text(rows: &[Row], written: impl Fn(usize, usize) -> String) -> String {
    let mut text = String::new();
    for (at, (parallel, phase, named)) in rows.iter().enumerate() {
        if *phase {
            writeln!(text, "## Phase {at}").unwrap();
        }
        let parallel = if *parallel { "[P] " } else { "" };
        let named = named.map(|(one, two)| written(one.min(two), one.max(two)));
        let named = named.map_or(String::new(), |named| format!(" (depends on {named})"));
        let gone = if at % 17 == 13 { "DROPPED " } else { "" };
        writeln!(text, "- [ ] T{:03} {parallel}{gone}do it{named}", at + 1).unwrap();
    }
    text
}

fn one_by_one(first: usize, last: usize) -> String {
    let ids: Vec<String> = (first..=last).map(|id| format!("T{id:03}")).collect();
    ids.join(", ")
}

/// Everything before each task, and whether it is held.
fn meaning(list: &TaskList) -> Vec<(String, Vec<&str>, bool)> {
    let all = list.tasks.iter();
    all.map(|task| {
        let mut before: Vec<&str> = list.depends_of(task).collect();
        before.sort_unstable();
        (task.id.clone(), before, task.unknown.is_empty())
    })
    .collect()
}

fn has_circle(list: &TaskList) -> bool {
    let mut all = list.findings.iter();
    all.any(|finding| finding.message.contains("depend on each other"))
}

proptest! {
    #[test]
    fn a_range_means_the_same_as_its_ids(rows in rows(), section in any::<bool>()) {
        let range = text(&rows, |first, last| format!("T{first:03}–T{last:03}"));
        let ids = text(&rows, one_by_one);
        let options = ListOptions {
            by: if section { By::Section } else { By::Task },
            ..ListOptions::default()
        };
        let range = read_with(ListFormat::SpecKit, &range, options);
        let ids = read_with(ListFormat::SpecKit, &ids, options);
        prop_assert_eq!(has_circle(&range), has_circle(&ids));
        if !has_circle(&ids) {
            prop_assert_eq!(meaning(&range), meaning(&ids));
            let plan = |list: &TaskList| list.graph(options).plan().unwrap().waves().to_vec();
            prop_assert_eq!(plan(&range), plan(&ids));
        }
    }

    /// Whatever stands further down: what a task names comes before it, and those that name nothing
    /// later stay in the order of the file.
    #[test]
    fn no_named_dependency_is_lost(rows in rows()) {
        let list = read(ListFormat::SpecKit, &text(&rows, one_by_one));
        prop_assert!(list.graph(ListOptions::default()).check().is_empty());
        if has_circle(&list) {
            return Ok(());
        }
        for (at, (_, _, named)) in rows.iter().enumerate() {
            let Some(task) = list.task(&format!("T{:03}", at + 1)) else { continue };
            let Some((one, two)) = named else { continue };
            for wanted in *one.min(two)..=*one.max(two) {
                let wanted = format!("T{wanted:03}");
                let is_known = list.task(&wanted).is_some() && wanted != task.id;
                prop_assert!(!is_known || list.depends_of(task).any(|on| on == wanted));
            }
        }
    }

    /// Without `[P]` one task is done after the other, whatever they name.
    #[test]
    fn a_file_without_parallel_tasks_stays_a_chain(rows in rows()) {
        let rows: Vec<Row> = rows.into_iter().map(|row| (false, row.1, row.2)).collect();
        let list = read(ListFormat::SpecKit, &text(&rows, one_by_one));
        let plan = list.graph(ListOptions::default()).plan().unwrap();
        let count = plan.waves().iter().filter(|wave| wave.len() > 1).count();
        prop_assert_eq!(count, 0);
    }
}

#[test]
fn a_task_that_names_a_later_one_is_done_directly_behind_it() {
    let text = "- [ ] T001 a (depends on T003)\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n";
    let list = read(ListFormat::SpecKit, text);
    assert_eq!(
        crate::rows(&list),
        [
            "T001 todo after T003",
            "T002 todo",
            "T003 todo after T002",
            "T004 todo after T001",
        ]
    );
}

#[test]
fn of_a_range_that_is_not_there_it_is_told_what_is_missing() {
    let text = "- [ ] T001 [P] a\n- [ ] T002 [P] b (depends on T001-T900)\n";
    let list = read(ListFormat::SpecKit, text);
    assert_eq!(list.tasks[1].unknown, ["T003-T900"]);
    let text = "- [ ] T001 [P] a\n- [ ] T005 [P] b (depends on T001–T005)\n";
    let list = read(ListFormat::SpecKit, text);
    assert_eq!(list.tasks[1].unknown, ["T002-T004"]);
}

#[test]
fn long_ranges_are_kept_whole_whatever_their_length() {
    let mut text = String::new();
    for at in 0..3_000 {
        let named = match at {
            0 => String::new(),
            _ => format!(" (depends on T0000-T{:04})", at - 1),
        };
        writeln!(text, "- [ ] T{at:04} [P] do it{named}").unwrap();
    }
    let list = read(ListFormat::SpecKit, &text);
    assert_eq!(list.findings, []);
    let last = list.tasks.last().unwrap();
    assert_eq!(list.depends_of(last).count(), 2_999);
    let plan = list.graph(ListOptions::default()).plan().unwrap();
    assert_eq!(plan.waves().len(), 3_000);
}

#[test]
fn tasks_that_all_wait_for_each_other_are_done_in_the_order_of_the_file() {
    let mut text = String::new();
    for at in 0..500 {
        writeln!(text, "- [ ] T{at:03} [P] do it (depends on T000-T499)").unwrap();
    }
    let list = read(ListFormat::SpecKit, &text);
    let plan = list.graph(ListOptions::default()).plan().unwrap();
    assert_eq!(plan.waves().len(), 500);
    assert!(list.findings.len() < 1_000);
}
