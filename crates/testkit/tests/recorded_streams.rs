//! The recorded streams that the parsers are tested with are whole and tell nothing of a machine.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use descartes_testkit::real_clis::RealCli;
use descartes_testkit::real_clis::record::{self, Recorded};
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../agents/tests/fixtures/streams")
}

fn index() -> BTreeMap<String, Recorded> {
    serde_json::from_str(&fs::read_to_string(folder().join("index.json")).unwrap()).unwrap()
}

#[test]
fn every_case_is_recorded_for_every_cli_it_is_for() {
    let index = index();
    for cli in RealCli::ALL {
        for case in record::cases() {
            let name = format!("{}-{}", cli.name(), case.name);
            let wanted = case.only.is_none_or(|only| only == cli);
            assert_eq!(index.contains_key(&name), wanted, "{name}");
        }
    }
}

#[test]
fn every_line_is_json_and_names_no_place_of_a_machine() {
    for name in index().keys() {
        let text = fs::read_to_string(folder().join(format!("{name}.jsonl"))).unwrap();
        for line in text.lines() {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let stderr = fs::read_to_string(folder().join(format!("{name}.stderr")));
        let both = text + &stderr.unwrap_or_default();
        assert!(!both.contains("/root/") && !both.contains("/dw-"), "{name}");
    }
}
