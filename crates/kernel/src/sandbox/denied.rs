//! Denials, read off what a run printed. The kernel tells nobody of them, so this is a guess: a path that
//! cannot be written stands in a line that says so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use descartes_text::shell;
use serde::{Deserialize, Serialize};

use super::plan::{Access, PathRule, RuleKind, SYSTEM, SandboxPlan};
use super::summary::Mechanism;

/// What our proxy prints for a host that is not allowed.
pub const PROXY_REFUSED: &str = "descartes sandbox: no network to ";

/// What the first stage prints where a limit of `strict` was reached.
pub const LIMIT_REACHED: &str = "descartes sandbox: limit reached: ";

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// That a place is read-only, or a mount that cannot be moved.
    ReadOnly,
    /// That a right is missing.
    NoRight,
    /// That nothing is there.
    Missing,
}

impl Told {
    fn of(line: &str) -> Option<Self> {
        let says = |wordings: &[&str]| wordings.iter().any(|wording| line.contains(wording));
        if says(&[
            "Read-only file system",
            "read-only file system",
            "EROFS",
            "Device or resource busy",
        ]) {
            return Some(Self::ReadOnly);
        }
        if says(&["Permission denied", "permission denied", "EACCES"]) {
            return Some(Self::NoRight);
        }
        says(&["No such file or directory", "ENOENT"]).then_some(Self::Missing)
    }
}

/// What looks as if the sandbox had denied it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The path, or the host.
    pub what: String,
    /// In how many lines it was told.
    pub count: u32,
    /// What to type to allow it, of `loop start` and `loop resume`; empty where nothing is to be typed.
    pub flag: String,
    /// Why nothing is to be typed, or what has to be done first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Denial {
    /// One line for people.
    pub fn describe(&self) -> String {
        let times = match self.count {
            1 => String::new(),
            count => format!(" ({count} times)"),
        };
        let Self {
            what, flag, note, ..
        } = self;
        let denied = format!("the sandbox seems to have denied {what}{times}");
        match (flag.is_empty(), note.is_empty()) {
            (true, _) => format!("{denied}: {note}"),
            (_, true) if !flag.starts_with("--sandbox-") => {
                format!("{denied}; to allow it: {flag}")
            }
            (_, true) => format!("{denied}; to allow it: descartes loop resume {flag}"),
            (..) => format!("{denied}; to allow it: {note}, then descartes loop resume {flag}"),
        }
    }
}

/// Most that is kept of a loop.
const KEPT: usize = 100;

/// Adds what another run was denied.
pub fn merge_denials(known: &mut Vec<Denial>, new: &[Denial]) {
    for denial in new {
        if let Some(known) = known.iter_mut().find(|known| known.what == denial.what) {
            known.count = known.count.saturating_add(denial.count);
        } else if known.len() < KEPT {
            known.push(denial.clone());
        }
    }
}

/// What was denied since a loop knew only `before`.
pub fn denied_since(before: &[Denial], now: &[Denial]) -> Vec<Denial> {
    let count = |what: &str| {
        let known = before.iter().find(|denial| denial.what == what);
        known.map_or(0, |denial| denial.count)
    };
    let new = now.iter().map(|denial| Denial {
        count: denial.count.saturating_sub(count(&denial.what)),
        ..denial.clone()
    });
    new.filter(|denial| denial.count > 0).collect()
}

/// Most that is told of one run.
const MOST: usize = 8;

/// What to type to allow something, and what goes before it.
#[derive(Default)]
struct Advice {
    flag: String,
    note: String,
}

/// What a denial is told of, beside the output.
pub struct OutsideView<'a> {
    /// The user's home directory.
    pub home: Option<&'a Path>,
    /// What stands under a path outside of the sandbox: whether it is a folder; `None` for nothing.
    pub look: &'a dyn Fn(&Path) -> Option<bool>,
}

