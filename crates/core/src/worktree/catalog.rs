//! The list of snapshots in an object folder, oldest first: what is kept, and what had to go.
//!
//! Snapshots of versions before this list are not in it. They hold what filters made of files;
//! those in the list hold the files as they are.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::oid::{HashFormat, object_id};

/// A tree, and what is noted with it: the name of the ignore rules of its time (`-`: none), and
/// whether it holds large files as their filters left them.
pub(super) type Taken = (String, Option<String>);

const FILTERED: &str = "filtered";

fn list(objects: &Path) -> PathBuf {
    objects.join("snapshots")
}

fn dropped(objects: &Path) -> PathBuf {
    objects.join("snapshots-dropped")
}

fn read(path: &Path) -> Vec<Taken> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| match line.split_once(' ') {
        Some((tree, rules)) => (tree.to_owned(), Some(rules.to_owned())),
        None => (line.to_owned(), None),
    };
    text.lines().map(line).collect()
}

fn lines(trees: &[Taken]) -> String {
    let line = |(tree, rules): &Taken| match rules {
        Some(rules) => format!("{tree} {rules}\n"),
        None => format!("{tree}\n"),
    };
    trees.iter().map(line).collect()
}

fn is_in(path: &Path, tree: &str) -> bool {
    read(path).iter().any(|(known, _)| known == tree)
}

/// Notes a tree that was taken. Without it nothing is lost but room and words: a failure is no
/// matter.
pub(super) fn note(objects: &Path, tree: &str, rules: Option<&str>) {
    let mut file = OpenOptions::new();
    let file = file.append(true).create(true).open(list(objects));
    if let Ok(mut file) = file {
        let line = (tree.to_owned(), rules.map(str::to_owned));
        drop(file.write_all(lines(&[line]).as_bytes()));
    }
}

/// Keeps ignore rules that lie outside the work tree, and gives their name.
pub(super) fn keep_rules(objects: &Path, rules: &[u8]) -> Option<String> {
    if rules.trim_ascii().is_empty() {
        return None;
    }
    let name = object_id(HashFormat::Sha1, "rules", rules).to_string();
    let folder = objects.join("rules");
    let path = folder.join(&name);
    if !path.exists() {
        fs::create_dir_all(&folder).ok()?;
        let mut file = tempfile::Builder::new()
            .prefix("tmp-")
            .tempfile_in(&folder)
            .ok()?;
        file.write_all(rules).ok()?;
        file.persist(&path).ok()?;
    }
    Some(name)
}

/// The ignore rules outside the work tree at the time of a tree.
pub(super) fn rules_of(objects: &Path, tree: &str) -> Option<PathBuf> {
    let known = read(&list(objects));
    let line = known.iter().rev().find(|(known, _)| known == tree)?;
    let name = line.1.as_deref()?.split(' ').next()?;
    let path = objects.join("rules").join(name);
    path.exists().then_some(path)
}

/// What is noted with a tree.
pub(super) fn remark(rules: Option<String>, is_filtered: bool) -> Option<String> {
    match (rules, is_filtered) {
        (rules, false) => rules,
        (rules, true) => Some(format!("{} {FILTERED}", rules.as_deref().unwrap_or("-"))),
    }
}

/// Whether a tree may hold files as their filters left them: some do, and all of earlier versions.
pub(super) fn is_filtered(objects: &Path, tree: &str) -> bool {
    let known = read(&list(objects));
    match known.iter().rev().find(|(known, _)| known == tree) {
        Some((_, remark)) => remark
            .as_deref()
            .is_some_and(|remark| remark.split(' ').any(|word| word == FILTERED)),
        None => true,
    }
}

/// Whether a tree is in the list.
pub(super) fn holds(objects: &Path, tree: &str) -> bool {
    is_in(&list(objects), tree)
}

/// Whether a tree had to go to make room.
pub(super) fn is_dropped(objects: &Path, tree: &str) -> bool {
    is_in(&dropped(objects), tree) && !holds(objects, tree)
}

/// All trees, oldest first; one that was taken again stands where it was taken last.
pub(super) fn trees(objects: &Path) -> Vec<Taken> {
    let mut seen = HashSet::new();
    let mut trees = read(&list(objects));
    trees.reverse();
    trees.retain(|(tree, _)| seen.insert(tree.clone()));
    trees.reverse();
    trees
}

/// Writes down that the first of these trees go and the others stay; before anything is removed.
pub(super) fn drop_first(objects: &Path, trees: &[Taken], count: usize) -> io::Result<()> {
    let (gone, kept) = trees.split_at_checked(count).unwrap_or((trees, &[]));
    let mut file = OpenOptions::new();
    let mut file = file.append(true).create(true).open(dropped(objects))?;
    file.write_all(lines(gone).as_bytes())?;
    let mut whole = tempfile::Builder::new()
        .prefix("tmp-")
        .tempfile_in(objects)?;
    whole.write_all(lines(kept).as_bytes())?;
    whole.persist(list(objects))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_known_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        for tree in ["a", "b", "a", "c"] {
            note(dir.path(), tree, None);
        }
        let names = || -> Vec<String> {
            let all = trees(dir.path()).into_iter();
            all.map(|(tree, _)| tree).collect()
        };
        assert_eq!(names(), ["b", "a", "c"]);
        drop_first(dir.path(), &trees(dir.path()), 1).unwrap();
        assert_eq!(names(), ["a", "c"]);
        assert!(is_dropped(dir.path(), "b") && !is_dropped(dir.path(), "a"));
        note(dir.path(), "b", None);
        assert!(!is_dropped(dir.path(), "b"), "taken again");
    }

    #[test]
    fn the_rules_of_a_trees_time_are_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let rules = keep_rules(dir.path(), b"*.log\n");
        note(dir.path(), "a", rules.as_deref());
        note(dir.path(), "b", None);
        let kept = rules_of(dir.path(), "a").unwrap();
        assert_eq!(fs::read(kept).unwrap(), b"*.log\n");
        assert_eq!(rules_of(dir.path(), "b"), None);
        assert_eq!(keep_rules(dir.path(), b" \n"), None);
    }
}
