//! What internal calls of git are given: never more of the user's settings than they are about.
//!
//! Who the user is, what is ignored, how line ends are converted, which hooks and signatures a
//! commit of theirs gets: that is theirs and stays. How git talks, merges, compares, colours and
//! tidies up is ours to say, since we read the answers.

use std::ffi::{OsStr, OsString};

/// For every call. Later settings win, and these come last.
const ALWAYS: &[(&str, &str)] = &[
    // Programs that would be started on the way.
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", ":"),
    ("sequence.editor", ":"),
    ("core.askPass", ""),
    ("log.showSignature", "false"),
    ("gc.auto", "0"),
    ("gc.autoDetach", "false"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    // What it believes of a file without reading it.
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
    ("core.ignoreStat", "false"),
    ("core.untrackedCache", "false"),
    // How it talks.
    ("core.quotePath", "false"),
    ("core.abbrev", "auto"),
    ("color.ui", "false"),
    ("i18n.logOutputEncoding", "UTF-8"),
];

/// For calls that do more than plumbing.
const PORCELAIN: &[(&str, &str)] = &[
    // How it talks.
    ("color.diff", "false"),
    ("color.status", "false"),
    ("color.branch", "false"),
    ("column.ui", "never"),
    ("column.status", "never"),
    ("column.branch", "never"),
    ("advice.addEmbeddedRepo", "false"),
    ("advice.addIgnoredFile", "false"),
    ("advice.detachedHead", "false"),
    ("advice.diverging", "false"),
    ("log.decorate", "false"),
    ("log.mailmap", "false"),
    ("status.branch", "false"),
    ("status.short", "false"),
    ("status.showStash", "false"),
    ("status.aheadBehind", "false"),
    ("status.relativePaths", "false"),
    ("status.submoduleSummary", "false"),
    ("status.showUntrackedFiles", "normal"),
    ("status.renames", "true"),
    // How it compares.
    ("diff.noPrefix", "false"),
    ("diff.mnemonicPrefix", "false"),
    ("diff.srcPrefix", "a/"),
    ("diff.dstPrefix", "b/"),
    ("diff.renames", "true"),
    ("diff.relative", "false"),
    ("diff.context", "3"),
    ("diff.interHunkContext", "0"),
    ("diff.algorithm", "default"),
    ("diff.colorMoved", "no"),
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "none"),
    ("diff.suppressBlankEmpty", "false"),
    ("diff.indentHeuristic", "true"),
    ("diff.orderFile", "/dev/null"),
    // How it merges.
    ("merge.ff", "true"),
    ("merge.verifySignatures", "false"),
    ("merge.conflictStyle", "merge"),
    ("merge.renames", "true"),
    ("merge.directoryRenames", "conflict"),
    ("merge.renormalize", "false"),
    ("merge.default", "text"),
    ("merge.stat", "false"),
    ("merge.log", "false"),
    ("merge.branchdesc", "false"),
    ("merge.autoStash", "false"),
    ("merge.verbosity", "2"),
    ("rerere.enabled", "false"),
    ("rerere.autoUpdate", "false"),
    // What a message of ours becomes.
    ("commit.cleanup", "whitespace"),
    ("commit.template", ""),
    ("commit.verbose", "false"),
    ("commit.status", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    // Where branches and trees go.
    ("add.ignoreErrors", "false"),
    ("checkout.guess", "false"),
    ("clean.requireForce", "true"),
    ("worktree.guessRemote", "false"),
    ("worktree.useRelativePaths", "false"),
];

/// Commands that read no setting but those for every call. Git looks for each setting among all variables that it
/// was given: with the rest, such a call takes a third longer, and a task needs fifty of them.
const PLUMBING: &[&str] = &[
    "cat-file",
    "check-ignore",
    "commit-tree",
    "config",
    "for-each-ref",
    "hash-object",
    "ls-files",
    "ls-tree",
    "merge-base",
    "rev-list",
    "rev-parse",
    "symbolic-ref",
    "update-index",
    "update-ref",
    "var",
    "write-tree",
];

/// For calls that are none of the user's business: no hook, no signature.
const HOOKLESS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("tag.forceSignAnnotated", "false"),
    ("branch.autoSetupMerge", "false"),
    ("branch.autoSetupRebase", "never"),
];