/// Finds denials in output.
pub fn denied_paths(
    plan: &SandboxPlan,
    mechanism: Mechanism,
    output: &str,
    around: &OutsideView<'_>,
) -> Vec<Denial> {
    let mut found: BTreeMap<String, Denial> = BTreeMap::new();
    let mut count = |what: String, advice: Advice| {
        let entry = found.entry(what.clone()).or_insert(Denial {
            what,
            count: 0,
            flag: advice.flag,
            note: advice.note,
        });
        entry.count += 1;
    };
    let typed = |flag: &str| Advice {
        flag: flag.to_owned(),
        ..Advice::default()
    };
    for line in output.lines() {
        if let Some((_, host)) = line.split_once(PROXY_REFUSED) {
            let host = host.split_whitespace().next().unwrap_or_default();
            let flag = "sandbox.hosts of the agent's profile, or --sandbox workspace";
            count(host.to_owned(), typed(flag));
        } else if let Some((_, what)) = line.split_once(LIMIT_REACHED) {
            let flag = "--sandbox workspace, which limits neither processes nor memory";
            count(what.trim().to_owned(), typed(flag));
        } else if let Some(told) = Told::of(line) {
            let advised = paths(line, &plan.work_dir, around.look);
            let advised = advised.into_iter().filter_map(|word| {
                let mut advice = advice_for(plan, mechanism, told, &word.path, around)?;
                // A folder in the place of a file would only be denied in another way.
                if advice.note == make(&word.path, Kind::Folder) && !speaks_of_folder(line) {
                    advice.note = make(&word.path, Kind::File);
                }
                Some((word, advice))
            });
            let advised: Vec<_> = advised.collect();
            let only = advised.len() == 1;
            for (word, advice) in advised {
                // `sh: 1: …`, `/h/agent.sh: line 3: …`: who says it, where something else is told of.
                if only || !word.says_it {
                    count(word.path.display().to_string(), advice);
                }
            }
        }
    }
    let mut all: Vec<Denial> = found.into_values().collect();
    all.sort_by_key(|denied| std::cmp::Reverse(denied.count));
    all.truncate(MOST);
    all
}

/// A word that may be a path.
struct PathWord {
    path: PathBuf,
    /// It stands where programs name themselves.
    says_it: bool,
}

/// What may be paths in a line, from where the program worked: what stands in quotes, and words outside of
/// them. A path with blanks that nobody quoted is told by what is there.
fn paths(line: &str, work_dir: &Path, look: &dyn Fn(&Path) -> Option<bool>) -> Vec<PathWord> {
    let mut found = Vec::new();
    for (n, piece) in pieces(line).into_iter().enumerate() {
        match piece {
            PathText::Quoted(text) => found.extend(path_word(text, false, work_dir)),
            PathText::Bare(text) => bare_paths(text, n == 0, work_dir, look, &mut found),
        }
    }
    found
}

enum PathText<'l> {
    Quoted(&'l str),
    Bare(&'l str),
}

/// A quote opens before a path and closes at the end of a word: `can't` has none, nor has a sentence in quotes.
fn pieces(line: &str) -> Vec<PathText<'_>> {
    const QUOTES: [(char, char); 5] =
        [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”')];
    let mut pieces = Vec::new();
    let (mut bare, mut at) = (0, 0);
    while let Some(c) = line[at..].chars().next() {
        let inner = at + c.len_utf8();
        let starts = ["/", "./", "../"]
            .iter()
            .any(|start| line[inner..].starts_with(start));
        let quote = QUOTES.iter().find(|(open, _)| *open == c && starts);
        let end = quote.and_then(|(open, close)| {
            // GNU writes `'…'`, and old programs "`…'".
            let closes = |c: char| c == *close || (*open == '`' && c == '\'');
            let ends = |(at, c): &(usize, char)| {
                let after = line[inner + at + c.len_utf8()..].chars().next();
                closes(*c) && !after.is_some_and(char::is_alphanumeric)
            };
            let found = line[inner..].char_indices().find(ends);
            found.map(|(at, c)| (inner + at, inner + at + c.len_utf8()))
        });
        at = inner;
        if let Some((end, after)) = end {
            pieces.push(PathText::Bare(&line[bare..inner - c.len_utf8()]));
            // Quotes within quotes are escaped.
            pieces.push(PathText::Quoted(line[inner..end].trim_end_matches('\\')));
            (bare, at) = (after, after);
        }
    }
    pieces.push(PathText::Bare(&line[bare..]));
    pieces
}

fn bare_paths(
    text: &str,
    is_first: bool,
    work_dir: &Path,
    look: &dyn Fn(&Path) -> Option<bool>,
    found: &mut Vec<PathWord>,
) {
    let stops = |c: char| c.is_whitespace() || "'\"`‘’“”(),;<>\\".contains(c);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(long) = with_blanks(rest, look) {
            found.extend(path_word(long, false, work_dir));
            at += long.len();
            continue;
        }
        let end = rest.find(stops).unwrap_or(rest.len());
        let says_it = is_first && at == 0 && rest[..end].ends_with(':');
        found.extend(path_word(&rest[..end], says_it, work_dir));
        at += end + rest[end..].chars().next().map_or(0, char::len_utf8);
    }
}

