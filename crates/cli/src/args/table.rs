//! Every flag of every verb stands in the table `tests/it/flags.txt`, with what shows that it does
//! something. The table is held against clap's own definition, so a new flag that nobody thought of
//! fails here; `tests/it/flags_table.rs` holds each row against what it names.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory, Parser};
use descartes_store::config::{KEYS, Kind, Layers, Source};

use super::{Cli, LoopVerb};

const TABLE: &str = include_str!("../../tests/it/flags.txt");

/// `loop start` once more: the same flags in a loop over tasks.
const OVER_TASKS: &str = "loop start --scud-tag";

/// All flags of a command and of those below it, hidden ones too, as `descartes VERB: --flag`.
fn flags(command: &Command, path: &str, out: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        // What is global is one flag of the program.
        let inherited = argument.is_global_set() && !path.is_empty();
        let long = argument.get_long().filter(|_| !inherited);
        let Some(long) = long.filter(|long| !["help", "version"].contains(long)) else {
            continue;
        };
        let mut names = vec![long.to_owned()];
        names.extend(
            argument
                .get_visible_aliases()
                .unwrap_or_default()
                .into_iter()
                .map(str::to_owned),
        );
        for name in names {
            out.insert(format!("descartes {path}: --{name}").replace(" :", ":"));
            if path == "loop start" {
                out.insert(format!("descartes {OVER_TASKS}: --{name}"));
            }
        }
    }
    for below in command.get_subcommands() {
        let path = match path {
            "" => below.get_name().to_owned(),
            path => format!("{path} {}", below.get_name()),
        };
        flags(below, &path, out);
    }
}

#[test]
fn the_table_of_flags_has_every_flag_of_every_verb_and_no_other() {
    let mut defined = BTreeSet::new();
    let mut command = Cli::command();
    // Fills in what is derived: the arguments that all verbs share, and what `mut_arg` changes.
    command.build();
    flags(&command, "", &mut defined);
    let rows = TABLE.lines().map(str::trim);
    let rows = rows.filter(|row| !row.is_empty() && !row.starts_with('#'));
    let told: BTreeSet<String> = rows
        .map(|row| row.split(" = ").next().unwrap().trim().to_owned())
        .collect();
    let missing: Vec<&String> = defined.difference(&told).collect();
    let gone: Vec<&String> = told.difference(&defined).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "not in tests/it/flags.txt: {missing:#?}\nonly there: {gone:#?}"
    );
}

/// The sources of all settings when `loop start` is given a flag.
fn sources_with(typed: &str) -> Vec<(String, Source)> {
    let parsed = Cli::try_parse_from(["descartes", "loop", "start", typed]).unwrap();
    let super::Command::Loop(args) = parsed.command else {
        panic!("{typed}");
    };
    let LoopVerb::Start(args) = args.verb else {
        panic!("{typed}");
    };
    let mut layers = Layers::default();
    args.put_over(&mut layers.settings);
    let rows = layers.rows().into_iter();
    rows.map(|row| (row.key, row.source)).collect()
}

#[test]
fn a_flag_is_the_source_of_the_setting_of_its_name_and_of_no_other() {
    let command = Cli::command();
    let start = command.find_subcommand("loop").unwrap();
    let start = start.find_subcommand("start").unwrap();
    let mut seen = 0;
    for key in KEYS {
        let long = key.name.replace('_', "-");
        let mut flags = start.get_arguments();
        let Some(flag) = flags.find(|flag| flag.get_long() == Some(&long)) else {
            continue;
        };
        let value = match key.kind {
            Kind::Choice(names) => names[0],
            Kind::Switch => "on",
            _ => "1",
        };
        let typed = match flag.get_action().takes_values() {
            true => format!("--{long}={value}"),
            false => format!("--{long}"),
        };
        for (name, source) in sources_with(&typed) {
            let given = Source::Flag(format!("--{long}"));
            assert_eq!(source == given, name == key.name, "{typed}: {name}");
        }
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}

/// All verbs that do something, hidden ones apart.
fn verbs(command: &Command, path: &str, out: &mut BTreeSet<String>) {
    let below: Vec<&Command> = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help")
        .collect();
    if !path.is_empty() && (below.is_empty() || !command.is_subcommand_required_set()) {
        out.insert(path.to_owned());
    }
    for below in below {
        verbs(below, format!("{path} {}", below.get_name()).trim(), out);
    }
}

#[test]
fn every_verb_has_a_snapshot_of_its_usual_and_wrong_use_and_there_is_no_other() {
    let mut defined = BTreeSet::new();
    let mut command = Cli::command();
    command.build();
    verbs(&command, "", &mut defined);
    let defined: BTreeSet<String> = defined.iter().map(|verb| verb.replace(' ', "-")).collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/snapshots");
    let files = std::fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let kept: BTreeSet<String> = names
        .filter_map(|name| name.strip_suffix(".snap").map(str::to_owned))
        .collect();
    assert_eq!(
        defined, kept,
        "tests/it/verb_snapshots.rs has a list of them"
    );
}
