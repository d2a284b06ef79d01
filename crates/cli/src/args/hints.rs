//! Every command that the program suggests stands in the table `tests/it/hints.txt`, with the test that types
//! it where it is printed, or with why none does. The table is held against the sources, so a new suggestion
//! that nobody thought of fails here; and each suggestion is taken by the command line as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{CommandFactory, Parser};

use super::{Cli, with_verb};

const TABLE: &str = include_str!("../../tests/it/hints.txt");

/// The texts in a source file, without tests and comments.
fn texts(source: &str) -> Vec<String> {
    let end = source.find("#[cfg(test)]\nmod tests {");
    let source = &source[..end.unwrap_or(source.len())];
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let code: Vec<&str> = source.lines().filter(|line| !is_comment(line)).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' if chars.peek() == Some(&'"') => drop(chars.next()),
            '"' => {
                let mut text = String::new();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    match (c, c == '\\') {
                        (_, false) => text.push(c),
                        _ => match chars.next() {
                            Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                            Some('n') => text.push('\n'),
                            Some(c) => text.push(c),
                            None => {}
                        },
                    }
                }
                found.push(text);
            }
            _ => {}
        }
    }
    found
}

/// The commands that a text suggests.
fn suggested(text: &str, verbs: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("descartes ") {
        let line = &text[at..];
        let verb = line["descartes ".len()..]
            .split(|c: char| !c.is_alphanumeric())
            .next();
        let is_word = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '/');
        let is_verb = verb.is_some_and(|verb| verbs.contains(verb));
        if !is_word || !(is_verb || line.starts_with("descartes {verb} ")) {
            continue;
        }
        let ends = ["`", ";", "\n", ")", ", ", " (", ": ", " && ", ". ", " ("];
        let end = ends.iter().filter_map(|end| line.find(end)).min();
        let command = &line[..end.unwrap_or(line.len())];
        found.push(command.trim().trim_end_matches(['.', ',', ':']).to_owned());
    }
    found
}

fn collect(folder: &Path, verbs: &BTreeSet<String>, all: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, verbs, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if name == "tests" || name.ends_with("_tests") || path.ends_with("args/hints.rs") {
                continue;
            }
            for text in texts(&std::fs::read_to_string(&path).unwrap()) {
                for command in suggested(&text, verbs) {
                    all.entry(command)
                        .or_insert_with(|| path.display().to_string());
                }
            }
        }
    }
}

/// All suggestions of the sources, with a file each.
fn of_sources() -> BTreeMap<String, String> {
    let mut verbs: BTreeSet<String> = BTreeSet::new();
    for verb in Cli::command().get_subcommands() {
        verbs.insert(verb.get_name().to_owned());
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        if source.is_dir() && !source.parent().unwrap().ends_with("testkit") {
            collect(&source, &verbs, &mut all);
        }
    }
    all
}

/// What a row says of a command: a test, or `-` and why.
fn rows() -> BTreeMap<&'static str, &'static str> {
    let rows = TABLE.lines().map(str::trim);
    let rows = rows.filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.map(|row| row.split_once(" => ").expect(row)).collect()
}

#[test]
fn every_command_that_is_suggested_stands_in_the_table() {
    let found = of_sources();
    let rows = rows();
    let missing: Vec<_> = found
        .iter()
        .filter(|(command, _)| !rows.contains_key(command.as_str()))
        .collect();
    let gone: Vec<_> = rows
        .keys()
        .filter(|command| !found.contains_key(**command))
        .collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "not in tests/it/hints.txt: {missing:#?}\nonly there: {gone:#?}"
    );
}

/// What the tests of these files are made of, by name: with the words before it, which may name a suggestion.
fn tests_of(files: &[String]) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    for text in files {
        for block in text.split("\n}\n") {
            let name = block.split_once("#[test]\nfn ");
            if let Some((name, _)) = name.and_then(|(_, rest)| rest.split_once("()")) {
                found.insert(name, block);
            }
        }
    }
    found
}

/// Whether nothing more of a command follows.
fn is_whole(rest: &str) -> bool {
    rest.starts_with(['"', '`', '\''])
}

/// A row holds as long as its test has the suggestion, or the snapshot that its test makes and types.
#[test]
fn a_row_names_a_test_that_types_it_or_why_there_is_none() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files = Vec::new();
    for part in ["it", "web"] {
        for entry in std::fs::read_dir(folder.join(part)).unwrap().flatten() {
            files.push(std::fs::read_to_string(entry.path()).unwrap_or_default());
        }
    }
    let tests = tests_of(&files);
    let mut wrong = Vec::new();
    for (command, says) in rows() {
        if let Some(why) = says.strip_prefix("-: ") {
            assert!(why.len() > 8, "{command}: {why}");
            continue;
        }
        let fixed = command.split('{').next().unwrap_or_default().trim_end();
        let snapshot = format!("it/snapshots/{}.snap", says.replace('_', "-"));
        let types = match std::fs::read_to_string(folder.join(snapshot)) {
            Ok(snapshot) => snapshot.contains(fixed),
            Err(_) => {
                let test = tests.get(says).copied().unwrap_or_default();
                let test = test.replace("\\\"", "\"");
                // Where it begins a row it is what prints another one.
                let begins = |at| {
                    let before: &str = &test[..at];
                    before.trim_end_matches('"').trim_end().ends_with("row(")
                };
                let mut found = test.match_indices(command);
                found.any(|(at, _)| !begins(at) && is_whole(&test[at + command.len()..]))
            }
        };
        if !types {
            wrong.push(format!("{command}: {says} does not type it"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The words of a suggestion, with something in the place of what is filled in.
fn words(command: &str) -> Vec<String> {
    let mut filled = String::new();
    let command = &command
        .replace("descartes {verb} {}", "descartes install codex")
        .replace("descartes {verb} ", "descartes install ");
    let mut rest = command.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let (name, behind) = after.split_once('}').unwrap_or(("", ""));
        // What is glued to a word is a further word of its own, or nothing.
        if filled.ends_with([' ', '\'', '/']) {
            filled.push_str(match name {
                "tool" => "claude",
                "verb" => "status",
                "place" => "--project",
                _ => "1",
            });
        }
        rest = behind;
    }
    filled.push_str(rest);
    let words = shell_words::split(&filled);
    let words = words.unwrap_or_else(|_| filled.split_whitespace().map(str::to_owned).collect());
    let number = |word: String| if word == "N" { "1".to_owned() } else { word };
    words.into_iter().map(number).collect()
}

#[test]
fn every_command_that_is_suggested_is_taken_by_the_command_line() {
    for (command, says) in rows() {
        if says.starts_with("-:") {
            continue;
        }
        let words = words(command);
        let flags = words.iter().rposition(|word| word.starts_with("--"));
        let least = flags.map_or(2, |at| at + 1).min(words.len());
        // Words of the sentence may follow.
        let lengths = (least..=words.len()).rev();
        let mut tried = lengths.map(|length| {
            let typed = words[..length].iter().map(std::ffi::OsString::from);
            Cli::try_parse_from(with_verb(typed))
        });
        let taken = tried.find(|parsed| match parsed {
            Ok(_) => true,
            // It asks for what is filled in by a person.
            Err(error) => matches!(
                error.kind(),
                clap::error::ErrorKind::MissingRequiredArgument
                    | clap::error::ErrorKind::DisplayHelp
                    | clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            ),
        });
        assert!(
            taken.is_some(),
            "{command}: {:?}",
            Cli::try_parse_from(&words).err()
        );
    }
}
