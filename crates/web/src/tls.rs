//! Certificate and key, read before anything is served.

use std::path::Path;
use std::sync::Arc;

use descartes_store::safe_open;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::{TlsFiles, WebError};

pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, WebError> {
    let wrong_certificate = |why: String| WebError::Certificate {
        path: files.certificate.clone(),
        why,
    };
    let wrong_key = |why: String| WebError::Key {
        path: files.key.clone(),
        why,
    };
    let chain = read(&files.certificate).map_err(wrong_certificate)?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&chain)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong_certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong_certificate("no certificate in it".to_owned()));
    }
    let key = read(&files.key).map_err(wrong_key)?;
    if key.windows(9).any(|word| word == b"ENCRYPTED") {
        let why = "it is encrypted; without its password: openssl pkey -in KEY -out plain.pem";
        return Err(wrong_key(why.to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| wrong_key(error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong_certificate(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong_key(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    safe_open::read_user_file(path).map_err(|error| error.to_string())
}
