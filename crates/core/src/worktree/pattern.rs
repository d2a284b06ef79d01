//! One line of an ignore file, matched the way git matches it.

/// A line that says something.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    tokens: Vec<Token>,
    /// `!`: takes back what earlier lines said.
    pub(super) negated: bool,
    /// It ends with a slash: folders only.
    pub(super) folders_only: bool,
    /// It holds a slash: matched against the path, not the name alone.
    pub(super) anchored: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// `?`
    One,
    /// `*`: anything within a name.
    Star,
    /// `**` between slashes or at the end: anything.
    Deep,
    /// The start of `**/`, which may also stand for nothing: skips the two tokens after it.
    MaySkip,
    Class {
        negated: bool,
        ranges: Vec<(u8, u8)>,
    },
}

impl Pattern {
    /// `None` for comments, blank lines and what can never match.
    pub(super) fn parse(line: &[u8]) -> Option<Pattern> {
        let line = trim_end(line);
        if line.is_empty() || line[0] == b'#' {
            return None;
        }
        let (negated, line) = match line.strip_prefix(b"!") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (folders_only, line) = match line.strip_suffix(b"/") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let anchored = line.contains(&b'/');
        let line = line.strip_prefix(b"/").unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        Some(Pattern {
            tokens: tokens(line)?,
            negated,
            folders_only,
            anchored,
        })
    }

    /// Whether it matches a path (from the folder of its file) or, not anchored, its name. All
    /// positions of the pattern are tried side by side: no input makes it slow.
    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let text = match self.anchored {
            true => path,
            false => path.rsplit(|b| *b == b'/').next().unwrap_or(path),
        };
        let mut at = vec![false; self.tokens.len() + 1];
        let mut next = at.clone();
        self.reach(&mut at, 0);
        for &byte in text {
            next.fill(false);
            for (i, token) in self.tokens.iter().enumerate().filter(|(i, _)| at[*i]) {
                if token.takes(byte) {
                    let stays = matches!(token, Token::Star | Token::Deep);
                    self.reach(&mut next, if stays { i } else { i + 1 });
                }
            }
            std::mem::swap(&mut at, &mut next);
        }
        at[self.tokens.len()]
    }

    /// Marks a position, and those that are reached from it without taking a byte.
    fn reach(&self, at: &mut [bool], i: usize) {
        if at[i] {
            return;
        }
        at[i] = true;
        match self.tokens.get(i) {
            Some(Token::Star | Token::Deep) => self.reach(at, i + 1),
            Some(Token::MaySkip) => {
                self.reach(at, i + 1);
                self.reach(at, i + 3);
            }
            _ => {}
        }
    }
}

impl Token {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Token::Byte(b) => *b == byte,
            Token::One | Token::Star => byte != b'/',
            Token::Deep => true,
            Token::MaySkip => false,
            Token::Class { negated, ranges } => {
                let within = ranges
                    .iter()
                    .any(|(low, high)| (*low..=*high).contains(&byte));
                byte != b'/' && within != *negated
            }
        }
    }
}

/// Without the line's end and spaces before it, unless they are escaped.
fn trim_end(line: &[u8]) -> &[u8] {
    let mut line = line.strip_suffix(b"\r").unwrap_or(line);
    while let Some(rest) = line.strip_suffix(b" ") {
        let escapes = rest.iter().rev().take_while(|b| **b == b'\\').count();
        if escapes % 2 == 1 {
            break;
        }
        line = rest;
    }
    line
}

