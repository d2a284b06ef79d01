//! The signature of a commit that was made in a sandbox: the one git of ours there that runs outside and starts
//! a program. It goes by settings as they were when the loop began, in a folder of git's of our own, and sees
//! of the repository its objects alone.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::deadline::Deadline;
use super::error::WorktreeError;
use super::git::guards::Manner;
use super::head::HeadRef;
use super::oid::HashFormat;
use super::repo::{GIT_TIMEOUT, Repo};

/// How the user signs.
#[derive(Clone, Debug)]
pub(crate) struct Signing {
    /// Who the user is, with which program and key; no other setting.
    pub(crate) settings: Vec<(OsString, OsString)>,
    /// Where a folder of git's of our own is kept.
    pub(crate) folder: PathBuf,
}

/// What is said of a commit, in the bytes of its object.
struct MadeCommit<'a> {
    tree: &'a str,
    parents: Vec<&'a str>,
    author: [&'a str; 3],
    message: &'a str,
}

impl<'a> MadeCommit<'a> {
    fn read(object: &'a str) -> Option<Self> {
        let (header, message) = object.split_once("\n\n")?;
        let values = |key: &'static str| {
            let lines = header.lines();
            lines.filter_map(move |line| line.strip_prefix(key)?.strip_prefix(' '))
        };
        let author = values("author").next()?;
        let (name, rest) = author.split_once(" <").or(author.split_once('<'))?;
        let (email, date) = rest.rsplit_once("> ")?;
        Some(Self {
            tree: values("tree").next()?,
            parents: values("parent").collect(),
            author: [name, email, date],
            message,
        })
    }
}

impl Repo {
    /// Puts the same commit with a signature in the place of the one that was just made; where that fails, HEAD
    /// is where it was.
    pub(super) fn sign_head(
        &self,
        signing: &Signing,
        before: &HeadRef,
    ) -> Result<(), WorktreeError> {
        let made = self.head();
        let Some(made) = made.commit() else {
            return Ok(());
        };
        let signed = self.signed(signing, made);
        let (to, why) = match (&signed, before.commit()) {
            (Ok(signed), _) => (signed.as_str(), "commit: signed"),
            (Err(_), Some(before)) => (before, "commit: not signed"),
            // The first commit of all: the branch goes with it.
            (Err(_), None) => {
                let drop_it = self.read().args(["update-ref", "-d", "HEAD", made]);
                drop_it.output(Deadline::after(GIT_TIMEOUT))?;
                return signed.map(drop);
            }
        };
        let moved = ["update-ref", "-m", why, "HEAD", to, made];
        let moved = self.read().args(moved).output(Deadline::after(GIT_TIMEOUT));
        signed.and(moved.map(drop))
    }

    fn signed(&self, signing: &Signing, commit: &str) -> Result<String, WorktreeError> {
        let failed = |message: String| WorktreeError::Git {
            verb: "commit-tree".to_owned(),
            code: None,
            message,
        };
        let object = self.read().args(["cat-file", "commit", commit]);
        let object = object.output(Deadline::after(GIT_TIMEOUT))?;
        let object = String::from_utf8_lossy(&object);
        let made = MadeCommit::read(&object)
            .ok_or_else(|| failed(format!("the commit {commit} cannot be read")))?;
        own_git_folder(&signing.folder, self.format)
            .map_err(|error| failed(format!("{}: {error}", signing.folder.display())))?;
        let [name, email, date] = made.author;
        let mut call = self
            .git
            .act(&signing.folder)
            .guarded(Manner::Hooks)
            .configured(&signing.settings)
            .env("GIT_DIR", &signing.folder)
            .env("GIT_OBJECT_DIRECTORY", self.objects_of_user())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_AUTHOR_NAME", name)
            .env("GIT_AUTHOR_EMAIL", email)
            .env("GIT_AUTHOR_DATE", format!("@{date}"))
            .args(["commit-tree", "-S", made.tree]);
        for parent in made.parents {
            call = call.args(["-p", parent]);
        }
        let call = call.args(["-F", "-"]).stdin(made.message.into());
        let signed = call.output(Deadline::after(GIT_TIMEOUT))?;
        Ok(String::from_utf8_lossy(&signed).trim().to_owned())
    }
}

/// The least that git takes for a repository.
fn own_git_folder(folder: &Path, format: HashFormat) -> io::Result<()> {
    for part in ["objects", "refs"] {
        fs::create_dir_all(folder.join(part))?;
    }
    let config = match format {
        HashFormat::Sha1 => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        HashFormat::Sha256 => {
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"
        }
    };
    fs::write(folder.join("config"), config)?;
    fs::write(folder.join("HEAD"), "ref: refs/heads/main\n")
}
