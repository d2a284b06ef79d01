//! What kinds of things stand in folders and trees.

use super::stamp::Stamp;

/// What kind of thing a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    File,
    Link,
    Folder,
    Special,
}

impl From<std::fs::FileType> for FileKind {
    fn from(kind: std::fs::FileType) -> FileKind {
        if kind.is_file() {
            FileKind::File
        } else if kind.is_symlink() {
            FileKind::Link
        } else if kind.is_dir() {
            FileKind::Folder
        } else {
            FileKind::Special
        }
    }
}

/// The mode of an entry in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Executable,
    Link,
    Repo,
    Tree,
}

impl Mode {
    pub(super) fn of(stamp: &Stamp) -> Mode {
        match stamp.mode {
            mode if mode & 0o170_000 == 0o120_000 => Mode::Link,
            mode if mode & 0o100 != 0 => Mode::Executable,
            _ => Mode::Plain,
        }
    }

    pub(super) fn parse(octal: &[u8]) -> Option<Mode> {
        match octal {
            b"100644" => Some(Mode::Plain),
            b"100755" => Some(Mode::Executable),
            b"120000" => Some(Mode::Link),
            b"160000" => Some(Mode::Repo),
            _ => None,
        }
    }

    /// As a tree object holds it.
    pub(super) fn octal(self) -> &'static str {
        match self {
            Mode::Plain => "100644",
            Mode::Executable => "100755",
            Mode::Link => "120000",
            Mode::Repo => "160000",
            Mode::Tree => "40000",
        }
    }
}
