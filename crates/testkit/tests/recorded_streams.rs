//! The recorded streams that the parsers are tested with are whole and tell nothing of a machine.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use descartes_testkit::real_clis::record::{self, Recorded};
use descartes_testkit::real_clis::{Prints, RealCli};
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
            assert_eq!(index.contains_key(&name), case.is_for(cli), "{name}");
        }
    }
}

#[test]
fn streams_are_what_the_cli_prints_and_name_no_place_of_a_machine() {
    for name in index().keys() {
        let (agent, _) = name.split_once('-').unwrap();
        let cli = RealCli::from_name(agent).unwrap();
        let file = folder().join(format!("{name}.{}", cli.extension()));
        let text = fs::read_to_string(file).unwrap();
        // What tools print stands between gptme's events.
        let is_json = |line: &&str| match cli {
            RealCli::Gptme => line.starts_with('{'),
            _ => cli.prints() == Prints::Json,
        };
        let lines = text.lines().filter(is_json);
        for line in lines {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let stderr = fs::read_to_string(folder().join(format!("{name}.stderr")));
        let both = text + &stderr.unwrap_or_default();
        let places = ["/root/", "/dw-", "agents-under-test"];
        assert!(!places.iter().any(|place| both.contains(place)), "{name}");
    }
}
