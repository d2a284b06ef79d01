//! Secrets that are known by what stands before them: `password=…`, `Authorization: …`,
//! `https://user:…@host`.

use super::{MaskMode, MaskVerdict};

/// How far a name is looked for before its value.
pub(super) const LOOK_BACK: usize = 64;
/// So much of a value is looked at.
const LOOKED_AT: usize = 256;

/// What a name says about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// A word that a person made up.
    Password,
    /// Something that a machine made up.
    Key,
    /// A signature in an address.
    Signature,
    Authorization,
    Cookie,
}

/// Endings of names, without what joins their words.
const NAMES: [(&str, Name); 21] = [
    ("password", Name::Password),
    ("passwd", Name::Password),
    ("passphrase", Name::Password),
    ("pwd", Name::Password),
    ("secret", Name::Key),
    ("token", Name::Key),
    ("apikey", Name::Key),
    ("accesskey", Name::Key),
    ("accesskeyid", Name::Key),
    ("secretkey", Name::Key),
    ("privatekey", Name::Key),
    ("authkey", Name::Key),
    ("accountkey", Name::Key),
    ("encryptionkey", Name::Key),
    ("signingkey", Name::Key),
    ("masterkey", Name::Key),
    ("credential", Name::Key),
    ("xamzsignature", Name::Signature),
    ("sig", Name::Signature),
    ("authorization", Name::Authorization),
    ("cookie", Name::Cookie),
];

/// Values that say what stands there elsewhere, and not what it is.
const WORDS: [&str; 38] = [
    "bool",
    "boolean",
    "bytes",
    "char",
    "default",
    "empty",
    "env",
    "expired",
    "false",
    "hidden",
    "input",
    "int",
    "invalid",
    "missing",
    "nil",
    "none",
    "null",
    "number",
    "object",
    "optional",
    "passphrase",
    "passwd",
    "password",
    "prompt",
    "pwd",
    "redacted",
    "required",
    "secret",
    "self",
    "str",
    "string",
    "text",
    "this",
    "token",
    "true",
    "undefined",
    "unset",
    "value",
];

/// Looks at a `=` or `:`.
pub(super) fn at_sign(buffer: &[u8], at: usize, at_end: bool) -> MaskVerdict {
    let (before, rest) = (&buffer[..at], &buffer[at + 1..]);
    if buffer[at] == b':' {
        if rest.starts_with(b"//") {
            return in_address(before, rest, at + 1, at_end);
        }
        if !at_end
            && b"//".starts_with(rest)
            && before.last().is_some_and(u8::is_ascii_alphanumeric)
        {
            return MaskVerdict::Open;
        }
        if let Some(verdict) = of_bot(before, rest, at + 1, at_end) {
            return verdict;
        }
    }
    let (name, spaced) = match name_before(before) {
        Some(found) => found,
        None => return MaskVerdict::None,
    };
    // `:=` and `=>` are signs as well; `==` and `::` are others.
    let mut begin = at + 1;
    match (buffer[at], rest.first()) {
        (_, None) if !at_end => return MaskVerdict::Open,
        (b':', Some(b'=')) | (b'=', Some(b'>')) => begin += 1,
        (b'=', Some(b'=' | b'~')) | (b':', Some(b':')) => return MaskVerdict::None,
        _ => {}
    }
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let blanks = buffer[begin..].iter().take(16).take_while(blank).count();
    begin += blanks;
    let spaced = spaced || blanks > 0;
    match name {
        Name::Authorization => of_header(buffer, begin, at_end),
        Name::Cookie => of_cookie(buffer, begin, at_end),
        _ => value(buffer, begin, (name, spaced), at_end),
    }
}

