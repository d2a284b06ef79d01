//! What git says, in one line for people.

/// Names that are told one by one.
const NAMED: usize = 5;

/// Why git refused: its error with the files that it names, without hints.
pub fn git_reason(words: &str) -> String {
    let lines: Vec<&str> = words.lines().collect();
    let Some(at) = lines.iter().position(is_error) else {
        let mut plain = lines.iter().map(|line| line.trim());
        let first = plain.find(|line| !line.is_empty() && !line.starts_with("hint:"));
        return match first {
            Some(CUT) => cut_reason(&lines),
            first => first.unwrap_or("git refused").to_owned(),
        };
    };
    let head = lines[at]
        .split_once(": ")
        .map_or(lines[at], |(_, rest)| rest);
    let named = overwritten(words);
    match named.len() {
        0 => head.to_owned(),
        many => {
            let mut list = named[..many.min(NAMED)].join(", ");
            if many > NAMED {
                list.push_str(&format!(" and {} more", many - NAMED));
            }
            format!("{} {list}", head.trim_end())
        }
    }
}

/// What git says behind or before the reason when it refuses a merge or a commit.
const MERGE_NOISE: [&str; 6] = [
    "hint: ",
    "Merge with strategy ",
    "Squash commit -- not updating HEAD",
    "Automatic merge went well; stopped",
    "Please commit your changes or stash them before you",
    "Please move or remove them before you",
];

/// The last line of a text that tells something: behind its reason git says what it always says.
pub fn telling_line(words: &str) -> &str {
    let lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_noise = |line: &&str| {
        matches!(*line, "Aborting" | "hint:" | CUT)
            || MERGE_NOISE.iter().any(|noise| line.starts_with(noise))
    };
    let telling = lines.clone().rfind(|line| !is_noise(line));
    telling.or_else(|| lines.clone().next_back()).unwrap_or("")
}

/// Why there is no commit, in one line: git's error with the files that it names. Where git told none, a
/// hook or a gate refused, and the last of its words tells why.
pub fn commit_reason(words: &str) -> String {
    // A call that failed is named before its words.
    let said = words.split_once(" failed: ");
    let said = said.filter(|(call, _)| call.starts_with("git ") && !call.contains('\n'));
    let said = said.map_or(words, |(_, said)| said);
    match said.lines().any(|line| is_error(&line)) {
        true => git_reason(said),
        false => telling_line(words).to_owned(),
    }
}

fn is_error(line: &&str) -> bool {
    line.starts_with("error: ") || line.starts_with("fatal: ")
}

/// What ssh and git say besides the reason when another repository does not answer or refuses.
const REMOTE_NOISE: [&str; 18] = [
    "enumerating objects",
    "counting objects",
    "delta compression",
    "compressing objects",
    "writing objects",
    "total ",
    "receiving objects",
    "resolving deltas",
    "unpacking objects",
    "warning:",
    "hint:",
    "remote:",
    "to ",
    "error: failed to push some refs",
    "fatal: could not read from remote repository",
    "fatal: the remote end hung up",
    "please make sure you have the correct access rights",
    "and the repository exists",
];

/// Why a repository elsewhere did not give or take something: the last line that says so. Before it stand
/// banners and the warnings of ssh, behind it what git always says.
pub fn remote_reason(words: &str) -> String {
    let lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_noise = |line: &&str| {
        let line = line.to_lowercase();
        REMOTE_NOISE.iter().any(|noise| line.starts_with(noise))
    };
    let telling = lines.clone().rfind(|line| !is_noise(line));
    let reason = telling.or_else(|| lines.clone().next_back());
    let reason = reason.unwrap_or("git said nothing");
    // A hook's own words stand before what git makes of them.
    let mut told = lines.rev().filter_map(|line| line.strip_prefix("remote:"));
    match told.find(|words| !words.trim().is_empty()) {
        Some(words) if reason.contains("rejected]") => format!("{} ({reason})", words.trim()),
        _ => reason.to_owned(),
    }
}

/// Where only the end of what git said is known, it begins with this line.
const CUT: &str = "…";

