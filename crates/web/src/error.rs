//! Why the server cannot start, and what to type next.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use descartes_client::ClientError;
use descartes_kernel::outcome::exit;
use descartes_store::IoError;

#[derive(Debug, thiserror::Error)]
pub enum WebError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    /// Others could read along, and nothing says that this is meant.
    #[error("{0} can be reached from other machines, and nothing here encrypts")]
    Exposed(SocketAddr),
    #[error("cannot use the certificate {}: {why}", path.display())]
    Certificate { path: PathBuf, why: String },
    #[error("cannot use the key {}: {why}", path.display())]
    Key { path: PathBuf, why: String },
    #[error("{} can be read by other users", .0.display())]
    OpenTokens(PathBuf),
    #[error("{} holds no tokens", .0.display())]
    BadTokens(PathBuf),
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    #[error(transparent)]
    Disk(#[from] IoError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot {what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
}

impl WebError {
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Exposed(_) => exit::USAGE,
            Self::Certificate { .. }
            | Self::Key { .. }
            | Self::OpenTokens(_)
            | Self::BadTokens(_) => exit::REFUSED,
            Self::Client(error) => error.exit_code(),
            Self::Disk(error) if error.refusal().is_some() => exit::REFUSED,
            Self::Listen { .. } | Self::Random(_) | Self::Disk(_) | Self::System { .. } => {
                exit::ERROR
            }
        }
    }

    /// What to type next.
    pub fn hint(&self) -> Option<String> {
        let text = |text: &str| Some(text.to_owned());
        match self {
            Self::Listen { address, source } => match source.kind() {
                io::ErrorKind::AddrInUse => Some(format!(
                    "another server is there already, maybe `descartes serve`; use another port: \
                     --listen {}:{}",
                    bracketed(address),
                    address.port().wrapping_add(1).max(1024)
                )),
                io::ErrorKind::PermissionDenied => Some(format!(
                    "ports below 1024 need privileges: --listen {}:7317",
                    bracketed(address)
                )),
                io::ErrorKind::AddrNotAvailable => {
                    text("use an address of this machine: --listen 127.0.0.1:7317")
                }
                _ => None,
            },
            Self::Exposed(_) => text(
                "add --tls-cert FILE --tls-key FILE, or --behind-proxy where a proxy on this \
                 network encrypts; an SSH tunnel needs neither: ssh -L 7317:127.0.0.1:7317 HOST",
            ),
            Self::Certificate { .. } | Self::Key { .. } => {
                text("give PEM files: --tls-cert cert.pem --tls-key key.pem")
            }
            Self::OpenTokens(path) => Some(format!(
                "chmod 600 {0}, or make new ones: descartes serve --new-token",
                path.display()
            )),
            Self::BadTokens(_) => text("make new ones: descartes serve --new-token"),
            Self::Client(error) => error.hint(),
            Self::Disk(error) => error.refusal().map(|refusal| refusal.hint()),
            Self::Random(_) | Self::System { .. } => None,
        }
    }
}

fn bracketed(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}
