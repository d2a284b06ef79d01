//! Text of the person's own may begin with `-`: `--prompt "- [ ] fix the parser"`.
//!
//! The parser takes such a word for a flag. It is therefore joined to its flag with `=` before the
//! parser sees it, unless it is a flag that the command knows: then its value was forgotten. An
//! argument without a flag (`loop say TEXT`) allows it by itself, under the same rule.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// Joins each text that begins with `-` to its flag: `--prompt "- x"` becomes `"--prompt=- x"`.
pub fn joined(words: Vec<OsString>, program: impl FnOnce() -> Command) -> Vec<OsString> {
    let dashes = |pair: &[OsString]| pair.iter().all(|word| begins_with_dash(word));
    if !words.windows(2).any(dashes) {
        return words;
    }
    joined_for(words, &mut program())
}

fn joined_for(words: Vec<OsString>, program: &mut Command) -> Vec<OsString> {
    program.build();
    let mut command = &*program;
    let mut out = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    out.extend(words.next());
    while let Some(word) = words.next() {
        if word == "--" {
            out.push(word);
            break;
        }
        if let Some(verb) = command.find_subcommand(&word) {
            command = verb;
            out.push(word);
            continue;
        }
        let Some(flag) = flag_with_value(command, &word) else {
            out.push(word);
            continue;
        };
        let text = words.next_if(|next| match is_free_text(flag) {
            true => !is_flag(command, next),
            false => !begins_with_dash(next),
        });
        match (text, flag.get_long()) {
            (Some(text), Some(long)) if begins_with_dash(&text) => {
                let mut whole = OsString::from(format!("--{long}="));
                whole.push(text);
                out.push(whole);
            }
            (text, _) => {
                out.push(word);
                out.extend(text);
            }
        }
    }
    out.extend(words);
    out
}

/// Whether an argument holds text of the person's own.
pub fn is_free_text(arg: &Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<String>()
}

/// The flag that stands in place of a text where one was forgotten, and the flag that needs the
/// text: `--prompt --verify` gives both.
pub fn forgotten(words: &[OsString], program: &mut Command) -> Option<(String, String)> {
    program.build();
    let mut command = &*program;
    for (at, word) in words.iter().enumerate().skip(1) {
        if word == "--" {
            return None;
        }
        if let Some(verb) = command.find_subcommand(word) {
            command = verb;
            continue;
        }
        if let Some(flag) = flag_with_value(command, word).filter(|flag| is_free_text(flag))
            && let Some(next) = words.get(at + 1)
            && is_flag(command, next)
        {
            return Some((flag.get_long()?.to_owned(), next.to_str()?.to_owned()));
        }
    }
    None
}

/// The flag that this word is, where its value is the next word.
fn flag_with_value<'a>(command: &'a Command, word: &OsStr) -> Option<&'a Arg> {
    let word = word.to_str()?;
    let flag = match word.strip_prefix("--") {
        Some(long) => by_long(command, long)?,
        None => by_short(command, word)?,
    };
    flag.get_action().takes_values().then_some(flag)
}

/// Whether the command knows this word as a flag: `--verify`, `--verify=x`, `-m`.
fn is_flag(command: &Command, word: &OsStr) -> bool {
    let Some(word) = word.to_str() else {
        return false;
    };
    match word.strip_prefix("--") {
        Some(long) => {
            let name = long.split_once('=').map_or(long, |(name, _)| name);
            by_long(command, name).is_some()
        }
        None => by_short(command, word).is_some(),
    }
}

fn by_long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(name) || aliases.contains(&name)
    })
}

/// By a word like `-p`, and nothing behind it.
fn by_short<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let mut letters = word.strip_prefix('-')?.chars();
    let (letter, None) = (letters.next()?, letters.next()) else {
        return None;
    };
    command
        .get_arguments()
        .find(|arg| arg.get_short() == Some(letter))
}

