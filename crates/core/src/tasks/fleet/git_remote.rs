//! A repository by which commits travel between machines instead of the engine.
//!
//! git is called in bare repositories of our own, which see the objects of those that agents work in: what is
//! configured there (hooks, filters, aliases, ssh commands, other addresses) is not read.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use descartes_kernel::fleet::{
    OfferRefs, RemoteFault, RemoteTerms, check_remote, loop_refs, probe_ref, refs_over, ssh_command,
};
use descartes_kernel::tasks::remote_reason;
use tracing::{debug, warn};

use crate::host::{HostError, HostSettings, git_of};
use crate::tasks::git::Repo;
use crate::tasks::git_error::GitError;
use crate::tasks::launch::file_name;
use crate::tasks::place::Workplace;
use crate::worktree::WorktreeError;

/// How long commits may be on their way.
const TRANSFER: Duration = Duration::from_secs(20 * 60);
/// How long anything else may take.
const TALK: Duration = Duration::from_secs(60);

const FETCH: [&str; 7] = [
    "fetch",
    "--progress",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-prune",
    "--no-recurse-submodules",
    "--",
];
/// Behind `push` and how much it says.
const PUSH: [&str; 5] = [
    "--no-verify",
    "--no-follow-tags",
    "--no-signed",
    "--recurse-submodules=no",
    "--",
];

/// Where the commits of an offer lie.
pub(super) fn offer_refs(loop_id: &str, subject: &str) -> OfferRefs {
    OfferRefs::new(&file_name(loop_id), &file_name(subject))
}

/// Why git could not, in one line.
fn reason_of(error: &GitError) -> String {
    match error {
        GitError::Call(WorktreeError::Git { verb, message, .. }) => {
            format!("git {verb} failed: {}", remote_reason(message))
        }
        other => remote_reason(&other.to_string()),
    }
}

/// A worker's way to hand over the commits of an attempt.
#[derive(Clone)]
pub(super) struct OfferRemote {
    pub(super) remote: Arc<GitRemote>,
    pub(super) refs: OfferRefs,
}

/// The repository, and where git is called for it.
pub(super) struct GitRemote {
    url: String,
    repo: Repo,
    /// A transfer that tells of no progress for so long hangs.
    silence: Duration,
}

impl GitRemote {
    /// Calls git in a bare repository that is there.
    pub(super) fn at(url: &str, repo: &Repo, terms: RemoteTerms) -> Self {
        let repo = repo
            // Nobody is there who could answer.
            .with_env("SSH_ASKPASS_REQUIRE", "never")
            .with_env("GCM_INTERACTIVE", "never")
            // What neither comes nor goes is over long before its limit.
            .with_setting("http.lowSpeedLimit", "1")
            .with_setting("http.lowSpeedTime", "60");
        let configured = repo.ask(&["config", "--get", "core.sshCommand"]).ok();
        let has_own = std::env::var_os("GIT_SSH").is_some();
        let repo = match ssh_command(configured.as_deref(), has_own) {
            Some(command) => repo.with_setting("core.sshCommand", &command),
            None => repo,
        };
        Self {
            url: url.to_owned(),
            repo,
            silence: terms.patience,
        }
    }

