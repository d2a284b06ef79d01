//! The lines on the pipe between `descartes` and `descartes-fleet`: one JSON object each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::{
    Delivery, EngineError, FollowFrom, OfferTarget, PulledOffer, ServedRequest, SubjectEntry,
};
use crate::payload;

/// Changes whenever a line changes its meaning. Both sides are of one release, which is checked too.
pub const PROTOCOL_VERSION: u32 = 3;

/// A line to the bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeRequest {
    /// Answered under the same number. Also the name of a subscription that the call begins.
    pub id: u64,
    #[serde(flatten)]
    pub call: BridgeCall,
}

/// What is asked of the bridge. The first is [`BridgeCall::Connect`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum BridgeCall {
    Connect {
        protocol: u32,
        version: String,
        /// With its key: the pipe is the one place where it is not shown to other users of the machine.
        engine: String,
        party: BridgeParty,
    },
    Put {
        subject: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<u64>,
        #[serde(with = "payload")]
        value: Vec<u8>,
    },
    Get {
        subject: String,
    },
    Follow {
        filter: String,
        from: FollowFrom,
    },
    Offer {
        to: OfferTarget,
        message_id: String,
        #[serde(with = "payload")]
        value: Vec<u8>,
    },
    Pull {
        from: Vec<OfferTarget>,
        count: usize,
        wait_ms: u64,
    },
    Ack {
        token: String,
    },
    GiveBack {
        token: String,
    },
    ClearOffers {
        of: OfferTarget,
    },
    AppendEvent {
        subject: String,
        message_id: String,
        #[serde(with = "payload")]
        value: Vec<u8>,
    },
    Request {
        subject: String,
        #[serde(with = "payload")]
        body: Vec<u8>,
        timeout_ms: u64,
    },
    Serve {
        subject: String,
    },
    Answer {
        token: String,
        #[serde(with = "payload")]
        body: Vec<u8>,
    },
    PutObject {
        name: String,
        file: PathBuf,
    },
    GetObject {
        name: String,
        file: PathBuf,
    },
    DeleteObject {
        name: String,
    },
    Announce {
        worker: String,
        expect: Option<u64>,
        #[serde(with = "payload")]
        value: Vec<u8>,
        ttl_ms: u64,
    },
    Workers,
    /// Ends a subscription.
    Unsubscribe {
        subscription: u64,
    },
}

/// Who connects: only a coordinator may make the engine's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BridgeParty {
    Coordinator,
    Worker,
}

/// A line from the bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum BridgeLine {
    Done {
        id: u64,
        result: BridgeResult,
    },
    Failed {
        id: u64,
        #[serde(flatten)]
        error: EngineError,
    },
    Delivered {
        subscription: u64,
        delivery: Delivery,
    },
    Served {
        subscription: u64,
        request: ServedRequest,
    },
    /// The subscription is over and nothing comes any more.
    Ended {
        subscription: u64,
        reason: String,
    },
    Link {
        up: bool,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BridgeResult {
    Nothing,
    /// The answer to [`BridgeCall::Connect`].
    Connected {
        protocol: u32,
        version: String,
        server: String,
    },
    Sequence(u64),
    Entry(Option<SubjectEntry>),
    Offers(Vec<PulledOffer>),
    Body(#[serde(with = "payload")] Vec<u8>),
    Workers(Vec<AnnouncedWorker>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedWorker {
    pub name: String,
    #[serde(with = "payload")]
    pub value: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn back(line: &BridgeLine) -> BridgeLine {
        serde_json::from_str(&serde_json::to_string(line).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn any_bytes_cross_the_pipe(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in ".{0,32}") {
            for body in [bytes, text.into_bytes()] {
                let line = BridgeLine::Done { id: 7, result: BridgeResult::Body(body.clone()) };
                prop_assert_eq!(back(&line), line);
                let call = BridgeCall::Put { subject: "task.l.t.1".into(), expect: Some(0), ttl_ms: None, value: body };
                let request = BridgeRequest { id: 1, call };
                let text = serde_json::to_string(&request).unwrap();
                prop_assert!(!text.contains('\n'));
                prop_assert_eq!(serde_json::from_str::<BridgeRequest>(&text).unwrap(), request);
            }
        }
    }

    #[test]
    fn a_line_can_be_read_by_people() {
        let failed = BridgeLine::Failed {
            id: 3,
            error: EngineError::Refused("publish".into()),
        };
        let text = serde_json::to_string(&failed).unwrap();
        assert_eq!(
            text,
            r#"{"line":"failed","id":3,"error":"refused","detail":"publish"}"#
        );
        assert_eq!(back(&failed), failed);
        let plain = BridgeLine::Failed {
            id: 3,
            error: EngineError::Conflict,
        };
        assert_eq!(back(&plain), plain);
    }
}