fn begins_with_dash(word: &OsStr) -> bool {
    word.len() > 1 && word.as_encoded_bytes().starts_with(b"-")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::{Cli, with_verb};

    /// Every command with the words that name it.
    fn commands(command: &Command, named: &[String], out: &mut Vec<(Vec<String>, Command)>) {
        out.push((named.to_vec(), command.clone()));
        for verb in command.get_subcommands() {
            let mut words = named.to_vec();
            words.push(verb.get_name().to_owned());
            commands(verb, &words, out);
        }
    }

    fn all() -> (Command, Vec<(Vec<String>, Command)>) {
        let mut program = Cli::command();
        program.build();
        let mut out = Vec::new();
        commands(&program, &["descartes".to_owned()], &mut out);
        (program, out)
    }

    fn parsed(words: &[String], program: &mut Command) -> Result<clap::ArgMatches, clap::Error> {
        let mut words: Vec<OsString> = with_verb(words.iter().map(OsString::from));
        words.extend(behind_two_dashes(&words, program));
        let words = joined_for(words, program);
        program.try_get_matches_from_mut(words)
    }

    /// The command that a verb such as `sandbox` wants behind `--`.
    fn behind_two_dashes(words: &[OsString], program: &Command) -> Vec<OsString> {
        let mut deepest = program;
        for word in &words[1..] {
            match word.to_str().and_then(|word| deepest.find_subcommand(word)) {
                Some(next) => deepest = next,
                None => break,
            }
        }
        let wants = |arg: &Arg| arg.is_last_set() && arg.is_required_set();
        match deepest.get_positionals().any(wants) {
            true => vec!["--".into(), "x".into()],
            false => Vec::new(),
        }
    }

    /// What the deepest command got for this argument.
    fn got(matches: &clap::ArgMatches, id: &str) -> Vec<String> {
        let mut deepest = matches;
        while let Some((_, next)) = deepest.subcommand() {
            deepest = next;
        }
        let values = deepest.get_many::<String>(id);
        values.into_iter().flatten().cloned().collect()
    }

    /// The words of a command with everything that it cannot do without.
    fn complete(named: &[String], command: &Command, but: &Arg) -> Vec<String> {
        let mut words = named.to_vec();
        let needed = command
            .get_positionals()
            .filter(|arg| !arg.is_last_set())
            .filter(|arg| arg.is_required_set() || arg.get_id() == "file")
            .filter(|arg| arg.get_id() != but.get_id());
        words.extend(needed.map(|_| "x".to_owned()));
        let needed = command.get_opts().filter(|arg| arg.is_required_set());
        let needed = needed.filter(|arg| arg.get_id() != but.get_id());
        words.extend(needed.map(|arg| format!("--{}=x", arg.get_long().unwrap())));
        words
    }

    const TEXTS: [&str; 6] = [
        "- [ ] fix the parser",
        "---",
        "-",
        "--do not touch the tests",
        "-x",
        "--unheard-of",
    ];

    #[test]
    fn every_flag_that_takes_text_takes_one_that_begins_with_a_dash() {
        let mut seen = Vec::new();
        let (mut program, commands) = all();
        for (named, command) in commands {
            for flag in command.get_opts().filter(|arg| is_free_text(arg)) {
                let long = format!("--{}", flag.get_long().unwrap());
                let short = flag.get_short().map(|letter| format!("-{letter}"));
                for typed in [Some(long.clone()), short].into_iter().flatten() {
                    for text in TEXTS {
                        let mut words = complete(&named, &command, flag);
                        words.extend([typed.clone(), text.to_owned()]);
                        let matches = parsed(&words, &mut program)
                            .unwrap_or_else(|e| panic!("{words:?}: {e}"));
                        assert_eq!(got(&matches, flag.get_id().as_str()), [text], "{words:?}");
                    }
                }
                seen.push(format!("{} {long}", named.join(" ")));
            }
        }
        for known in [
            "descartes loop start --prompt",
            "descartes loop start --completion-promise",
            "descartes loop start --commit-template",
            "descartes loop start --name",
            "descartes loop resume --prompt",
            "descartes roadmap run --ralph-default-promise",
            "descartes spec --spec-template",
        ] {
            assert!(seen.iter().any(|flag| flag == known), "{known}: {seen:?}");
        }
    }

    #[test]
    fn a_flag_that_the_command_knows_is_no_text() {
        let (mut program, commands) = all();
        for (named, command) in commands {
            for flag in command.get_opts().filter(|arg| is_free_text(arg)) {
                let long = format!("--{}", flag.get_long().unwrap());
                for other in command.get_opts() {
                    let mut next = vec![format!("--{}", other.get_long().unwrap())];
                    next.push(format!("{}=x", next[0]));
                    next.extend(other.get_short().map(|letter| format!("-{letter}")));
                    for next in next {
                        let mut words = complete(&named, &command, flag);
                        words.extend([long.clone(), next.clone()]);
                        let error = parsed(&words, &mut program).expect_err(&words.join(" "));
                        let told = error.to_string();
                        assert!(told.contains(&long), "{words:?}: {told}");
                        let all: Vec<OsString> = words.iter().map(OsString::from).collect();
                        let missed = forgotten(&all, &mut program);
                        assert_eq!(missed, Some((long[2..].to_owned(), next)), "{words:?}");
                    }
                }
            }
        }
    }

    /// Arguments without a flag: texts take it, references to something that is there do not, so
    /// that a mistyped flag is still called one.
    #[test]
    fn every_argument_without_a_flag_is_a_text_or_a_reference() {
        let references = ["LOOP", "N|LOOP", "N|COPY", "NAME", "TAG", "TASK", "URL"];
        let mut texts = Vec::new();
        let (mut program, commands) = all();
        for (named, command) in commands {
            for arg in command.get_positionals().filter(|arg| is_free_text(arg)) {
                let name = arg.get_value_names().unwrap()[0].as_str();
                if references.contains(&name) {
                    assert!(!arg.is_allow_hyphen_values_set(), "{named:?} {name}");
                    continue;
                }
                texts.push(format!("{} {name}", named.join(" ")));
                for text in TEXTS {
                    let mut words = complete(&named, &command, arg);
                    words.push(text.to_owned());
                    let matches =
                        parsed(&words, &mut program).unwrap_or_else(|e| panic!("{words:?}: {e}"));
                    assert_eq!(got(&matches, arg.get_id().as_str()), [text], "{words:?}");
                }
                let mut words = complete(&named, &command, arg);
                words.push("--json".to_owned());
                assert!(
                    parsed(&words, &mut program).is_err(),
                    "{words:?}: a flag is no text"
                );
            }
        }
        assert_eq!(texts, ["descartes loop say TEXT", "descartes query SQL"]);
    }

    #[test]
    fn other_words_stay_as_they_are() {
        let table = [
            ("loop start --command|a|--prompt|x", None),
            ("loop start --prompt=- x|--json", None),
            (
                "loop start --parallel|--prompt|- x",
                Some("loop start --parallel|--prompt=- x"),
            ),
            (
                "loop start -p|- x|-m|3",
                Some("loop start --prompt=- x|-m|3"),
            ),
            ("loop start --prompt|-|--json", None),
            ("loop start --prompt-file|-", None),
            ("loop start --verify|--prompt|x", None),
            ("loop say --|--json", None),
            ("loop start --env|-x", None),
        ];
        for (typed, meant) in table {
            let words = |text: &str| -> Vec<OsString> {
                let text = format!("descartes {text}").replacen(' ', "|", 3);
                text.split('|').map(OsString::from).collect()
            };
            let meant = words(meant.unwrap_or(typed));
            assert_eq!(joined(words(typed), Cli::command), meant, "{typed}");
        }
    }
}