/// Of how many words a path is recognized that nobody quoted.
const MOST_WORDS: usize = 8;

/// The longest path with blanks at the start of a text of which the file, or the folder around it, is there.
fn with_blanks<'t>(text: &'t str, look: &dyn Fn(&Path) -> Option<bool>) -> Option<&'t str> {
    if !text.starts_with('/') {
        return None;
    }
    let end = text.find(": ").unwrap_or(text.len());
    let ends = text[..end].match_indices(' ').map(|(at, _)| at);
    // The first ends a path without blanks. A path of more words is not worth as many looks at the disk.
    let ends = ends.chain([end]).skip(1).take(MOST_WORDS);
    let is_there = |path: &Path| {
        let folder = path.parent().filter(|folder| folder.parent().is_some());
        let has_blank = |path: &Path| path.to_string_lossy().contains(' ');
        look(path).is_some()
            || folder.is_some_and(|folder| has_blank(folder) && look(folder) == Some(true))
    };
    let paths = ends.map(|end| text[..end].trim_end_matches(['.', ':', ' ']));
    let mut there: Vec<&str> = paths.filter(|path| is_there(Path::new(path))).collect();
    there.pop()
}

fn path_word(word: &str, says_it: bool, work_dir: &Path) -> Option<PathWord> {
    let word = word.trim_end_matches([':', '.']);
    let path = || work_dir.join(word.trim_start_matches("./"));
    (!word.is_empty() && word != "/").then(|| PathWord {
        path: path(),
        says_it,
    })
}

