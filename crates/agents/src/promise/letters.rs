//! Text as it is compared with the prompt: letters alone. White space, line breaks, digits,
//! marks and the names of speakers say nothing, so that a prompt is known again however it is
//! wrapped, framed or labelled.

/// Names that stand before what somebody said, as `user: ` or `[user]`.
const SPEAKERS: [&str; 24] = [
    "user",
    "human",
    "you",
    "me",
    "assistant",
    "agent",
    "ai",
    "bot",
    "model",
    "system",
    "developer",
    "prompt",
    "input",
    "instruction",
    "instructions",
    "message",
    "task",
    "claude",
    "codex",
    "gemini",
    "gpt",
    "chatgpt",
    "opencode",
    "operator",
];

/// Marks that may stand between a speaker's name and its colon.
const MAX_NAME_MARKS: usize = 3;

/// What becomes of the names of speakers. One that is broken by a line's end is not known as
/// one, so both ways are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speakers {
    Kept,
    Dropped,
}

/// The letters of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Letters {
    pub(super) bytes: Vec<u8>,
    /// Places of letters with which a line begins.
    starts: Vec<usize>,
}

impl Letters {
    /// Reads `text`, which begins with a line, and from which terminal sequences are gone.
    pub(super) fn of(text: &str, speakers: Speakers) -> Self {
        let mut reader = LetterReader::new(speakers);
        text.chars().for_each(|c| reader.push(c));
        reader.letters
    }

    /// Whether the letter at `place` is the first of its line.
    pub(super) fn begins_line(&self, place: usize) -> bool {
        self.starts.binary_search(&place).is_ok()
    }
}

struct LetterReader {
    letters: Letters,
    speakers: Speakers,
    line: LineSoFar,
    /// Where the word begins that may turn out to be a name.
    word: Option<usize>,
    /// Marks behind that word.
    marks: usize,
    previous: char,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineSoFar {
    /// No letter yet.
    Empty,
    /// It began with a plus: it may be what a shell tells of its commands.
    Plus,
    /// A shell's trace: any of its words may be the first of the text.
    Trace,
    Begun,
}

impl LetterReader {
    fn new(speakers: Speakers) -> Self {
        Self {
            letters: Letters::default(),
            speakers,
            line: LineSoFar::Empty,
            word: None,
            marks: 0,
            previous: '\n',
        }
    }

    fn push(&mut self, c: char) {
        if c.is_alphabetic() {
            self.letter(c);
        } else {
            self.other(c);
        }
        self.previous = c;
    }

    fn letter(&mut self, c: char) {
        let place = self.letters.bytes.len();
        if !self.previous.is_alphanumeric() {
            let traced = self.line == LineSoFar::Trace
                && matches!(self.previous, ' ' | '\'' | '"' | '=' | '\\');
            if traced || matches!(self.line, LineSoFar::Empty | LineSoFar::Plus) {
                self.begin(place);
            }
            (self.word, self.marks) = (Some(place), 0);
        } else if matches!(self.line, LineSoFar::Empty | LineSoFar::Plus) {
            self.begin(place);
        }
        let mut room = [0; 4];
        self.letters
            .bytes
            .extend_from_slice(c.encode_utf8(&mut room).as_bytes());
    }

    fn begin(&mut self, place: usize) {
        if self.letters.starts.last() != Some(&place) {
            self.letters.starts.push(place);
        }
        if self.line != LineSoFar::Trace {
            self.line = LineSoFar::Begun;
        }
    }

    fn other(&mut self, c: char) {
        match c {
            '\n' | '\r' => {
                self.line = LineSoFar::Empty;
                self.word = None;
            }
            '+' if self.line == LineSoFar::Empty && matches!(self.previous, '\n' | '\r') => {
                self.line = LineSoFar::Plus;
            }
            '+' if self.line == LineSoFar::Plus && self.previous == '+' => {}
            ' ' if self.line == LineSoFar::Plus && self.previous == '+' => {
                self.line = LineSoFar::Trace;
            }
            ':' | '：' | ']' | '>' | '|' => self.end_of_name(),
            '*' | '_' | '`' if self.marks < MAX_NAME_MARKS => self.marks += 1,
            _ => self.word = None,
        }
    }

    fn end_of_name(&mut self) {
        let Some(place) = self.word.take() else {
            return;
        };
        let name = self.letters.bytes.get(place..).unwrap_or_default();
        let known = SPEAKERS
            .iter()
            .any(|known| known.as_bytes().eq_ignore_ascii_case(name));
        if known && self.speakers == Speakers::Dropped {
            self.letters.bytes.truncate(place);
            // What follows it begins the line in its stead.
            if self.letters.starts.last() == Some(&place) {
                self.letters.starts.pop();
                self.line = LineSoFar::Empty;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(text: &str, speakers: Speakers) -> String {
        String::from_utf8(Letters::of(text, speakers).bytes).unwrap()
    }

    #[test]
    fn only_letters_are_left() {
        for text in [
            "Fix it, now.",
            "│ Fix   it,\n│ n\nw: 12",
            "> **Fix** it\r\n> now",
        ] {
            let wanted = if text.contains("w:") {
                "Fixitnw"
            } else {
                "Fixitnow"
            };
            assert_eq!(letters(text, Speakers::Kept), wanted);
        }
        assert_eq!(letters("Größe 3 — да।", Speakers::Kept), "Größeда");
    }

    #[test]
    fn speakers_are_dropped_where_a_colon_or_a_bracket_marks_them() {
        for text in [
            "user: go",
            "**User:** go",
            "[user] go",
            "<user> go",
            "Human：go",
            "**assistant**: go",
        ] {
            assert_eq!(letters(text, Speakers::Dropped), "go", "{text}");
            assert!(letters(text, Speakers::Kept).len() > 2, "{text}");
        }
        for text in ["the user goes", "Summary: go", "superuser: go"] {
            assert_eq!(
                letters(text, Speakers::Dropped),
                letters(text, Speakers::Kept)
            );
        }
    }

    #[test]
    fn lines_begin_with_their_first_letter_names_and_traces_aside() {
        let begins = |text: &str, word: &str| {
            let letters = Letters::of(text, Speakers::Dropped);
            let place = memchr::memmem::find(&letters.bytes, word.as_bytes()).unwrap();
            letters.begins_line(place)
        };
        assert!(begins("a\n- 3. go on", "go") && begins("user: go on", "go"));
        assert!(!begins("so go on", "go") && !begins("a go", "go"));
        assert!(begins("x\n+ echo 'go on'", "go") && begins("++ run go", "go"));
        assert!(!begins("x\n+echo go", "go") && !begins("x\n + echo go", "go"));
    }
}