/// The reason in the end of a long list of files.
fn cut_reason(lines: &[&str]) -> String {
    let named = lines.iter().filter_map(|line| line.strip_prefix('\t'));
    let named: Vec<&str> = named.map(str::trim_end).collect();
    if named.is_empty() {
        let last = lines.iter().rev().map(|line| line.trim());
        let mut last = last.filter(|line| !line.is_empty() && *line != CUT && *line != "Aborting");
        return last.next().unwrap_or("git refused").to_owned();
    }
    format!(
        "many local files would be overwritten, including {}",
        named[..named.len().min(NAMED)].join(", ")
    )
}

/// The files that git would have overwritten.
pub fn overwritten(words: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut within = false;
    for line in words.lines() {
        within = match line.strip_prefix('\t') {
            Some(file) if within => {
                files.push(file.trim_end().to_owned());
                true
            }
            _ => line.starts_with("error: ") && line.trim_end().ends_with(':'),
        };
    }
    files
}

/// What the system and git say where there is no room.
const FULL: [&str; 4] = [
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "Out of diskspace",
];
/// What git says where it could not write, often without the reason.
const NOT_WRITTEN: [&str; 5] = [
    "unable to write",
    "unable to create",
    "couldn't write",
    "cannot write",
    "write error",
];
/// With less than this, a file that could not be written had no room.
const LITTLE: u64 = 1 << 20;

/// Whether a call of git failed because a disk is full. `free`: the bytes that are left on the disks
/// that it writes to, as far as that is known; git does not always tell the reason.
pub fn is_disk_full(words: &str, free: Option<u64>) -> bool {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    says(&FULL) || (says(&NOT_WRITTEN) && free.is_some_and(|free| free < LITTLE))
}

