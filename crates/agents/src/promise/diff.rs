//! Lines of a diff: what they hold is a file's text and not the agent's words.

/// Whether `line` begins a hunk: `@@ … @@`.
pub(super) fn is_hunk_header(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let marks = line.iter().take_while(|&&b| b == b'@').count();
    let (Some(first), Some(rest)) = (line.get(..marks), line.get(marks..)) else {
        return false;
    };
    marks >= 2
        && rest.first() == Some(&b' ')
        && memchr::memmem::find(rest, &[b" ", first].concat()).is_some()
}

/// Whether a line that begins with `first` can belong to a hunk.
pub(super) fn is_diff_line(first: Option<&u8>) -> bool {
    matches!(first, Some(b'+' | b'-' | b'\\' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_known_by_their_header() {
        for line in [
            "@@ -1,3 +1,4 @@",
            "@@ -1 +1 @@ fn main() {",
            "  @@ -0,0 +1 @@",
            "@@@ -1 -1 +1 @@@",
        ] {
            assert!(is_hunk_header(line.as_bytes()), "{line}");
        }
        for line in ["@@", "@ -1 @", "@@ -1 +1", "x @@ -1 +1 @@", "@@-1 @@", ""] {
            assert!(!is_hunk_header(line.as_bytes()), "{line}");
        }
        assert!(is_diff_line(Some(&b' ')) && !is_diff_line(Some(&b'a')) && !is_diff_line(None));
    }
}