/// Looks at the `-` of a flag whose value is the next word: `--api-key …`, `sshpass -p …`,
/// `curl -u user:…`.
pub(super) fn at_flag(buffer: &[u8], at: usize, at_end: bool) -> MaskVerdict {
    let (before, rest) = (&buffer[..at], &buffer[at..]);
    if !matches!(
        before.last(),
        None | Some(b' ' | b'\t' | b'\n' | b'"' | b'\'' | b'`')
    ) {
        return MaskVerdict::None;
    }
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = rest.iter().take(LOOK_BACK).take_while(in_name).count();
    match rest.get(length) {
        Some(b' ') => {}
        None if length < LOOK_BACK => return MaskVerdict::open_unless(at_end),
        _ => return MaskVerdict::None,
    }
    let begin = at + length + 1;
    match &rest[..length] {
        b"-p" if before.ends_with(b"sshpass ") => {
            value(buffer, begin, (Name::Password, false), at_end)
        }
        b"-u" | b"--user" => of_user(buffer, begin, at_end),
        [b'-', b'-', ..] => match name_before(&buffer[..at + length]) {
            Some((name @ (Name::Password | Name::Key), _)) => {
                // In prose a word follows: "the --password flag".
                let spaced = name == Name::Password;
                value(buffer, begin, (name, spaced), at_end)
            }
            _ => MaskVerdict::None,
        },
        _ => MaskVerdict::None,
    }
}

/// `user:password`, and not `uid:gid` or an image with its tag.
fn of_user(buffer: &[u8], begin: usize, at_end: bool) -> MaskVerdict {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.@\"'".contains(&byte);
    let Some(length) = run(buffer, begin, in_name, at_end) else {
        return MaskVerdict::Open;
    };
    let colon = begin + length;
    match buffer.get(colon) {
        Some(b':') => {}
        None => return MaskVerdict::open_unless(at_end),
        Some(_) => return MaskVerdict::None,
    }
    let ends = |byte: u8| !byte.is_ascii_whitespace() && !b"\"'`".contains(&byte);
    match run(buffer, colon + 1, ends, at_end) {
        None => MaskVerdict::Open,
        Some(length) => {
            let text = &buffer[colon + 1..colon + 1 + length];
            let is_id = text.iter().all(u8::is_ascii_digit);
            match length >= 4 && !is_id && !is_stand_in(text) {
                true => MaskVerdict::hide_then(colon + 1, length, MaskMode::Text),
                false => MaskVerdict::None,
            }
        }
    }
}

/// The name before a sign, and whether blanks stand between them.
fn name_before(before: &[u8]) -> Option<(Name, bool)> {
    let mut end = before.len();
    let least = end.saturating_sub(LOOK_BACK);
    let back = |end: &mut usize, is: fn(u8) -> bool, most: usize| {
        let begin = *end;
        while *end > least && begin - *end < most && is(before[*end - 1]) {
            *end -= 1;
        }
        begin != *end
    };
    let spaced = back(&mut end, |byte| matches!(byte, b' ' | b'\t'), 4);
    if back(&mut end, |byte| matches!(byte, b'"' | b'\'' | b'`'), 1) {
        back(&mut end, |byte| byte == b'\\', 3);
    }
    // Most names end otherwise.
    let last = before[least..end].last()?.to_ascii_lowercase();
    if !matches!(last, b'd' | b'e' | b't' | b'n' | b'y' | b'l' | b'g') {
        return None;
    }
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let name = before[least..end]
        .iter()
        .rev()
        .take_while(|byte| in_name(byte));
    let joined = name.filter(|byte| byte.is_ascii_alphanumeric());
    let backwards: Vec<u8> = joined.map(u8::to_ascii_lowercase).collect();
    let found = NAMES.iter().find(|(ending, name)| {
        let fits = ending
            .bytes()
            .rev()
            .eq(backwards.iter().copied().take(ending.len()));
        // Short ones are names as a whole alone.
        fits && (*name != Name::Signature || backwards.len() == ending.len())
            // The folder that a shell is in.
            && (*ending != "pwd" || !matches!(backwards.as_slice(), b"dwp" | b"dwpdlo"))
    });
    found.map(|(_, name)| (*name, spaced))
}

