//! What must hold of a journal, whatever happened to the process that wrote it.

use std::collections::BTreeSet;

use serde_json::Value;

/// Numbers in the order in which records of this kind name them.
pub fn iterations(journal: &[Value], kind: &str) -> Vec<u64> {
    journal
        .iter()
        .filter(|record| record["kind"] == kind)
        .filter_map(|record| record["iteration"].as_u64())
        .collect()
}

/// The first thing that is wrong with a journal, if anything is.
///
/// `before` are its whole lines as they stood before the last accident: none may be lost.
pub fn wrong(before: &[u8], after: &[u8], journal: &[Value]) -> Option<String> {
    let whole = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    if !after.starts_with(&before[..whole]) {
        return Some("records that were on disk are gone or changed".to_owned());
    }
    sequence(journal)
        .or_else(|| numbers(journal))
        .or_else(|| budgets(journal))
}

fn sequence(journal: &[Value]) -> Option<String> {
    let bad = journal
        .iter()
        .enumerate()
        .find(|(index, record)| record["seq"].as_u64() != Some(*index as u64));
    bad.map(|(index, record)| format!("record {index} has the number {}", record["seq"]))
}

/// No number is run twice, none is finished twice, and they grow.
fn numbers(journal: &[Value]) -> Option<String> {
    // A run that hit a provider limit does not count, and its number is used again: there is none here.
    for kind in ["run_started", "iteration_finished", "iteration_interrupted"] {
        let numbers = iterations(journal, kind);
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Some(format!("{kind} {} comes after {}", pair[1], pair[0]));
        }
    }
    let finished: BTreeSet<u64> = iterations(journal, "iteration_finished")
        .into_iter()
        .collect();
    let interrupted: BTreeSet<u64> = iterations(journal, "iteration_interrupted")
        .into_iter()
        .collect();
    let both = finished.intersection(&interrupted).next();
    both.map(|number| format!("iteration {number} is both finished and interrupted"))
}

/// What is spent is never negative and never absent.
fn budgets(journal: &[Value]) -> Option<String> {
    let counts = |record: &&Value| {
        matches!(
            record["kind"].as_str(),
            Some("iteration_finished" | "iteration_interrupted")
        )
    };
    let bad = journal
        .iter()
        .filter(counts)
        .find(|record| record["spent_ms"].as_u64().is_none());
    bad.map(|record| format!("nothing spent is told in record {}", record["seq"]))
}

/// Every iteration that was begun has an end.
pub fn open_ends(journal: &[Value]) -> Option<String> {
    let begun: BTreeSet<u64> = iterations(journal, "run_started").into_iter().collect();
    let ended: BTreeSet<u64> = [
        "iteration_finished",
        "iteration_interrupted",
        "run_discarded",
    ]
    .iter()
    .flat_map(|kind| iterations(journal, kind))
    .collect();
    begun
        .difference(&ended)
        .next()
        .map(|number| format!("iteration {number} has no end"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(records: &[Value]) -> Vec<u8> {
        records
            .iter()
            .flat_map(|record| format!("{record}\n").into_bytes())
            .collect()
    }

    fn iteration(seq: u64, number: u64) -> Vec<Value> {
        vec![
            json!({"seq": seq, "kind": "run_started", "iteration": number}),
            json!({"seq": seq + 1, "kind": "iteration_finished", "iteration": number, "spent_ms": 1}),
        ]
    }

    #[test]
    fn a_journal_that_only_grew_is_right() {
        let before = iteration(0, 1);
        let after = [before.clone(), iteration(2, 2)].concat();
        assert_eq!(wrong(&lines(&before), &lines(&after), &after), None);
        assert_eq!(open_ends(&after), None);
        let torn = [lines(&before), b"{\"seq\":2,".to_vec()].concat();
        assert_eq!(wrong(&torn, &lines(&after), &after), None);
    }

    #[test]
    fn lost_repeated_and_reused_numbers_are_seen() {
        let one = iteration(0, 1);
        let again = [one.clone(), iteration(2, 1)].concat();
        assert!(
            wrong(&[], &lines(&again), &again)
                .unwrap()
                .contains("comes after")
        );
        let other = iteration(0, 2);
        assert!(
            wrong(&lines(&one), &lines(&other), &other)
                .unwrap()
                .contains("gone")
        );
        let open = vec![one[0].clone()];
        assert!(open_ends(&open).unwrap().contains("no end"));
        let gap = iteration(1, 1);
        assert!(wrong(&[], &lines(&gap), &gap).unwrap().contains("number"));
    }
}
