//! A repository by which work travels between machines: which addresses are taken, under which refs commits
//! lie there, and which of these may go.

use std::collections::BTreeSet;

/// Below this lies everything that descartes keeps there. No branch and no tag is touched.
const ALL_REFS: &str = "refs/descartes";

/// Why an address is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteFault {
    /// It would be written down and sent to every worker.
    #[error("the address of the repository {without} has a password or a user's token in it")]
    Credentials {
        /// The same address without them.
        without: String,
    },
    /// git would take it for something else, or it means another place on another machine.
    #[error("`{0}` is not the address of a repository")]
    NotAnAddress(String),
}

impl RemoteFault {
    /// What to type instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Credentials { without } => format!(
                "--git-remote {without}, and give the password to git on each machine (git help \
                 credentials)"
            ),
            Self::NotAnAddress(_) => "e.g. --git-remote git@example.com:team/app.git, \
                                      https://example.com/app.git or the whole path of a folder"
                .to_owned(),
        }
    }
}

/// ssh by itself waits for a server that does not answer for as long as the network lets it, and for a password
/// that nobody can type.
const SSH_OPTIONS: &str =
    "-o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ServerAliveCountMax=3";

/// The command by which git reaches repositories over ssh, so that one that does not answer is noticed within
/// a minute. `None` where the user's own program is left as it is.
pub fn ssh_command(configured: Option<&str>, has_own_program: bool) -> Option<String> {
    let command = match configured.map(str::trim).filter(|it| !it.is_empty()) {
        Some(configured) => configured,
        None if has_own_program => return None,
        None => "ssh",
    };
    let program = command.split_whitespace().next().unwrap_or_default();
    let is_open_ssh = program.rsplit('/').next() == Some("ssh");
    // What stands first holds: the user's own options do.
    is_open_ssh.then(|| format!("{command} {SSH_OPTIONS}"))
}

/// Whether the address of a repository may be told to workers: one that means the same everywhere, runs no
/// program that it names, and holds no secret.
pub fn check_remote(address: &str) -> Result<(), RemoteFault> {
    // What stands before the last @ may be a secret, whatever the rest is.
    let no_address = || {
        let shown = address.rsplit('@').next().unwrap_or_default();
        RemoteFault::NotAnAddress(shown.to_owned())
    };
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if address.starts_with('-') || address.contains(is_odd) {
        return Err(no_address());
    }
    if address.starts_with('/') {
        return Ok(());
    }
    let Some((scheme, rest)) = address.split_once("://") else {
        return check_short(address).ok_or_else(no_address)?;
    };
    let is_web = matches!(scheme, "http" | "https");
    let is_known = is_web || matches!(scheme, "ssh" | "git" | "file");
    let (before, _) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, place) = match if is_web { rest } else { before }.rsplit_once('@') {
        Some((user, _)) => (Some(user), &rest[user.len() + 1..]),
        None => (None, rest),
    };
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    if !is_known || path.len() < 2 || (host.is_empty() && scheme != "file") {
        return Err(no_address());
    }
    match user {
        // A token is given as the name of a user there.
        Some(user) if is_web || user.contains(':') => {
            let name = user.split(':').next().filter(|_| !is_web);
            let name = name.map(|name| format!("{name}@")).unwrap_or_default();
            Err(RemoteFault::Credentials {
                without: format!("{scheme}://{name}{host}{path}"),
            })
        }
        _ => Ok(()),
    }
}

/// `host:path` and `user@host:path`, as ssh takes it; `None`: it is no such.
fn check_short(address: &str) -> Option<Result<(), RemoteFault>> {
    let (user, rest) = match address.rsplit_once('@') {
        Some((user, rest)) if !user.contains('/') => (Some(user), rest),
        _ => (None, address),
    };
    let (host, path) = rest.split_once(':')?;
    // `helper::address` has git start a program.
    if address.contains("::") || host.is_empty() || path.is_empty() || host.contains('/') {
        return None;
    }
    Some(match user.and_then(|user| user.split_once(':')) {
        Some((name, _)) => Err(RemoteFault::Credentials {
            without: format!("{name}@{rest}"),
        }),
        None => Ok(()),
    })
}

/// A ref that tries whether a repository takes and gives up refs.
pub fn probe_ref(name: &str) -> String {
    format!("{ALL_REFS}/probe/{name}")
}

/// What all refs of a task loop begin with.
pub fn loop_refs(loop_name: &str) -> String {
    format!("{ALL_REFS}/{loop_name}/")
}

/// Where the commits of one offer lie: of one task under one epoch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferRefs(String);

impl OfferRefs {
    /// Both names have to be possible within the name of a ref.
    pub fn new(loop_name: &str, offer_name: &str) -> Self {
        Self(format!("{}{offer_name}/", loop_refs(loop_name)))
    }

    /// What was merged before.
    pub fn base(&self) -> String {
        format!("{}base", self.0)
    }

    /// The work of earlier attempts.
    pub fn branch(&self) -> String {
        format!("{}branch", self.0)
    }

    /// What the attempt came to.
    pub fn result(&self) -> String {
        format!("{}result", self.0)
    }

