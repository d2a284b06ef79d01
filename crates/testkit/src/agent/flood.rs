//! Output by the gigabyte, which a test can predict byte for byte.

use super::Trouble;
use super::output::Out;

/// What a flood consists of: one block, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Numbered lines of 64 bytes.
    Lines,
    /// Printable bytes without any line end.
    OneLine,
    /// All byte values, invalid UTF-8 and zeros among them.
    Binary,
}

/// The length of the block that a flood repeats.
pub const BLOCK: usize = 64 * 1024;

impl Pattern {
    /// The pattern of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "lines" => Self::Lines,
            "oneline" => Self::OneLine,
            "binary" => Self::Binary,
            _ => return None,
        })
    }

    /// The block; byte `i` of a flood is byte `i % BLOCK` of it.
    pub fn block(self) -> Vec<u8> {
        match self {
            Self::Lines => (0..BLOCK / 64).flat_map(numbered_line).collect(),
            Self::OneLine => (b'a'..=b'z').cycle().take(BLOCK).collect(),
            Self::Binary => binary(),
        }
    }

    /// True when these bytes are what a flood of this pattern has from `offset` on.
    pub fn matches(self, offset: u64, bytes: &[u8]) -> bool {
        let block = self.block();
        let start = usize::try_from(offset % BLOCK as u64).unwrap_or(0);
        let expected = block.iter().cycle().skip(start);
        bytes.iter().zip(expected).all(|(a, b)| a == b)
    }
}

/// Writes `size` bytes of the pattern.
pub(super) fn pour(size: u64, pattern: Pattern, out: Out) -> Result<(), Trouble> {
    let block = pattern.block();
    let mut left = size;
    while left > 0 {
        let count = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
        out.write(&block[..count])?;
        left -= count as u64;
    }
    Ok(())
}

fn numbered_line(number: usize) -> Vec<u8> {
    let mut line = format!("line {number:06} of the block ").into_bytes();
    line.resize(63, b'.');
    line.push(b'\n');
    line
}

fn binary() -> Vec<u8> {
    let mut state: u32 = 0x9e37_79b9;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    std::iter::repeat_with(next).take(BLOCK).collect()
}
