//! The search for a promise in the message that an agent is writing, of whatever length.

use crate::promise::{BarePromise, Claim, Detector, NearMisses, PromiseSpec};
use crate::run::EndedBy;

/// Searches the agent's last message while it comes in.
#[derive(Clone, Debug)]
pub struct MessageSearch {
    detector: Detector,
    claims: Vec<Claim>,
}

impl MessageSearch {
    /// Looks for the promises of `spec`.
    pub(super) fn new(spec: &PromiseSpec) -> Self {
        Self {
            detector: Detector::new(spec, ""),
            claims: Vec::new(),
        }
    }

    /// Another message begins.
    pub(super) fn restart(&mut self) {
        self.detector.restart();
        self.claims.clear();
    }

    /// More of the message.
    pub(super) fn push(&mut self, text: &str) {
        self.detector.push(text.as_bytes(), &mut self.claims);
        // Only the last one counts.
        let extra = self.claims.len().saturating_sub(1);
        self.claims.drain(..extra);
    }

    /// The promise without what it needs, as the message's last words.
    pub fn bare(&self) -> Option<BarePromise> {
        self.detector.bare()
    }

    /// The last claim in the message, and what nearly was one, now that its run ended so.
    pub fn end(&mut self, by: EndedBy) -> (Option<Claim>, NearMisses) {
        match by {
            EndedBy::Exit | EndedBy::Result => self.detector.finish(&mut self.claims),
            _ => self.detector.cut_off(&mut self.claims),
        }
        (self.claims.last().cloned(), self.detector.near())
    }
}