/// A value, bare or in quotes.
fn value(buffer: &[u8], begin: usize, (name, spaced): (Name, bool), at_end: bool) -> MaskVerdict {
    let rest = &buffer[begin..];
    let escapes = rest
        .iter()
        .take(3)
        .take_while(|byte| **byte == b'\\')
        .count();
    let quote = match rest.get(escapes) {
        Some(quote @ (b'"' | b'\'' | b'`')) => Some(*quote),
        Some(_) => None,
        None if !at_end => return MaskVerdict::Open,
        None => return MaskVerdict::None,
    };
    let from = begin + quote.map_or(0, |_| escapes + 1);
    let looked_at = &buffer[from..buffer.len().min(from + LOOKED_AT)];
    let ends = |byte: &u8| match quote {
        Some(quote) => *byte == quote || matches!(byte, b'\n' | b' ' | b'\t'),
        None => byte.is_ascii_whitespace() || b"\"'`<>(){}[],;&|\\".contains(byte),
    };
    let length = looked_at.iter().position(ends);
    let end = length.and_then(|length| looked_at.get(length)).copied();
    if length.is_none() && looked_at.len() < LOOKED_AT && !at_end {
        return MaskVerdict::Open;
    }
    let mut length = length.unwrap_or(looked_at.len());
    if quote.is_some() && end.is_some() && end != quote {
        return MaskVerdict::None;
    }
    if quote.is_some() && escapes > 0 {
        // The quotation mark that ends it is escaped as well.
        let escaped = looked_at[..length].iter().rev();
        length -= escaped.take_while(|byte| **byte == b'\\').count();
    }
    let text = &looked_at[..length];
    if !is_secret(text, name, spaced, quote.is_some(), end) {
        return MaskVerdict::None;
    }
    let then = match end {
        None if looked_at.len() == LOOKED_AT => MaskMode::Swallow(match quote {
            Some(_) => |byte| !matches!(byte, b'"' | b'\'' | b'`' | b'\n' | b' '),
            None => |byte| byte.is_ascii_graphic() && !b"\"'`<>(){}[],;&|\\".contains(&byte),
        }),
        _ => MaskMode::Text,
    };
    MaskVerdict::hide_then(from, length, then)
}

fn is_secret(text: &[u8], name: Name, spaced: bool, quoted: bool, end: Option<u8>) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let (digit, lower, upper) = (
        has(u8::is_ascii_digit),
        has(u8::is_ascii_lowercase),
        has(u8::is_ascii_uppercase),
    );
    if is_stand_in(text) {
        return false;
    }
    let mixed = digit && (lower || upper);
    let code = matches!(end, Some(b'(' | b'['));
    // Made by a machine, and no name of something: those are words, joined.
    let made = mixed && (lower && upper || !has(|byte| matches!(byte, b'-' | b'.' | b'_')));
    let ended = matches!(
        end,
        None | Some(b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'`')
    );
    let length = text.len();
    match (name, quoted, spaced) {
        (Name::Password, true, _) => length >= 4,
        (Name::Password, false, false) if mixed => length >= 4 && !code,
        (Name::Password, false, false) => {
            let bare = !has(|byte| matches!(byte, b'.' | b'/' | b':' | b'='));
            length >= 4 && bare && (ended || matches!(end, Some(b'&' | b';')))
        }
        (Name::Password, false, true) => length >= 6 && mixed && ended,
        (Name::Signature, _, _) => length >= 30 && digit,
        (_, true, _) => length >= 8 && made || length >= 16 && mixed || length >= 40,
        (_, false, false) => length >= 8 && made && !code,
        (_, false, true) => length >= 16 && made && ended,
    }
}

