//! The program that this is.

use std::path::PathBuf;

/// This very binary, also where an update has replaced its file.
pub fn this_program() -> PathBuf {
    let exe = std::env::current_exe().ok().filter(|exe| exe.is_file());
    exe.unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}