fn tokens(line: &[u8]) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < line.len() {
        match line[i] {
            b'*' => {
                let stars = line[i..].iter().take_while(|b| **b == b'*').count();
                // git compares what stands before the first wildcard by itself, so that what
                // follows begins there for it.
                let first = !line[..i].iter().any(|b| b"*?[\\".contains(b));
                let starts = first || line[i - 1] == b'/';
                i += stars;
                match &line[i..] {
                    [b'/', ..] if starts && stars > 1 => {
                        tokens.extend([Token::MaySkip, Token::Deep]);
                    }
                    [] | [b'\\', b'/', ..] if starts && stars > 1 => tokens.push(Token::Deep),
                    _ => tokens.push(Token::Star),
                }
                continue;
            }
            b'?' => tokens.push(Token::One),
            b'[' => {
                let (class, len) = class(&line[i..])?;
                tokens.push(class);
                i += len;
                continue;
            }
            b'\\' => {
                i += 1;
                tokens.push(Token::Byte(*line.get(i)?));
            }
            byte => tokens.push(Token::Byte(byte)),
        }
        i += 1;
    }
    Some(tokens)
}

/// A bracket expression and its length; `None` where it has no end.
fn class(text: &[u8]) -> Option<(Token, usize)> {
    let mut i = 1;
    let negated = matches!(text.get(i), Some(b'!' | b'^'));
    i += usize::from(negated);
    let mut ranges = Vec::new();
    let first = i;
    loop {
        match *text.get(i)? {
            b']' if i > first => return Some((Token::Class { negated, ranges }, i + 1)),
            b'[' if text.get(i + 1) == Some(&b':') => {
                let end = text[i + 2..].windows(2).position(|w| w == b":]")?;
                ranges.extend_from_slice(named_class(&text[i + 2..i + 2 + end])?);
                i += end + 4;
            }
            byte => {
                let (low, next) = member(byte, text, i)?;
                i = next;
                ranges.push((low, low));
                if let (Some(b'-'), Some(end)) = (text.get(i), text.get(i + 1))
                    && *end != b']'
                {
                    let (high, next) = member(*end, text, i + 1)?;
                    i = next;
                    ranges.push((low, high));
                }
            }
        }
    }
}

/// A byte of a bracket expression, and where the next one begins.
fn member(byte: u8, text: &[u8], i: usize) -> Option<(u8, usize)> {
    match byte {
        b'\\' => Some((*text.get(i + 1)?, i + 2)),
        byte => Some((byte, i + 1)),
    }
}

fn named_class(name: &[u8]) -> Option<&'static [(u8, u8)]> {
    Some(match name {
        b"alnum" => &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')],
        b"alpha" => &[(b'A', b'Z'), (b'a', b'z')],
        b"blank" => &[(b' ', b' '), (b'\t', b'\t')],
        b"cntrl" => &[(0, 31), (127, 127)],
        b"digit" => &[(b'0', b'9')],
        b"graph" => &[(33, 126)],
        b"lower" => &[(b'a', b'z')],
        b"print" => &[(32, 126)],
        b"punct" => &[(33, 47), (58, 64), (91, 96), (123, 126)],
        b"space" => &[(9, 13), (b' ', b' ')],
        b"upper" => &[(b'A', b'Z')],
        b"xdigit" => &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Pattern::parse(pattern.as_bytes()).is_some_and(|p| p.matches(path.as_bytes()))
    }

    #[test]
    fn the_examples_of_the_manual() {
        assert!(matches("*.log", "a/b.log"));
        assert!(matches("/a", "a") && !matches("/a", "b/a"));
        assert!(matches("doc/frotz", "doc/frotz") && !matches("doc/frotz", "a/doc/frotz"));
        assert!(matches("**/foo", "foo") && matches("**/foo", "a/b/foo"));
        assert!(!matches("**/foo", "xfoo"));
        assert!(matches("a/**/b", "a/b") && matches("a/**/b", "a/x/y/b"));
        assert!(matches("abc/**", "abc/d/e") && !matches("abc/**", "abc"));
        assert!(!matches("foo/*", "foo/a/b"));
        assert!(matches("[a-c]?", "b1") && !matches("[!a-c]?", "b1"));
        assert!(matches("\\#x", "#x") && matches("a\\ ", "a ") && matches("a  ", "a"));
        assert!(!matches("# x", "# x") && !matches("[a", "[a") && !matches("x\\", "x"));
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let pattern = "*a".repeat(200) + "b";
        assert!(!matches(&pattern, &"a".repeat(4_000)));
    }
}