/// For calls on an index and objects of our own.
const APART: &[(&str, &str)] = &[
    ("core.splitIndex", "false"),
    ("core.safecrlf", "false"),
    // Every object a file of its own, so that it can go by itself.
    ("core.bigFileThreshold", "1024g"),
];

/// Variables of git's that are the user's to set. All others would send a call elsewhere, or
/// make it say or start something else.
const KEPT: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_ATTR_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "GIT_SSL_NO_VERIFY",
    "GIT_HTTP_USER_AGENT",
    "GIT_HTTP_PROXY_AUTHMETHOD",
    "GIT_ALLOW_PROTOCOL",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_TEST_ASSUME_DIFFERENT_OWNER",
];

/// What a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It reads, or changes trees and refs of our own: no hook runs.
    Ours,
    /// It changes the user's repository as the user would: hooks and signatures.
    Users,
}

/// What decides which settings a call gets.
#[derive(Clone, Debug)]
pub(super) struct CallSettings {
    pub(super) purpose: Purpose,
    /// With an index and objects of our own.
    pub(super) is_apart: bool,
    /// For this call alone; they come last.
    pub(super) more: Vec<(OsString, OsString)>,
}

impl CallSettings {
    pub(super) fn new(purpose: Purpose) -> CallSettings {
        CallSettings {
            purpose,
            is_apart: false,
            more: Vec::new(),
        }
    }

    /// The environment of a call of this command, from the one that the program was given.
    pub(super) fn environment(
        self,
        given: Vec<(OsString, OsString)>,
        command: &str,
    ) -> Vec<(OsString, OsString)> {
        let settings = settings_of(&given);
        let settings = settings
            .into_iter()
            .chain(self.own(command))
            .chain(self.more);
        let settings: Vec<(OsString, OsString)> = settings.collect();
        let mut environment = given;
        environment.retain(|(key, _)| is_kept(key, self.purpose));
        let mut set = |key: &str, value: &str| environment.push((key.into(), value.into()));
        set("GIT_TERMINAL_PROMPT", "0");
        set("GIT_EDITOR", ":");
        set("GIT_SEQUENCE_EDITOR", ":");
        set("GIT_PAGER", "cat");
        set("GIT_MERGE_AUTOEDIT", "no");
        set("GIT_ADVICE", "0");
        // What was gated is what its name says, whatever somebody put in its place.
        set("GIT_NO_REPLACE_OBJECTS", "1");
        if self.purpose == Purpose::Ours {
            // We read what it says.
            set("LC_ALL", "C");
        }
        // Settings cannot turn these off, since git reads them before it reads what it is given.
        for trace in ["GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE2_PERF"] {
            set(trace, "0");
        }
        set("GIT_CONFIG_COUNT", &settings.len().to_string());
        for (n, (key, value)) in settings.into_iter().enumerate() {
            environment.push((format!("GIT_CONFIG_KEY_{n}").into(), key));
            environment.push((format!("GIT_CONFIG_VALUE_{n}").into(), value));
        }
        environment
    }

    fn own(&self, command: &str) -> impl Iterator<Item = (OsString, OsString)> + use<> {
        // Hooks of the user's may call any other command with what this one was given.
        let is_plumbing = self.purpose == Purpose::Ours && PLUMBING.contains(&command);
        let parts = [
            (true, ALWAYS),
            (!is_plumbing, PORCELAIN),
            (self.purpose == Purpose::Ours, HOOKLESS),
            (self.is_apart, APART),
        ];
        let parts = parts.into_iter().filter(|(is_wanted, _)| *is_wanted);
        parts.flat_map(|(_, pairs)| pairs.iter().map(|(k, v)| (k.into(), v.into())))
    }
}

