//! Lists with one task for each section wait for what their tasks wait for.

use std::collections::{BTreeSet, HashMap};

use descartes_plans::lists::{By, ListFormat, ListOptions, ListTask, TaskList};
use proptest::prelude::*;

use crate::read_with;
use crate::wide::{kiro, options, spec_kit, stories};

/// The id of each section in its order, and those of the sections that it waits for, pair by pair.
fn pair_by_pair(list: &TaskList, options: ListOptions) -> Vec<(String, BTreeSet<String>)> {
    let skipped = |task: &ListTask| {
        (task.optional && !options.optional) || (task.human.is_some() && options.skip_human)
    };
    let mut found: Vec<(String, BTreeSet<String>)> = Vec::new();
    let mut sections: HashMap<String, usize> = HashMap::new();
    let mut section_of: HashMap<&str, usize> = HashMap::new();
    for task in &list.tasks {
        let section = task.section.as_ref().map(|section| section.id.clone());
        let section = section.filter(|id| !id.is_empty() && !skipped(task));
        let id = section.unwrap_or_else(|| task.id.clone());
        let known = sections.get(&id).copied().filter(|_| !skipped(task));
        let at = known.unwrap_or(found.len());
        if known.is_none() {
            found.push((id.clone(), BTreeSet::new()));
        }
        if !skipped(task) {
            sections.insert(id, at);
        }
        section_of.insert(&task.id, at);
    }
    for task in &list.tasks {
        let at = section_of[task.id.as_str()];
        let before = list.depends_of(task).filter_map(|on| section_of.get(on));
        let before = before.filter(|before| **before != at && !task.container);
        let ids: Vec<String> = before.map(|before| found[*before].0.clone()).collect();
        found[at].1.extend(ids);
    }
    found
}

proptest! {
    #[test]
    fn a_section_waits_for_what_its_tasks_wait_for(
        spec_kit in spec_kit(),
        kiro in kiro(),
        stories in stories(),
        options in options(),
    ) {
        for (format, text) in [
            (ListFormat::SpecKit, &spec_kit),
            (ListFormat::Kiro, &kiro),
            (ListFormat::PassesJson, &stories),
        ] {
            let by = |by: By| read_with(format, text, ListOptions { by, ..options });
            let (tasks, merged) = (by(By::Task), by(By::Section));
            // Where sections wait for each other, some dependencies are left out.
            if merged.findings.len() > tasks.findings.len() {
                continue;
            }
            let of = |task: &ListTask| {
                let on = merged.depends_of(task).map(str::to_owned);
                (task.id.clone(), on.collect())
            };
            let found: Vec<(String, BTreeSet<String>)> = merged.tasks.iter().map(of).collect();
            prop_assert_eq!(found, pair_by_pair(&tasks, options));
        }
    }
}
