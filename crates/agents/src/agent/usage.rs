//! Tokens and dollars as agents tell them.

use serde::{Deserialize, Serialize};

/// Money in millionths of a dollar: sums of it are exact.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// Rounds dollars to millionths; `None` for what is no amount (negative, infinite, absurd).
    pub fn from_usd(usd: f64) -> Option<Self> {
        let micros = (usd * 1e6).round();
        (0.0..1e15).contains(&micros).then_some(Self(micros as u64))
    }

    /// The amount in dollars, for people.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The sum; it stops at the greatest amount instead of wrapping.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Tokens of one request, one run or one loop. What an agent does not tell stays `None`.
///
/// Agents count differently; here `input` is what was neither read from nor written to a
/// cache, and `output` is all that was generated, `reasoning` being a part of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens outside any cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Generated tokens, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Input tokens read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Input tokens written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// The part of `output` that was reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Usage {
    /// All tokens together, or `None` where nothing is known.
    pub fn total(&self) -> Option<u64> {
        [self.input, self.output, self.cache_read, self.cache_write]
            .into_iter()
            .fold(None, add)
    }

    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        self.total().is_none()
    }

    /// The sum; a part that neither side knows stays unknown.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input: add(self.input, other.input),
            output: add(self.output, other.output),
            cache_read: add(self.cache_read, other.cache_read),
            cache_write: add(self.cache_write, other.cache_write),
            reasoning: add(self.reasoning, other.reasoning),
        }
    }
}

fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (known, None) | (None, known) => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_never_nought() {
        let none = Usage::default();
        assert_eq!(none.total(), None);
        assert_eq!(none.plus(&none), none);
        let some = Usage {
            input: Some(3),
            ..none
        };
        assert_eq!(some.plus(&none).total(), Some(3));
        assert_eq!(some.plus(&none).output, None);
    }

    #[test]
    fn reasoning_is_part_of_the_output_and_not_counted_twice() {
        let usage = Usage {
            output: Some(30),
            reasoning: Some(9),
            ..Usage::default()
        };
        assert_eq!(usage.total(), Some(30));
    }

    #[test]
    fn dollars_round_to_millionths_and_nonsense_is_refused() {
        let table = [
            (0.013_824_999_999_999_999, Some(13_825)),
            (0.0, Some(0)),
            (-0.1, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (1e12, None),
        ];
        for (usd, want) in table {
            assert_eq!(MicroUsd::from_usd(usd), want.map(MicroUsd), "{usd}");
        }
    }
}