fn is_kept(key: &OsStr, purpose: Purpose) -> bool {
    match key.to_str() {
        Some(key) if key.starts_with("GIT_") => KEPT.contains(&key),
        Some("LC_ALL" | "LANGUAGE") => purpose == Purpose::Users,
        _ => true,
    }
}

/// Settings that the environment holds already, in order.
fn settings_of(environment: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let find = |name: &str| {
        let found = environment.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone())
    };
    let count = find("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse::<usize>().ok());
    let pair = |n| {
        Some((
            find(&format!("GIT_CONFIG_KEY_{n}"))?,
            find(&format!("GIT_CONFIG_VALUE_{n}"))?,
        ))
    };
    (0..count.unwrap_or(0).min(1_000)).map_while(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(k, v)| (k.into(), v.into())).collect()
    }

    fn value<'a>(environment: &'a [(OsString, OsString)], key: &str) -> Option<&'a str> {
        let found = environment.iter().rev().find(|(k, _)| k == key);
        found.and_then(|(_, value)| value.to_str())
    }

    #[test]
    fn variables_that_lead_elsewhere_go_and_the_users_own_stay() {
        let given = pairs(&[
            ("GIT_DIR", "/elsewhere"),
            ("GIT_INDEX_FILE", "/elsewhere/index"),
            ("GIT_EXTERNAL_DIFF", "/bin/false"),
            ("GIT_TRACE", "/tmp/trace"),
            ("GIT_AUTHOR_NAME", "Ann"),
            ("GIT_CONFIG_GLOBAL", "/home/ann/config"),
            ("PATH", "/bin"),
        ]);
        let made = CallSettings::new(Purpose::Ours).environment(given, "merge");
        for gone in [
            "GIT_DIR",
            "GIT_INDEX_FILE",
            "GIT_EXTERNAL_DIFF",
            "GIT_TRACE",
        ] {
            assert_eq!(value(&made, gone), None, "{gone}");
        }
        assert_eq!(value(&made, "GIT_AUTHOR_NAME"), Some("Ann"));
        assert_eq!(value(&made, "GIT_CONFIG_GLOBAL"), Some("/home/ann/config"));
        assert_eq!(value(&made, "PATH"), Some("/bin"));
    }

    #[test]
    fn settings_of_the_environment_stay_before_ours() {
        let given = pairs(&[
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "user.name"),
            ("GIT_CONFIG_VALUE_0", "Ann"),
        ]);
        let call = CallSettings {
            more: pairs(&[("filter.x.clean", "")]),
            ..CallSettings::new(Purpose::Users)
        };
        let made = call.environment(given, "commit");
        assert_eq!(value(&made, "GIT_CONFIG_KEY_0"), Some("user.name"));
        assert_eq!(value(&made, "GIT_CONFIG_KEY_1"), Some("core.fsmonitor"));
        let count: usize = value(&made, "GIT_CONFIG_COUNT").unwrap().parse().unwrap();
        assert_eq!(count, ALWAYS.len() + PORCELAIN.len() + 2);
        let last = format!("GIT_CONFIG_KEY_{}", count - 1);
        assert_eq!(value(&made, &last), Some("filter.x.clean"));
    }

    #[test]
    fn only_plumbing_of_our_own_does_without_settings_of_how_git_talks_and_merges() {
        let has = |purpose, command: &str| {
            let made = CallSettings::new(purpose).environment(Vec::new(), command);
            let value = |key: &str| made.iter().any(|(_, value)| value == key);
            assert!(value("core.fsmonitor"), "{command}");
            assert_eq!(
                value("core.hooksPath"),
                purpose == Purpose::Ours,
                "{command}"
            );
            value("merge.ff")
        };
        assert!(!has(Purpose::Ours, "rev-parse"));
        assert!(!has(Purpose::Ours, "update-ref"));
        assert!(has(Purpose::Ours, "merge"));
        assert!(has(Purpose::Ours, "diff"));
        // One that was not thought of.
        assert!(has(Purpose::Ours, "mergetool"));
        // A hook of the user's may go on from there.
        assert!(has(Purpose::Users, "update-ref"));
    }
}
