//! Hashes of objects, as git makes them.

use std::fmt;

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Which hash a repository names its objects by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HashFormat {
    Sha1,
    Sha256,
}

/// The name of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Oid {
    bytes: [u8; 32],
    len: u8,
}

impl Oid {
    pub(super) fn new(hash: &[u8]) -> Option<Oid> {
        let mut bytes = [0; 32];
        bytes.get_mut(..hash.len())?.copy_from_slice(hash);
        Some(Oid {
            bytes,
            len: u8::try_from(hash.len()).ok()?,
        })
    }

    pub(super) fn from_hex(hex: &[u8]) -> Option<Oid> {
        if hex.len() != 40 && hex.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Oid {
            bytes,
            len: u8::try_from(hex.len() / 2).ok()?,
        })
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A hash in the making.
pub(super) enum Hasher {
    Sha1(Box<Sha1>),
    Sha256(Box<Sha256>),
}

impl Hasher {
    pub(super) fn new(format: HashFormat) -> Hasher {
        match format {
            HashFormat::Sha1 => Hasher::Sha1(Box::default()),
            HashFormat::Sha256 => Hasher::Sha256(Box::default()),
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha1(hash) => hash.update(bytes),
            Hasher::Sha256(hash) => hash.update(bytes),
        }
    }

    pub(super) fn finish(self) -> Oid {
        let mut oid = Oid {
            bytes: [0; 32],
            len: 0,
        };
        let mut take = |hash: &[u8]| {
            oid.bytes[..hash.len()].copy_from_slice(hash);
            oid.len = if hash.len() == 20 { 20 } else { 32 };
        };
        match self {
            Hasher::Sha1(hash) => take(&hash.finalize()),
            Hasher::Sha256(hash) => take(&hash.finalize()),
        }
        oid
    }
}

/// The name of an object with this content.
pub(super) fn object_id(format: HashFormat, kind: &str, content: &[u8]) -> Oid {
    let mut hasher = Hasher::new(format);
    hasher.update(format!("{kind} {}\0", content.len()).as_bytes());
    hasher.update(content);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_git() {
        let empty = object_id(HashFormat::Sha1, "tree", b"");
        assert_eq!(
            empty.to_string(),
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        );
        let blob = object_id(HashFormat::Sha256, "blob", b"");
        let name = "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813";
        assert_eq!(blob.to_string(), name);
        assert_eq!(Oid::from_hex(name.as_bytes()), Some(blob));
        assert_eq!(Oid::from_hex(b"zz"), None);
    }
}
