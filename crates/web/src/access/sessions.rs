//! Browsers that are signed in. Each has a small file in the state folder, named by a hash of its cookie and
//! of the token by which it came in: neither is in it, new tokens end all of them, and every server of
//! this user sees at once who signed out. They outlive a server, so that it can be started again.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use descartes_store::layout::StateRoot;
use descartes_store::{safe_open, secret_file};
use tokio::sync::watch;

use super::tokens::random_text;
use super::{Access, Tokens};
use crate::WebError;

const FOLDER: &str = "web-sessions";
/// A browser stays signed in so long.
pub const SESSION: Duration = Duration::from_secs(30 * 24 * 3600);
/// Browsers at the same time; one more ends the oldest.
const MOST: usize = 64;

/// A browser that is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub access: Access,
    /// The name of its file.
    name: String,
    /// In seconds since 1970.
    until: u64,
}

#[derive(Debug)]
pub struct Sessions {
    folder: PathBuf,
    /// Changes when a session may be over: streams look whether it is theirs.
    ended: watch::Sender<Option<SystemTime>>,
}

impl Sessions {
    pub fn of(root: &StateRoot) -> Self {
        Self {
            folder: root.path().join(FOLDER),
            ended: watch::Sender::new(None),
        }
    }

    /// Signs a browser in; gives the value of its cookie.
    pub fn begin(&self, tokens: &Tokens, access: Access) -> Result<String, WebError> {
        let now = seconds(SystemTime::now());
        self.make_room(now);
        let cookie = random_text()?;
        let file = self.folder.join(tokens.session_name(access, &cookie));
        let until = now.saturating_add(SESSION.as_secs());
        secret_file::write(&file, format!("{until}\n").as_bytes())?;
        Ok(cookie)
    }

    /// The session of a cookie, while it lasts.
    pub fn find(&self, tokens: &Tokens, cookie: &str) -> Option<Session> {
        [Access::Steer, Access::Read]
            .into_iter()
            .find_map(|access| {
                let name = tokens.session_name(access, cookie);
                let until = lasts_until(&self.folder.join(&name))?;
                (until > seconds(SystemTime::now())).then_some(Session {
                    access,
                    name,
                    until,
                })
            })
    }

    /// Signs a browser out.
    pub fn end(&self, session: &Session) -> Result<(), WebError> {
        secret_file::remove(&self.folder.join(&session.name))?;
        self.ended.send_replace(None);
        Ok(())
    }

    /// Signs every browser out: the files of those that came in by tokens that are gone are of no use.
    pub fn end_all(root: &StateRoot) {
        // What stays opens nothing.
        let _ = safe_open::remove_tree(&root.path().join(FOLDER));
    }

    /// Looks whether another server signed somebody out.
    pub fn refresh(&self) {
        let changed = safe_open::metadata(&self.folder).and_then(|meta| meta.modified());
        let changed = changed.ok();
        self.ended
            .send_if_modified(|known| std::mem::replace(known, changed) != changed);
    }

    /// Waits until a session is over.
    pub fn over(&self, session: Session) -> impl Future<Output = ()> + Send + use<> {
        let mut ended = self.ended.subscribe();
        let file = self.folder.join(&session.name);
        async move {
            while lasts_until(&file).is_some() {
                let now = seconds(SystemTime::now());
                let left = Duration::from_secs(session.until.saturating_sub(now));
                if !matches!(
                    tokio::time::timeout(left, ended.changed()).await,
                    Ok(Ok(()))
                ) {
                    return;
                }
            }
        }
    }

    /// Removes what is over, and the oldest where there are too many.
    fn make_room(&self, now: u64) {
        let names = safe_open::names_in(&self.folder).unwrap_or_default();
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        let known = names.map(|name| (lasts_until(&self.folder.join(&name)).unwrap_or(0), name));
        for name in to_drop(known.collect(), now) {
            // One that stays is tried again at the next sign-in.
            let _ = secret_file::remove(&self.folder.join(name));
        }
    }
}

/// What the file of a session says; `None` where there is none.
fn lasts_until(file: &Path) -> Option<u64> {
    let text = secret_file::read(file).ok().flatten()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

/// Which of these have to go before there is one more.
fn to_drop(mut known: Vec<(u64, String)>, now: u64) -> Vec<String> {
    known.sort();
    let over = known.iter().filter(|(until, _)| *until <= now).count();
    let many = (known.len() + 1).saturating_sub(MOST);
    known.truncate(over.max(many));
    known.into_iter().map(|(_, name)| name).collect()
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_goes_and_the_oldest_make_room() {
        let known = |count: u64| -> Vec<(u64, String)> {
            let one = |until: u64| (until, until.to_string());
            (0..count).rev().map(one).collect()
        };
        assert_eq!(to_drop(known(3), 1), ["0", "1"]);
        assert_eq!(to_drop(known(0), 1), Vec::<String>::new());
        let most = MOST as u64;
        let later = |now| {
            let mut known = known(most);
            known.iter_mut().for_each(|(until, _)| *until += 10);
            to_drop(known, now)
        };
        assert_eq!(later(0), ["0"]);
        assert_eq!(later(12), ["0", "1", "2"]);
        assert_eq!(to_drop(known(most - 1), 0), ["0"]);
    }
}
