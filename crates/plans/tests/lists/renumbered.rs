//! A list that was written anew: tasks keep the names under which a run knows them.

use descartes_plans::lists::{
    KnownTask, ListContext, ListFormat, ListOptions, TaskList, read as read_list,
};

use crate::file;

fn known(list: &TaskList) -> Vec<KnownTask> {
    let tasks = list.tasks.iter();
    tasks.map(KnownTask::of).collect()
}

fn read(format: ListFormat, text: &str, known: Vec<KnownTask>) -> TaskList {
    let context = ListContext {
        known: &known,
        ..ListContext::default()
    };
    read_list(format, &[file("l", text)], &context, ListOptions::default())
}

fn ids(list: &TaskList) -> Vec<(&str, &str)> {
    let tasks = list.tasks.iter();
    tasks
        .map(|task| (task.id.as_str(), task.title.as_str()))
        .collect()
}

#[test]
fn boxes_without_ids_are_known_by_their_text() {
    let before = read(
        ListFormat::Checklist,
        "- [ ] a\n- [ ] b\n- [ ] b\n",
        Vec::new(),
    );
    let text = "- [ ] new\n- [ ] a\n- [ ] b\n- [ ] b\n- [ ] b\n";
    let after = read(ListFormat::Checklist, text, known(&before));
    assert_eq!(
        ids(&after),
        [
            ("1-2", "new"),
            ("1", "a"),
            ("2", "b"),
            ("3", "b"),
            ("5", "b")
        ]
    );
    assert_eq!(after.task("1").unwrap().depends, ["1-2"]);
    let changed = after.set_done(&[file("l", text)], "1", true).unwrap();
    assert_eq!(changed[0].text, text.replace("[ ] a", "[x] a"));
    let again = read(ListFormat::Checklist, text, known(&after));
    assert_eq!(ids(&again), ids(&after), "and stay so");
}

#[test]
fn a_task_is_not_taken_for_its_equal_under_another_heading() {
    let text = "## A\n- [ ] write tests\n## B\n- [ ] write tests\n";
    let before = read(ListFormat::Checklist, text, Vec::new());
    let left = "## A\n## B\n- [ ] write tests\n";
    let after = read(ListFormat::Checklist, left, known(&before));
    assert_eq!(ids(&after), [("2", "write tests")], "the first is gone");
    let moved = "## B\n- [ ] write tests\n## A\n- [ ] write tests\n";
    let after = read(ListFormat::Checklist, moved, known(&before));
    assert_eq!(ids(&after), [("2", "write tests"), ("1", "write tests")]);
}

#[test]
fn where_one_of_equals_goes_those_that_are_left_are_new() {
    let text = "- [ ] a\n- [ ] a\n- [ ] b\n";
    let before = read(ListFormat::Checklist, text, Vec::new());
    let left = "- [ ] a\n- [ ] b\n";
    let after = read(ListFormat::Checklist, left, known(&before));
    assert_eq!(ids(&after), [("1-2", "a"), ("3", "b")]);
    // A journal of an older version knows no headings.
    let mut unplaced = known(&before);
    unplaced.iter_mut().for_each(|known| known.under = None);
    let again = read(ListFormat::Checklist, left, unplaced.clone());
    assert_eq!(ids(&again), ids(&after));
    assert_eq!(
        ids(&read(ListFormat::Checklist, text, unplaced)),
        ids(&before)
    );
}

#[test]
fn an_id_that_means_other_work_is_another_task() {
    let text = "- [ ] T001 Create the tables of the harbours\n- [ ] T002 Print\n";
    let before = read(ListFormat::SpecKit, text, Vec::new());
    let edited = "- [ ] T001 Create all tables of the harbours\n- [ ] T002 Print\n";
    let after = read(ListFormat::SpecKit, edited, known(&before));
    assert_eq!(after.tasks[0].id, "T001", "a word was changed");
    let other = "- [ ] T001 Send mail to captains\n- [ ] T002 Print\n";
    let after = read(ListFormat::SpecKit, other, known(&before));
    assert_eq!(after.tasks[0].id, "T001-2");
    assert_eq!(after.tasks[1].depends, ["T001-2"]);
}

#[test]
fn tasks_with_new_numbers_are_known_by_their_text() {
    let text =
        "- [x] T001 Add alpha\n- [ ] T002 Add beta\n- [ ] T003 Test it\n- [ ] T004 Test it\n";
    let before = read(ListFormat::SpecKit, text, Vec::new());
    let text = "- [ ] T001 Add zeta\n- [x] T002 Add alpha\n- [ ] T003 Add beta\n- [ ] T004 Test it\n- [ ] T005 Test it\n";
    let after = read(ListFormat::SpecKit, text, known(&before));
    let expected = [
        ("T001-2", "Add zeta"),
        ("T001", "Add alpha"),
        ("T002", "Add beta"),
        ("T004", "Test it"),
        // Which of the two it is nobody knows: it is run.
        ("T005", "Test it"),
    ];
    assert_eq!(ids(&after), expected);
    assert_eq!(after.task("T002").unwrap().depends, ["T001"]);
    let changed = after.set_done(&[file("l", text)], "T002", true).unwrap();
    assert_eq!(changed[0].text, text.replace("[ ] T003", "[x] T003"));
    let again = read(ListFormat::SpecKit, text, known(&after));
    assert_eq!(ids(&again), ids(&after), "and stay so");
}
