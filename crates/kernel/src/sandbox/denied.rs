//! Denials, read off what a run printed. The kernel tells nobody of them, so this is a guess: a path that
//! cannot be written stands in a line that says so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plan::{Access, SandboxPlan};
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
    /// What to type to allow it.
    pub flag: String,
}

impl Denial {
    /// One line for people.
    pub fn describe(&self) -> String {
        let times = match self.count {
            1 => String::new(),
            count => format!(" ({count} times)"),
        };
        let Self { what, flag, .. } = self;
        format!("the sandbox seems to have denied {what}{times}; to allow it: {flag}")
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

/// Most that is told of one run.
const MOST: usize = 8;

/// Finds denials in output.
pub fn denied_paths(plan: &SandboxPlan, mechanism: Mechanism, output: &str) -> Vec<Denial> {
    let mut found: BTreeMap<String, Denial> = BTreeMap::new();
    let mut count = |what: String, flag: String| {
        let entry = found.entry(what.clone()).or_insert(Denial {
            what,
            count: 0,
            flag,
        });
        entry.count += 1;
    };
    for line in output.lines() {
        if let Some((_, host)) = line.split_once(PROXY_REFUSED) {
            let host = host.split_whitespace().next().unwrap_or_default();
            let flag = "sandbox.hosts of the agent's profile, or --sandbox workspace";
            count(host.to_owned(), flag.to_owned());
        } else if let Some((_, what)) = line.split_once(LIMIT_REACHED) {
            let flag = "--sandbox workspace, which limits neither processes nor memory";
            count(what.trim().to_owned(), flag.to_owned());
        } else if let Some(told) = Told::of(line) {
            for path in paths(line, &plan.work_dir) {
                if let Some(flag) = flag_for(plan, mechanism, told, &path) {
                    count(path.display().to_string(), flag);
                }
            }
        }
    }
    let mut all: Vec<Denial> = found.into_values().collect();
    all.sort_by_key(|denied| std::cmp::Reverse(denied.count));
    all.truncate(MOST);
    all
}

/// Words in a line that may be paths, from where the program worked.
fn paths(line: &str, work_dir: &Path) -> Vec<PathBuf> {
    let stops = |c: char| c.is_whitespace() || "'\"`‘’“”(),;<>\\".contains(c);
    let words = line
        .split(stops)
        .map(|word| word.trim_end_matches([':', '.']));
    let words = words.filter(|word| !word.is_empty() && *word != "/");
    words
        .map(|word| work_dir.join(word.trim_start_matches("./")))
        .collect()
}

/// What would allow it; `None` where it is allowed, or nobody could.
fn flag_for(plan: &SandboxPlan, mechanism: Mechanism, told: Told, path: &Path) -> Option<String> {
    let system = ["/proc", "/sys", "/dev"];
    if system.iter().any(|place| path.starts_with(place)) {
        return None;
    }
    let flag = match (plan.access(path), told, mechanism) {
        (Access::ReadOnly, Told::ReadOnly, _)
        | (Access::ReadOnly, Told::NoRight, Mechanism::Landlock) => "--sandbox-write",
        (Access::Hidden, ..) if !path.starts_with("/run") => "--sandbox-read",
        _ => return None,
    };
    Some(format!("{flag} {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Network, PathRule, RunPurpose, SandboxLevel};

    #[test]
    fn a_path_outside_of_the_grants_is_told_with_the_flag_that_allows_it() {
        let rule = |path: &str, access| PathRule {
            path: path.into(),
            is_folder: true,
            access,
            source: None,
            why: String::new(),
        };
        let plan = SandboxPlan {
            level: SandboxLevel::Workspace,
            purpose: RunPurpose::Agent,
            rules: vec![
                rule("/h/.ssh", Access::Hidden),
                rule("/h/p", Access::Writable),
                rule("/h/p/check.sh", Access::ReadOnly),
            ],
            network: Network::Host,
            work_dir: "/h/p".into(),
            make: Vec::new(),
            in_private: Vec::new(),
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
        let told = denied_paths(&plan, Mechanism::Bwrap, output);
        let told: Vec<(&str, u32, &str)> = told
            .iter()
            .map(|denied| (&*denied.what, denied.count, &*denied.flag))
            .collect();
        assert_eq!(
            told,
            [
                ("/h/.npm/_x", 2, "--sandbox-write /h/.npm/_x"),
                ("/h/.ssh/id_rsa", 1, "--sandbox-read /h/.ssh/id_rsa"),
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
    }
}
