//! Whose trouble a line of plain text tells of: that of the agent's provider, or that of the work which the agent
//! does. Anybody may have printed it: a test that asks a server on this machine, a tool, the agent itself.

use std::net::{IpAddr, Ipv4Addr};

use super::LimitKind;
use super::phrases::{PHRASES, begins};

/// Whether this line of plain text may tell of the provider.
pub(super) fn is_the_providers(norm: &str, kind: LimitKind) -> bool {
    // Only clients of models speak so.
    if begins(norm, &PHRASES.own_lines) {
        return true;
    }
    let mut hosts = hosts(norm).peekable();
    let is_named = hosts.peek().is_some();
    if hosts.any(|host| host == NamedHost::Private) {
        return false;
    }
    // A provider is there, and answers or does not. What refuses a connection is a port of a machine on which
    // nobody listens.
    let is_refused = kind == LimitKind::Network
        && ["connection refused", "econnrefused"]
            .iter()
            .any(|words| norm.contains(words));
    is_named || !is_refused
}

/// Under which providers are found. Names of files and of errors have dots as well.
const DOMAINS: &[&str] = &[
    "com", "net", "org", "ai", "io", "dev", "cloud", "app", "co", "eu", "cn", "us", "de", "uk",
    "fr",
];

#[derive(Clone, Copy, PartialEq)]
enum NamedHost {
    Private,
    Public,
}

/// The machines that a line names.
fn hosts(norm: &str) -> impl Iterator<Item = NamedHost> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | ':');
    let words = norm.split(move |c: char| !is_part(c));
    words.filter_map(|word| host(word.trim_matches(['.', '-'])))
}

fn host(word: &str) -> Option<NamedHost> {
    let of_address = |is_private| match is_private {
        true => NamedHost::Private,
        false => NamedHost::Public,
    };
    // `::1`, and `::1:3000` as node writes it.
    if word == "::1" || word.starts_with("::1:") {
        return Some(NamedHost::Private);
    }
    let name = word.trim_start_matches(':');
    let name = name.split(':').next().unwrap_or(name);
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Some(of_address(is_private(address)));
    }
    if let Ok(IpAddr::V6(address)) = word.parse() {
        let local = address.is_loopback()
            || address.is_unspecified()
            || address.is_unique_local()
            || address.is_unicast_link_local();
        return Some(of_address(local));
    }
    let is_local = name == "localhost"
        || [".localhost", ".local", ".internal", ".lan", ".test"]
            .iter()
            .any(|end| name.ends_with(end));
    if is_local {
        return Some(NamedHost::Private);
    }
    let (_, last) = name.rsplit_once('.')?;
    DOMAINS.contains(&last).then_some(NamedHost::Public)
}

fn is_private(address: Ipv4Addr) -> bool {
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_unspecified()
}
