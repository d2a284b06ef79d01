//! The message that an agent is writing, its end kept in bounded memory.

use super::Piece;
use super::search::MessageSearch;

/// So much of a message's end is kept.
const KEPT: usize = 256 * 1024;
/// Stands for the part that was dropped: a promise behind it on the same line is no claim.
const CUT: &str = "[cut] ";

/// A message joined from its pieces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message {
    text: String,
    /// A block was ended: what comes next begins a line.
    ended: bool,
    search: OptionalSearch,
}

/// Beside the message, and no part of it.
#[derive(Clone, Debug, Default)]
struct OptionalSearch(Option<MessageSearch>);

impl PartialEq for OptionalSearch {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Message {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn push(&mut self, piece: Piece, text: &str) {
        let apart = self.ended || piece != Piece::Delta;
        if apart && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.add("\n");
        }
        self.ended = piece == Piece::Block;
        self.add(text);
        if self.text.len() > 2 * KEPT {
            self.trim();
        }
    }

    /// Another message begins.
    pub fn restart(&mut self) {
        self.text.clear();
        self.ended = false;
        if let Some(search) = &mut self.search.0 {
            search.restart();
        }
    }

    pub fn replace(&mut self, text: &str) {
        self.restart();
        self.push(Piece::Block, text);
    }

    pub fn search_for(&mut self, search: MessageSearch) {
        self.search = OptionalSearch(Some(search));
    }

    pub fn search(&mut self) -> Option<&mut MessageSearch> {
        self.search.0.as_mut()
    }

    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        if let Some(search) = &mut self.search.0 {
            search.push(text);
        }
    }

    /// Drops the head at a line's beginning where there is one soon, else marks the cut.
    fn trim(&mut self) {
        let mut from = self.text.len() - KEPT;
        while !self.text.is_char_boundary(from) {
            from += 1;
        }
        let tail = &self.text[from..];
        self.text = match tail.find('\n') {
            Some(end) if end < KEPT / 64 => tail[end + 1..].to_owned(),
            _ => format!("{CUT}{tail}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_join_within_words_and_blocks_stand_on_lines() {
        let mut message = Message::default();
        message.push(Piece::Block, "I am done.");
        message.push(Piece::Delta, "<promise>COM");
        message.push(Piece::Delta, "PLETE</promise>");
        message.push(Piece::Block, "Bye.\n");
        message.push(Piece::Block, "Bye.");
        assert_eq!(
            message.text(),
            "I am done.\n<promise>COMPLETE</promise>\nBye.\nBye."
        );
    }

    #[test]
    fn memory_is_bounded_and_a_cut_makes_no_claim() {
        let mut message = Message::default();
        for _ in 0..40 {
            message.push(Piece::Delta, &"ä no newline ".repeat(4096));
        }
        assert!(message.text().len() <= 2 * KEPT);
        assert!(message.text().starts_with(CUT));
        message.push(Piece::Delta, "\nlast line");
        for _ in 0..40 {
            message.push(Piece::Delta, &"line\n".repeat(8192));
        }
        assert!(message.text().starts_with("line\n"));
    }
}
