//! Inputs made from others.

use crate::lab::chance::Chance;

/// Bytes and words that parsers trip over.
const ODD: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xe2\x80",
    b"\r",
    b"\r\n",
    b"\n",
    b"\n\n",
    b"\x1b[31m",
    b"\x1b]0;",
    b"\xef\xbb\xbf",
    "\u{202e}".as_bytes(),
    "\u{2019}".as_bytes(),
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"|",
    b"@",
    b"#",
    b"---",
    b"```",
    b"<promise>",
    b"</promise>",
    b"<promise>COMPLETE</promise>",
    b"-1",
    b"0",
    b"1e999",
    b"9223372036854775808",
    b"18446744073709551616",
    b"null",
    b"true",
    b"\t",
    b"    ",
    b"- [ ] ",
    b"- [x] ",
];

/// Changes inputs of a corpus at random, and crosses them.
pub struct Changer<'a> {
    chance: Chance,
    corpus: &'a [Vec<u8>],
    words: Vec<Vec<u8>>,
}

impl<'a> Changer<'a> {
    pub fn new(chance: Chance, corpus: &'a [Vec<u8>]) -> Self {
        let mut words: Vec<Vec<u8>> = corpus
            .iter()
            .flat_map(|seed| seed.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_'))
            .filter(|word| (2..=40).contains(&word.len()))
            .map(<[u8]>::to_vec)
            .collect();
        words.sort();
        words.dedup();
        Self {
            chance,
            corpus,
            words,
        }
    }

    /// The next input, of at most so many bytes.
    pub fn next(&mut self, largest: usize) -> Vec<u8> {
        let mut input = self.pick().to_vec();
        if self.one_in(4) {
            input = self.part(&input);
        }
        for _ in 0..1 + self.chance.below(6) {
            self.change(&mut input);
        }
        input.truncate(largest);
        input
    }

    fn pick(&mut self) -> &'a [u8] {
        let at = self.chance.below(self.corpus.len() as u64) as usize;
        self.corpus.get(at).map_or(&[], Vec::as_slice)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.chance.below(count) == 0
    }

    fn place(&mut self, input: &[u8]) -> usize {
        self.chance.below(input.len() as u64 + 1) as usize
    }

    /// A few whole lines of it.
    fn part(&mut self, input: &[u8]) -> Vec<u8> {
        let lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
        let from = self.chance.below(lines.len() as u64) as usize;
        let count = 1 + self.chance.below(12) as usize;
        lines
            .iter()
            .skip(from)
            .take(count)
            .copied()
            .flatten()
            .copied()
            .collect()
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.place(input);
        match self.chance.below(9) {
            0 => {
                let bit = self.chance.below(8);
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            1 => input.truncate(at),
            2 => {
                let to = (at + 1 + self.chance.below(32) as usize).min(input.len());
                input.drain(at.min(to)..to);
            }
            3 => {
                let odd = ODD[self.chance.below(ODD.len() as u64) as usize];
                input.splice(at..at, odd.iter().copied());
            }
            4 => {
                let word = self.chance.below(self.words.len() as u64) as usize;
                if let Some(word) = self.words.get(word) {
                    input.splice(at..at, word.iter().copied());
                }
            }
            5 => self.double(input, at),
            6 => {
                let other = self.pick();
                let other = self.part(other);
                input.splice(at..at, other);
            }
            7 => {
                let other = self.pick();
                let from = self.place(other);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                let noise = 1 + self.chance.below(16) as usize;
                let noise = self.chance.bytes(noise);
                input.splice(at..at, noise);
            }
        }
    }

    /// Says a piece again, sometimes very often.
    fn double(&mut self, input: &mut Vec<u8>, at: usize) {
        let to = (at + 1 + self.chance.below(64) as usize).min(input.len());
        let piece = input[at.min(to)..to].to_vec();
        let times = if self.one_in(8) { 300 } else { 1 };
        input.splice(at..at, piece.repeat(times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_they_differ_from_the_corpus() {
        let corpus = vec![b"one line\nand another\n".to_vec(), b"{\"a\":1}".to_vec()];
        let make = || {
            let mut changer = Changer::new(Chance::new(7), &corpus);
            (0..200).map(|_| changer.next(4096)).collect::<Vec<_>>()
        };
        let inputs = make();
        assert_eq!(inputs, make());
        let new = inputs.iter().filter(|input| !corpus.contains(input));
        assert!(new.count() > 150);
        assert!(inputs.iter().all(|input| input.len() <= 4096));
    }
}
