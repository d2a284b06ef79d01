//! What a measurement of the work tree says.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The work tree at one moment: where HEAD stood and what the files held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The commit of HEAD; `None` before the first commit and without git.
    pub head: Option<String>,
    /// Hash of the content.
    pub tree: TreeHash,
    /// Files that differ from the last [`mark`](super::Tree::mark), where that is known.
    pub changed: Option<u32>,
    /// What measuring cost.
    pub took: Duration,
}

impl Snapshot {
    /// A snapshot taken earlier, from what was written down of it.
    pub fn recorded(head: Option<String>, tree: TreeHash) -> Snapshot {
        Snapshot {
            head,
            tree,
            changed: None,
            took: Duration::ZERO,
        }
    }

    /// Whether HEAD or the content differ; `None` where it cannot be told.
    pub fn differs(&self, other: &Snapshot) -> Option<bool> {
        if self.head != other.head {
            return Some(true);
        }
        self.tree.differs(&other.tree)
    }
}

/// Hash of a work tree's content, ignored files aside. Its text form (`git:…`, `content:…`)
/// can be written down and read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeHash {
    /// A git tree, kept in the object folder: it can be diffed and rewound to.
    Git {
        /// The tree object.
        tree: String,
        /// Content of repositories inside this one, which a git tree does not hold.
        nested: Option<String>,
    },
    /// Hash of names and content; the content is not kept.
    Content(String),
    /// It could not be measured.
    Unknown {
        /// Why, for people.
        reason: String,
    },
}

impl TreeHash {
    /// The git tree, where there is one.
    pub fn git_tree(&self) -> Option<&str> {
        match self {
            TreeHash::Git { tree, .. } => Some(tree),
            TreeHash::Content(_) | TreeHash::Unknown { .. } => None,
        }
    }

    /// Whether the content differs; `None` where it cannot be told.
    pub fn differs(&self, other: &TreeHash) -> Option<bool> {
        match (self, other) {
            (TreeHash::Git { tree: a, nested: x }, TreeHash::Git { tree: b, nested: y }) => {
                // A nested repository that could not be measured is no evidence either way.
                let nested = matches!((x, y), (Some(x), Some(y)) if x != y);
                Some(a != b || nested)
            }
            (TreeHash::Content(a), TreeHash::Content(b)) => Some(a != b),
            _ => None,
        }
    }
}

impl fmt::Display for TreeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeHash::Git { tree, nested: None } => write!(f, "git:{tree}"),
            TreeHash::Git {
                tree,
                nested: Some(nested),
            } => write!(f, "git:{tree}+{nested}"),
            TreeHash::Content(hash) => write!(f, "content:{hash}"),
            TreeHash::Unknown { reason } => write!(f, "unknown:{reason}"),
        }
    }
}

/// A text that is no [`TreeHash`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a tree hash: {0:?} (git:…, content:… or unknown:…)")]
pub struct NotATreeHash(String);

impl FromStr for TreeHash {
    type Err = NotATreeHash;

    fn from_str(text: &str) -> Result<TreeHash, NotATreeHash> {
        let wrong = || NotATreeHash(text.to_owned());
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        match kind {
            "git" => {
                let (tree, nested) = match rest.split_once('+') {
                    Some((tree, nested)) => (tree, Some(nested)),
                    None => (rest, None),
                };
                let hex = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_hexdigit());
                if !hex(tree) || !nested.is_none_or(hex) {
                    return Err(wrong());
                }
                Ok(TreeHash::Git {
                    tree: tree.to_owned(),
                    nested: nested.map(str::to_owned),
                })
            }
            "content" => Ok(TreeHash::Content(rest.to_owned())),
            "unknown" => Ok(TreeHash::Unknown {
                reason: rest.to_owned(),
            }),
            _ => Err(wrong()),
        }
    }
}

impl Serialize for TreeHash {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TreeHash {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<TreeHash, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// What kind of folder the work happens in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// A git work tree; the whole of it is measured.
    Git {
        /// Its top folder, which may lie above the working directory.
        root: PathBuf,
    },
    /// Measured by content hashes, without git.
    Plain {
        /// Why git is not used.
        why: String,
    },
}

/// One file that differs between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Where, from the root of the work tree.
    pub path: PathBuf,
    /// How.
    pub status: ChangeStatus,
}

/// How a file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeStatus {
    /// It was not there before.
    Added,
    /// Its content or mode is another.
    Modified,
    /// It is gone.
    Removed,
    /// A file became a link, or the like.
    TypeChanged,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        for text in [
            "git:4b825dc6",
            "git:4b825dc6+00ff",
            "content:abc",
            "unknown:took over 2s",
        ] {
            let hash: TreeHash = text.parse().unwrap();
            assert_eq!(hash.to_string(), text);
        }
        for text in ["", "git:", "git:xyz", "git:ab+", "tree:00"] {
            assert!(text.parse::<TreeHash>().is_err(), "{text}");
        }
    }

    #[test]
    fn unknown_is_no_evidence() {
        let known = TreeHash::Content("a".into());
        let unknown = TreeHash::Unknown {
            reason: "late".into(),
        };
        assert_eq!(known.differs(&unknown), None);
        assert_eq!(known.differs(&known), Some(false));
    }

    #[test]
    fn a_nested_hash_that_is_missing_is_no_evidence() {
        let a = TreeHash::Git {
            tree: "00".into(),
            nested: Some("11".into()),
        };
        let b = TreeHash::Git {
            tree: "00".into(),
            nested: None,
        };
        let c = TreeHash::Git {
            tree: "00".into(),
            nested: Some("22".into()),
        };
        assert_eq!(a.differs(&b), Some(false));
        assert_eq!(a.differs(&c), Some(true));
    }
}
