//! When people are told that an engine does not answer, and that it does again.

use std::time::Duration;

/// Shorter interruptions cost nothing, and are told nobody.
const SHORT: Duration = Duration::from_secs(15);

/// How an engine answers, by what was asked of it. Times are of a clock that nobody sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineSilence {
    since: Option<Duration>,
    is_told: bool,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceNews {
    /// It has not answered for so long; told once.
    Away { lasting: Duration },
    /// It answers again.
    Back,
}

impl EngineSilence {
    /// It answered, or did not.
    pub fn heard(&mut self, now: Duration, answered: bool) -> Option<SilenceNews> {
        if answered {
            self.since = None;
            return std::mem::take(&mut self.is_told).then_some(SilenceNews::Back);
        }
        let since = *self.since.get_or_insert(now);
        let lasting = now.saturating_sub(since);
        let is_news = lasting >= SHORT && !std::mem::replace(&mut self.is_told, lasting >= SHORT);
        is_news.then_some(SilenceNews::Away { lasting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_is_away_for_long_is_told_once_and_so_is_its_return() {
        let mut silence = EngineSilence::default();
        let away = |seconds| {
            Some(SilenceNews::Away {
                lasting: Duration::from_secs(seconds),
            })
        };
        for (second, answered, news) in [
            (0, true, None),
            // An interruption that nobody has to know of.
            (3, false, None),
            (17, false, None),
            (18, true, None),
            (20, false, None),
            (35, false, away(15)),
            (38, false, None),
            (90, false, None),
            (93, true, Some(SilenceNews::Back)),
            (96, true, None),
            (99, false, None),
            (120, false, away(21)),
        ] {
            let now = Duration::from_secs(second);
            assert_eq!(silence.heard(now, answered), news, "at {second} s");
        }
    }
}
