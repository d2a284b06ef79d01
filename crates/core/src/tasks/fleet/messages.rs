//! What a coordinator and its workers tell each other.

use descartes_kernel::control::{Answer, Command};
use descartes_kernel::outcome::Budget;
use descartes_kernel::state::Spent;
use descartes_kernel::steering::Sender;
use descartes_kernel::tasks::TasksConfig;
use descartes_store::catalog::LoopMeta;
use descartes_store::mirror::{CopyEnd, FolderPiece};
use serde::{Deserialize, Serialize};

use crate::tasks::event::AttemptNews;
use crate::tasks::order::AttemptOrder;

/// The name under which an attempt is reached.
pub(super) fn child_name(task: &str, epoch: u64) -> String {
    format!("{task}/{epoch}")
}

/// An attempt that is offered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OfferMessage {
    /// The coordinator's version of descartes.
    pub(super) version: String,
    /// The task loop.
    pub(super) loop_id: String,
    /// The repository, as a worker names those that it works for.
    pub(super) repository: String,
    /// The number of the offer.
    pub(super) epoch: u64,
    /// Where it is claimed.
    pub(super) subject: String,
    /// What the worktrees of the loop are made by.
    pub(super) tasks: TasksConfig,
    /// The folder of the repository that the loop works in.
    pub(super) folder: String,
    /// Paths within the repository that are in no commit of ours.
    pub(super) shielded: Vec<String>,
    pub(super) git: GitParcel,
    pub(super) order: AttemptOrder,
}

/// What of the repository a worker needs, and where it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GitParcel {
    /// What was merged before.
    pub(super) base: String,
    /// The work of earlier attempts.
    pub(super) branch: Option<String>,
    /// A commit with all its history, and the object that holds it; none where all of it is in another
    /// repository: a worker that does not know of those cannot read such an offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) root: Option<(String, String)>,
    /// The object with the rest.
    pub(super) rest: Option<String>,
    /// The address of a repository that holds the commits, and takes those that are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) remote: Option<String>,
    /// Who makes the commits: name and address.
    pub(super) author: Option<(String, String)>,
}

impl GitParcel {
    /// What a result has to be built on.
    pub(super) fn built_on(&self) -> &str {
        self.branch.as_deref().unwrap_or(&self.base)
    }
}

/// What an attempt came to, as its worker hands it in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DeliveredAttempt {
    pub(super) news: AttemptNews,
    /// The commit of its work, and what that is built on; none where nothing was done.
    pub(super) commit: Option<(String, String)>,
    /// The object that holds its commits.
    pub(super) object: Option<String>,
    /// They are in the repository that the offer named.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) pushed: bool,
    /// Its work was lost since another attempt had damaged the clone in which both were made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) others_fault: bool,
    /// What could not be done with that repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) remote_failure: Option<RemoteFailure>,
}

/// What a worker could not do with the repository that an offer named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RemoteFailure {
    Fetch,
    Push,
}

/// What a worker tells while an attempt is under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub(super) enum AttemptNote {
    /// The loop of the task is open.
    Opened { loop_id: String, unheard: Spent },
    /// What its run has spent so far.
    Spent { spent: Spent },
}

/// What a coordinator asks of the worker that holds a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(super) enum AttemptRequest {
    EndRun {
        budget: Budget,
    },
    Stop,
    Kill,
    /// A person's command to the loop of the task: its answers come with the copy of that loop.
    Command {
        order: CommandOrder,
    },
}

/// A person's command that is passed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CommandOrder {
    /// Tells it from other commands to the same attempt.
    pub(super) ticket: u64,
    pub(super) command: Command,
    pub(super) from: Sender,
}

/// What a worker says to a request at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequestReceipt {
    Taken,
    /// The loop of the task is not open, or over.
    NotOpen,
    Unknown,
}

