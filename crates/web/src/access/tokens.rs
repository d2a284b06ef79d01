//! The two tokens: one that may steer, one that may only read. They lie in the state folder, mode
//! 0600; a browser is given a cookie of its own instead, so that neither it nor a copy of its cookies has one.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use descartes_store::layout::StateRoot;
use descartes_store::{safe_open, secret_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Access;
use crate::WebError;

const FILE: &str = "web-tokens.json";

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// May look and steer.
    full: String,
    /// May only look.
    read: String,
}

/// Never shown: a log must not tell them.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    fn random() -> Result<Self, WebError> {
        Ok(Self {
            full: random_text()?,
            read: random_text()?,
        })
    }

    /// What a bearer token may do; `None` where it is none of ours. Both are always compared.
    pub fn check(&self, given: &str) -> Option<Access> {
        pick(given, &self.full, &self.read)
    }

    /// How the file of a session is called: nobody can tell the cookie by it, and with another token it
    /// is another one.
    pub fn session_name(&self, access: Access, cookie: &str) -> String {
        let token = match access {
            Access::Steer => &self.full,
            Access::Read => &self.read,
        };
        let mut hash = Sha256::new();
        for part in ["descartes web session", token, cookie] {
            hash.update(part.as_bytes());
            hash.update(b"\0");
        }
        hex(&hash.finalize())
    }
}

fn pick(given: &str, full: &str, read: &str) -> Option<Access> {
    let is = |ours: &str| bool::from(given.as_bytes().ct_eq(ours.as_bytes()));
    match (is(full), is(read)) {
        (true, _) => Some(Access::Steer),
        (false, true) => Some(Access::Read),
        (false, false) => None,
    }
}

/// 256 bits that nobody guesses.
pub fn random_text() -> Result<String, WebError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| WebError::Random(error.to_string()))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The tokens as they stand in their file. Another process may make new ones: then these are
/// worth nothing any more, and whoever came in by them is let go.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    held: RwLock<HeldTokens>,
}

#[derive(Debug)]
struct HeldTokens {
    tokens: Arc<Tokens>,
    written: Option<SystemTime>,
    /// Counts how often they were made anew.
    generation: u64,
}

impl TokenFile {
    /// The tokens of a state root; made where there are none.
    pub fn open(root: &StateRoot) -> Result<Self, WebError> {
        let path = root.path().join(FILE);
        let tokens = match load(&path)? {
            Some(tokens) => tokens,
            None => make(&path)?,
        };
        let held = HeldTokens {
            written: written(&path),
            tokens: Arc::new(tokens),
            generation: 0,
        };
        Ok(Self {
            path,
            held: RwLock::new(held),
        })
    }

    /// Makes new tokens: the old ones, and all cookies, are worth nothing from then on.
    pub fn replace(root: &StateRoot) -> Result<(), WebError> {
        make(&root.path().join(FILE)).map(drop)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn current(&self) -> Arc<Tokens> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&held.tokens)
    }

    /// Rises whenever the tokens are others: open streams end then.
    pub fn generation(&self) -> u64 {
        self.held
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .generation
    }

    /// Looks whether somebody made new ones. A file that is gone or cannot be read lets nobody in.
    pub fn refresh(&self) {
        let now = written(&self.path);
        if now.is_some() && now == self.last_written() {
            return;
        }
        let loaded = load(&self.path).ok().flatten();
        let Some(tokens) = loaded.or_else(|| Tokens::random().ok()) else {
            return;
        };
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if *held.tokens != tokens {
            held.tokens = Arc::new(tokens);
            held.generation += 1;
        }
        held.written = now;
    }

    fn last_written(&self) -> Option<SystemTime> {
        self.held
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .written
    }
}

fn written(path: &Path) -> Option<SystemTime> {
    safe_open::metadata(path).ok()?.modified().ok()
}

fn load(path: &Path) -> Result<Option<Tokens>, WebError> {
    let Some(bytes) = secret_file::read(path)? else {
        return Ok(None);
    };
    if secret_file::is_open_to_others(path) {
        return Err(WebError::OpenTokens(path.to_owned()));
    }
    let tokens: Tokens =
        serde_json::from_slice(&bytes).map_err(|_| WebError::BadTokens(path.to_owned()))?;
    // A short one was typed by somebody, and can be guessed.
    match tokens.full.len() >= 32 && tokens.read.len() >= 32 && tokens.full != tokens.read {
        true => Ok(Some(tokens)),
        false => Err(WebError::BadTokens(path.to_owned())),
    }
}

fn make(path: &Path) -> Result<Tokens, WebError> {
    let tokens = Tokens::random()?;
    let mut text = serde_json::to_vec_pretty(&tokens).unwrap_or_default();
    text.push(b'\n');
    secret_file::write(path, &text)?;
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_opens_its_own_door_and_no_other() {
        let tokens = Tokens::random().unwrap();
        assert_eq!(tokens.check(&tokens.full), Some(Access::Steer));
        assert_eq!(tokens.check(&tokens.read), Some(Access::Read));
        let others = Tokens::random().unwrap();
        let names = [&tokens, &others].map(|of| {
            [Access::Steer, Access::Read].map(|access| of.session_name(access, "cookie"))
        });
        let names: std::collections::BTreeSet<&String> = names.iter().flatten().collect();
        assert_eq!(names.len(), 4, "{names:?}");
        for wrong in ["", "x", &tokens.full[1..], &tokens.full.to_uppercase()] {
            assert_eq!(tokens.check(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{tokens:?}"), "Tokens");
    }
}
