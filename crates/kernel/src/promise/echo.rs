//! The prompt's own promises, so that an agent that prints its prompt claims nothing.

use std::collections::HashSet;

use super::ClaimKind;
use super::ansi::Stripper;
use super::chars::has_words;
use super::judge::{Line, Rules, Start};
use super::lookback::key;

/// What an echo of the prompt looks like. Neighbours are the nearest lines with words:
/// blank lines, rules and fences stand beside true claims just as often.
#[derive(Debug, Default)]
pub(super) struct Echo {
    /// Lines that would be claims and have other words.
    lines: HashSet<Vec<u8>>,
    /// Neighbours before bare promises.
    before: HashSet<(ClaimKind, Vec<u8>)>,
    /// Neighbours after one with which the prompt begins.
    after: HashSet<(ClaimKind, Vec<u8>)>,
}

impl Echo {
    /// Reads the prompt as it is sent.
    pub(super) fn of(rules: &Rules, prompt: &str) -> Self {
        let mut echo = Self::default();
        let mut stripper = Stripper::default();
        let mut neighbour: Option<Vec<u8>> = None;
        let mut begins_with: Option<ClaimKind> = None;
        for line in prompt.split(['\n', '\r']) {
            let text = stripper.strip(line.as_bytes()).text;
            if !has_words(text) {
                continue;
            }
            if let Some(kind) = begins_with.take() {
                echo.after.insert((kind, key(text).to_vec()));
            }
            match rules.judge(Line {
                text,
                start: Start::Whole,
            }) {
                Some(found) if !found.bare => {
                    echo.lines.insert(key(text).to_vec());
                }
                Some(found) => match neighbour.take() {
                    Some(line) => {
                        echo.before.insert((found.kind, line));
                    }
                    None => begins_with = Some(found.kind),
                },
                None => {}
            }
            neighbour = Some(key(text).to_vec());
        }
        echo
    }

    /// Whether a claim with other words is a line of the prompt.
    pub(super) fn has_line(&self, text: &[u8]) -> bool {
        !self.lines.is_empty() && self.lines.contains(key(text))
    }

    /// Whether the line before a bare claim can tell that it is an echo.
    pub(super) fn asks_before(&self) -> bool {
        !self.before.is_empty()
    }

    /// Whether a bare claim follows its neighbour of the prompt.
    pub(super) fn has_before(&self, kind: ClaimKind, neighbour: Vec<u8>) -> bool {
        self.before.contains(&(kind, neighbour))
    }

    /// Whether the line after a bare claim can tell that it is an echo.
    pub(super) fn asks_after(&self, kind: ClaimKind) -> bool {
        self.after.iter().any(|(other, _)| *other == kind)
    }

    /// Whether `text` is the prompt's line after a bare claim with which it begins.
    pub(super) fn has_after(&self, kind: ClaimKind, text: &[u8]) -> bool {
        self.after.contains(&(kind, key(text).to_vec()))
    }

    /// Whether `text` may become that line when the agent prints on.
    pub(super) fn may_become_after(&self, kind: ClaimKind, text: &[u8]) -> bool {
        self.after
            .iter()
            .any(|(other, line)| *other == kind && line.starts_with(key(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promise::{PromiseMatch, PromiseSpec};

    fn echo(prompt: &str) -> Echo {
        let spec = PromiseSpec {
            done: Some("DONE".into()),
            abort: Some("BLOCKED".into()),
            mode: PromiseMatch::Tagged,
        };
        Echo::of(&Rules::new(&spec).unwrap(), prompt)
    }

    #[test]
    fn lines_with_other_words_are_known_whatever_their_indentation() {
        let echo = echo("Work. <promise>DONE</promise>\r\nGo.");
        assert!(echo.has_line(b"  Work. <promise>DONE</promise> "));
        assert!(!echo.has_line(b"Works. <promise>DONE</promise>"));
        assert!(!echo.asks_before() && !echo.asks_after(ClaimKind::Done));
    }

    #[test]
    fn a_bare_promise_is_known_by_the_nearest_line_with_words() {
        let echo = echo(
            "Go. Then say\n\n```\n<promise>DONE</promise>\n```\nor\n<promise>BLOCKED</promise>",
        );
        assert!(echo.has_before(ClaimKind::Done, b"Go. Then say".to_vec()));
        assert!(echo.has_before(ClaimKind::Abort, b"or".to_vec()));
        assert!(!echo.has_before(ClaimKind::Abort, b"Go. Then say".to_vec()));
        assert!(!echo.has_before(ClaimKind::Done, b"```".to_vec()));
    }

    #[test]
    fn only_a_prompt_that_begins_with_the_promise_has_a_neighbour_after_it() {
        let first = echo("\n<promise>DONE</promise>\n\nis the word.\n");
        assert!(first.asks_after(ClaimKind::Done) && !first.asks_after(ClaimKind::Abort));
        assert!(first.has_after(ClaimKind::Done, b"is the word."));
        assert!(first.may_become_after(ClaimKind::Done, b"is the"));
        assert!(!first.has_after(ClaimKind::Done, b"is the"));
        let alone = echo("<promise>DONE</promise>\n");
        assert!(!alone.asks_after(ClaimKind::Done) && !alone.asks_before());
    }
}
