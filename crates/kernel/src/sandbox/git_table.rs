//! All that git reads in a repository or a work tree by which somebody who may write there could start a
//! program, lead git elsewhere or change what it does. One row each: the locks of the sandbox, the look after
//! a run and the tests of both go by this table and by no other list.

/// Where a row lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitPlace {
    /// In the folder that all work trees of the repository share.
    Common,
    /// In the folder of this work tree alone; in a repository without others that is the same.
    Own,
    /// In the work tree: files that are worked on, and repositories among them.
    Tree,
    /// A setting, in whatever file git finds it.
    Setting,
}

/// What a sandbox does where the name is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitEntry {
    /// An empty file is made.
    File,
    /// An empty folder is made.
    Folder,
    /// A file with this text is made, which is taken away after the run.
    ForTheRun(&'static str),
    /// Nothing.
    IfThere,
}

/// What holds a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitHold {
    /// Read-only for the agent.
    Locked(GitEntry),
    /// Looked at after each run, and told.
    Looked,
    /// Whatever is written there, no program is started by it and no repository is mistaken for another.
    Harmless,
}

/// Something that git reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GitRow {
    /// A path below its place, or a setting. `*` stands for any part of a name.
    pub name: &'static str,
    pub place: GitPlace,
    pub hold: GitHold,
    /// What git makes of it, or why it is harmless.
    pub why: &'static str,
}

/// What a [`GitEntry::ForTheRun`] of `commondir` holds: git takes the folder for its own.
pub const COMMON_DIR_IS_HERE: &str = ".\n";

const fn row(place: GitPlace, name: &'static str, hold: GitHold, why: &'static str) -> GitRow {
    GitRow {
        name,
        place,
        hold,
        why,
    }
}

use GitEntry::{File, Folder, ForTheRun, IfThere};
use GitHold::{Harmless, Locked, Looked};
use GitPlace::{Common, Own, Setting, Tree};

