//! Names as git passes them: bytes, ended by NUL or newline, sometimes quoted.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    split(bytes, b'\n')
}

/// The pieces of `-z` output.
pub(super) fn zero_ended(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    split(bytes, 0)
}

fn split(bytes: &[u8], end: u8) -> impl Iterator<Item = &[u8]> {
    let bytes = bytes.strip_suffix(&[end]).unwrap_or(bytes);
    let any = !bytes.is_empty();
    bytes.split(move |b| *b == end).filter(move |_| any)
}

pub(super) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Paths as `-z --stdin` takes them.
pub(super) fn zero_joined<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}

/// A path for a command that reads one a line, quoted the way git writes odd names itself.
pub(super) fn quoted_line(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    let odd = |b: &u8| b.is_ascii_control() || *b == b'"' || *b == b'\\';
    let mut line = if bytes.iter().any(odd) {
        quote(bytes)
    } else {
        bytes.to_vec()
    };
    line.push(b'\n');
    line
}

/// A path for a variable that holds several, separated by colons.
pub(super) fn path_list_item(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&b':') || bytes.starts_with(b"\"") {
        return OsString::from_vec(quote(bytes));
    }
    path.into()
}

fn quote(bytes: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &b in bytes {
        if b.is_ascii_control() || b == b'"' || b == b'\\' {
            quoted.extend_from_slice(format!("\\{b:03o}").as_bytes());
        } else {
            quoted.push(b);
        }
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_output() {
        assert_eq!(zero_ended(b"").count(), 0);
        assert_eq!(zero_ended(b"a\0b\0").collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(lines(b"a\n\nb").collect::<Vec<_>>(), [&b"a"[..], b"", b"b"]);
    }

    #[test]
    fn odd_names_are_quoted() {
        assert_eq!(quoted_line(Path::new("a b")), b"a b\n");
        assert_eq!(quoted_line(Path::new("a\nb\"")), b"\"a\\012b\\042\"\n");
        assert_eq!(path_list_item(Path::new("/a:b")), "\"/a:b\"");
    }
}
