//! Commands that settings of git name: which words of them are files of the work tree.

use std::path::{Component, Path, PathBuf};

/// A word of a command that may be a file of the work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    pub path: PathBuf,
    /// It has a slash: else it is one only where it is there.
    pub is_path: bool,
}

/// Files of the work tree at `top` that a command of a setting names, wherever in it they stand: as the program,
/// or as what an interpreter is given. Whether they are there is for others to say.
pub fn files_named(command: &str, top: &Path) -> Vec<NamedFile> {
    let command = command.strip_prefix('!').unwrap_or(command);
    let words = shell_words::split(command);
    let words = words.unwrap_or_else(|_| command.split_whitespace().map(str::to_owned).collect());
    let mut found: Vec<NamedFile> = Vec::new();
    for word in words {
        // `--config=tools/x` names a file, too.
        let word = word.rsplit('=').next().unwrap_or_default();
        if word.is_empty() || word.starts_with('-') || word.contains('%') || word.contains('$') {
            continue;
        }
        let Some(path) = plain(&top.join(word)) else {
            continue;
        };
        let is_inside = path.starts_with(top) && path != top;
        let known = found.iter().any(|known| known.path == path);
        if is_inside && !known {
            let is_path = word.contains('/');
            found.push(NamedFile { path, is_path });
        }
    }
    found
}

/// Without `.` and `..`; `None` where it leads above the root.
pub fn plain(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_what_interpreters_are_given_are_files_of_the_tree() {
        let table = [
            ("./tools/clean.sh", "tools/clean.sh"),
            ("tools/clean.sh %f", "tools/clean.sh"),
            (
                "python3 tools/clean.py --x=cfg/a.ini -q",
                "python3 tools/clean.py cfg/a.ini",
            ),
            ("!./st.sh", "st.sh"),
            ("sh -c 'x'", "sh x"),
            ("/usr/bin/git-lfs smudge", "smudge"),
            ("../outside.sh", ""),
            ("/p/abs.sh", "abs.sh"),
            ("$HOME/x", ""),
        ];
        for (command, wanted) in table {
            let found = files_named(command, Path::new("/p"));
            let found: Vec<String> = found
                .iter()
                .map(|file| file.path.strip_prefix("/p").unwrap().display().to_string())
                .collect();
            assert_eq!(found.join(" "), wanted, "{command}");
        }
    }
}
