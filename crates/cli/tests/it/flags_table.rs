//! Every flag of every verb does something that a test shows, or is refused. `flags.txt` has a row for
//! each; a test in `src/args/table.rs` holds it against clap's own definition, so that no flag can be
//! forgotten. Here each row is held against what it names.

use descartes_testkit::World;

use crate::common::descartes;
use crate::task_common::{graph, scud_project};

const TABLE: &str = include_str!("flags.txt");

/// What shows that a flag does something.
enum Shown<'a> {
    /// A test, by its file and name, in which the flag is given.
    Test(&'a str, &'a str),
    /// It is refused with these arguments (64), in words that name it.
    Refused(Vec<&'a str>),
}

struct Row<'a> {
    verb: &'a str,
    flag: &'a str,
    shown: Shown<'a>,
}

fn rows() -> Vec<Row<'static>> {
    let rows = TABLE.lines().map(str::trim);
    let rows = rows.filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.map(|row| {
        let (what, shown) = row.split_once(" = ").expect(row);
        let (verb, flag) = what.split_once(": ").expect(row);
        let shown = match shown.split_once("::") {
            Some((file, test)) => Shown::Test(file, test),
            None => Shown::Refused(
                shown
                    .strip_prefix("refused ")
                    .expect(row)
                    .split(' ')
                    .collect(),
            ),
        };
        let verb = verb.strip_prefix("descartes").expect(row).trim_start();
        Row { verb, flag, shown }
    })
    .collect()
}

/// The body of a test.
fn body<'t>(text: &'t str, test: &str) -> Option<&'t str> {
    let begin = text.find(&format!("#[test]\nfn {test}()"))?;
    let rest = &text[begin..];
    Some(&rest[..rest.find("\n}\n")?])
}

/// The short form of a flag.
fn short(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--command" => "\"-c\"",
        "--prompt" => "\"-p\"",
        "--max-iterations" => "\"-m\"",
        "--working-dir" => "\"-w\"",
        "--state-file" => "\"-s\"",
        "--follow" => "\"-f\"",
        "--lines" | "--last" => "\"-n\"",
        "--yes" => "\"-y\"",
        "--output" => "\"-o\"",
        "--all" => "\"-a\"",
        "--watch" => "\"-w\"",
        _ => return None,
    })
}

#[test]
fn every_flag_is_given_in_the_test_that_shows_what_it_does() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut wrong = Vec::new();
    for Row { verb, flag, shown } in rows() {
        let Shown::Test(file, test) = shown else {
            continue;
        };
        let text = std::fs::read_to_string(folder.join(format!("{file}.rs"))).unwrap_or_default();
        let given = |body: &str| {
            let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
            let long = body.match_indices(flag).any(|(at, _)| {
                let next = body[at + flag.len()..].chars().next();
                next.is_none_or(ends)
            });
            long || short(flag).is_some_and(|short| body.contains(short))
        };
        match body(&text, test) {
            None => wrong.push(format!("{verb} {flag}: there is no test {file}::{test}")),
            Some(body) if !given(body) => {
                wrong.push(format!("{verb} {flag}: not given in {file}::{test}"));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The help of a flag, in one line.
fn help_of(world: &World, verb: &str, flag: &str) -> Option<String> {
    let words: Vec<&str> = verb
        .split(' ')
        .filter(|word| !word.starts_with("--"))
        .collect();
    let help = descartes(world, &[&words[..], &["--help"]].concat()).stdout();
    // What is said of a flag goes on further to the right.
    let is_flag = |line: &&str| {
        line.len() - line.trim_start().len() < 8 && line.trim_start().starts_with('-')
    };
    let named = |line: &str| {
        line.split([' ', ',', '<', '[', '='])
            .any(|word| word == flag)
    };
    let mut lines = help
        .lines()
        .skip_while(|line| !(is_flag(line) && named(line)));
    let first = lines.next()?.to_owned();
    let rest = lines.take_while(|line| !is_flag(line) && !line.trim().is_empty());
    Some(rest.fold(first, |all, line| format!("{all} {}", line.trim())))
}

#[test]
fn what_means_nothing_to_a_verb_is_refused_and_not_offered() {
    let world = scud_project(graph("1 | One | P | 1 | H", ""));
    world.write("ROADMAP.md", "# Roadmap: R\n## Tasks\n- [ ] **a**: One\n");
    for Row { verb, flag, shown } in rows() {
        let Shown::Refused(arguments) = shown else {
            continue;
        };
        let mut words: Vec<&str> = verb.split(' ').collect();
        match verb {
            "loop start --scud-tag" => words.extend(["auth", "--command", "true"]),
            "loop start" => words.extend(["--command", "true", "--prompt", "x"]),
            "roadmap run" => words.extend(["ROADMAP.md", "--command", "true"]),
            other => panic!("{other} refuses nothing"),
        }
        let run = descartes(&world, &[words, arguments].concat());
        run.assert_code(64);
        assert!(run.stderr().contains(flag), "{verb} {flag}: {run}");
        assert!(run.stderr().contains("hint: "), "{verb} {flag}: {run}");
        // `loop start` has one help for both kinds: it says for which a flag is.
        let help = help_of(&world, verb, flag);
        match verb {
            "roadmap run" => assert_eq!(help, None, "{flag} is offered"),
            "loop start --scud-tag" => {
                let help = help.expect(flag);
                let said = help.contains("not with --scud-tag");
                let own = ["--prompt", "--prompt-file"].contains(&flag);
                assert!(said || own, "{flag}: {help}");
            }
            _ => {
                let tasks = descartes(&world, &["loop", "start", "--help"]).stdout();
                let section = tasks.split("\nTasks").nth(1).expect("a section");
                assert!(section.contains(flag), "{flag} stands among those of tasks");
            }
        }
    }
}
