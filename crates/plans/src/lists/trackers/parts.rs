//! Issues that are parts of others, and issues that are in no list.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::lists::model::TaskList;

/// Issues of this repository that are waited for and not in the list: at most so many.
pub(super) fn outside(list: TaskList, most: usize) -> Vec<String> {
    let unknown = list.tasks.into_iter().flat_map(|task| task.unknown);
    // `o/r#31` is in another repository.
    let ids: BTreeSet<String> = unknown.filter(|id| !id.contains('#')).collect();
    ids.into_iter().take(most).collect()
}

/// Parents outside of the list order nothing, and nobody is a part of its own part.
pub(super) fn drop_strange_parents(list: &mut TaskList) {
    let containers: HashSet<String> = {
        let all = list.tasks.iter().filter(|task| task.container);
        all.map(|task| task.id.clone()).collect()
    };
    for task in &mut list.tasks {
        let keeps = task
            .parent
            .as_ref()
            .is_some_and(|parent| containers.contains(parent));
        if !keeps {
            task.parent = None;
        }
    }
    let parents: HashMap<String, Option<String>> = {
        let all = list.tasks.iter();
        all.map(|task| (task.id.clone(), task.parent.clone()))
            .collect()
    };
    for task in &mut list.tasks {
        let mut at = task.parent.clone();
        let mut steps = 0;
        while let Some(parent) = at {
            steps += 1;
            if parent == task.id || steps > parents.len() {
                task.parent = None;
                break;
            }
            at = parents.get(&parent).cloned().flatten();
        }
    }
}