/// Whether it stands for a value that is elsewhere.
fn is_stand_in(text: &[u8]) -> bool {
    let Some(first) = text.first() else {
        return true;
    };
    let holds = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    matches!(
        first,
        b'$' | b'%' | b'{' | b'<' | b'*' | b'@' | b'&' | b'/' | b'#' | b'='
    ) || [
        &b"${"[..],
        b"{{",
        b"***",
        b"...",
        b"xxxx",
        b"XXXX",
        b"://",
        b"()",
    ]
    .iter()
    .any(|part| holds(part))
        || text
            .iter()
            .all(|byte| matches!(byte, b'.' | b'-' | b'_' | b'x' | b'X'))
        || WORDS
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

fn of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

/// Behind `Authorization:`: a scheme and what belongs to it, or that alone.
fn of_header(buffer: &[u8], begin: usize, at_end: bool) -> MaskVerdict {
    let from = behind_quote(buffer, begin);
    let Some(word) = run(buffer, from, of_token, at_end) else {
        return MaskVerdict::Open;
    };
    let after = from + word;
    if word > 0 && buffer.get(after) == Some(&b' ') {
        let Some(second) = run(buffer, after + 1, of_token, at_end) else {
            return MaskVerdict::Open;
        };
        if second >= 8 {
            return MaskVerdict::hide(after + 1, second, of_token);
        }
    }
    let digit = buffer[from..after].iter().any(u8::is_ascii_digit);
    match word >= 16 && digit {
        true => MaskVerdict::hide(from, word, of_token),
        false => MaskVerdict::None,
    }
}

fn behind_quote(buffer: &[u8], begin: usize) -> usize {
    let quote = buffer[begin..].iter().take(4);
    begin + quote.take_while(|byte| b"\"'\\".contains(byte)).count()
}

/// Behind `Cookie:`: everything behind the first name.
fn of_cookie(buffer: &[u8], begin: usize, at_end: bool) -> MaskVerdict {
    let from = behind_quote(buffer, begin);
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.%".contains(&byte);
    let Some(name) = run(buffer, from, of_name, at_end) else {
        return MaskVerdict::Open;
    };
    match buffer.get(from + name) {
        Some(b'=') if name > 0 => MaskVerdict::hide(from + name + 1, 0, |byte| {
            !matches!(byte, b'\n' | b'"' | b'\'' | b'\\')
        }),
        _ => MaskVerdict::None,
    }
}

/// Behind `Bearer`.
pub(super) fn of_bearer(buffer: &[u8], at: usize, at_end: bool) -> MaskVerdict {
    const BEARER: &[u8] = b"bearer";
    let rest = &buffer[at..];
    let word = &rest[..rest.len().min(BEARER.len())];
    if !word.eq_ignore_ascii_case(&BEARER[..word.len()]) {
        return MaskVerdict::None;
    }
    if word.len() < BEARER.len() {
        return MaskVerdict::open_unless(at_end);
    }
    let blanks = rest[BEARER.len()..].iter().take(16);
    let blanks = blanks.take_while(|byte| **byte == b' ').count();
    let from = at + BEARER.len() + blanks;
    if blanks == 0 {
        return match rest.len() == BEARER.len() {
            true => MaskVerdict::open_unless(at_end),
            false => MaskVerdict::None,
        };
    }
    let Some(length) = run(buffer, from, of_token, at_end) else {
        return MaskVerdict::Open;
    };
    let digit = buffer[from..from + length].iter().any(u8::is_ascii_digit);
    match length >= 16 && (digit || length >= 32) {
        true => MaskVerdict::hide(from, length, of_token),
        false => MaskVerdict::None,
    }
}

/// The password of an address.
fn in_address(before: &[u8], rest: &[u8], at: usize, at_end: bool) -> MaskVerdict {
    if !before.last().is_some_and(u8::is_ascii_alphanumeric) {
        return MaskVerdict::None;
    }
    let whole = &rest[2..rest.len().min(2 + LOOKED_AT)];
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/?#\"'<>`\\|{}".contains(byte);
    let end = whole.iter().position(ends);
    if end.is_none() && whole.len() < LOOKED_AT && !at_end {
        return MaskVerdict::Open;
    }
    let host = &whole[..end.unwrap_or(whole.len())];
    let Some(user) = host.iter().rposition(|byte| *byte == b'@') else {
        return MaskVerdict::None;
    };
    let from = at + 2;
    match host[..user].iter().position(|byte| *byte == b':') {
        Some(sign) if !is_stand_in(&host[sign + 1..user]) => {
            MaskVerdict::hide_then(from + sign + 1, user - sign - 1, MaskMode::Text)
        }
        // A key in place of a name.
        None if user >= 20 && host[..user].iter().any(u8::is_ascii_digit) => {
            MaskVerdict::hide_then(from, user, MaskMode::Text)
        }
        _ => MaskVerdict::None,
    }
}

/// Keys of chat bots: a number, a colon, `AA` and 33 characters.
fn of_bot(before: &[u8], rest: &[u8], at: usize, at_end: bool) -> Option<MaskVerdict> {
    let digits = before
        .iter()
        .rev()
        .take(11)
        .take_while(|byte| byte.is_ascii_digit());
    if !(8..=10).contains(&digits.count()) {
        return None;
    }
    if !rest.starts_with(b"AA") {
        return (!at_end && b"AA".starts_with(rest)).then_some(MaskVerdict::Open);
    }
    let Some(length) = run(rest, 0, super::kinds::of_word, at_end) else {
        return Some(MaskVerdict::Open);
    };
    (length >= 35).then(|| MaskVerdict::hide(at, length, super::kinds::of_word))
}

/// Keys of applications at a cloud: three characters, a digit, `Q~`, 31 and more.
pub(super) fn at_tilde(buffer: &[u8], at: usize, at_end: bool) -> MaskVerdict {
    let of_key = |byte: u8| byte.is_ascii_alphanumeric() || b"_~.-".contains(&byte);
    let fits = match &buffer[at.saturating_sub(5)..at] {
        [one, two, three, digit, b'Q'] => {
            [*one, *two, *three].into_iter().all(of_key) && digit.is_ascii_digit()
        }
        _ => false,
    };
    if !fits {
        return MaskVerdict::None;
    }
    match run(buffer, at + 1, of_key, at_end) {
        None => MaskVerdict::Open,
        Some(length) if length >= 31 => MaskVerdict::hide(at + 1, length, |byte| {
            super::kinds::of_word(byte) || byte == b'.'
        }),
        Some(_) => MaskVerdict::None,
    }
}

/// A token of three parts in base64: two of them begin like JSON.
pub(super) fn of_jwt(buffer: &[u8], at: usize, at_end: bool) -> MaskVerdict {
    const BEGIN: &[u8] = b"eyJ";
    let rest = &buffer[at..];
    if !rest.starts_with(BEGIN) {
        return match BEGIN.starts_with(rest) {
            true => MaskVerdict::open_unless(at_end),
            false => MaskVerdict::None,
        };
    }
    let most = rest.len().min(4 * LOOKED_AT);
    let head = rest[..most]
        .iter()
        .take_while(|byte| super::kinds::of_word(**byte));
    let head = head.count();
    if head == 4 * LOOKED_AT || head < 10 && head < rest.len() {
        return MaskVerdict::None;
    }
    let behind = &rest[head..];
    if behind.is_empty() || behind.len() < 4 && b".eyJ".starts_with(behind) {
        return MaskVerdict::open_unless(at_end);
    }
    match behind.starts_with(b".eyJ") {
        true => MaskVerdict::hide(at + 3, head + 1, |byte| {
            super::kinds::of_word(byte) || byte == b'.'
        }),
        false => MaskVerdict::None,
    }
}

/// How many bytes hold from here on; `None` where that cannot be told yet.
fn run(buffer: &[u8], from: usize, holds: impl Fn(u8) -> bool, at_end: bool) -> Option<usize> {
    let rest = buffer.get(from..).unwrap_or_default();
    let looked_at = &rest[..rest.len().min(LOOKED_AT)];
    let run = looked_at.iter().take_while(|byte| holds(**byte)).count();
    (run < rest.len() || run == LOOKED_AT || at_end).then_some(run)
}