/// What would allow it; `None` where it is allowed, or nobody could.
fn advice_for(
    plan: &SandboxPlan,
    mechanism: Mechanism,
    told: Told,
    path: &Path,
    around: &OutsideView<'_>,
) -> Option<Advice> {
    let system = ["/proc", "/sys", "/dev"];
    if system.iter().any(|place| path.starts_with(place)) {
        return None;
    }
    let never = |why: &str| Advice {
        note: why.to_owned(),
        ..Advice::default()
    };
    let rule = plan.rule(path);
    let kind = rule.map_or(RuleKind::Other, |rule| rule.why.kind);
    let of_rule = |what: &dyn Fn(&PathRule) -> String| never(&rule.map(what).unwrap_or_default());
    match (plan.access(path), told, mechanism) {
        (Access::ReadOnly, Told::ReadOnly, _)
        | (Access::ReadOnly, Told::NoRight, Mechanism::Landlock) => Some(match kind {
            RuleKind::Program => never("it is a program that is started, which stays as it is"),
            RuleKind::Own => never("it belongs to descartes"),
            RuleKind::Fixed | RuleKind::ForTheRun => {
                of_rule(&|rule| format!("it stays as it is: {}", rule.why.as_str()))
            }
            RuleKind::Secret | RuleKind::AskedToHide | RuleKind::Apart | RuleKind::Other => {
                writable(path, plan, around)
            }
        }),
        (Access::Hidden, ..) if !path.starts_with("/run") => Some(match kind {
            RuleKind::Own => never("it belongs to descartes"),
            RuleKind::Secret => {
                never("it holds keys, logins or history, which the agent does not need")
            }
            RuleKind::AskedToHide => of_rule(&|rule| {
                format!("it is hidden by --sandbox-hide {}", shell::path(&rule.path))
            }),
            _ => match (around.look)(path) {
                Some(_) => Advice {
                    flag: format!("--sandbox-read {}", shell::path(path)),
                    ..Advice::default()
                },
                None => never("it is hidden, and nothing is there"),
            },
        }),
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum Kind {
    File,
    Folder,
}

/// The command that makes what is to be opened, which must be there.
fn make(path: &Path, kind: Kind) -> String {
    let program = match kind {
        Kind::File => "touch",
        Kind::Folder => "mkdir",
    };
    format!("{program} {}", shell::path(path))
}

/// `cannot create directory ‘…’`, `EROFS: read-only file system, mkdir '…'`.
fn speaks_of_folder(line: &str) -> bool {
    let line = line.to_lowercase();
    ["director", "mkdir", "folder"]
        .iter()
        .any(|word| line.contains(word))
}

/// What is named to be written: the file itself, or the nearest folder that is there. That is never a
/// folder around the home directory, the project or files of descartes, and no folder of the system.
fn writable(path: &Path, plan: &SandboxPlan, around: &OutsideView<'_>) -> Advice {
    let is_wide = |folder: &Path| {
        let holds = |place: Option<&Path>| place.is_some_and(|place| place.starts_with(folder));
        let own = plan
            .every_rule()
            .filter(|rule| rule.why.kind == RuleKind::Own);
        let mut own = own.map(|rule| Some(rule.path.as_path()));
        folder.parent().is_none()
            || holds(around.home)
            || holds(Some(&plan.work_dir))
            || own.any(holds)
    };
    let mut missing = None;
    for place in path.ancestors() {
        if SYSTEM.iter().any(|system| place.starts_with(system)) {
            return Advice {
                note: "it is a place of the system".to_owned(),
                ..Advice::default()
            };
        }
        if is_wide(place) {
            break;
        }
        if (around.look)(place).is_some() {
            return Advice {
                flag: format!("--sandbox-write {}", shell::path(place)),
                ..Advice::default()
            };
        }
        missing = Some(place);
    }
    match missing {
        Some(place) => Advice {
            flag: format!("--sandbox-write {}", shell::path(place)),
            note: make(place, Kind::Folder),
        },
        None => Advice {
            note: "to allow it would open the folder around everything".to_owned(),
            ..Advice::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Network, RuleReason, RunPurpose, SandboxLevel};

    #[test]
    fn a_path_outside_of_the_grants_is_told_with_the_flag_that_allows_it() {
        let rule = |path: &str, access| PathRule {
            path: path.into(),
            is_folder: true,
            access,
            source: None,
            why: match path {
                "/h/.ssh" => RuleReason::SECRET,
                "/h/secret plans" => RuleReason::HIDE,
                _ => "".into(),
            },
        };
        let plan = SandboxPlan {
            level: SandboxLevel::Workspace,
            purpose: RunPurpose::Agent,
            rules: vec![
                rule("/h/.ssh", Access::Hidden),
                rule("/h/secret plans", Access::Hidden),
                rule("/h/p", Access::Writable),
                rule("/h/p/check.sh", Access::ReadOnly),
            ],
            silent: Vec::new(),
            network: Network::Host,
            work_dir: "/h/p".into(),
            make: Vec::new(),
            in_private: Vec::new(),
            cache_home: None,
        };
        let output = "\
            npm error EROFS: read-only file system, mkdir '/h/.npm/_x'\n\
            sh: 1: cannot create /h/.npm/_x: Read-only file system\n\
            cat: /h/.ssh/id_rsa: Permission denied\n\
            cp: cannot create '/h/p/x': Permission denied\n\
            sh: 1: cannot create ./check.sh: Device or resource busy\n\
            {\"e\":\"/proc/sys/x: Read-only file system\"}\n\
            all is well in /h/other\n\
            descartes sandbox: no network to evil.example:443 (not allowed)\n";
        let there = [
            "/h",
            "/h/p",
            "/h/p/check.sh",
            "/h/.ssh/id_rsa",
            "/h/bin",
            "/h/my dir",
            "/h/secret plans",
        ];
        let look = |path: &Path| {
            there
                .iter()
                .any(|there| Path::new(there) == path)
                .then_some(true)
        };
        let around = OutsideView {
            home: Some(Path::new("/h")),
            look: &look,
        };
        let denied_paths = |plan: &SandboxPlan, mechanism, output: &str| {
            denied_paths(plan, mechanism, output, &around)
        };
        let told = denied_paths(&plan, Mechanism::Bwrap, output);
        let told: Vec<(&str, u32, &str)> = told
            .iter()
            .map(|denied| (&*denied.what, denied.count, &*denied.flag))
            .collect();
        assert_eq!(
            told,
            [
                ("/h/.npm/_x", 2, "--sandbox-write /h/.npm"),
                ("/h/.ssh/id_rsa", 1, ""),
                ("/h/p/check.sh", 1, "--sandbox-write /h/p/check.sh"),
                (
                    "evil.example:443",
                    1,
                    "sandbox.hosts of the agent's profile, or --sandbox workspace"
                ),
            ]
        );
        assert_eq!(denied_paths(&plan, Mechanism::Bwrap, "nothing"), []);
        // The user has no right to it, sandbox or not; with Landlock nobody can tell.
        let line = "cat: /etc/shadow: Permission denied";
        assert_eq!(denied_paths(&plan, Mechanism::Bwrap, line), []);
        assert_eq!(denied_paths(&plan, Mechanism::Landlock, line).len(), 1);
        // A hint names what is there, and never the program that says it, a secret, or too much.
        let table = [
            (
                "mkdir: cannot create directory '/h/.npm/_x': Read-only file system",
                "to allow it: mkdir /h/.npm, then descartes loop resume --sandbox-write /h/.npm",
            ),
            (
                "/h/bin/agent.sh: 3: cannot create /h/bin/a/b: Read-only file system",
                "/h/bin/a/b; to allow it: descartes loop resume --sandbox-write /h/bin",
            ),
            (
                "cat: /h/.ssh/id_rsa: Permission denied",
                "it holds keys, logins or history",
            ),
            (
                "touch: cannot touch '/h/my dir/new file': Read-only file system",
                "denied /h/my dir/new file; to allow it: descartes loop resume --sandbox-write '/h/my dir'",
            ),
            (
                "sh: 1: cannot create /h/my dir/new file: Read-only file system",
                "denied /h/my dir/new file; to allow it: descartes loop resume --sandbox-write '/h/my dir'",
            ),
            (
                r#"{"error":"EROFS, can't open '/h/my dir/y'"}"#,
                "denied /h/my dir/y; to allow it: descartes loop resume --sandbox-write '/h/my dir'",
            ),
            (
                r#"{"error":"EROFS: \"/h/my dir/z\""}"#,
                "denied /h/my dir/z; to allow it: descartes loop resume --sandbox-write '/h/my dir'",
            ),
            (
                "it can't be written: \"/h/my dir/x\" (EROFS)",
                "denied /h/my dir/x; to allow it: descartes loop resume --sandbox-write '/h/my dir'",
            ),
            (
                "sh: 1: cannot create /h/plain.txt: Read-only file system",
                "denied /h/plain.txt; to allow it: touch /h/plain.txt, then descartes loop resume --sandbox-write /h/plain.txt",
            ),
            (
                "mkdir: cannot create directory '/h/cache2': Read-only file system",
                "denied /h/cache2; to allow it: mkdir /h/cache2, then descartes loop resume --sandbox-write /h/cache2",
            ),
            (
                "cat: '/h/secret plans/a': No such file or directory",
                "it is hidden by --sandbox-hide '/h/secret plans'",
            ),
            (
                "touch: cannot touch '/usr/lib/x': Read-only file system",
                "a place of the system",
            ),
        ];
        for (line, wanted) in table {
            let told = denied_paths(&plan, Mechanism::Bwrap, line);
            let text: Vec<String> = told.iter().map(Denial::describe).collect();
            assert_eq!(text.len(), 1, "{line}: {text:?}");
            assert!(text[0].contains(wanted), "{line}: {text:?}");
        }
    }
}
