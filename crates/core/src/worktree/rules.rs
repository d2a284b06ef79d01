//! The ignore files of a folder that is no git work tree.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::deadline::Deadline;
use super::error::Stop;
use super::file::open;
use super::folder::FileKind;
use super::pattern::Pattern;
use super::sweep::{InnerGit, Judge, Unknown, Verdict};

/// More than this in an ignore file is no ignore file.
const MAX_FILE: u64 = 1 << 20;

/// The rules, read when they are first needed.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    root: PathBuf,
    files: HashMap<PathBuf, Vec<Pattern>>,
}

impl IgnoreRules {
    pub(super) fn new(root: PathBuf) -> IgnoreRules {
        IgnoreRules {
            root,
            files: HashMap::new(),
        }
    }

    /// Forgets what was read.
    pub(super) fn clear(&mut self) {
        self.files.clear();
    }

    /// The deepest file that says something decides, and in it the last line.
    fn verdict(&mut self, unknown: &Unknown) -> Verdict {
        for folder in unknown.path.ancestors().skip(1) {
            let Ok(below) = unknown.path.strip_prefix(folder) else {
                continue;
            };
            let path = below.as_os_str().as_bytes();
            let said = self.patterns(folder).iter().rev().find(|pattern| {
                (!pattern.folders_only || unknown.kind == FileKind::Folder) && pattern.matches(path)
            });
            match said {
                Some(pattern) if pattern.negated => return Verdict::Counts,
                Some(_) => return Verdict::Ignored,
                None => {}
            }
        }
        Verdict::Counts
    }

    fn patterns(&mut self, folder: &Path) -> &[Pattern] {
        if !self.files.contains_key(folder) {
            let text = read(&self.root.join(folder).join(".gitignore")).unwrap_or_default();
            let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
            let patterns = text
                .split(|b| *b == b'\n')
                .filter_map(Pattern::parse)
                .collect();
            self.files.insert(folder.to_path_buf(), patterns);
        }
        self.files.get(folder).map_or(&[], Vec::as_slice)
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)
        .ok()?
        .take(MAX_FILE)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

impl Judge for IgnoreRules {
    fn judge(&mut self, unknown: &[Unknown], deadline: Deadline) -> Result<Vec<Verdict>, Stop> {
        let mut verdicts = Vec::with_capacity(unknown.len());
        for unknown in unknown {
            deadline.check()?;
            verdicts.push(self.verdict(unknown));
        }
        Ok(verdicts)
    }

    fn inner_git(&self) -> InnerGit {
        InnerGit::Ordinary
    }
}
