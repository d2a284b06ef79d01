//! Evidence of progress: HEAD moved, the tree changed, the set of red gates changed, the
//! count of open items fell. Never the agent's word.

use std::collections::{BTreeSet, VecDeque};

use crate::event::{GateFacts, Progress, TreeFacts};

/// What is said of a work tree that is another one: also where that is only a repository inside it, of whose files
/// none is counted.
pub const FILES_CHANGED: &str = "files changed";

/// Compares the work tree and the gates before and after an iteration.
pub fn evidence(
    before: &TreeFacts,
    after: &TreeFacts,
    seen: &VecDeque<String>,
    red_before: Option<&BTreeSet<u32>>,
    gates: &[GateFacts],
) -> Progress {
    let mut moved = Vec::new();
    let changed = before.tree.is_some() && after.tree.is_some() && before.tree != after.tree;
    // An agent that takes back what it did, and does it again, gets nowhere: commits or not.
    let to_and_fro = changed && after.tree.as_ref().is_some_and(|tree| seen.contains(tree));
    if before.head != after.head && !to_and_fro {
        moved.push("HEAD moved".to_owned());
    }
    if changed && !to_and_fro {
        moved.push(FILES_CHANGED.to_owned());
    }
    if let (Some(old), Some(new)) = (before.open_items, after.open_items)
        && new < old
    {
        moved.push(format!("{} plan items closed", old - new));
    }
    if !gates.is_empty() {
        let red: BTreeSet<u32> = gates
            .iter()
            .filter(|g| !g.passed())
            .map(|g| g.gate)
            .collect();
        if red_before.is_some_and(|old| *old != red) {
            moved.push("gates changed".to_owned());
        }
    }
    if !moved.is_empty() {
        return Progress::Moved(moved);
    }
    match before.unknown.as_ref().or(after.unknown.as_ref()) {
        Some(why) => Progress::Unknown(why.clone()),
        None => Progress::None,
    }
}

#[cfg(test)]
mod tests {
    use super::{evidence as evidence_since, *};
    use crate::event::{ExitStatus, GateEnd};

    fn tree(head: &str, tree: &str) -> TreeFacts {
        TreeFacts {
            head: Some(head.into()),
            tree: Some(tree.into()),
            ..TreeFacts::default()
        }
    }

    fn gate(gate: u32, code: i32) -> GateFacts {
        GateFacts {
            gate,
            command: "true".into(),
            end: GateEnd::Exit(ExitStatus::Code(code)),
            duration_ms: 1,
            tail: String::new(),
            tree_before: None,
            tree_after: None,
        }
    }

    fn evidence(
        before: &TreeFacts,
        after: &TreeFacts,
        red: Option<&BTreeSet<u32>>,
        gates: &[GateFacts],
    ) -> Progress {
        evidence_since(before, after, &VecDeque::new(), red, gates)
    }

    #[test]
    fn a_tree_that_comes_back_is_no_progress() {
        let seen = VecDeque::from(["1".to_owned(), "2".to_owned()]);
        let since =
            |before: &TreeFacts, after: &TreeFacts| evidence_since(before, after, &seen, None, &[]);
        assert_eq!(since(&tree("a", "2"), &tree("a", "1")), Progress::None);
        assert_eq!(since(&tree("a", "2"), &tree("b", "1")), Progress::None);
        // What is committed as it was is.
        let commit = since(&tree("a", "2"), &tree("b", "2"));
        assert_eq!(commit, Progress::Moved(vec!["HEAD moved".into()]));
        let edit = since(&tree("a", "2"), &tree("a", "3"));
        assert_eq!(edit, Progress::Moved(vec!["files changed".into()]));
    }

    #[test]
    fn each_kind_of_evidence_counts_and_nothing_else() {
        let same = evidence(&tree("a", "1"), &tree("a", "1"), None, &[]);
        assert_eq!(same, Progress::None);
        // Commits inside the loop leave the tree clean: HEAD is what tells of them.
        let commit = evidence(&tree("a", "1"), &tree("b", "1"), None, &[]);
        assert_eq!(commit, Progress::Moved(vec!["HEAD moved".into()]));
        let edit = evidence(&tree("a", "1"), &tree("a", "2"), None, &[]);
        assert_eq!(edit, Progress::Moved(vec!["files changed".into()]));
        let red = BTreeSet::from([0]);
        let gates = evidence(
            &tree("a", "1"),
            &tree("a", "1"),
            Some(&red),
            &[gate(0, 0), gate(1, 1)],
        );
        assert_eq!(gates, Progress::Moved(vec!["gates changed".into()]));
        let still_red = evidence(&tree("a", "1"), &tree("a", "1"), Some(&red), &[gate(0, 1)]);
        assert_eq!(still_red, Progress::None);
        let first_red = evidence(&tree("a", "1"), &tree("a", "1"), None, &[gate(0, 1)]);
        assert_eq!(first_red, Progress::None);
        let plan = |open| TreeFacts {
            open_items: Some(open),
            ..tree("a", "1")
        };
        assert!(matches!(
            evidence(&plan(3), &plan(1), None, &[]),
            Progress::Moved(_)
        ));
        assert_eq!(evidence(&plan(1), &plan(3), None, &[]), Progress::None);
    }

    #[test]
    fn what_could_not_be_measured_is_unknown_unless_something_is_seen_to_move() {
        let unknown = TreeFacts {
            unknown: Some("too slow".into()),
            ..TreeFacts::default()
        };
        assert_eq!(
            evidence(&unknown, &unknown, None, &[]),
            Progress::Unknown("too slow".into())
        );
        let moved = TreeFacts {
            head: Some("b".into()),
            ..unknown.clone()
        };
        assert!(matches!(
            evidence(&unknown, &moved, None, &[]),
            Progress::Moved(_)
        ));
    }
}
