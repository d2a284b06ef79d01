//! A file of a line or two, where an agent may have put something else: a pipe that nobody writes, a device, a
//! file of gigabytes.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

/// Files of git's that are read here are far smaller.
const LARGEST: u64 = 1 << 20;

/// [`file_text`] of one that holds a line or two.
pub fn small_text(path: impl AsRef<Path>) -> io::Result<String> {
    file_text(path, LARGEST)
}

/// The text of a regular file, links followed. It never waits: all else, and what is too large, is an error.
pub fn file_text(path: impl AsRef<Path>, largest: u64) -> io::Result<String> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(OFlag::O_NONBLOCK.bits());
    let file = file.open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no file"));
    }
    if meta.len() > largest {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut text = String::new();
    file.take(largest).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir, write};

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn only_a_small_file_is_read_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        write(at("file"), "gitdir: x\n").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        create_dir(at("folder")).unwrap();
        File::create(at("large"))
            .unwrap()
            .set_len(LARGEST + 1)
            .unwrap();
        for (name, is_read) in [
            ("file", true),
            ("link", true),
            ("pipe", false),
            ("folder", false),
            ("large", false),
            ("missing", false),
        ] {
            assert_eq!(small_text(at(name)).is_ok(), is_read, "{name}");
        }
    }
}
