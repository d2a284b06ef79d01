//! Keys and tokens that agents print by mistake are not shown again: `sk-ant-***`. The bytes
//! in the log stay as they are.

/// How a secret begins and what it is made of.
struct Kind {
    prefix: &'static [u8],
    /// Fewer characters behind the prefix are a word, not a secret.
    least: usize,
    holds: fn(u8) -> bool,
}

fn of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn of_bearer(byte: u8) -> bool {
    of_word(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=')
}

const fn kind(prefix: &'static [u8], least: usize, holds: fn(u8) -> bool) -> Kind {
    Kind {
        prefix,
        least,
        holds,
    }
}

/// The longest prefix that fits stands first.
static KINDS: &[Kind] = &[
    kind(b"sk-ant-", 8, of_word),
    kind(b"sk-", 16, of_word),
    kind(b"ghp_", 16, alphanumeric),
    kind(b"gho_", 16, alphanumeric),
    kind(b"ghu_", 16, alphanumeric),
    kind(b"ghs_", 16, alphanumeric),
    kind(b"ghr_", 16, alphanumeric),
    kind(b"github_pat_", 16, of_word),
    kind(b"glpat-", 16, of_word),
    kind(b"xoxb-", 10, of_word),
    kind(b"xoxp-", 10, of_word),
    kind(b"AIza", 30, of_word),
    kind(b"AKIA", 16, capital),
    kind(b"ASIA", 16, capital),
];

const BEARER: &[u8] = b"bearer";
/// Shorter words behind `Bearer` are prose.
const BEARER_LEAST: usize = 16;
const STARS: &[u8] = b"***";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// At the beginning of a word, or in one that may become a secret: it is held back.
    Maybe,
    /// In a word that is none.
    Word,
    /// In a secret of this kind: its beginning was shown, the rest is swallowed.
    Secret(usize),
    /// Behind `Bearer `.
    Bearer,
    /// In what stands there.
    BearerSecret,
}

/// Masks secrets in a stream of bytes. Almost everything passes at once: only a word that
/// begins like a secret is held back until it is clear.
#[derive(Debug)]
pub struct Mask {
    mode: Mode,
    held: Vec<u8>,
    sequence: Sequence,
}

/// Where in a terminal's sequence the text is. Its letters belong to no word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequence {
    No,
    Escape,
    /// In `ESC [ …`.
    Csi,
}

const ESC: u8 = 0x1b;

impl Default for Mask {
    fn default() -> Self {
        Self {
            mode: Mode::Maybe,
            held: Vec::new(),
            sequence: Sequence::No,
        }
    }
}

enum Fit {
    Secret(usize),
    Open,
    None,
}

fn fit(word: &[u8]) -> Fit {
    let mut open = BEARER.len() >= word.len() && word.eq_ignore_ascii_case(&BEARER[..word.len()]);
    for (at, kind) in KINDS.iter().enumerate() {
        if let Some(rest) = word.strip_prefix(kind.prefix) {
            let holds = rest.iter().all(|byte| (kind.holds)(*byte));
            match holds {
                true if rest.len() >= kind.least => return Fit::Secret(at),
                true => open = true,
                false => {}
            }
        }
        open |= kind.prefix.starts_with(word);
    }
    if open { Fit::Open } else { Fit::None }
}

