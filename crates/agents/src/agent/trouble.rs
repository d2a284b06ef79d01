//! What a parser could not read, counted.

const KINDS_KEPT: usize = 8;

/// Counts of what a stream held beyond what its parser knows. It goes on all the same.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Trouble {
    /// Lines that begin like JSON and are none (torn, truncated, wrong shape).
    pub bad_lines: u64,
    /// Lines too long to be parsed; their end was found and reading went on.
    pub cut_lines: u64,
    /// Lines that are no JSON at all.
    pub noise_lines: u64,
    /// Events of a kind that is not known.
    pub unknown_events: u64,
    /// The first few of those kinds, by name.
    pub unknown_kinds: Vec<String>,
}

impl Trouble {
    /// Whether everything was understood.
    pub fn is_none(&self) -> bool {
        self.bad_lines == 0
            && self.cut_lines == 0
            && self.noise_lines == 0
            && self.unknown_events == 0
    }

    /// Counts an unknown event, keeping the names of the first few kinds.
    pub fn unknown(&mut self, kind: &str) {
        self.unknown_events += 1;
        let known = self.unknown_kinds.iter().any(|k| k == kind);
        if !known && self.unknown_kinds.len() < KINDS_KEPT {
            self.unknown_kinds.push(kind.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_kept_once_and_only_a_few() {
        let mut trouble = Trouble::default();
        for n in 0..100 {
            trouble.unknown(&format!("kind{}", n % 50));
        }
        assert_eq!(trouble.unknown_events, 100);
        assert_eq!(trouble.unknown_kinds.len(), KINDS_KEPT);
        assert!(!trouble.is_none());
    }
}
