//! A worker that was told to end, and for how long it then waits for an engine that is away.

use std::time::Duration;

/// How a worker was told to end. It may become harder, never softer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndOrder {
    /// Takes nothing more, and finishes what is under way.
    Finish,
    /// Ends what is under way.
    Stop,
    /// The same without the agents' grace, and without waiting for anything.
    AtOnce,
}

impl EndOrder {
    /// What a signal means after what was told before: an interrupt asks, every other one orders, and whoever says it
    /// again is in a hurry.
    #[must_use]
    pub fn of_signal(before: Option<Self>, is_interrupt: bool) -> Self {
        match before {
            None if is_interrupt => Self::Finish,
            None | Some(Self::Finish) => Self::Stop,
            Some(Self::Stop | Self::AtOnce) => Self::AtOnce,
        }
    }

    /// For so long an engine that is away is waited for. What cannot be handed in then stays on the worker's disk.
    fn patience(self) -> Duration {
        match self {
            Self::Finish => Duration::from_secs(30),
            Self::Stop => Duration::from_secs(5),
            Self::AtOnce => Duration::ZERO,
        }
    }
}

/// Whether a worker was told to end, and since when its engine is away. Times are of a clock that nobody sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerEnd {
    told: Option<(EndOrder, Duration)>,
    away: Option<Duration>,
}

impl WorkerEnd {
    /// It was told to end.
    pub fn tell(&mut self, order: EndOrder, now: Duration) {
        if self.order() < Some(order) {
            self.told = Some((order, now));
        }
    }

    /// How it was told to end, where it was.
    pub fn order(&self) -> Option<EndOrder> {
        self.told.map(|(order, _)| order)
    }

    /// The engine answered, whatever it said.
    pub fn engine_answered(&mut self) {
        self.away = None;
    }

    /// The engine did not answer.
    pub fn engine_is_away(&mut self, now: Duration) {
        self.away.get_or_insert(now);
    }

    /// Whether the engine is still waited for.
    pub fn waits(&self, now: Duration) -> bool {
        match (self.told, self.away) {
            (Some((order, told)), Some(away)) => now < told.max(away) + order.patience(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_signal_is_harder_than_the_one_before() {
        use EndOrder::{AtOnce, Finish, Stop};
        let rows: [(&[bool], EndOrder); 6] = [
            (&[true], Finish),
            (&[false], Stop),
            (&[true, true], Stop),
            (&[true, false], Stop),
            (&[false, true], AtOnce),
            (&[true, true, true, true], AtOnce),
        ];
        for (signals, order) in rows {
            let told = signals.iter().fold(None, |before, is_interrupt| {
                Some(EndOrder::of_signal(before, *is_interrupt))
            });
            assert_eq!(told, Some(order), "{signals:?}");
        }
    }

    /// Since when the engine is away, what is told when, and from when on it is not waited for.
    #[test]
    fn who_was_told_to_end_does_not_wait_for_long() {
        use EndOrder::{AtOnce, Finish, Stop};
        type Told = &'static [(EndOrder, u64)];
        let rows: [(u64, Told, Option<u64>); 7] = [
            (10, &[], None),
            (10, &[(Finish, 100)], Some(130)),
            // It was away only later.
            (200, &[(Finish, 100)], Some(230)),
            (10, &[(Stop, 100)], Some(105)),
            (10, &[(Finish, 100), (Stop, 102)], Some(107)),
            (10, &[(Finish, 100), (Stop, 102), (AtOnce, 103)], Some(103)),
            // Nobody makes it softer, and saying it again does not begin anew.
            (10, &[(Stop, 100), (Finish, 101), (Stop, 104)], Some(105)),
        ];
        for (away, orders, until) in rows {
            let mut end = WorkerEnd::default();
            end.engine_is_away(at(away));
            end.engine_is_away(at(away + 1));
            for (order, when) in orders {
                end.tell(*order, at(*when));
            }
            match until {
                None => assert!(end.waits(at(10_000)), "{orders:?}"),
                Some(until) => {
                    assert!(!end.waits(at(until)), "{orders:?}");
                    let before = at(until).saturating_sub(Duration::from_millis(1));
                    assert!(end.waits(before), "{orders:?}");
                }
            }
            // One that answers is there.
            end.engine_answered();
            assert!(end.waits(at(10_000)), "{orders:?}");
        }
    }
}
