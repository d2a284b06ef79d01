//! The certificate of an engine that listens on a network: made here, known by its hash.

use rcgen::{CertificateParams, DnType, KeyPair};

use super::failure::EngineFailure;
use super::parties::{EngineFolder, write_private};
use crate::nats::tls;

/// Makes a certificate for these names and its key, and returns the hash that join lines pin.
pub fn make(folder: &EngineFolder, hosts: Vec<String>) -> Result<String, EngineFailure> {
    let failed =
        |error: rcgen::Error| EngineFailure::new(format!("cannot make a certificate: {error}"));
    let mut params = CertificateParams::new(hosts).map_err(failed)?;
    params
        .distinguished_name
        .push(DnType::CommonName, "descartes engine");
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    write_private(
        &folder.path("certificate.key"),
        key.serialize_pem().as_bytes(),
    )?;
    write_private(
        &folder.path("certificate.pem"),
        certificate.pem().as_bytes(),
    )?;
    Ok(tls::fingerprint(certificate.der()))
}
