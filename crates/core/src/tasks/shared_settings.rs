//! Settings of the user's repository that would keep git from working in the user's checkout. Our own
//! calls do not go by them, so that nobody would notice before the loop is over.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use descartes_kernel::tasks::changed_setting;

use crate::worktree::Git;
use crate::worktree::deadline::Deadline;

const KEYS: [&str; 2] = ["core.bare", "core.worktree"];
const ASKING: Duration = Duration::from_secs(10);

/// The settings as they were when the loop began.
#[derive(Debug)]
pub(super) struct SharedSettings {
    git: Git,
    common: PathBuf,
    before: [Option<String>; 2],
    /// What was told.
    told: Mutex<Vec<String>>,
}

/// The last value of a key in what `git config --null` lists; empty where it has none.
fn value_of(listed: &str, key: &str) -> Option<String> {
    let entries = listed.split_terminator('\0').rev();
    let mut entries = entries.map(|entry| entry.split_once('\n').unwrap_or((entry, "")));
    let (_, value) = entries.find(|(name, _)| *name == key)?;
    Some(value.trim().to_owned())
}

impl SharedSettings {
    /// Those of the repository with this folder; `note` holds them for later hosts.
    pub(super) fn begin(git: Git, common: &Path, note: &Path, is_new: bool) -> Self {
        let mut settings = Self {
            git,
            common: common.to_owned(),
            before: [None, None],
            told: Mutex::default(),
        };
        let noted = fs_err::read_to_string(note).ok().filter(|_| !is_new);
        let noted = noted.and_then(|text| serde_json::from_str(&text).ok());
        settings.before = noted.unwrap_or_else(|| {
            let now = settings.now();
            // Without the note a later host compares with what it finds itself.
            if let Ok(text) = serde_json::to_string(&now) {
                drop(fs_err::write(note, text));
            }
            now
        });
        settings
    }

    fn now(&self) -> [Option<String>; 2] {
        let call = self.git.read(&self.common).args(["config", "--file"]);
        let call = call.arg(self.common.join("config"));
        let call = call.args(["--null", "--get-regexp", r"^core\.(bare|worktree)$"]);
        let asked = call.run(Deadline::after(ASKING)).ok();
        let asked = asked.filter(|asked| asked.code == Some(0));
        let listed = asked.map(|asked| String::from_utf8_lossy(&asked.stdout).into_owned());
        KEYS.map(|key| value_of(listed.as_deref()?, key))
    }

    /// What is to be told of them now.
    pub(super) fn changes(&self) -> Vec<String> {
        let rows = KEYS.iter().zip(&self.before).zip(self.now());
        let words = rows.filter_map(|((key, before), now)| {
            changed_setting(key, before.as_deref(), now.as_deref())
        });
        words.collect()
    }

    /// The same, without what was told already.
    pub(super) fn news(&self) -> Vec<String> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut news = self.changes();
        news.retain(|words| !told.contains(words));
        told.extend(news.iter().cloned());
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_key_counts() {
        let listed = "core.bare\nfalse\0core.worktree\n../a b\0core.bare\0core.worktree\n../a\nb\0";
        assert_eq!(value_of(listed, "core.bare").as_deref(), Some(""));
        assert_eq!(
            value_of(listed, "core.worktree").as_deref(),
            Some("../a\nb")
        );
        assert_eq!(value_of("", "core.bare"), None);
    }
}