/// What a coordinator asks of the worker for its copy of a task's loop. It is answered when there is
/// something new, or after a while.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MirrorRequest {
    /// The loop that it has a copy of, and what of it.
    pub(super) copy: Option<(String, CopyEnd)>,
    /// Answers to commands that it has.
    pub(super) answers: usize,
}

/// The loop of a task, on the machine of its worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct MirroredLoop {
    pub(super) meta: LoopMeta,
    /// What it used that the coordinator has not heard of.
    pub(super) unheard: Spent,
}

/// What is new of a task's loop. On the wire the bytes of the pieces stand behind a line with all else.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MirrorNews {
    pub(super) facts: MirrorFacts,
    pub(super) pieces: Vec<FolderPiece>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct MirrorFacts {
    /// Once it is open.
    pub(super) of: Option<MirroredLoop>,
    /// Its journal is not the one that was copied.
    pub(super) other_journal: bool,
    /// Nothing more is written there.
    pub(super) over: bool,
    /// Answers to commands by their tickets, beyond those that were asked with.
    pub(super) answers: Vec<(u64, Answer)>,
    /// Name, offset and length of each piece.
    pub(super) pieces: Vec<(String, u64, usize)>,
}

impl MirrorNews {
    pub(super) fn encode(mut self) -> Vec<u8> {
        let sizes = self.pieces.iter();
        let sizes = sizes.map(|piece| (piece.file.clone(), piece.offset, piece.bytes.len()));
        self.facts.pieces = sizes.collect();
        let mut bytes = serde_json::to_vec(&self.facts).unwrap_or_default();
        bytes.push(b'\n');
        let pieces = self.pieces.iter().flat_map(|piece| &piece.bytes);
        bytes.extend(pieces);
        bytes
    }

    /// `None` where it cannot be read.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let mut facts: MirrorFacts = serde_json::from_slice(&bytes[..end]).ok()?;
        let mut rest = &bytes[end + 1..];
        let mut pieces = Vec::new();
        for (file, offset, length) in std::mem::take(&mut facts.pieces) {
            let (bytes, behind) = rest.split_at_checked(length)?;
            rest = behind;
            pieces.push(FolderPiece {
                file,
                offset,
                bytes: bytes.to_vec(),
            });
        }
        Some(Self { facts, pieces })
    }
}

/// What a worker says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFacts {
    /// What it is called.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// Whose accounts its agents use: a limit that a provider tells holds for all workers with the same.
    #[serde(default)]
    pub login: String,
    /// The offers that it takes.
    pub pool: String,
    /// Agents that it can run.
    pub agents: Vec<String>,
    /// Attempts that it makes at once.
    pub slots: u32,
    /// Its version of descartes.
    pub version: String,
    /// What it is at.
    pub at_work: Vec<SlotFacts>,
    /// It takes nothing more and leaves when all is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// Why it did not take what it was offered, the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// An attempt that a worker makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotFacts {
    /// The task loop.
    pub loop_id: String,
    /// The task, or the wave that one agent is given.
    pub task: String,
    /// Since when, in seconds.
    pub seconds: u64,
}

impl WorkerFacts {
    /// Attempts that it could begin now.
    pub fn free(&self) -> u32 {
        let busy = u32::try_from(self.at_work.len()).unwrap_or(u32::MAX);
        match self.draining {
            true => 0,
            false => self.slots.saturating_sub(busy),
        }
    }
}

