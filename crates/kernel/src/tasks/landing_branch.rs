//! On which branch work lands: the one that was checked out when the loop began, and no other.

/// How a checkout gets back to the branch that work should land on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayBack {
    /// The branch is gone.
    Gone,
    Checkout,
    /// Files that the branch has otherwise are changed, and git would not overwrite them.
    StashFirst,
}

impl WayBack {
    /// The command, for a branch or what stands for it.
    fn command(self, to: &str) -> String {
        match self {
            Self::Gone | Self::Checkout => format!("git checkout {to}"),
            Self::StashFirst => format!("git stash && git checkout {to}"),
        }
    }
}

/// Why work cannot land in a checkout as it is now. `target` and `now` are the branches that were
/// and are checked out; none where HEAD is at a commit.
pub fn other_branch(target: Option<&str>, now: Option<&str>, way: WayBack) -> Option<String> {
    if target == now {
        return None;
    }
    Some(match target {
        Some(target) if way == WayBack::Gone => format!(
            "the branch {target}, on which it should land, is gone; to have it land on what is \
             checked out now, under that name, type first: git checkout -b {}",
            shell_words::quote(target)
        ),
        Some(target) => {
            let first = format!("type first: {}", way.command(&shell_words::quote(target)));
            match now {
                Some(now) => format!(
                    "a different branch is checked out ({now}) than when the loop began; {first}"
                ),
                None => {
                    format!("no branch is checked out, but the loop began on {target}; {first}")
                }
            }
        }
        None => {
            "a branch is checked out, but the loop began without one; type first: git checkout \
                 --detach"
                .to_owned()
        }
    })
}

/// Whether a branch had this name before somebody renamed it, by what git wrote into its log.
pub fn was_renamed_from<'l>(name: &str, mut log: impl Iterator<Item = &'l str>) -> bool {
    let start = format!("Branch: renamed refs/heads/{name} to refs/heads/");
    log.any(|line| line.starts_with(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_branch_is_known_by_its_log() {
        let log = [
            "commit: more",
            "Branch: renamed refs/heads/a to refs/heads/b",
            "Branch: renamed refs/heads/main to refs/heads/a",
            "commit (initial): one",
        ];
        for (name, expected) in [("main", true), ("a", true), ("b", false), ("mai", false)] {
            let was = was_renamed_from(name, log.into_iter());
            assert_eq!(was, expected, "{name}");
        }
    }

    #[test]
    fn work_lands_on_one_branch() {
        let quoted = "git checkout 'a b'";
        for (target, now, way, expected) in [
            (Some("main"), Some("main"), WayBack::Checkout, None),
            (None, None, WayBack::Gone, None),
            (
                Some("main"),
                Some("x"),
                WayBack::Checkout,
                Some("(x) than when"),
            ),
            (
                Some("main"),
                Some("x"),
                WayBack::Checkout,
                Some("first: git checkout main"),
            ),
            (Some("a b"), Some("x"), WayBack::Checkout, Some(quoted)),
            (
                Some("main"),
                None,
                WayBack::Checkout,
                Some("no branch is checked out"),
            ),
            (Some("main"), Some("x"), WayBack::Gone, Some("is gone")),
            (
                Some("a b"),
                None,
                WayBack::Gone,
                Some("git checkout -b 'a b'"),
            ),
            (
                None,
                Some("x"),
                WayBack::Gone,
                Some("git checkout --detach"),
            ),
            (
                Some("main"),
                Some("x"),
                WayBack::StashFirst,
                Some("first: git stash && git checkout main"),
            ),
        ] {
            let said = other_branch(target, now, way);
            match expected {
                None => assert_eq!(said, None),
                Some(part) => assert!(
                    said.as_deref().is_some_and(|s| s.contains(part)),
                    "{said:?}"
                ),
            }
        }
    }
}
