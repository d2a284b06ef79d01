//! Bytes in JSON: text as it is, so that the pipe can be read, anything else as base64.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum BytesInJson<'a> {
    Text(Cow<'a, str>),
    Encoded { base64: String },
}

pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let shown = match std::str::from_utf8(bytes) {
        Ok(text) => BytesInJson::Text(Cow::Borrowed(text)),
        Err(_) => BytesInJson::Encoded {
            base64: STANDARD.encode(bytes),
        },
    };
    shown.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    match BytesInJson::deserialize(deserializer)? {
        BytesInJson::Text(text) => Ok(text.into_owned().into_bytes()),
        BytesInJson::Encoded { base64 } => STANDARD.decode(base64).map_err(D::Error::custom),
    }
}
