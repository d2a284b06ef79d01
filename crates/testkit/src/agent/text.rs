//! Words, escapes and `${…}` of the language.

use std::env;

use super::Trouble;

/// Takes the first word off; `"…"` holds words together.
pub(super) fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    if let Some(quoted) = text.strip_prefix('"') {
        let (word, rest) = quoted.split_once('"')?;
        return Some((word, rest.trim_start()));
    }
    if text.is_empty() {
        return None;
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    Some((word, rest.trim_start()))
}

/// Replaces `${PID}`, `${ITERATION}` and environment variables; unknown names stay.
pub(super) fn expand(text: &str, iteration: u64) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, after) = rest.split_at(start);
        let Some(end) = after.find('}') else { break };
        out.push_str(before);
        let (whole, tail) = after.split_at(end + 1);
        match value(&whole[2..end], iteration) {
            Some(value) => out.push_str(&value),
            None => out.push_str(whole),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn value(name: &str, iteration: u64) -> Option<String> {
    match name {
        "PID" => Some(std::process::id().to_string()),
        "ITERATION" => Some(iteration.to_string()),
        _ => env::var(name).ok(),
    }
}

/// Turns `\n \r \t \0 \e \\ \xff` into bytes.
pub(super) fn unescape(text: &str) -> Result<Vec<u8>, Trouble> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next() {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'0') => 0,
            Some(b'e') => 0x1b,
            Some(b'\\') => b'\\',
            Some(b'x') => hex(bytes.next(), bytes.next())
                .ok_or_else(|| Trouble::Script(format!("\\x wants two hex digits: {text}")))?,
            _ => return Err(Trouble::Script(format!("no such escape: {text}"))),
        });
    }
    Ok(out)
}

fn hex(high: Option<u8>, low: Option<u8>) -> Option<u8> {
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_be_held_together() {
        assert_eq!(word("a b c"), Some(("a", "b c")));
        assert_eq!(word("\"a b\"  c"), Some(("a b", "c")));
        assert_eq!(word("  "), None);
        assert_eq!(word("\"a b"), None);
    }

    #[test]
    fn known_names_are_replaced_and_others_stay() {
        assert_eq!(expand("a${ITERATION}b${ITERATION}", 7), "a7b7");
        assert_eq!(
            expand("x ${NO_SUCH_NAME_HERE} y", 7),
            "x ${NO_SUCH_NAME_HERE} y"
        );
        assert_eq!(expand("open ${ITERATION", 7), "open ${ITERATION");
    }

    #[test]
    fn escapes_make_any_byte() {
        assert_eq!(unescape(r"a\n\x1b[1m\xff\\").unwrap(), b"a\n\x1b[1m\xff\\");
        assert!(unescape(r"\q").is_err());
        assert!(unescape(r"\x1").is_err());
    }
}
