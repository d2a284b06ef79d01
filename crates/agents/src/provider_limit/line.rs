//! Lines of free text that may tell of a limit.

use super::normalize::normalize;
use super::{LimitKind, headers::kind_of_status, phrases, when};

const SHORT_CHARS: usize = 500;
const SHORT_LINES: usize = 6;
const TAIL_LINES: usize = 6;
/// An error's line may hold a whole JSON body; more than this is no error line.
const LINE_BYTES: usize = 16 * 1024;

/// A line as it was written, as it is compared, and how strictly it must be judged.
pub(super) struct LimitLine<'a> {
    pub raw: &'a str,
    pub norm: String,
    context: Context,
}

#[derive(Clone, Copy, PartialEq)]
enum Context {
    Short,
    Long,
}

/// The lines that can tell of a limit: all of a short text, the last ones of a long text.
/// Indented lines (stack traces, dumps) and fenced code are left out.
pub(super) fn candidates(text: &str) -> Vec<LimitLine<'_>> {
    let text = text.trim();
    let mut fenced = false;
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.trim().is_empty() && !line.starts_with([' ', '\t']) {
            lines.push(line);
        }
    }
    let short = text.len() <= SHORT_CHARS && lines.len() <= SHORT_LINES;
    let context = if short { Context::Short } else { Context::Long };
    let from = if short {
        0
    } else {
        lines.len().saturating_sub(TAIL_LINES)
    };
    lines[from..]
        .iter()
        .filter(|raw| raw.len() <= LINE_BYTES)
        .map(|raw| LimitLine {
            raw,
            norm: normalize(raw),
            context,
        })
        .collect()
}

/// What the line tells of, if it is an error's line or a statement of its own.
pub(super) fn kind_of(line: &LimitLine<'_>, after: &str) -> Option<LimitKind> {
    let norm = undecorated(&line.norm);
    if is_error(norm) {
        return phrases::inside(norm)
            .or_else(|| phrases::statement(after_marker(norm)))
            .or_else(|| phrases::http_status(norm).and_then(kind_of_status));
    }
    let kind = phrases::statement(norm)?;
    let firm = line.context == Context::Short
        || phrases::is_second_person(norm)
        || when::has_marker(norm)
        || when::has_marker(after);
    firm.then_some(kind)
}

/// Drops marks that tools put before their messages, and a log line's time. Bullets and
/// quotation marks stay: they belong to prose.
pub(super) fn undecorated(norm: &str) -> &str {
    let norm = norm.trim().trim_start_matches([
        '●', '⎿', '✗', '✘', '✖', '×', '❌', '⚠', '\u{fe0f}', '│', '└', '╰', '■', '!', ' ',
    ]);
    match norm.split_once(' ') {
        Some((first, rest)) if is_timestamp(first) => rest.trim_start(),
        _ => norm,
    }
}

fn is_timestamp(word: &str) -> bool {
    let word = word.trim_matches(['[', ']']);
    word.len() >= 19
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word
            .bytes()
            .all(|b| b.is_ascii_digit() || b"-:.tz+".contains(&b))
}

fn is_error(norm: &str) -> bool {
    phrases::begins(norm, &phrases::PHRASES.error_lines)
        || is_attempt(norm)
        || is_named_error(norm)
        || is_status_line(norm)
        || is_log_error(norm)
        || (norm.starts_with('{') && norm.contains("\"error\""))
}

/// `attempt 3 failed: …`
fn is_attempt(norm: &str) -> bool {
    norm.strip_prefix("attempt ")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        .is_some_and(|rest| rest.starts_with(" failed"))
}

/// `openai.RateLimitError: …`, `_ApiError: …`
fn is_named_error(norm: &str) -> bool {
    let first = norm.split(' ').next().unwrap_or(norm);
    first.len() <= 80
        && (first.ends_with("error:") || first.ends_with("exception:"))
        && !first.starts_with(['"', '\'', '`'])
}

/// `429 Too Many Requests`, `HTTP 503: …`
fn is_status_line(norm: &str) -> bool {
    let rest = norm.strip_prefix("http").map_or(norm, |rest| {
        let version = |c: char| c.is_ascii_digit() || c == '.';
        rest.strip_prefix('/')
            .map_or(rest, |v| v.trim_start_matches(version))
            .trim_start()
    });
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits == 3
        && rest.starts_with(['4', '5'])
        && [
            " {",
            ": ",
            " too many",
            " unauthorized",
            " internal",
            " bad gateway",
            " service",
        ]
        .iter()
        .any(|next| rest[3..].starts_with(next))
}

/// `ERROR codex_core::client: …` behind a log line's time.
fn is_log_error(norm: &str) -> bool {
    norm.strip_prefix("error ").is_some_and(|rest| {
        rest.split(' ')
            .next()
            .is_some_and(|word| word.contains("::") && word.ends_with(':'))
    })
}

/// What stands behind the last error marker: `error: you've hit your limit`.
fn after_marker(norm: &str) -> &str {
    norm.find(": ").map_or(norm, |at| &norm[at + 2..])
}
