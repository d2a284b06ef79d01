//! Paths as text, in journals, state files and `--json`: any bytes are a path, and JSON has only
//! text.
//!
//! A path in UTF-8 is written as it is. Another one is written as `file:` and the path with every
//! byte that is not plain ASCII as `%FF`, as in a URL; so is one that begins with `file:` itself, so
//! that every text means one path.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const MARK: &str = "file:";

/// A path as text that [`decode`] makes the same path of.
pub fn encode(path: &Path) -> Cow<'_, str> {
    match path.to_str() {
        Some(text) if !text.starts_with(MARK) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(path)),
    }
}

fn escaped(path: &Path) -> String {
    let mut text = MARK.to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' => text.push_str("%25"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The path that a text means.
pub fn decode(text: &str) -> PathBuf {
    let Some(escaped) = text.strip_prefix(MARK) else {
        return PathBuf::from(text);
    };
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16);
        match (first, after) {
            (b'%', [high, low, more @ ..]) if hex(high).is_some() && hex(low).is_some() => {
                let value = hex(high).unwrap_or(0) * 16 + hex(low).unwrap_or(0);
                bytes.push(u8::try_from(value).unwrap_or(b'?'));
                rest = more;
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// For `#[serde(with = …)]` on a path.
pub mod one {
    use super::{decode, encode};
    use serde::{Deserialize, Deserializer, Serializer};
    use std::borrow::Cow;
    use std::path::{Path, PathBuf};

    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode(path))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(decode(&Cow::<str>::deserialize(from)?))
    }
}

/// For `#[serde(with = …)]` on a path that may be missing.
pub mod maybe {
    use super::{decode, encode};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::path::PathBuf;

    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(encode).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        Ok(text.as_deref().map(decode))
    }
}

/// For `#[serde(with = …)]` on a list of paths.
pub mod many {
    use super::{decode, encode};
    use serde::{Deserialize, Deserializer, Serializer};
    use std::path::PathBuf;

    /// Writes them.
    pub fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| encode(path)))
    }

    /// Reads them.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        Ok(texts.iter().map(|text| decode(text)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn every_path_is_one_text_and_back() {
        for (bytes, text) in [
            (&b"/home/u/proj"[..], "/home/u/proj"),
            ("/home/ü/100%".as_bytes(), "/home/ü/100%"),
            (b"/home/\xff\xfe/a b%", "file:/home/%FF%FE/a b%25"),
            ("/ü/\u{fffd}".as_bytes(), "/ü/\u{fffd}"),
            (b"\xc3\xbc\xff", "file:%C3%BC%FF"),
            (b"file:x%41", "file:file:x%2541"),
            (b"", ""),
        ] {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(encode(path), text);
            assert_eq!(decode(text), path);
        }
        // What nobody writes is read all the same.
        assert_eq!(decode("file:/a%"), Path::new("/a%"));
        assert_eq!(decode("file:/a%zz"), Path::new("/a%zz"));
    }

    #[test]
    fn fields_of_all_three_kinds_survive_json() {
        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        struct All {
            #[serde(with = "one")]
            one: PathBuf,
            #[serde(with = "maybe", default)]
            maybe: Option<PathBuf>,
            #[serde(with = "many", default)]
            many: Vec<PathBuf>,
        }
        let odd = PathBuf::from(OsStr::from_bytes(b"/\xff"));
        let all = All {
            one: odd.clone(),
            maybe: Some(odd.clone()),
            many: vec![odd, "/plain".into()],
        };
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(
            text,
            r#"{"one":"file:/%FF","maybe":"file:/%FF","many":["file:/%FF","/plain"]}"#
        );
        assert_eq!(serde_json::from_str::<All>(&text).unwrap(), all);
        let bare: All = serde_json::from_str(r#"{"one":"/a","maybe":null}"#).unwrap();
        assert_eq!((bare.maybe, bare.many), (None, Vec::new()));
    }
}
