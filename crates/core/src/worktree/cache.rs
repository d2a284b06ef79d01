//! Hashes of a plain folder, kept on disk so that a resumed loop need not read everything again.
//! Nothing depends on it: whatever looks odd is not used.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::folder::{Entry, Folder, Leaf, Trust};
use super::kind::Mode;
use super::oid::{HashFormat, Hasher, Oid};
use super::stamp::Stamp;

const TITLE: &[u8] = b"descartes content hashes 1\n";
const HASH: usize = 32;
/// Two times, size, inode, mode.
const STAMP: usize = 8 * 4 + 4;

pub(super) fn save(path: &Path, root: &Path, top: &Folder) -> io::Result<()> {
    let mut bytes = TITLE.to_vec();
    put_bytes(&mut bytes, root.as_os_str().as_bytes());
    top.each(Path::new(""), &mut |path, entry| {
        if let Entry::Leaf(Leaf {
            trust: Trust::Stamp(stamp),
            oid: Some(oid),
            ..
        }) = entry
        {
            put_bytes(&mut bytes, path.as_os_str().as_bytes());
            put_stamp(&mut bytes, stamp);
            bytes.extend_from_slice(oid.as_bytes());
        }
    });
    bytes.extend_from_slice(sum(&bytes).as_bytes());
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new()
        .prefix("tmp-")
        .tempfile_in(folder)?;
    file.write_all(&bytes)?;
    file.persist(path)?;
    Ok(())
}

pub(super) fn load(path: &Path, root: &Path) -> Option<Folder> {
    let bytes = fs::read(path).ok()?;
    let (content, check) = bytes.split_at_checked(bytes.len().checked_sub(HASH)?)?;
    if sum(content).as_bytes() != check {
        return None;
    }
    let mut rest = content.strip_prefix(TITLE)?;
    if take_bytes(&mut rest)? != root.as_os_str().as_bytes() {
        return None;
    }
    let mut top = Folder::default();
    while !rest.is_empty() {
        let path = super::text::path(take_bytes(&mut rest)?);
        let stamp = take_stamp(&mut rest)?;
        let oid = Oid::new(take(&mut rest, HASH)?)?;
        let leaf = Leaf {
            trust: Trust::Stamp(stamp),
            mode: Mode::of(&stamp),
            oid: Some(oid),
        };
        top.put(&path, Entry::Leaf(leaf), 0);
    }
    Some(top)
}

fn sum(bytes: &[u8]) -> Oid {
    let mut hasher = Hasher::new(HashFormat::Sha256);
    hasher.update(bytes);
    hasher.finish()
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    to.extend_from_slice(bytes);
}

fn put_stamp(to: &mut Vec<u8>, stamp: &Stamp) {
    to.extend_from_slice(&stamp.mtime.to_le_bytes());
    to.extend_from_slice(&stamp.ctime.to_le_bytes());
    to.extend_from_slice(&stamp.size.to_le_bytes());
    to.extend_from_slice(&stamp.ino.to_le_bytes());
    to.extend_from_slice(&stamp.mode.to_le_bytes());
}

fn take<'a>(from: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, tail) = from.split_at_checked(len)?;
    *from = tail;
    Some(head)
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = u32::from_le_bytes(take(from, 4)?.try_into().ok()?);
    take(from, usize::try_from(len).ok()?)
}

fn take_stamp(from: &mut &[u8]) -> Option<Stamp> {
    let bytes = take(from, STAMP)?;
    let eight = |i: usize| bytes.get(i * 8..i * 8 + 8)?.try_into().ok();
    Some(Stamp {
        mtime: i64::from_le_bytes(eight(0)?),
        ctime: i64::from_le_bytes(eight(1)?),
        size: u64::from_le_bytes(eight(2)?),
        ino: u64::from_le_bytes(eight(3)?),
        mode: u32::from_le_bytes(bytes.get(32..36)?.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::oid::object_id;

    fn folder() -> Folder {
        let stamp = Stamp {
            mtime: -5,
            ctime: 7,
            size: 1 << 40,
            ino: 9,
            mode: 0o100_755,
        };
        let oid = object_id(HashFormat::Sha256, "blob", b"x");
        let leaf = Leaf {
            trust: Trust::Stamp(stamp),
            mode: Mode::Executable,
            oid: Some(oid),
        };
        let mut top = Folder::default();
        top.put(Path::new("a/b"), Entry::Leaf(leaf), 0);
        top
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/hashes");
        save(&path, Path::new("/r"), &folder()).unwrap();
        let mut loaded = load(&path, Path::new("/r")).unwrap();
        let Some(Entry::Leaf(leaf)) = loaded.entry(Path::new("a/b")) else {
            panic!()
        };
        assert!(matches!(leaf.trust, Trust::Stamp(s) if s.mtime == -5 && s.size == 1 << 40));
        assert!(
            load(&path, Path::new("/other")).is_none(),
            "another folder's"
        );
    }

    #[test]
    fn a_damaged_file_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hashes");
        save(&path, Path::new("/r"), &folder()).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(load(&path, Path::new("/r")).is_none(), "cut at {cut}");
            let mut flipped = whole.clone();
            flipped[cut] ^= 1;
            fs::write(&path, &flipped).unwrap();
            assert!(load(&path, Path::new("/r")).is_none(), "flipped at {cut}");
        }
    }
}