/// The branch that was checked out when a stash was made, by the words that git gave it; none where
/// none was, or where somebody wrote words of their own.
pub fn stash_branch(words: &str) -> Option<&str> {
    let rest = words
        .strip_prefix("WIP on ")
        .or_else(|| words.strip_prefix("On "))?;
    // No branch can have a colon in its name.
    let (branch, _) = rest.split_once(": ")?;
    Some(branch).filter(|branch| !branch.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_repository_elsewhere_is_told_and_not_what_stands_around_it() {
        let ssh = "Warning: Permanently added '[h]:22' (ED25519) to the list of known hosts.\r\n\
                   * Authorized use only *\n\
                   git@h: Permission denied (publickey).\r\n\
                   fatal: Could not read from remote repository.\n\n\
                   Please make sure you have the correct access rights\nand the repository exists.\n";
        let refused = "remote: error: GH006: Protected branch update failed.\n\
                       To ssh://h/app.git\n ! [remote rejected] a -> b (hook declined)\n\
                       error: failed to push some refs to 'ssh://h/app.git'\n";
        let table = [
            (ssh, "git@h: Permission denied (publickey)."),
            (
                refused,
                "error: GH006: Protected branch update failed. (! [remote rejected] a -> b (hook declined))",
            ),
            (
                "To /r.git\n ! [rejected] a -> b (stale info)\n",
                "! [rejected] a -> b (stale info)",
            ),
            (
                "remote: Invalid username or password.\nfatal: Authentication failed for 'https://h/'",
                "fatal: Authentication failed for 'https://h/'",
            ),
            (
                "fatal: Could not read from remote repository.",
                "fatal: Could not read from remote repository.",
            ),
            ("", "git said nothing"),
        ];
        for (words, reason) in table {
            assert_eq!(remote_reason(words), reason);
        }
    }

    #[test]
    fn the_branch_of_a_stash_is_read_from_its_words() {
        let table = [
            ("WIP on main: 1234567 a: b", Some("main")),
            (
                "On descartes/auth/1: before the tests",
                Some("descartes/auth/1"),
            ),
            ("WIP on (no branch): 1234567 x", None),
            ("my own words: on main", None),
            ("On the way", None),
            ("", None),
        ];
        for (words, branch) in table {
            assert_eq!(stash_branch(words), branch, "{words}");
        }
    }

    #[test]
    fn a_full_disk_is_told_from_other_failures() {
        let written = "error: unable to write file big";
        let table = [
            ("fatal: x: No space left on device", None, true),
            ("error: x: Disk quota exceeded", Some(1 << 40), true),
            (
                "fatal: sha1 file 'x' write error. Out of diskspace",
                None,
                true,
            ),
            (written, Some(0), true),
            (written, Some((1 << 20) - 1), true),
            (written, Some(1 << 20), false),
            (written, None, false),
            (
                "fatal: cannot update ref 'r': couldn't write 'r.lock'",
                Some(52 << 10),
                true,
            ),
            (
                "error: unable to create file x: Permission denied",
                Some(1 << 30),
                false,
            ),
            (
                "error: Your local changes to the following files",
                Some(0),
                false,
            ),
        ];
        for (words, free, full) in table {
            assert_eq!(is_disk_full(words, free), full, "{words} {free:?}");
        }
    }

    #[test]
    fn a_commit_that_failed_is_told_by_its_cause() {
        let overwritten = "error: Your local changes to the following files would be overwritten by \
                           merge:\n\ta\nPlease commit your changes or stash them before you merge.\n\
                           Aborting\nMerge with strategy ort failed.";
        let table = [
            (
                overwritten,
                "Your local changes to the following files would be overwritten by merge: a",
            ),
            (
                "git merge failed: fatal: refusing to merge unrelated histories",
                "refusing to merge unrelated histories",
            ),
            (
                "git commit failed: error: insufficient permission for adding an object\n\
                 error: insufficient permission\nfatal: updating files failed",
                "insufficient permission for adding an object",
            ),
            // A hook's words.
            (
                "git commit failed: ruff\nchecking\n2 files would be reformatted\n",
                "2 files would be reformatted",
            ),
            ("the hook says no\nAborting\n", "the hook says no"),
            (
                "git commit failed: exit code 1",
                "git commit failed: exit code 1",
            ),
            ("git was killed", "git was killed"),
            ("Aborting", "Aborting"),
            ("", ""),
        ];
        for (words, reason) in table {
            assert_eq!(commit_reason(words), reason);
        }
    }

    #[test]
    fn the_real_reason_is_told_with_its_files() {
        let table = [
            (
                "hint: Diverging branches can't be fast-forwarded, you need to either:\nhint:\nfatal: Not possible to fast-forward, aborting.",
                "Not possible to fast-forward, aborting.",
            ),
            (
                "Updating 1..2\nerror: Your local changes to the following files would be overwritten by merge:\n\ta.txt\n\tb c\nPlease commit your changes or stash them before you merge.\nAborting",
                "Your local changes to the following files would be overwritten by merge: a.txt, b c",
            ),
            (
                "error: The following untracked working tree files would be overwritten by merge:\n\t1\n\t2\n\t3\n\t4\n\t5\n\t6\n\t7\nPlease move or remove them before you merge.",
                "The following untracked working tree files would be overwritten by merge: 1, 2, 3, 4, 5 and 2 more",
            ),
            (
                "…\n\tf595\n\tf596\nPlease move or remove them before you merge.\nAborting\n",
                "many local files would be overwritten, including f595, f596",
            ),
            ("…\nthe last words\n", "the last words"),
            ("…\n", "git refused"),
            ("hint: x\nsomething odd", "something odd"),
            ("", "git refused"),
        ];
        for (words, reason) in table {
            assert_eq!(git_reason(words), reason);
        }
    }

    #[test]
    fn progress_is_no_reason() {
        let told = "Enumerating objects: 3, done.\nCounting objects:  33% (1/3)\rCounting objects: 100% (3/3), done.\n\
            Writing objects: 100% (3/3), 228 bytes | 228.00 KiB/s, done.\nTotal 3 (delta 0), reused 0 (delta 0)\n\
            remote: Resolving deltas: 100% (1/1), done.\nremote: no room\nTo /srv/app.git\n \
            ! [remote rejected] abc -> refs/descartes/l/result (pre-receive hook declined)\n\
            error: failed to push some refs to '/srv/app.git'";
        assert_eq!(
            remote_reason(told),
            "no room (! [remote rejected] abc -> refs/descartes/l/result (pre-receive hook declined))"
        );
    }
}
