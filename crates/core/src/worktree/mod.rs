//! The work tree: what is in it, what changed, and how to put it back.
//!
//! A [`Tree`] measures a working directory between two agents, so it must be quick: folders in
//! which nothing happened are not looked at, and of the others only what changed is read. In git
//! a snapshot is a tree object in a folder of our own; the user's index, refs and objects are not
//! touched. Without git it is a hash of names and content.

pub(crate) mod budget;
mod cache;
mod catalog;
mod changes;
mod commit;
pub(crate) mod deadline;
mod diff;
mod error;
mod facts;
mod file;
mod findings;
mod folder;
pub(crate) mod git;
mod git_tree;
pub(crate) mod head;
mod inner;
mod kind;
mod lines;
mod look;
mod objects;
mod oid;
pub(crate) mod own_output;
mod pattern;
pub(crate) mod pipes;
mod plain;
mod repo;
mod rewind;
mod rules;
mod safety;
mod scan_root;
mod seed;
pub(crate) mod signing;
mod snapshot;
pub(crate) mod stamp;
mod state;
mod sweep;
mod text;
mod tree;
mod tree_index;
mod watch;

pub use commit::CommitOutcome;
pub use diff::{DiffColour, DiffOptions, DiffShape};
pub use error::WorktreeError;
pub use git::Git;
pub use lines::{Change, Lines};
pub use own_output::noted as own_output_files;
pub use rewind::Rewound;
pub use scan_root::Watching;
pub use snapshot::{ChangeStatus, Changed, NotATreeHash, Snapshot, TreeHash, TreeKind};
pub use state::{Head, Identity, RepoState, UnderWay};
pub use tree::{PriorAgents, Tree, TreeOptions};
