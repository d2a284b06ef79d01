//! Writing git objects into the folder of our own.
//!
//! Small files that git would store as they are, links and trees are written here: that takes a
//! tenth of a millisecond instead of a process. Everything else goes through `git hash-object`.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::deadline::Deadline;
use super::error::Stop;
use super::file::{failed, open};
use super::findings::Stale;
use super::findings::{Hashed, Store};
use super::kind::Mode;
use super::oid::{HashFormat, Oid, object_id};
use super::repo::Repo;
use super::text;

/// Larger files are worth compressing, which git does.
const SMALL: u64 = 128 << 10;
/// Larger files are not searched for line ends.
const TEXT: u64 = 8 << 20;

/// How the content of files becomes objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blobs {
    /// As it is: no attributes, no line end conversion.
    Raw,
    /// Through the user's filters.
    Filtered,
}

/// The object folder of one repository's snapshots.
pub(super) struct Objects<'a> {
    pub(super) repo: &'a Repo,
    pub(super) blobs: Blobs,
}

/// What to do with a file.
enum Plan {
    Done(Hashed),
    AskGit,
}

impl Store for Objects<'_> {
    fn leaves(
        &mut self,
        root: &Path,
        stale: &[Stale],
        deadline: Deadline,
        done: &mut Vec<Hashed>,
    ) -> Result<(), Stop> {
        let mut asked = Vec::new();
        let mut answers = Vec::with_capacity(stale.len());
        for stale in stale {
            deadline.check()?;
            answers.push(match self.plan(&root.join(&stale.path), stale)? {
                Plan::Done(hashed) => hashed,
                Plan::AskGit => {
                    asked.push(answers.len());
                    Hashed::Unreadable
                }
            });
        }
        let paths = asked.iter().map(|i| stale[*i].path.as_path());
        for (i, oid) in asked.iter().zip(self.hash_by_git(paths, deadline)?) {
            answers[*i] = Hashed::Content(oid);
        }
        done.extend(answers);
        Ok(())
    }

    fn tree(&mut self, content: &[u8]) -> Result<Oid, Stop> {
        self.write("tree", content)
    }
}

impl Objects<'_> {
    fn plan(&self, path: &Path, stale: &Stale) -> Result<Plan, Stop> {
        if Mode::of(&stale.stamp) == Mode::Link {
            return match fs::read_link(path) {
                Ok(to) => self.blob(to.as_os_str().as_bytes()),
                Err(error) => Ok(Plan::Done(failed(&error))),
            };
        }
        let file = match open(path) {
            Ok(file) => file,
            Err(error) => return Ok(Plan::Done(failed(&error))),
        };
        let limit = if self.blobs == Blobs::Raw {
            SMALL
        } else {
            TEXT
        };
        if stale.stamp.size > limit {
            return Ok(Plan::AskGit);
        }
        let mut content = Vec::new();
        if let Err(error) = file.take(limit + 1).read_to_end(&mut content) {
            return Ok(Plan::Done(failed(&error)));
        }
        match self.blobs {
            Blobs::Raw if content.len() as u64 <= limit => self.blob(&content),
            // What git makes of these depends on what its index held before.
            Blobs::Filtered if content.windows(2).any(|pair| pair == b"\r\n") => Err(Stop::Rescan),
            _ => Ok(Plan::AskGit),
        }
    }

    fn blob(&self, content: &[u8]) -> Result<Plan, Stop> {
        Ok(Plan::Done(Hashed::Content(self.write("blob", content)?)))
    }

    fn hash_by_git<'p>(
        &self,
        paths: impl Iterator<Item = &'p Path>,
        deadline: Deadline,
    ) -> Result<Vec<Oid>, Stop> {
        let lines: Vec<Vec<u8>> = paths.map(text::quoted_line).collect();
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let call = self
            .repo
            .snapshot_call()
            .args(["hash-object", "-w", "--stdin-paths"]);
        let out = call.stdin(lines.concat()).output(deadline)?;
        let oids: Option<Vec<Oid>> = text::lines(&out).map(Oid::from_hex).collect();
        match oids {
            Some(oids) if oids.len() == lines.len() => Ok(oids),
            _ => Err(Stop::Failed(
                "git hash-object gave an unexpected answer".to_owned(),
            )),
        }
    }

    fn write(&self, kind: &str, content: &[u8]) -> Result<Oid, Stop> {
        let format = self.repo.format;
        write_loose(&self.repo.objects, format, kind, content)
            .map_err(|error| Stop::Failed(format!("{}: {error}", self.repo.objects.display())))
    }
}

/// Whether the folder itself holds an object.
pub(super) fn has(objects: &Path, oid: &Oid) -> bool {
    let name = oid.to_string();
    let (folder, file) = name.split_at(2);
    objects.join(folder).join(file).exists()
}

fn write_loose(objects: &Path, format: HashFormat, kind: &str, content: &[u8]) -> io::Result<Oid> {
    let oid = object_id(format, kind, content);
    let name = oid.to_string();
    let (folder, file) = name.split_at(2);
    let folder = objects.join(folder);
    let path = folder.join(file);
    // An empty file is what a power cut leaves.
    if fs::metadata(&path).is_ok_and(|meta| meta.len() > 0) {
        return Ok(oid);
    }
    let header = format!("{kind} {}\0", content.len());
    let bytes = zlib_stored(&[header.as_bytes(), content].concat());
    let make = || {
        tempfile::Builder::new()
            .prefix("tmp_obj_")
            .tempfile_in(&folder)
    };
    let mut temp = match make() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(&folder)?;
            make()?
        }
        made => made?,
    };
    temp.write_all(&bytes)?;
    temp.persist(&path)?;
    Ok(oid)
}

/// A zlib stream that does not compress: files this small fill one or a few disk blocks anyway.
fn zlib_stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut chunks = bytes.chunks(usize::from(u16::MAX)).peekable();
    while let Some(chunk) = chunks.next() {
        out.push(u8::from(chunks.peek().is_none()));
        let len = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(chunk);
    }
    out.extend_from_slice(&adler32(bytes).to_be_bytes());
    out
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (1u32, 0u32);
    // As many as fit into 32 bits before the remainder must be taken.
    for chunk in bytes.chunks(5552) {
        for byte in chunk {
            a += u32::from(*byte);
            b += a;
        }
        a %= 65_521;
        b %= 65_521;
    }
    b << 16 | a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_of_the_known_example() {
        assert_eq!(adler32(b"Wikipedia"), 0x11E6_0398);
    }

    #[test]
    fn an_empty_leftover_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let oid = write_loose(dir.path(), HashFormat::Sha1, "blob", b"x")
            .unwrap()
            .to_string();
        let path = dir.path().join(&oid[..2]).join(&oid[2..]);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, b"").unwrap();
        write_loose(dir.path(), HashFormat::Sha1, "blob", b"x").unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
}
