//! Which program guards process trees.

use std::path::PathBuf;

/// The program that is executed as the guard of process trees.
#[derive(Clone, Debug)]
pub struct GuardProgram {
    /// The program: usually this very binary.
    pub exe: PathBuf,
    /// Its arguments: the hidden verb.
    pub args: Vec<String>,
}
