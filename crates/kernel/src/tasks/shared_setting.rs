//! Settings of the user's repository that all worktrees share, and that agents can change.

/// What to tell of a setting that was another when the loop began.
pub fn changed_setting(key: &str, before: Option<&str>, now: Option<&str>) -> Option<String> {
    // What is not set is false.
    let plain = |value: Option<&str>| value.filter(|value| *value != "false").map(str::to_owned);
    if plain(before) == plain(now) {
        return None;
    }
    let to = match now {
        Some(now) => format!("set to `{now}`"),
        None => "removed".to_owned(),
    };
    let back = match before {
        Some(before) => format!("git config {key} {}", shell_words::quote(before)),
        None => format!("git config --unset {key}"),
    };
    Some(format!(
        "{key} was {to} in the configuration of the repository while agents were at work: git may \
         not work in your checkout; to undo it, type: {back}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_setting() {
        for (key, before, now, expected) in [
            ("core.bare", Some("false"), Some("false"), None),
            ("core.bare", None, Some("false"), None),
            ("core.bare", Some("false"), None, None),
            ("core.bare", Some("true"), Some("true"), None),
            (
                "core.bare",
                Some("false"),
                Some("true"),
                Some("git config core.bare false"),
            ),
            (
                "core.worktree",
                None,
                Some("/x"),
                Some("core.worktree was set to `/x`"),
            ),
            (
                "core.worktree",
                None,
                Some("/x"),
                Some("git config --unset core.worktree"),
            ),
            (
                "core.worktree",
                Some("/a b"),
                None,
                Some("removed in the configuration"),
            ),
            (
                "core.worktree",
                Some("/a b"),
                None,
                Some("git config core.worktree '/a b'"),
            ),
        ] {
            let said = changed_setting(key, before, now);
            assert_eq!(
                said.is_some(),
                expected.is_some(),
                "{key} {before:?} {now:?}"
            );
            assert!(
                said.unwrap_or_default()
                    .contains(expected.unwrap_or_default())
            );
        }
    }
}