    /// Work in progress, by the commit that it was begun from.
    pub fn work(&self, built_on: &str) -> String {
        format!("{}work-{built_on}", self.0)
    }

    /// The work in progress among commits and their refs: its commit, and what that was begun from.
    pub fn stored_work<'a>(
        &self,
        mut listed: impl Iterator<Item = &'a (String, String)>,
    ) -> Option<(&'a str, &'a str)> {
        listed.find_map(|(commit, name)| {
            let built_on = name.strip_prefix(&self.0)?.strip_prefix("work-")?;
            Some((commit.as_str(), built_on))
        })
    }
}

/// Refs that nobody needs any more: those of offers that are over, also what a worker wrote since then.
pub fn refs_over<'a>(
    listed: impl Iterator<Item = &'a str>,
    over: &BTreeSet<OfferRefs>,
) -> Vec<&'a str> {
    let is_over = |name: &&str| over.iter().any(|offer| name.starts_with(&offer.0));
    listed.filter(is_over).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_gives_up_on_a_server_that_does_not_answer() {
        let with = |command: &str| Some(format!("{command} {SSH_OPTIONS}"));
        let table = [
            (None, false, with("ssh")),
            (Some(" "), false, with("ssh")),
            (None, true, None),
            (Some("ssh -i key"), true, with("ssh -i key")),
            (Some("/usr/bin/ssh"), false, with("/usr/bin/ssh")),
            (Some("plink -batch"), false, None),
            (Some("'my ssh'"), false, None),
        ];
        for (configured, has_own, wanted) in table {
            assert_eq!(ssh_command(configured, has_own), wanted, "{configured:?}");
        }
    }

    #[test]
    fn an_address_means_one_place_and_holds_no_secret() {
        for address in [
            "/srv/git/app.git",
            "file:///srv/git/app.git",
            "https://example.com/app.git",
            "http://example.com:8080/app.git",
            "ssh://git@example.com:22/app.git",
            "git://example.com/app.git",
            "ssh://git@[::1]/app.git",
            "git@example.com:team/app.git",
            "example.com:app.git",
            "/srv/a@b:c.git",
        ] {
            assert_eq!(check_remote(address), Ok(()), "{address}");
        }
        for (address, clean) in [
            ("https://anna:pw@example.com/a", "https://example.com/a"),
            ("https://ghp_1@example.com/a", "https://example.com/a"),
            ("https://anna:pw/x@example.com/a", "https://example.com/a"),
            ("ssh://anna:p@w@example.com/a", "ssh://anna@example.com/a"),
            ("anna:pw@example.com:a", "anna@example.com:a"),
        ] {
            let fault = check_remote(address).unwrap_err();
            let without = clean.to_owned();
            assert_eq!(fault, RemoteFault::Credentials { without }, "{address}");
            let told = format!("{fault} {}", fault.hint());
            assert!(!told.contains("pw") && !told.contains("ghp_1"), "{told}");
            assert_eq!(check_remote(clean), Ok(()), "{clean}");
        }
        for address in [
            "",
            "origin",
            "../app.git",
            "app.git",
            "~/app.git",
            "--upload-pack=evil",
            "ext::sh -c evil",
            "ext::evil",
            "ftp://example.com/a",
            "https://",
            "https:///a",
            "https://example.com",
            "https://example.com/a b",
            "./a:b",
            ":a",
            "a:",
            "a\n:b",
            "ext::sh://x",
        ] {
            let fault = RemoteFault::NotAnAddress(address.to_owned());
            assert_eq!(check_remote(address), Err(fault), "{address}");
        }
        let fault = check_remote("https://anna:pw@host/a b").unwrap_err();
        assert!(!fault.to_string().contains("pw"), "{fault}");
    }

    #[test]
    fn only_refs_of_offers_that_are_over_go() {
        let of = |name: &str| OfferRefs::new("l1", name);
        let listed = [
            of("task.1").base(),
            of("task.1").work("c0"),
            of("task.10").base(),
            of("task.2").result(),
            OfferRefs::new("l2", "task.1").base(),
            "refs/heads/main".to_owned(),
        ];
        let over = |names: &[&str]| -> Vec<&str> {
            let over = names.iter().map(|name| of(name)).collect();
            refs_over(listed.iter().map(String::as_str), &over)
        };
        assert!(over(&[]).is_empty());
        assert_eq!(over(&["task.1"]), [&listed[0], &listed[1]]);
        assert_eq!(over(&["task.2", "task.10"]), [&listed[2], &listed[3]]);
    }

    #[test]
    fn work_in_progress_says_what_it_was_begun_from() {
        let refs = OfferRefs::new("l1", "task.1");
        let pair = |commit: &str, name: String| (commit.to_owned(), name);
        let mut listed = vec![
            pair("c1", refs.base()),
            pair("c2", OfferRefs::new("l1", "task.2").work("b2")),
        ];
        assert_eq!(refs.stored_work(listed.iter()), None);
        listed.push(pair("c3", refs.work("b1")));
        assert_eq!(refs.stored_work(listed.iter()), Some(("c3", "b1")));
    }
}
