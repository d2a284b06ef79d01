//! [`Engine`] over a `descartes-fleet bridge` that this process starts and ends.

mod pipe;

use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::engine::{
    Delivery, Engine, EngineError, FollowFrom, LinkStatus, OfferTarget, PulledOffer, ServedRequest,
    SubjectEntry,
};
use crate::message::{BridgeCall, BridgeParty, BridgeResult, PROTOCOL_VERSION};
use crate::program::FleetProgram;
use crate::url::EngineUrl;
use pipe::BridgePipe;

/// How long the engine may take for a connection, and for one write or read.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const CALL_TIMEOUT: Duration = Duration::from_secs(8);

/// A file of any size on a slow line.
const OBJECT_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A bridge of our own. It ends when this is dropped, and when this process ends in whatever way:
/// it reads the end of its input.
pub struct BridgeClient {
    pipe: BridgePipe,
    server: String,
}

impl BridgeClient {
    /// Starts a bridge and connects it. What is wrong with the server or the key is said here.
    pub fn connect(
        program: &FleetProgram,
        url: &EngineUrl,
        party: BridgeParty,
    ) -> Result<Self, EngineError> {
        let pipe = BridgePipe::start(program.path())?;
        let call = BridgeCall::Connect {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: url.with_key(),
            party,
        };
        match pipe.call(call, CONNECT_TIMEOUT)? {
            BridgeResult::Connected {
                protocol: PROTOCOL_VERSION,
                server,
                ..
            } => Ok(Self { pipe, server }),
            BridgeResult::Connected {
                protocol, version, ..
            } => Err(EngineError::Other(format!(
                "descartes-fleet {version} speaks version {protocol} of the bridge's protocol, \
                 descartes {} version {PROTOCOL_VERSION}: install both of one version",
                env!("CARGO_PKG_VERSION")
            ))),
            other => Err(unexpected(&other)),
        }
    }

    /// The version of the engine's server.
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.server
    }

    /// The bridge's process.
    #[must_use]
    pub fn bridge_pid(&self) -> u32 {
        self.pipe.pid()
    }

    fn sequence(&self, call: BridgeCall) -> Result<u64, EngineError> {
        match self.pipe.call(call, CALL_TIMEOUT)? {
            BridgeResult::Sequence(seq) => Ok(seq),
            other => Err(unexpected(&other)),
        }
    }

    fn nothing(&self, call: BridgeCall, timeout: Duration) -> Result<(), EngineError> {
        match self.pipe.call(call, timeout)? {
            BridgeResult::Nothing => Ok(()),
            other => Err(unexpected(&other)),
        }
    }
}

impl Engine for BridgeClient {
    fn put(
        &self,
        subject: &str,
        expect: Option<u64>,
        ttl: Option<Duration>,
        value: &[u8],
    ) -> Result<u64, EngineError> {
        self.sequence(BridgeCall::Put {
            subject: subject.to_owned(),
            expect,
            ttl_ms: ttl.map(millis),
            value: value.to_vec(),
        })
    }

    fn get(&self, subject: &str) -> Result<Option<SubjectEntry>, EngineError> {
        let call = BridgeCall::Get {
            subject: subject.to_owned(),
        };
        match self.pipe.call(call, CALL_TIMEOUT)? {
            BridgeResult::Entry(entry) => Ok(entry),
            other => Err(unexpected(&other)),
        }
    }

    fn follow(&self, filter: &str, from: FollowFrom) -> Result<Receiver<Delivery>, EngineError> {
        let call = BridgeCall::Follow {
            filter: filter.to_owned(),
            from,
        };
        self.pipe.follow(call, CALL_TIMEOUT)
    }

    fn offer(&self, to: &OfferTarget, message_id: &str, value: &[u8]) -> Result<(), EngineError> {
        let call = BridgeCall::Offer {
            to: to.clone(),
            message_id: message_id.to_owned(),
            value: value.to_vec(),
        };
        self.nothing(call, CALL_TIMEOUT)
    }

