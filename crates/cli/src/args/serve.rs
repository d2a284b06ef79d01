//! `serve`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

/// What `serve` was given.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "The printed address works once; then the browser is signed in. Tokens for scripts and other \
                  devices are in web-tokens.json in the state folder."
)]
pub struct ServeArgs {
    /// Address and port; one that other machines reach needs TLS or --behind-proxy
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7317", value_parser = address)]
    pub listen: SocketAddr,
    /// A name under which browsers may ask for it, e.g. behind a proxy; repeatable
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    pub host: Vec<HostName>,
    /// Certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// A proxy encrypts: serve plain HTTP on any address
    #[arg(long, conflicts_with = "tls_cert")]
    pub behind_proxy: bool,
    /// Look but do not touch, whatever the token
    #[arg(long)]
    pub read_only: bool,
    /// Let browsers start loops, in folders that had one before; starting runs commands
    #[arg(long, conflicts_with = "read_only")]
    pub allow_start: bool,
    /// A folder below which loops may be started, too; repeatable
    #[arg(long, value_name = "DIR", requires = "allow_start")]
    pub project: Vec<PathBuf>,
    /// Make new tokens first: signs out every browser and ends open streams
    #[arg(long)]
    pub new_token: bool,
}

/// Reads an address with a port, or one of the two; `localhost` is this machine.
fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim().replacen("localhost", "127.0.0.1", 1);
    let whole = match (text.parse::<u16>(), text.parse::<IpAddr>()) {
        (Ok(port), _) => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
        (_, Ok(ip)) => Ok(SocketAddr::from((ip, 7317))),
        _ => text.parse(),
    };
    whole.map_err(|_| "use for example 127.0.0.1:7400, [::1]:7400, or the port alone".to_owned())
}

/// A name as it stands in addresses.
#[derive(Clone, Debug)]
pub struct HostName(pub String);

fn host_name(text: &str) -> Result<HostName, String> {
    let fits = |c: char| c.is_alphanumeric() || "-._:[]".contains(c);
    match !text.is_empty() && text.chars().all(fits) {
        true => Ok(HostName(text.to_owned())),
        false => {
            Err("use a name as it stands in addresses, for example loops.example.org".to_owned())
        }
    }
}
