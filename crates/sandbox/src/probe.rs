//! Tries, inside a sandbox, whether it holds what it promises. A sandbox that fails is found before the first
//! iteration: agents that are denied something mostly say nothing.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use descartes_kernel::sandbox::{ProbeOrder, stand_in};

/// Probes that may try one folder at the same time.
const MOST_PROBES: u32 = 1000;

/// Tries everything and prints what is not as it must be, a line each.
pub(crate) fn run(order: &OsString) -> i32 {
    let order = order
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(order): Option<ProbeOrder> = order else {
        return 2;
    };
    let write = order.write.iter().filter_map(|path| takes_no_file(path));
    let locked = order.locked.iter().filter_map(|path| is_open(path));
    let hidden = order.hidden.iter().filter_map(|path| is_seen(path));
    let wrong: Vec<String> = write.chain(locked).chain(hidden).collect();
    let mut out = io::stdout();
    for line in &wrong {
        let _ = writeln!(out, "{line}");
    }
    i32::from(!wrong.is_empty())
}

fn takes_no_file(folder: &Path) -> Option<String> {
    let error = make_a_file(folder).err()?;
    Some(format!("{} cannot be written: {error}", folder.display()))
}

/// Makes a file in a folder and takes it away again.
fn make_a_file(folder: &Path) -> io::Result<()> {
    // In a process namespace of its own each probe has the same number, and two may try the same folder at once.
    for number in 0..MOST_PROBES {
        let file = folder.join(format!(".descartes-probe-{number}"));
        match OpenOptions::new().write(true).create_new(true).open(&file) {
            Ok(_) => return std::fs::remove_file(&file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn is_open(path: &Path) -> Option<String> {
    let open = match path.is_dir() {
        true => make_a_file(path).is_ok(),
        false => OpenOptions::new().append(true).open(path).is_ok(),
    };
    open.then(|| format!("{} is not read-only", path.display()))
}

fn is_seen(path: &Path) -> Option<String> {
    let seen = match path.is_dir() {
        true => std::fs::read_dir(path).is_ok_and(|entries| {
            let mut entries = entries.flatten();
            entries.any(|entry| entry.path().is_file() && std::fs::File::open(entry.path()).is_ok())
        }),
        false => std::fs::read(path).is_ok_and(|bytes| bytes != stand_in(path).1.as_bytes()),
    };
    seen.then(|| format!("{} is not hidden", path.display()))
}