/// See the module. Settings are looked at in files that an agent can write: of repositories inside the work
/// tree, and those that an `include` names. The repository's own are locked with their file.
pub const GIT_TABLE: &[GitRow] = &[
    // The folder of a repository.
    row(
        Common,
        "config",
        Locked(File),
        "settings: they name programs",
    ),
    row(
        Common,
        "config.worktree",
        Locked(File),
        "settings of one work tree",
    ),
    row(Common, "hooks", Locked(Folder), "programs that git starts"),
    row(
        Common,
        "info",
        Locked(Folder),
        "attributes, exclude, grafts, sparse-checkout: they choose filters and what is seen",
    ),
    row(
        Common,
        "commondir",
        Locked(ForTheRun(COMMON_DIR_IS_HERE)),
        "leads git to another folder for settings, hooks, objects and refs",
    ),
    row(
        Common,
        "modules",
        Locked(IfThere),
        "the repositories of submodules, with settings and hooks of their own",
    ),
    row(
        Common,
        "worktrees/*",
        Locked(IfThere),
        "gitdir, commondir, config.worktree of other work trees",
    ),
    row(
        Own,
        "config.worktree",
        Locked(File),
        "settings of this work tree",
    ),
    row(
        Own,
        "gitdir",
        Locked(IfThere),
        "leads back to the work tree",
    ),
    row(Own, "commondir", Locked(IfThere), "leads to the repository"),
    row(
        Own,
        "rebase-merge/git-rebase-todo",
        Looked,
        "`git rebase --continue` starts the programs of its `exec` lines",
    ),
    row(
        Common,
        "objects/info/alternates",
        Harmless,
        "objects are found by the hash of their content, and no setting is read there",
    ),
    row(
        Common,
        "objects/info/http-alternates",
        Harmless,
        "read of servers over http only",
    ),
    row(
        Common,
        "remotes/*",
        Harmless,
        "an old form of a remote: where to fetch from, never a program; refused forms of addresses stay refused",
    ),
    row(Common, "branches/*", Harmless, "the same, older"),
    row(
        Common,
        "packed-refs",
        Harmless,
        "names of commits: the agent commits anyway",
    ),
    row(
        Common,
        "refs/*",
        Harmless,
        "the same; ours are moved only from what they were",
    ),
    row(
        Common,
        "refs/replace/*",
        Harmless,
        "shows other content for a commit; git of ours does not go by it",
    ),
    row(Common, "shallow", Harmless, "how much history there is"),
    row(Common, "logs/*", Harmless, "a record"),
    row(
        Common,
        "rr-cache/*",
        Harmless,
        "how conflicts were resolved: text",
    ),
    row(
        Common,
        "lfs/*",
        Harmless,
        "data of git-lfs, found by its hash",
    ),
    row(
        Common,
        "gc.pid",
        Harmless,
        "at most no tidying up for a day",
    ),
    row(
        Own,
        "HEAD",
        Harmless,
        "which branch is checked out; seen by every command",
    ),
    row(
        Own,
        "index",
        Harmless,
        "which files are staged; an entry for a repository inside is told with that repository",
    ),
    row(Own, "FETCH_HEAD", Harmless, "names of commits"),
    row(
        Own,
        "MERGE_HEAD",
        Harmless,
        "a merge that is under way; git of ours does not end it",
    ),
    row(Own, "COMMIT_EDITMSG", Harmless, "a message: text"),
    // The work tree.
    row(
        Tree,
        ".git",
        Looked,
        "a repository inside the work tree, or where there was none: settings and hooks of its own; \
         that of the work tree itself cannot be moved",
    ),
    row(
        Tree,
        "HEAD+objects+refs",
        Looked,
        "a folder that git takes for a repository without a work tree, from any folder below",
    ),
    row(
        Tree,
        "a file that is included",
        Looked,
        "settings: locked where it is there, told where it is new",
    ),
    row(
        Tree,
        "a folder of hooks",
        Looked,
        "`core.hooksPath` in the work tree: locked where it is there, told where it is new",
    ),
    row(
        Tree,
        "a program of a setting",
        Looked,
        "a filter, driver or helper in the work tree: locked where it is there, told where it is new",
    ),
    row(
        Tree,
        ".gitattributes",
        Harmless,
        "chooses among filters and drivers that settings name",
    ),
    row(
        Tree,
        ".gitmodules",
        Harmless,
        "git takes no program from there; what a submodule brings is told with its repository",
    ),
    row(Tree, ".gitignore", Harmless, "which files are seen"),
    row(Tree, ".mailmap", Harmless, "names of people"),
    row(
        Tree,
        ".lfsconfig",
        Harmless,
        "git-lfs takes addresses from there, no programs",
    ),
    // Settings.
    row(Setting, "alias.*", Looked, "a command under another name"),
    row(Setting, "browser.*.cmd", Looked, "a program"),
    row(Setting, "browser.*.path", Looked, "a program"),
    row(Setting, "core.alternateRefsCommand", Looked, "a program"),
    row(Setting, "core.askPass", Looked, "a program"),
    row(Setting, "core.editor", Looked, "a program"),
    row(
        Setting,
        "core.fsmonitor",
        Looked,
        "a program, started by `git status`",
    ),
    row(Setting, "core.gitProxy", Looked, "a program"),
    row(Setting, "core.hooksPath", Looked, "a folder of programs"),
    row(Setting, "core.pager", Looked, "a program"),
    row(
        Setting,
        "core.sshCommand",
        Looked,
        "a program, started by `git fetch`",
    ),
    row(Setting, "credential.helper", Looked, "a program"),
    row(Setting, "credential.*.helper", Looked, "a program"),
    row(Setting, "diff.external", Looked, "a program"),
    row(Setting, "diff.*.command", Looked, "a program"),
    row(Setting, "diff.*.textconv", Looked, "a program"),
    row(Setting, "difftool.*.cmd", Looked, "a program"),
    row(Setting, "difftool.*.path", Looked, "a program"),
    row(
        Setting,
        "filter.*.clean",
        Looked,
        "a program, started by `git status` and `git add`",
    ),
    row(
        Setting,
        "filter.*.process",
        Looked,
        "a program, started by `git status` and `git add`",
    ),
    row(
        Setting,
        "filter.*.smudge",
        Looked,
        "a program, started by a checkout",
    ),
    row(
        Setting,
        "gc.recentObjectsHook",
        Looked,
        "a program, started by `git gc`",
    ),
    row(
        Setting,
        "gpg.program",
        Looked,
        "a program, started by a commit that is signed",
    ),
    row(
        Setting,
        "gpg.*.program",
        Looked,
        "a program, started by a commit that is signed",
    ),
    row(Setting, "gpg.ssh.defaultKeyCommand", Looked, "a program"),
    row(Setting, "guitool.*.cmd", Looked, "a program"),
    row(Setting, "imap.tunnel", Looked, "a program"),
    row(Setting, "include.path", Looked, "further settings"),
    row(Setting, "includeIf.*.path", Looked, "further settings"),
    row(
        Setting,
        "init.templateDir",
        Looked,
        "hooks of new repositories",
    ),
    row(Setting, "instaweb.httpd", Looked, "a program"),
    row(Setting, "interactive.diffFilter", Looked, "a program"),
    row(Setting, "lfs.customtransfer.*.path", Looked, "a program"),
    row(Setting, "man.*.cmd", Looked, "a program"),
    row(Setting, "man.*.path", Looked, "a program"),
    row(Setting, "merge.*.driver", Looked, "a program"),
    row(Setting, "mergetool.*.cmd", Looked, "a program"),
    row(Setting, "mergetool.*.path", Looked, "a program"),
    row(Setting, "pager.*", Looked, "a program"),
    row(
        Setting,
        "protocol.*.allow",
        Looked,
        "addresses that name a program",
    ),
    row(
        Setting,
        "protocol.allow",
        Looked,
        "addresses that name a program",
    ),
    row(
        Setting,
        "remote.*.receivepack",
        Looked,
        "a program, started by `git push`",
    ),
    row(
        Setting,
        "remote.*.uploadpack",
        Looked,
        "a program, started by `git fetch`",
    ),
    row(Setting, "remote.*.vcs", Looked, "a program"),
    row(Setting, "sendemail.*", Looked, "programs that send mail"),
    row(Setting, "sequence.editor", Looked, "a program"),
    row(
        Setting,
        "submodule.*.update",
        Looked,
        "a command, where it begins with `!`",
    ),
    row(Setting, "tar.*.command", Looked, "a program"),
    row(Setting, "trailer.*.cmd", Looked, "a program"),
    row(Setting, "trailer.*.command", Looked, "a program"),
    row(Setting, "uploadpack.packObjectsHook", Looked, "a program"),
    row(Setting, "web.browser", Looked, "a program"),
    row(
        Setting,
        "core.attributesFile",
        Harmless,
        "chooses among filters and drivers that other settings name",
    ),
    row(
        Setting,
        "core.excludesFile",
        Harmless,
        "which files are seen",
    ),
    row(
        Setting,
        "core.worktree",
        Harmless,
        "which files are compared: another work tree starts no program",
    ),
    row(
        Setting,
        "remote.*.url",
        Harmless,
        "where to fetch from, see protocol.*.allow",
    ),
    row(Setting, "url.*.insteadOf", Harmless, "the same"),
    row(Setting, "commit.template", Harmless, "text"),
    row(
        Setting,
        "user.signingKey",
        Harmless,
        "which key, not which program",
    ),
    row(
        Setting,
        "blame.ignoreRevsFile",
        Harmless,
        "names of commits",
    ),
];

