//! Files in the engine: pieces under subjects of their own, then one message that names them.

use std::path::Path;
use std::time::Duration;

use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use descartes_bridge::{EngineError, subject};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::connection::Connection;

const STREAM: &str = "GIT";
const PIECE_BYTES: usize = 512 * 1024;

/// One piece, on a slow line.
const PIECE_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the pieces are, and what they come to.
#[derive(Serialize, Deserialize)]
struct Manifest {
    upload: String,
    pieces: u64,
    size: u64,
    sha256: String,
}

fn manifest_subject(name: &str) -> String {
    format!("git.{}", subject::word(name))
}

fn piece_subject(name: &str, upload: &str, number: u64) -> String {
    format!("git.{}.{upload}.{number}", subject::word(name))
}

pub async fn put(connection: &Connection, name: &str, file: &Path) -> Result<(), EngineError> {
    let mut input = tokio::fs::File::open(file).await.map_err(at(file))?;
    let inbox = connection.client.new_inbox();
    let upload = inbox.rsplit('.').next().unwrap_or_default().to_owned();
    let (mut hash, mut size, mut pieces) = (Sha256::new(), 0, 0);
    loop {
        let piece = read_piece(&mut input).await.map_err(at(file))?;
        if piece.is_empty() {
            break;
        }
        hash.update(&piece);
        size += piece.len() as u64;
        let subject = piece_subject(name, &upload, pieces);
        connection
            .publish(&subject, HeaderMap::new(), Bytes::from(piece))
            .await?;
        pieces += 1;
    }
    let manifest = Manifest {
        upload,
        pieces,
        size,
        sha256: super::tls::hex(&hash.finalize()),
    };
    let manifest =
        serde_json::to_vec(&manifest).map_err(|error| EngineError::Other(error.to_string()))?;
    let subject = manifest_subject(name);
    connection
        .publish(&subject, HeaderMap::new(), Bytes::from(manifest))
        .await
        .map(drop)
}

pub async fn get(connection: &Connection, name: &str, file: &Path) -> Result<(), EngineError> {
    let missing = || EngineError::NoObject(name.to_owned());
    let stored = read_last(connection, &manifest_subject(name)).await?;
    let manifest: Manifest = match stored {
        Some(bytes) if !bytes.is_empty() => serde_json::from_slice(&bytes)
            .map_err(|error| EngineError::Other(format!("the object `{name}`: {error}")))?,
        _ => return Err(missing()),
    };
    let part = file.with_extension("part");
    let mut output = tokio::fs::File::create(&part).await.map_err(at(&part))?;
    let (mut hash, mut size) = (Sha256::new(), 0);
    for number in 0..manifest.pieces {
        let subject = piece_subject(name, &manifest.upload, number);
        let piece = read_last(connection, &subject).await?.ok_or_else(missing)?;
        hash.update(&piece);
        size += piece.len() as u64;
        output.write_all(&piece).await.map_err(at(&part))?;
    }
    output.sync_all().await.map_err(at(&part))?;
    if size != manifest.size || super::tls::hex(&hash.finalize()) != manifest.sha256 {
        return Err(EngineError::Other(format!(
            "the object `{name}` did not arrive as it was stored"
        )));
    }
    tokio::fs::rename(&part, file).await.map_err(at(file))
}

pub async fn delete(connection: &Connection, name: &str) -> Result<(), EngineError> {
    let subject = manifest_subject(name);
    for filter in [subject.clone(), format!("{subject}.>")] {
        let what = format!("STREAM.PURGE.{STREAM}");
        connection
            .api::<Value>(&what, &json!({ "filter": filter }))
            .await?;
    }
    Ok(())
}

/// The last message of a subject, as it is.
async fn read_last(connection: &Connection, subject: &str) -> Result<Option<Bytes>, EngineError> {
    let get = format!("$JS.API.DIRECT.GET.{STREAM}.{subject}");
    let answer = connection
        .ask(&get, None, Bytes::new(), PIECE_TIMEOUT)
        .await?;
    match status(&answer) {
        None => Ok(Some(answer.payload)),
        Some(404) => Ok(None),
        Some(code) => Err(EngineError::Other(format!("the engine answered {code}"))),
    }
}

fn status(message: &Message) -> Option<u16> {
    message.status.map(|status| status.as_u16())
}

async fn read_piece(input: &mut tokio::fs::File) -> std::io::Result<Vec<u8>> {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    input
        .take(PIECE_BYTES as u64)
        .read_to_end(&mut piece)
        .await?;
    Ok(piece)
}

fn at(file: &Path) -> impl Fn(std::io::Error) -> EngineError {
    move |error| EngineError::Other(format!("{}: {error}", file.display()))
}
