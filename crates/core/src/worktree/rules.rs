//! The ignore files of a folder that is no git work tree.

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::deadline::Deadline;
use super::error::Stop;
use super::file::open;
use super::findings::{InnerGit, Judge, SweepVerdict, Unknown};
use super::kind::FileKind;
use super::pattern::Pattern;

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
    fn verdict(&mut self, unknown: &Unknown) -> SweepVerdict {
        for folder in unknown.path.ancestors().skip(1) {
            let Ok(below) = unknown.path.strip_prefix(folder) else {
                continue;
            };
            let path = below.as_os_str().as_bytes();
            let said = self.patterns(folder).iter().rev().find(|pattern| {
                (!pattern.folders_only || unknown.kind == FileKind::Folder) && pattern.matches(path)
            });
            match said {
                Some(pattern) if pattern.negated => return SweepVerdict::Counts,
                Some(_) => return SweepVerdict::Ignored,
                None => {}
            }
        }
        SweepVerdict::Counts
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
    fn judge(
        &mut self,
        unknown: &[Unknown],
        deadline: Deadline,
    ) -> Result<Vec<SweepVerdict>, Stop> {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Command, Stdio};
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use tempfile::TempDir;

    use super::*;

    const FILES: [&str; 14] = [
        "a", "b.log", "ab", "d/a", "d/b.log", "d/e/a", "d/e/ab", "d/e/f/b", "e/d/a", "a b", "#a",
        "!a", "[a]", "d/-",
    ];

    /// A repository with those files; the ignore files are written for each case.
    static REPOSITORY: LazyLock<TempDir> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        let init = Command::new("git")
            .args(["init", "-q"])
            .current_dir(&dir)
            .status()
            .unwrap();
        assert!(init.success());
        for file in FILES {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        dir
    });

    fn line() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "a",
            "b",
            "d",
            "e",
            "f",
            "ab",
            ".log",
            "*",
            "**",
            "**/",
            "/**",
            "/",
            "/",
            "?",
            "[ab]",
            "[!a]",
            "[^a-c]",
            "[[:alpha:]]",
            "[]a]",
            "[a",
            "[-a]",
            "\\",
            "!",
            "#",
            " ",
            "-",
            "]",
        ]);
        prop::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
    }

    fn by_git(dir: &Path) -> Vec<&'static str> {
        let out = Command::new("git")
            .args(["check-ignore", "--no-index", "--"])
            .args(FILES)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(out.status.code().is_some_and(|code| code < 2));
        let ignored: Vec<&[u8]> = crate::worktree::text::lines(&out.stdout).collect();
        FILES
            .into_iter()
            .filter(|file| ignored.contains(&file.as_bytes()))
            .collect()
    }

    fn by_us(dir: &Path) -> Vec<&'static str> {
        let mut rules = IgnoreRules::new(dir.to_path_buf());
        let mut ignored = |path: &Path, kind| {
            let unknown = Unknown {
                path: path.to_path_buf(),
                kind,
            };
            rules.verdict(&unknown) == SweepVerdict::Ignored
        };
        let mut is_ignored = |file: &str| {
            let path = Path::new(file);
            let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
            folders.retain(|folder| !folder.as_os_str().is_empty());
            folders
                .iter()
                .rev()
                .any(|folder| ignored(folder, FileKind::Folder))
                || ignored(path, FileKind::File)
        };
        FILES.into_iter().filter(|file| is_ignored(file)).collect()
    }

    /// The same few cases every time; `PROPTEST_CASES=10000` for a long run over new ones.
    fn config() -> ProptestConfig {
        let wished = std::env::var("PROPTEST_CASES")
            .ok()
            .and_then(|n| n.parse().ok());
        let rng_seed = wished.map_or(RngSeed::Fixed(1), |_| RngSeed::Random);
        let cases = wished.unwrap_or(200);
        ProptestConfig {
            cases,
            rng_seed,
            failure_persistence: None,
            ..Default::default()
        }
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn the_rules_are_those_of_git(
            top in prop::collection::vec(line(), 0..4),
            below in prop::collection::vec(line(), 0..3),
        ) {
            let dir = REPOSITORY.path();
            fs::write(dir.join(".gitignore"), top.join("\n")).unwrap();
            fs::write(dir.join("d/.gitignore"), below.join("\r\n")).unwrap();
            prop_assert_eq!(by_us(dir), by_git(dir));
        }
    }
}