/// The row of a setting that starts a program or brings settings in, where it is one. `key` is as
/// `git config --list` prints it.
pub fn setting_that_starts(key: &str, value: &str) -> Option<&'static GitRow> {
    let rows = GIT_TABLE.iter();
    let found = rows
        .filter(|row| row.place == Setting && row.hold == Looked)
        .find(|row| is_named(row.name, key))?;
    let starts = match found.name {
        // These are words of git's own in nearly every repository.
        "submodule.*.update" => value.trim_start().starts_with('!'),
        "core.fsmonitor" => !matches!(
            value.to_ascii_lowercase().as_str(),
            "" | "true" | "false" | "yes" | "no" | "on" | "off" | "0" | "1"
        ),
        "pager.*" => !matches!(value, "" | "true" | "false" | "cat"),
        "protocol.*.allow" | "protocol.allow" => value != "never",
        _ => !value.is_empty(),
    };
    starts.then_some(found)
}

/// Whether a key is one of those that a name stands for. What lies between the first and the last dot is any
/// text, dots included; the rest is compared without regard to case.
fn is_named(name: &str, key: &str) -> bool {
    let parts = |text: &str| -> Option<(String, Option<String>, String)> {
        let (section, rest) = text.split_once('.')?;
        let (middle, last) = match rest.rsplit_once('.') {
            Some((middle, last)) => (Some(middle.to_ascii_lowercase()), last),
            None => (None, rest),
        };
        Some((
            section.to_ascii_lowercase(),
            middle,
            last.to_ascii_lowercase(),
        ))
    };
    let (Some(name), Some(key)) = (parts(name), parts(key)) else {
        return false;
    };
    let middle = match (&name.1, &key.1) {
        (Some(wanted), Some(found)) => match wanted.strip_suffix('*') {
            Some(begins) => found.starts_with(begins),
            None => wanted == found,
        },
        (None, Some(_)) => name.2 == "*",
        (None, None) => true,
        (Some(_), None) => false,
    };
    name.0 == key.0 && middle && (name.2 == "*" || name.2 == key.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_has_a_name_of_its_own_and_a_reason() {
        let mut seen = BTreeSet::new();
        for row in GIT_TABLE {
            assert!(
                seen.insert((format!("{:?}", row.place), row.name)),
                "{row:?}"
            );
            assert!(!row.why.is_empty(), "{row:?}");
        }
    }

    #[test]
    fn settings_that_start_programs_are_known_by_their_names() {
        let table = [
            ("core.fsmonitor", "./ev.sh", true),
            ("core.fsmonitor", "true", false),
            ("core.FSMonitor", "ev", true),
            ("filter.x.clean", "./ev", true),
            ("filter.a.b.c.clean", "./ev", true),
            ("filter.x.required", "true", false),
            ("alias.st", "!ev", true),
            ("pager.status", "ev", true),
            ("pager.status", "false", false),
            ("remote.origin.uploadpack", "ev", true),
            ("remote.origin.url", "https://h/x", false),
            ("submodule.x.update", "!ev", true),
            ("submodule.x.update", "rebase", false),
            ("includeif.gitdir:/x/.path", "../f", true),
            ("include.path", "../f", true),
            ("gpg.ssh.program", "ev", true),
            ("gpg.program", "ev", true),
            ("gpg.format", "ssh", false),
            ("credential.helper", "ev", true),
            ("credential.https://h.helper", "ev", true),
            ("sendemail.x.smtpserver", "/ev", true),
            ("lfs.customtransfer.t.path", "ev", true),
            ("lfs.url", "https://h", false),
            ("user.name", "a", false),
            ("core.worktree", "/x", false),
        ];
        for (key, value, starts) in table {
            let found = setting_that_starts(key, value).is_some();
            assert_eq!(found, starts, "{key}={value}");
        }
    }
}