impl Mask {
    /// Takes a byte.
    pub fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte == ESC || self.sequence != Sequence::No {
            return self.sequence(byte, out);
        }
        match self.mode {
            Mode::Word => {
                out.push(byte);
                if !of_word(byte) {
                    self.mode = Mode::Maybe;
                }
            }
            Mode::Secret(kind) => self.secret(byte, KINDS[kind].holds, out),
            Mode::BearerSecret => self.secret(byte, of_bearer, out),
            Mode::Maybe => self.maybe(byte, out),
            Mode::Bearer => self.bearer(byte, out),
        }
    }

    /// The text has ended.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.held);
        self.mode = Mode::Maybe;
        self.sequence = Sequence::No;
    }

    /// A colour stands here: a word may begin behind it, but a secret that has begun goes on, so
    /// that a colour within it shows nothing.
    pub fn colour(&mut self, out: &mut Vec<u8>) {
        let begun = |kind: &Kind| self.held.starts_with(kind.prefix);
        match self.mode {
            Mode::Word => self.mode = Mode::Maybe,
            Mode::Maybe if !KINDS.iter().any(begun) => out.append(&mut self.held),
            _ => {}
        }
    }

    fn sequence(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.sequence == Sequence::No {
            self.colour(out);
        }
        self.sequence = match (self.sequence, byte) {
            (_, ESC) => Sequence::Escape,
            (Sequence::Escape, b'[') => Sequence::Csi,
            (Sequence::Csi, 0x20..=0x3f) => Sequence::Csi,
            _ => Sequence::No,
        };
        out.push(byte);
    }

    fn secret(&mut self, byte: u8, holds: fn(u8) -> bool, out: &mut Vec<u8>) {
        if !holds(byte) {
            out.push(byte);
            self.mode = if of_word(byte) {
                Mode::Word
            } else {
                Mode::Maybe
            };
        }
    }

    fn maybe(&mut self, byte: u8, out: &mut Vec<u8>) {
        if !of_word(byte) {
            let bearer = self.held.eq_ignore_ascii_case(BEARER) && byte == b' ';
            out.append(&mut self.held);
            out.push(byte);
            if bearer {
                self.mode = Mode::Bearer;
            }
            return;
        }
        self.held.push(byte);
        match fit(&self.held) {
            Fit::Open => {}
            Fit::None => {
                out.append(&mut self.held);
                self.mode = Mode::Word;
            }
            Fit::Secret(at) => {
                out.extend_from_slice(KINDS[at].prefix);
                out.extend_from_slice(STARS);
                self.held.clear();
                self.mode = Mode::Secret(at);
            }
        }
    }

    fn bearer(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte == b' ' && self.held.is_empty() {
            return out.push(byte);
        }
        if of_bearer(byte) {
            self.held.push(byte);
            if self.held.len() >= BEARER_LEAST {
                self.held.clear();
                out.extend_from_slice(STARS);
                self.mode = Mode::BearerSecret;
            }
            return;
        }
        // A short word: it may still be a secret of another kind.
        self.mode = Mode::Maybe;
        for byte in std::mem::take(&mut self.held).into_iter().chain([byte]) {
            self.push(byte, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str) -> String {
        let (mut mask, mut out) = (Mask::default(), Vec::new());
        for byte in text.bytes() {
            mask.push(byte, &mut out);
        }
        mask.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_looks_like_a_secret_is_masked_but_for_its_kind() {
        let long = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7xC0".repeat(2);
        let capitals = "ABCDEFGHIJKLMNOP";
        for (text, want) in [
            (
                format!("x sk-ant-api03-{long} y"),
                "x sk-ant-*** y".to_owned(),
            ),
            (format!("KEY=sk-proj-{long}\n"), "KEY=sk-***\n".to_owned()),
            (format!("(ghp_{long})"), "(ghp_***)".to_owned()),
            (format!("github_pat_{long}"), "github_pat_***".to_owned()),
            (format!("\"AIza{long}\""), "\"AIza***\"".to_owned()),
            (format!("AKIA{capitals},"), "AKIA***,".to_owned()),
            (
                format!("Authorization: Bearer  {long}.x/y+z= end"),
                "Authorization: Bearer  *** end".to_owned(),
            ),
            (format!("bearer sk-ant-{long}"), "bearer ***".to_owned()),
            (format!("xoxb-1234567890-{long}"), "xoxb-***".to_owned()),
        ] {
            assert_eq!(mask(&text), want);
        }
    }

    #[test]
    fn a_colour_before_or_within_a_secret_does_not_show_it() {
        let long = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7xC0".repeat(2);
        let text = format!("x\x1b[32msk-ant-api03-{long}\x1b[0m y\x1b[1;31mghp_{long}\x1b[0m\n");
        let want = "x\x1b[32msk-ant-***\x1b[0m y\x1b[1;31mghp_***\x1b[0m\n";
        assert_eq!(mask(&text), want);
        let split = mask(&format!("sk-\x1b[1mant-\x1b[0m{long} z"));
        assert!(!split.contains("aB3d"), "{split:?}");
        assert_eq!(
            mask("\x1b[2Jwords \x1b[0mstay\x1b"),
            "\x1b[2Jwords \x1b[0mstay\x1b"
        );
    }

    #[test]
    fn words_stay_words() {
        for text in [
            "task-1234567890123456789 is done, risk-free",
            "sk-short and sk- and sk",
            "Bearer authentication failed; the bearer of news, Bearer token",
            "AKIA AIza ghp_ ghp_short AKIAlowercaseletters1234",
            "bearers of sk-ant- arms",
            "mask-ant-aaaaaaaaaaaaaaaaaaaa",
            "größe §",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
