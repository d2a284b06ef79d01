//! Words as a shell takes them: every path, name and branch in a command that is told to a person.

use std::path::Path;

/// One word. Only what needs quotes gets them.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A path, which is no flag whatever its name begins with.
pub fn path(path: &Path) -> String {
    let text = path.to_string_lossy();
    match text.starts_with('-') {
        true => word(&format!("./{text}")),
        false => word(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let table = [
            ("/a/b.c", "/a/b.c"),
            ("/a b/it's", r"'/a b/it'\''s'"),
            ("", "''"),
            ("$HOME", "'$HOME'"),
            ("ä/ö", "ä/ö"),
            ("~/x", "'~/x'"),
            ("a;b", "'a;b'"),
        ];
        for (text, wanted) in table {
            assert_eq!(word(text), wanted, "{text}");
        }
        assert_eq!(path(Path::new("-x")), "./-x");
    }
}
