//! Events in the only form in which they can be appended to a journal.

use std::ops::Deref;

use jiff::Timestamp;

use super::{Event, FORMAT, Record};
use crate::sched;

/// An event that the kernel made. A journal takes nothing else, and nobody outside of this crate
/// can turn an [`Event`] of their own into one: whoever has something to record tells a fact
/// ([`crate::fact`]) or asks for a decision ([`crate::step`], [`crate::tasks`], [`crate::sched`]).
///
/// ```compile_fail
/// use descartes_kernel::event::{Decided, Event};
/// let mine = Decided(Event::Paused);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Decided(Event);

impl Decided {
    pub(crate) fn new(event: Event) -> Self {
        Self(event)
    }

    pub(crate) fn all(events: Vec<Event>) -> Vec<Self> {
        events.into_iter().map(Self).collect()
    }

    /// Any event at all, for benches, fixtures and tests. Only behind the feature `testing`, see
    /// this crate's `Cargo.toml`.
    #[cfg(feature = "testing")]
    pub fn for_test(event: Event) -> Self {
        Self(event)
    }

    /// As the journal keeps it, once it has a number.
    pub fn into_record(self, seq: u64, at: Timestamp) -> Record {
        Record {
            v: FORMAT,
            seq,
            at,
            event: self.0,
        }
    }

    /// The event of the scheduler that it tells of, if it does.
    pub fn of_tasks(&self) -> Option<&sched::Event> {
        match &self.0 {
            Event::Tasks { event } => Some(event),
            _ => None,
        }
    }
}

impl Deref for Decided {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.0
    }
}

impl From<Decided> for Event {
    fn from(decided: Decided) -> Self {
        decided.0
    }
}
