//! `descartes query`: the history of all loops in SQL.

use descartes_testkit::World;
use serde_json::{Value, json};

use crate::common::{descartes, start};

fn json_of(world: &World, sql: &str) -> Value {
    let run = descartes(world, &["query", sql, "--json"]);
    run.assert_code(0);
    serde_json::from_str(&run.stdout()).unwrap()
}

#[test]
fn loops_iterations_and_gates_can_be_asked_for() {
    let world = World::in_memory();
    let script = "print working on it\n@2 write done x\n@2 promise";
    let flags = [
        "--name",
        "tides",
        "--verify",
        "test -f done",
        "--no-promise",
    ];
    start(&world, script, &flags).assert_code(0);
    let loops = json_of(
        &world,
        "select name, iterations, exit_reason, exit_code, parent from loops",
    );
    let expected = json!([{"name": "tides", "iterations": 2, "exit_reason": "gates_passed",
        "exit_code": 0, "parent": null}]);
    assert_eq!(loops, expected);
    let sql = "select iteration, exit_code, verdict, gates_green, gates_red, output_tail, \
        ended_at >= started_at as ordered from iterations";
    let rows = json_of(&world, sql);
    assert_eq!(rows[0]["verdict"], "worked", "{rows}");
    assert_eq!(rows[0]["gates_red"], 1);
    assert_eq!(rows[1]["verdict"], "gates");
    assert_eq!(rows[1]["gates_green"], 1);
    assert!(
        rows[1]["output_tail"]
            .as_str()
            .unwrap()
            .contains("working on it")
    );
    assert_eq!(rows[1]["ordered"], 1);
    let gates = json_of(&world, "select iteration, outcome, command from gates");
    assert_eq!(
        gates[0],
        json!({"iteration": 1, "outcome": "red", "command": "test -f done"})
    );
    // Deleted, it is made anew.
    std::fs::remove_file(world.state().join("index.db")).unwrap();
    assert_eq!(
        json_of(&world, "select count(*) as n from runs"),
        json!([{"n": 2}])
    );
    let csv = descartes(
        &world,
        &["query", "select name, exit_code from loops", "--csv"],
    );
    assert_eq!(csv.stdout(), "name,exit_code\ntides,0\n");
    let table = descartes(&world, &["query", "select name, exit_code from loops"]);
    assert_eq!(
        table.stdout(),
        "name   exit_code\n-----  ---------\ntides          0\n"
    );
}

#[test]
fn what_cannot_be_asked_is_told_with_its_place() {
    let world = World::in_memory();
    for (sql, words) in [
        ("select nam from loops", "column 8: `nam`"),
        ("selec 1", "syntax error"),
        ("select * from elsewhere", "no such table"),
        ("delete from loops", "only queries"),
        ("", "the query is empty"),
    ] {
        let run = descartes(&world, &["query", sql]);
        run.assert_code(64);
        assert!(run.stderr().contains(words), "{sql}: {run}");
        assert!(run.stderr().contains("hint:"), "{run}");
    }
    descartes(&world, &["query"]).assert_code(64);
    // Nothing was ever run here, and nothing is written.
    assert!(!world.state().join("index.db").exists());
}

#[test]
fn every_table_is_shown_and_documented() {
    let schema = descartes(&World::in_memory(), &["query", "--schema"]).stdout();
    let page = include_str!("../../../../docs/query.md");
    let tables: Vec<&str> = schema
        .lines()
        .filter_map(|line| line.strip_prefix("create table ")?.split(' ').next())
        .collect();
    assert_eq!(tables.len(), 10);
    for table in tables {
        assert!(page.contains(&format!("`{table}`")), "{table}");
    }
}