    /// The same in a bare repository that is made there, and sees the objects of a place.
    pub(super) fn open(
        url: &str,
        place: &dyn Workplace,
        dir: &Path,
        terms: RemoteTerms,
    ) -> Result<Self, String> {
        let repo = place.carrier(dir).map_err(|error| error.to_string())?;
        Ok(Self::at(url, &repo, terms))
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn words<'w>(&'w self, args: &[&[&'w str]], more: &'w [String]) -> Vec<&'w str> {
        let mut words = args.concat();
        words.push(&self.url);
        words.extend(more.iter().map(String::as_str));
        words
    }

    /// A talk that is over soon.
    fn call(&self, args: &[&[&str]], more: &[String]) -> Result<String, String> {
        let called = self.repo.limited(&self.words(args, more), TALK);
        called.map_err(|error| reason_of(&error))
    }

    /// One that may take long, as long as it tells of its progress.
    fn transfer(&self, args: &[&[&str]], more: &[String]) -> Result<(), String> {
        let words = self.words(args, more);
        let called = self.repo.transfer(&words, TRANSFER, self.silence);
        called.map(drop).map_err(|error| reason_of(&error))
    }

    /// Puts commits there under these refs.
    pub(super) fn push(&self, commits: &[(&str, String)]) -> Result<(), String> {
        let refs = commits.iter();
        let refs: Vec<String> = refs.map(|(it, name)| format!("+{it}:{name}")).collect();
        self.transfer(&[&["push", "--progress"], &PUSH], &refs)
    }

    /// Fetches these refs, under the same names.
    pub(super) fn fetch(&self, names: &[String]) -> Result<(), String> {
        let refs = names.iter().map(|name| format!("+{name}:{name}"));
        let refs: Vec<String> = refs.collect();
        self.transfer(&[&FETCH], &refs)
    }

    /// A bundle of what was fetched under a ref, without the history of a commit.
    pub(super) fn bundle(&self, name: &str, without: &str, file: &Path) -> Result<(), String> {
        let (path, without) = (file.to_string_lossy(), format!("^{without}"));
        let args = ["bundle", "create", "--quiet", &*path, name, &without];
        let made = self.repo.quiet(&args);
        made.map(drop).map_err(|error| reason_of(&error))
    }

    /// Commits and their refs that begin so.
    pub(super) fn list(&self, begin: &str) -> Result<Vec<(String, String)>, String> {
        let args = ["ls-remote", "--quiet", "--refs", "--"];
        let listed = self.call(&[&args], &[format!("{begin}*")])?;
        let pairs = listed.lines().filter_map(|line| line.split_once('\t'));
        let pairs = pairs.map(|(commit, name)| (commit.to_owned(), name.to_owned()));
        Ok(pairs.collect())
    }

    pub(super) fn delete(&self, names: &[&str]) -> Result<(), String> {
        let refs: Vec<String> = names.iter().map(|name| format!(":{name}")).collect();
        self.call(&[&["push", "--quiet"], &PUSH], &refs).map(drop)
    }

    /// Deletes what lies there of these offers of a task loop.
    pub(super) fn forget(&self, loop_id: &str, over: &BTreeSet<OfferRefs>) {
        let listed = self.list(&loop_refs(&file_name(loop_id)));
        let deleted = listed.and_then(|listed| {
            let names = listed.iter().map(|(_, name)| name.as_str());
            match &*refs_over(names, over) {
                [] => Ok(()),
                names => self.delete(names),
            }
        });
        match deleted {
            Ok(()) => debug!(loop_id, "refs that nobody needs are gone"),
            // They are tried again with the next ones.
            Err(message) => warn!(message, "refs could not be deleted"),
        }
    }

    /// Puts a small commit there and deletes it.
    fn probe(&self) -> Result<(), String> {
        let made = || -> Result<String, GitError> {
            self.repo
                .quiet(&["init", "--quiet", "--bare", "--template="])?;
            let tree = self.repo.fed(&["mktree"], b"")?;
            self.repo.quiet(&["commit-tree", &tree, "-m", "probe"])
        };
        let commit = made().map_err(|error| reason_of(&error))?;
        let name = probe_ref(&uuid::Uuid::now_v7().to_string());
        let refs = [format!("+{commit}:{name}")];
        self.call(&[&["push", "--quiet"], &PUSH], &refs)?;
        self.delete(&[&name])
    }
}

/// Tries whether work can travel by a repository, before anything is begun; `dir` is where its user is known.
pub(in crate::tasks) fn try_remote(
    url: &str,
    settings: &HostSettings,
    dir: &Path,
) -> Result<(), HostError> {
    let fault = |fault: RemoteFault| HostError::refused(fault.to_string(), fault.hint());
    check_remote(url).map_err(fault)?;
    let folder = tempfile::tempdir()
        .map_err(|error| HostError::Internal(format!("cannot make a folder: {error}")))?;
    let git = git_of(settings);
    let user = Repo::at(dir, &git);
    let mut repo = Repo::at(folder.path(), &git).with_env("GIT_DIR", folder.path());
    for (key, unknown) in [
        ("user.name", "descartes"),
        ("user.email", "descartes@localhost"),
    ] {
        let known = user.ask(&["config", "--get", key]);
        repo = repo.with_setting(key, known.as_deref().unwrap_or(unknown));
    }
    GitRemote::at(url, &repo, settings.remote_terms)
        .probe()
        .map_err(|message| {
            HostError::refused(
                format!("cannot put work into the repository {url}: {message}"),
                // A dry run would run none of its hooks.
                format!(
                    "try it with: git push {0} HEAD:refs/descartes/try && git push {0} :refs/descartes/try",
                    descartes_text::shell::word(url)
                ),
            )
        })
}
