//! A folder of files of ours, with a list of what was written: a file that is not as it was written
//! is a person's.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{CliError, at};

/// The list, in the folder itself.
const LIST: &str = ".written-by-descartes.json";

/// What was written, by name, with its hash.
#[derive(Debug, Default, Serialize, Deserialize)]
struct InstalledFiles {
    version: String,
    files: BTreeMap<String, String>,
}

/// What is there.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// No such folder.
    Nothing,
    /// A folder that we did not write.
    Foreign,
    Ours {
        /// What was written.
        files: Vec<String>,
        /// Those of it that are not as they were written.
        edited: Vec<PathBuf>,
    },
}

#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at this place, there or not.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Looks what is there.
    pub fn look(&self) -> Result<Found, CliError> {
        if !self.0.exists() {
            return Ok(Found::Nothing);
        }
        let list = self.0.join(LIST);
        let text = match fs_err::read_to_string(&list) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Foreign),
            other => other.map_err(at("read", &list))?,
        };
        let Ok(known) = serde_json::from_str::<InstalledFiles>(&text) else {
            return Ok(Found::Foreign);
        };
        let mut edited = Vec::new();
        for (name, hash) in &known.files {
            let path = self.0.join(name);
            match fs_err::read(&path) {
                // One that the person took away is no loss to anybody.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(at("read", &path)(error)),
                Ok(bytes) if hash_of(&bytes) == *hash => {}
                Ok(_) => edited.push(path),
            }
        }
        let files = known
            .files
            .into_keys()
            .filter(|name| is_inside(name))
            .collect();
        Ok(Found::Ours { files, edited })
    }

    /// Writes the files and the list.
    pub fn write(&self, files: &[(&str, &str)]) -> Result<(), CliError> {
        let mut list = InstalledFiles {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstalledFiles::default()
        };
        // The list first: whatever is written after it can be taken away again.
        for (name, text) in files {
            list.files
                .insert((*name).to_owned(), hash_of(text.as_bytes()));
        }
        let text = serde_json::to_string_pretty(&list)
            .map_err(|error| CliError::system("write a list", error.into()))?;
        self.put(LIST, &(text + "\n"))?;
        files
            .iter()
            .try_for_each(|(name, text)| self.put(name, text))
    }

    fn put(&self, name: &str, text: &str) -> Result<(), CliError> {
        let path = self.0.join(name);
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent).map_err(at("make", parent))?;
        }
        fs_err::write(&path, text).map_err(at("write", &path))
    }

    /// Removes these files and what is empty then; gives what else is there.
    pub fn remove(&self, files: &[String]) -> Result<Vec<PathBuf>, CliError> {
        let all = files.iter().map(String::as_str).chain([LIST]);
        let mut folders = vec![self.0.clone()];
        for name in all {
            let path = self.0.join(name);
            match fs_err::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at("remove", &path)(error));
                }
                _ => {}
            }
            folders.extend(path.parent().map(Path::to_owned));
        }
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        folders.dedup();
        for folder in folders {
            // One that is not empty holds something of the person's.
            drop(fs_err::remove_dir(folder));
        }
        let rest = fs_err::read_dir(&self.0).into_iter().flatten().flatten();
        Ok(rest.map(|entry| entry.path()).collect())
    }
}

/// A list may have been edited, too: nothing outside of the folder is touched for it.
fn is_inside(name: &str) -> bool {
    let plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    Path::new(name).components().all(plain)
}

fn hash_of(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[("a.md", "a"), ("deep/b.md", "b")];

    fn world() -> (tempfile::TempDir, Folder) {
        let temp = tempfile::TempDir::new().unwrap();
        let folder = Folder::at(temp.path().join("skills/x"));
        (temp, folder)
    }

    #[test]
    fn exactly_what_was_written_is_removed() {
        let (_temp, folder) = world();
        assert_eq!(folder.look().unwrap(), Found::Nothing);
        folder.write(FILES).unwrap();
        std::fs::write(folder.path().join("deep/mine.md"), "mine").unwrap();
        let Found::Ours { files, edited } = folder.look().unwrap() else {
            panic!("not ours");
        };
        assert_eq!((files.len(), edited.len()), (2, 0));
        assert_eq!(folder.remove(&files).unwrap(), [folder.path().join("deep")]);
        assert!(folder.path().join("deep/mine.md").is_file());
        std::fs::remove_dir_all(folder.path()).unwrap();
        folder.write(FILES).unwrap();
        assert!(folder.remove(&files).unwrap().is_empty());
        assert!(!folder.path().exists());
        assert!(folder.path().parent().unwrap().exists(), "not ours");
    }

    #[test]
    fn what_a_person_edited_is_told_and_a_list_names_nothing_outside() {
        let (temp, folder) = world();
        folder.write(FILES).unwrap();
        std::fs::write(folder.path().join("a.md"), "better").unwrap();
        let Found::Ours { edited, .. } = folder.look().unwrap() else {
            panic!("not ours");
        };
        assert_eq!(edited, [folder.path().join("a.md")]);
        let list = folder.path().join(LIST);
        let text = std::fs::read_to_string(&list)
            .unwrap()
            .replace("a.md", "../../out.md");
        std::fs::write(&list, text).unwrap();
        std::fs::write(temp.path().join("out.md"), "a").unwrap();
        let Found::Ours { files, .. } = folder.look().unwrap() else {
            panic!("not ours");
        };
        assert_eq!(files, ["deep/b.md"]);
    }
}
