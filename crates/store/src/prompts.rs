//! Prompts as they were sent, each text stored once.

use crate::layout::{LoopDir, hex};
use crate::ops::{self, IoError, Sync};
use crate::safe_open;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The name a prompt is stored under.
pub fn prompt_hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// Stores a prompt and returns its hash. One that is there already costs a look.
pub fn store_prompt(dir: &LoopDir, text: &str, sync: Sync) -> Result<String, IoError> {
    let hash = prompt_hash(text);
    let path = prompt_path(dir, &hash);
    if !is_whole(&path, text) {
        ops::make_dir(&dir.prompts(), sync)?;
        ops::replace_shared(&path, text.as_bytes(), sync)?;
    }
    Ok(hash)
}

fn is_whole(path: &Path, text: &str) -> bool {
    safe_open::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == text.len() as u64)
}

/// Where the prompt with this hash is stored.
pub fn prompt_path(dir: &LoopDir, hash: &str) -> PathBuf {
    dir.prompts().join(hash)
}

/// Reads a stored prompt back.
pub fn read_prompt(dir: &LoopDir, hash: &str) -> Result<String, IoError> {
    let path = prompt_path(dir, hash);
    let bytes = ops::read(&path)?;
    let invalid = |error| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
    String::from_utf8(bytes)
        .map_err(invalid)
        .map_err(ops::at("read", &path))
}
