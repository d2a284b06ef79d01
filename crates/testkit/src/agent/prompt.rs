//! The prompt, by whichever way it came.

use std::env;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;

use super::Trouble;

/// How a prompt can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Argument,
    Stdin,
    Environment,
    File,
}

impl Source {
    /// The source of this name; without one, the first that is there.
    pub(super) fn from_name(name: Option<&str>) -> Result<Self, Trouble> {
        Ok(match name {
            Some("arg") => Self::Argument,
            Some("stdin") => Self::Stdin,
            Some("env") => Self::Environment,
            Some("file") => Self::File,
            Some(other) => return Err(Trouble::Script(format!("no prompt comes by {other:?}"))),
            None if env::args_os().len() > 1 => Self::Argument,
            None if env::var_os("PROMPT").is_some() => Self::Environment,
            None => Self::Stdin,
        })
    }

    /// The prompt's bytes.
    pub(super) fn read(self) -> Result<Vec<u8>, Trouble> {
        let last = || env::args_os().skip(1).last().unwrap_or_default();
        match self {
            Self::Argument => Ok(last().into_vec()),
            Self::Environment => Ok(env::var_os("PROMPT").unwrap_or_default().into_vec()),
            Self::File => std::fs::read(last()).map_err(|error| {
                Trouble::system(format!("prompt file {}", last().to_string_lossy()), error)
            }),
            Self::Stdin => {
                let mut bytes = Vec::new();
                let read = std::io::stdin().lock().read_to_end(&mut bytes);
                read.map_err(|error| Trouble::system("standard input", error))?;
                Ok(bytes)
            }
        }
    }
}
