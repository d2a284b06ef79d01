//! What of a message was already told in pieces, before it comes again in whole.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::agent::Piece;

/// Fingerprints of the text blocks that came in pieces.
#[derive(Default)]
pub(super) struct Streamed {
    blocks: VecDeque<Print>,
    /// The next piece begins a block.
    fresh: bool,
    thoughts: u32,
    thinking: bool,
}

#[derive(Default)]
struct Print {
    bytes: usize,
    hash: DefaultHasher,
}

impl Print {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        for byte in text.bytes() {
            byte.hash(&mut self.hash);
        }
    }
}

impl Streamed {
    /// A block begins.
    pub fn begin(&mut self) {
        self.fresh = true;
        self.thinking = false;
    }

    /// A piece of text came.
    pub fn text(&mut self, text: &str) -> Piece {
        let begins = self.fresh || self.blocks.is_empty();
        self.fresh = false;
        if begins {
            self.blocks.push_back(Print::default());
        }
        if let Some(block) = self.blocks.back_mut() {
            block.add(text);
        }
        if begins { Piece::Start } else { Piece::Delta }
    }

    /// A piece of a thought came.
    pub fn thinking(&mut self) {
        if !self.thinking {
            self.thinking = true;
            self.thoughts += 1;
        }
    }

    /// Whether the next thought in whole was already told in pieces.
    pub fn thought(&mut self) -> bool {
        let told = self.thoughts > 0;
        self.thoughts = self.thoughts.saturating_sub(1);
        told
    }

    /// Whether this block in whole is the one that came in pieces. Where pieces were lost it
    /// is not, and the whole is told.
    pub fn was(&mut self, text: &str) -> bool {
        let Some(block) = self.blocks.pop_front() else {
            return false;
        };
        let mut whole = Print::default();
        whole.add(text);
        block.bytes == whole.bytes && block.hash.finish() == whole.hash.finish()
    }
}