    fn pull(
        &self,
        from: &[OfferTarget],
        count: usize,
        wait: Duration,
    ) -> Result<Vec<PulledOffer>, EngineError> {
        let call = BridgeCall::Pull {
            from: from.to_vec(),
            count,
            wait_ms: millis(wait),
        };
        match self.pipe.call(call, wait + CALL_TIMEOUT)? {
            BridgeResult::Offers(offers) => Ok(offers),
            other => Err(unexpected(&other)),
        }
    }

    fn ack(&self, token: &str) -> Result<(), EngineError> {
        let token = token.to_owned();
        self.nothing(BridgeCall::Ack { token }, CALL_TIMEOUT)
    }

    fn give_back(&self, token: &str) -> Result<(), EngineError> {
        let token = token.to_owned();
        self.nothing(BridgeCall::GiveBack { token }, CALL_TIMEOUT)
    }

    fn clear_offers(&self, of: &OfferTarget) -> Result<(), EngineError> {
        let of = of.clone();
        self.nothing(BridgeCall::ClearOffers { of }, CALL_TIMEOUT)
    }

    fn append_event(
        &self,
        subject: &str,
        message_id: &str,
        value: &[u8],
    ) -> Result<u64, EngineError> {
        self.sequence(BridgeCall::AppendEvent {
            subject: subject.to_owned(),
            message_id: message_id.to_owned(),
            value: value.to_vec(),
        })
    }

    fn request(
        &self,
        subject: &str,
        body: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>, EngineError> {
        let call = BridgeCall::Request {
            subject: subject.to_owned(),
            body: body.to_vec(),
            timeout_ms: millis(timeout),
        };
        match self.pipe.call(call, timeout + Duration::from_secs(1))? {
            BridgeResult::Body(body) => Ok(body),
            other => Err(unexpected(&other)),
        }
    }

    fn serve(&self, subject: &str) -> Result<Receiver<ServedRequest>, EngineError> {
        let call = BridgeCall::Serve {
            subject: subject.to_owned(),
        };
        self.pipe.serve(call, CALL_TIMEOUT)
    }

    fn answer(&self, token: &str, body: &[u8]) -> Result<(), EngineError> {
        let call = BridgeCall::Answer {
            token: token.to_owned(),
            body: body.to_vec(),
        };
        self.nothing(call, CALL_TIMEOUT)
    }

    fn put_object(&self, name: &str, file: &Path) -> Result<(), EngineError> {
        let call = BridgeCall::PutObject {
            name: name.to_owned(),
            file: absolute(file)?,
        };
        self.nothing(call, OBJECT_TIMEOUT)
    }

    fn get_object(&self, name: &str, file: &Path) -> Result<(), EngineError> {
        let call = BridgeCall::GetObject {
            name: name.to_owned(),
            file: absolute(file)?,
        };
        self.nothing(call, OBJECT_TIMEOUT)
    }

    fn delete_object(&self, name: &str) -> Result<(), EngineError> {
        let name = name.to_owned();
        self.nothing(BridgeCall::DeleteObject { name }, CALL_TIMEOUT)
    }

    fn announce(
        &self,
        worker: &str,
        expect: Option<u64>,
        value: &[u8],
        ttl: Duration,
    ) -> Result<u64, EngineError> {
        self.sequence(BridgeCall::Announce {
            worker: worker.to_owned(),
            expect,
            value: value.to_vec(),
            ttl_ms: millis(ttl),
        })
    }

    fn workers(&self) -> Result<Vec<(String, Vec<u8>)>, EngineError> {
        match self.pipe.call(BridgeCall::Workers, CALL_TIMEOUT)? {
            BridgeResult::Workers(workers) => Ok(workers
                .into_iter()
                .map(|worker| (worker.name, worker.value))
                .collect()),
            other => Err(unexpected(&other)),
        }
    }

    fn link(&self) -> LinkStatus {
        self.pipe.link()
    }

    fn link_changes(&self) -> Receiver<LinkStatus> {
        self.pipe.link_changes()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The bridge works in a folder of its own.
fn absolute(file: &Path) -> Result<std::path::PathBuf, EngineError> {
    std::path::absolute(file)
        .map_err(|error| EngineError::Other(format!("{}: {error}", file.display())))
}

fn unexpected(result: &BridgeResult) -> EngineError {
    EngineError::Other(format!(
        "descartes-fleet answered something else: {result:?}"
    ))
}
