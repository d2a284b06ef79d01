//! What is put right before parsing: `descartes loop --command …` is `descartes loop start
//! --command …`, and `--parallel FILE` is `--parallel` and a file.

use std::ffi::OsString;

use super::start::BARE_PARALLEL;

/// Puts in the verb `start` where `loop` is followed by a flag. Done before parsing, so that
/// the help of `loop` shows its verbs and not all flags of one of them.
pub fn with_verb(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = arguments.into_iter().collect();
    part_from_files(&mut words);
    let Some(group) = first_word(&words, 1).filter(|at| words[*at] == "loop") else {
        return words;
    };
    let next = first_word(&words, group + 1);
    let flags = &words[group + 1..next.unwrap_or(words.len())];
    let help = |word: &OsString| word == "-h" || word == "--help";
    let global = |word: &OsString| word.to_string_lossy().starts_with("--color");
    // A word directly behind `loop` (or behind a global flag) is the verb.
    let verbless =
        flags.iter().any(|word| !global(word) && is_flag(word)) && !flags.iter().all(help);
    if verbless {
        words.insert(group + 1, "start".into());
    }
    words
}

/// The number of `--parallel` may be left away: what follows it then is a word of its own.
fn part_from_files(words: &mut [OsString]) {
    let end = words.iter().position(|word| word == "--");
    for at in 1..end.unwrap_or(words.len()) {
        let next = words[at].to_string_lossy();
        let number = !next.is_empty() && next.chars().all(|c| c.is_ascii_digit());
        if words[at - 1] == "--parallel" && !number && !next.starts_with('-') {
            words[at - 1] = format!("--parallel={BARE_PARALLEL}").into();
        }
    }
}

/// The first word from `from` on that is neither a flag nor the value of a global one.
fn first_word(words: &[OsString], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(word) = words.get(at) {
        match word {
            word if word == "--color" => at += 2,
            word if is_flag(word) => at += 1,
            _ => return Some(at),
        }
    }
    None
}

fn is_flag(word: &OsString) -> bool {
    word.to_string_lossy().starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_behind_loop_means_start_and_a_word_stays_the_verb() {
        let table = [
            (
                "descartes loop --command x",
                "descartes loop start --command x",
            ),
            ("descartes loop -p hi", "descartes loop start -p hi"),
            (
                "descartes --color never loop -p hi",
                "descartes --color never loop start -p hi",
            ),
            (
                "descartes loop --color never -p hi",
                "descartes loop start --color never -p hi",
            ),
            (
                "descartes loop status --json",
                "descartes loop status --json",
            ),
            (
                "descartes loop --color never status",
                "descartes loop --color never status",
            ),
            ("descartes loop --help", "descartes loop --help"),
            ("descartes loop", "descartes loop"),
            (
                "descartes roadmap run --parallel ROADMAP.md",
                "descartes roadmap run --parallel=4 ROADMAP.md",
            ),
            (
                "descartes roadmap run --parallel 3 ROADMAP.md",
                "descartes roadmap run --parallel 3 ROADMAP.md",
            ),
            (
                "descartes roadmap run R.md --parallel --in-place",
                "descartes roadmap run R.md --parallel --in-place",
            ),
            (
                "descartes loop --scud-tag t --parallel",
                "descartes loop start --scud-tag t --parallel",
            ),
            ("descartes demo --fast", "descartes demo --fast"),
            ("descartes", "descartes"),
        ];
        for (typed, meant) in table {
            let words = typed.split(' ').map(OsString::from);
            let got: Vec<String> = with_verb(words)
                .into_iter()
                .map(|word| word.into_string().unwrap())
                .collect();
            assert_eq!(got.join(" "), meant);
        }
    }
}
