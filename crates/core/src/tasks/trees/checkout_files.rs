//! Files of the user's checkout as a landing finds them. No link in the place of a folder is followed: what
//! is behind one is not of the checkout.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use descartes_store::safe_open::read_user_file;

use super::{Done, Trees};

/// Mode and object of a file, as git has it; none where it has none.
pub(super) type HalfLandedEntry = Option<(String, String)>;

/// What is at the place of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CheckoutFile {
    Folder,
    /// A file or link, by mode and object as git would store it.
    Entry(String, String),
    /// A pipe, a device.
    Other,
}

impl CheckoutFile {
    /// Whether it is this entry of git's.
    pub(super) fn is(&self, (mode, blob): &(String, String)) -> bool {
        matches!(self, Self::Entry(ours, object) if ours == mode && object == blob)
    }
}

impl Trees {
    /// Where a file is, if all of its folders are.
    fn place(&self, name: &Path) -> Option<PathBuf> {
        let mut folders = name.ancestors().skip(1);
        let is_folder = |folder: &Path| {
            let meta = self.user.dir.join(folder).symlink_metadata();
            meta.is_ok_and(|meta| meta.is_dir())
        };
        let all = folders.all(|folder| folder.as_os_str().is_empty() || is_folder(folder));
        all.then(|| self.user.dir.join(name))
    }

    /// What is at the place of a file, if anything is.
    pub(super) fn look_at(&self, name: &Path) -> Option<Metadata> {
        self.place(name)?.symlink_metadata().ok()
    }

    /// Whether there is a folder.
    pub(super) fn is_folder(&self, name: &Path) -> bool {
        self.look_at(name).is_some_and(|meta| meta.is_dir())
    }

    /// Removes a file or link; a folder stays.
    pub(super) fn remove_at(&self, name: &Path) -> Done<()> {
        match self.place(name) {
            Some(path) => Ok(fs_err::remove_file(path)?),
            None => Ok(()),
        }
    }

    /// Removes a folder with nothing in it.
    pub(super) fn remove_empty(&self, name: &Path) -> bool {
        self.is_folder(name) && fs_err::remove_dir(self.user.dir.join(name)).is_ok()
    }

    /// Whether git can write a file without deleting something else: it would remove a folder with
    /// everything in it, and whatever is in the place of one.
    pub(super) fn is_free(&self, name: &Path) -> bool {
        let mut folders = name.ancestors().skip(1);
        let is_in_the_way = |folder: &Path| {
            let meta = self.user.dir.join(folder).symlink_metadata();
            !folder.as_os_str().is_empty() && meta.is_ok_and(|meta| !meta.is_dir())
        };
        !folders.any(is_in_the_way) && (!self.is_folder(name) || self.remove_empty(name))
    }

    /// Files as git would store them; those that are not there are left out.
    pub(super) fn files_as_git<'n>(
        &self,
        names: impl Iterator<Item = &'n Path>,
    ) -> Done<HashMap<PathBuf, CheckoutFile>> {
        let (mut found, mut asked) = (HashMap::new(), Vec::new());
        for name in names {
            let Some(meta) = self.look_at(name) else {
                continue;
            };
            let file = match meta.file_type() {
                kind if kind.is_dir() => CheckoutFile::Folder,
                kind if kind.is_symlink() => {
                    let to = fs_err::read_link(self.user.dir.join(name))?;
                    let to = to.as_os_str().as_bytes();
                    let blob = self.user.fed(&["hash-object", "--stdin"], to)?;
                    CheckoutFile::Entry("120000".to_owned(), blob)
                }
                kind if kind.is_file() => {
                    let mode = match meta.permissions().mode() & 0o100 {
                        0 => "100644",
                        _ => "100755",
                    };
                    asked.push((name, mode));
                    continue;
                }
                _ => CheckoutFile::Other,
            };
            found.insert(name.to_owned(), file);
        }
        let names: Vec<&Path> = asked.iter().map(|(name, _)| *name).collect();
        for ((name, mode), blob) in asked.into_iter().zip(self.blobs_of(&names)?) {
            let file = CheckoutFile::Entry(mode.to_owned(), blob);
            found.insert(name.to_owned(), file);
        }
        Ok(found)
    }

    /// The objects that files would be.
    fn blobs_of(&self, names: &[&Path]) -> Done<Vec<String>> {
        let is_line = |name: &&Path| {
            let name = name.as_os_str().as_bytes();
            !name.starts_with(b"\"") && !name.contains(&b'\n') && !name.contains(&b'\r')
        };
        let (lines, odd): (Vec<&Path>, Vec<&Path>) = names.iter().copied().partition(is_line);
        let mut blobs = HashMap::new();
        if !lines.is_empty() {
            let input = lines.iter().map(|name| name.as_os_str().as_bytes());
            let input: Vec<u8> = input.flat_map(|name| [name, b"\n"].concat()).collect();
            let told = self.user.fed(&["hash-object", "--stdin-paths"], &input)?;
            let told = told.lines().map(str::to_owned);
            blobs.extend(lines.into_iter().zip(told));
        }
        for name in odd {
            let told = self
                .user
                .bytes_of(&["hash-object", "--"], name.as_os_str())?;
            blobs.insert(name, String::from_utf8_lossy(&told).trim().to_owned());
        }
        let blob = |name: &&Path| blobs.remove(*name).unwrap_or_default();
        Ok(names.iter().map(blob).collect())
    }

    /// Whether a file is the beginning of what a commit has there: all of it is in that commit.
    pub(super) fn is_part_of(&self, commit: &str, name: &Path) -> Done<bool> {
        let Some(kind) = self.look_at(name).map(|meta| meta.file_type()) else {
            return Ok(false);
        };
        let path = self.user.dir.join(name);
        let mut at = OsString::from(format!("{commit}:"));
        at.push(name);
        Ok(match kind {
            kind if kind.is_symlink() => {
                let whole = self.user.bytes_of(&["cat-file", "blob"], &at);
                let to = fs_err::read_link(&path)?;
                whole.is_ok_and(|whole| whole == to.as_os_str().as_bytes())
            }
            kind if kind.is_file() => {
                let Ok(whole) = self.user.bytes_of(&["cat-file", "--filters"], &at) else {
                    return Ok(false);
                };
                read(&path)?.is_some_and(|part| whole.starts_with(&part))
            }
            _ => false,
        })
    }
}

fn read(path: &Path) -> Done<Option<Vec<u8>>> {
    match read_user_file(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