/// Why nobody takes an offer, as far as workers tell.
pub fn why_untaken(workers: &[WorkerFacts], pool: &str, agent: &str) -> String {
    let of_pool: Vec<_> = workers.iter().filter(|w| w.pool == pool).collect();
    let has_agent = |worker: &&&WorkerFacts| worker.agents.iter().any(|name| name == agent);
    let able: Vec<_> = of_pool.iter().filter(has_agent).collect();
    if workers.is_empty() {
        "no worker is there (start one: descartes worker --engine URL)".to_owned()
    } else if of_pool.is_empty() {
        format!("no worker of the pool `{pool}` is there")
    } else if able.is_empty() {
        format!("no worker can run the agent `{agent}`")
    } else {
        let willing: Vec<_> = able.iter().filter(|w| w.refused.is_none()).collect();
        let refused = able.iter().find_map(|worker| worker.refused.clone());
        match refused {
            _ if willing.iter().any(|worker| worker.free() > 0) => {
                "workers are there and free, but none has taken it yet".to_owned()
            }
            Some(refused) if willing.is_empty() => refused,
            Some(refused) => format!("all workers that would take it are busy ({refused})"),
            None => "all workers are busy".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(pool: &str, agent: &str, busy: bool, refused: Option<&str>) -> WorkerFacts {
        let slot = SlotFacts {
            loop_id: "l".to_owned(),
            task: "1".to_owned(),
            seconds: 1,
        };
        WorkerFacts {
            name: "w".to_owned(),
            host: "h".to_owned(),
            login: "h".to_owned(),
            pool: pool.to_owned(),
            agents: vec![agent.to_owned()],
            slots: 1,
            version: "0".to_owned(),
            at_work: busy.then_some(slot).into_iter().collect(),
            draining: false,
            refused: refused.map(str::to_owned),
        }
    }

    #[test]
    fn only_workers_that_know_of_other_repositories_read_an_offer_that_names_one() {
        let old = r#"{"base":"b","branch":null,"root":["r","object"],"rest":null,"author":null}"#;
        let parcel: GitParcel = serde_json::from_str(old).unwrap();
        assert_eq!((parcel.root.is_some(), &parcel.remote), (true, &None));
        assert_eq!(serde_json::to_string(&parcel).unwrap(), old);
        // Earlier versions ask for the field `root`.
        let parcel = GitParcel {
            root: None,
            remote: Some("/srv/app.git".to_owned()),
            ..parcel
        };
        let new = serde_json::to_value(&parcel).unwrap();
        assert_eq!(
            (new.get("root"), &new["remote"]),
            (None, &"/srv/app.git".into())
        );
    }

    #[test]
    fn pieces_of_any_bytes_come_back_as_they_were() {
        let piece = |file: &str, offset, bytes: &[u8]| FolderPiece {
            file: file.to_owned(),
            offset,
            bytes: bytes.to_vec(),
        };
        let news = MirrorNews {
            facts: MirrorFacts {
                over: true,
                answers: vec![(3, Answer::Accepted { id: 7 })],
                ..MirrorFacts::default()
            },
            pieces: vec![
                piece("journal.jsonl", 9, b"{}\n{}\n"),
                piece("runs/0001/stdout.log", 0, &[0, 255, 10, 13]),
                piece("runs/0001/stderr.log", 4, b""),
            ],
        };
        let bytes = news.clone().encode();
        assert_eq!(MirrorNews::decode(&bytes), Some(news));
        // What is cut short is nothing.
        for length in 0..bytes.len() {
            assert_eq!(MirrorNews::decode(&bytes[..length]), None, "{length}");
        }
    }

    #[test]
    fn an_offer_that_nobody_takes_has_a_reason() {
        let why = |workers: &[WorkerFacts]| why_untaken(workers, "default", "claude");
        assert!(why(&[]).contains("no worker is there"));
        let gpu = worker("gpu", "claude", false, None);
        assert_eq!(why(&[gpu]), "no worker of the pool `default` is there");
        let codex = worker("default", "codex", false, None);
        assert_eq!(why(&[codex]), "no worker can run the agent `claude`");
        let busy = worker("default", "claude", true, None);
        assert_eq!(why(&[busy]), "all workers are busy");
        let refused = worker("default", "claude", false, Some("not my repository"));
        assert_eq!(why(std::slice::from_ref(&refused)), "not my repository");
        let busy = worker("default", "claude", true, None);
        assert_eq!(
            why(&[refused.clone(), busy]),
            "all workers that would take it are busy (not my repository)"
        );
        let free = worker("default", "claude", false, None);
        assert!(why(&[refused, free]).contains("none has taken it yet"));
    }
}
