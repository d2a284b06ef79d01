//! The words by which limits, overloads, broken networks and wrong logins are told.
//!
//! All of them are compared with normalized text: lower case, plain apostrophes.

use super::LimitKind;

const LOGIN: &[&str] = &[
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "api_key_invalid",
    "invalid x-api-key",
    "invalid_api_key",
    "authentication_error",
    "authentication_failed",
    "authentication failed",
    "failed to authenticate",
    "please run /login",
    "run /login",
    "not logged in",
    "not authenticated",
    "unauthorized",
    "unauthenticated",
    "oauth token has expired",
    "oauth token revoked",
    "oauth session expired",
    "token has expired",
    "invalid bearer token",
    "invalid credentials",
    "no credentials found",
    "invalid auth method",
    "please set an auth method",
    "no api key",
    "missing api key",
    "api key is required",
    "api key required",
    "missing environment variable: `",
    "login required",
    "please log in",
    "please sign in",
    "must be logged in",
    "organization has been disabled",
    "account has been disabled",
];

const USAGE: &[&str] = &[
    "usage limit reached",
    "usage limit has been reached",
    "usage_limit_reached",
    "usage limit exceeded",
    "insufficient_quota",
    "insufficient quota",
    "quota exceeded",
    "quota_exceeded",
    "exceeded your current quota",
    "exhausted your daily quota",
    "exhausted your capacity",
    "hit your limit",
    "hit your usage limit",
    "hit your session limit",
    "hit your weekly limit",
    "reached your usage limit",
    "5-hour limit reached",
    "weekly limit reached",
    "session limit reached",
    "out of extra usage",
    "out of credits",
    "credit balance is too low",
    "billing_hard_limit_reached",
    "spending limit",
    "terminalquotaerror",
];

const RATE: &[&str] = &[
    "rate limit",
    "rate_limit",
    "rate-limit",
    "ratelimit",
    "rate limited",
    "too many requests",
    "too_many_requests",
    "resource has been exhausted",
    "resource_exhausted",
    "retryablequotaerror",
    "throttlingexception",
];

const OVERLOAD: &[&str] = &[
    "overloaded",
    "overloaded_error",
    "internal server error",
    "internal_server_error",
    "server_error",
    "bad gateway",
    "service unavailable",
    "gateway timeout",
    "experiencing high demand",
    "the server had an error",
    "an internal error has occurred",
    "temporarily unavailable",
    "server is busy",
    "no capacity available",
    "at capacity",
];

const NETWORK: &[&str] = &[
    "econnrefused",
    "econnreset",
    "enotfound",
    "etimedout",
    "epipe",
    "eai_again",
    "enetunreach",
    "ehostunreach",
    "connection error",
    "connection refused",
    "connection reset",
    "connection closed",
    "connection timed out",
    "connect error",
    "fetch failed",
    "network error",
    "socket hang up",
    "stream disconnected",
    "stream closed before",
    "stream ended without",
    "model stream ended",
    "error sending request",
    "error trying to connect",
    "unable to connect",
    "could not connect",
    "dns error",
    "getaddrinfo",
    "request timed out",
    "timed out waiting",
    "operation timed out",
    "idle timeout",
    "connection dropped",
    "malformed response",
    "incomplete json segment",
];

/// In the order of what they say when several stand in one message.
const INSIDE: [(LimitKind, &[&str]); 5] = [
    (LimitKind::Login, LOGIN),
    (LimitKind::Usage, USAGE),
    (LimitKind::Rate, RATE),
    (LimitKind::Overload, OVERLOAD),
    (LimitKind::Network, NETWORK),
];

/// What an error's line tells of: the words may stand anywhere in it, as whole words.
pub(super) fn inside(norm: &str) -> Option<LimitKind> {
    // A full disk is no provider's limit.
    if norm.contains("disk quota") || norm.contains("edquot") {
        return None;
    }
    INSIDE.iter().find_map(|(kind, phrases)| {
        phrases
            .iter()
            .any(|phrase| has_words(norm, phrase))
            .then_some(*kind)
    })
}

fn has_words(text: &str, phrase: &str) -> bool {
    let word = |c: char| c.is_alphanumeric();
    text.match_indices(phrase).any(|(at, _)| {
        let goes_on = phrase.ends_with(word) && text[at + phrase.len()..].starts_with(word);
        !text[..at].ends_with(word) && !goes_on
    })
}

/// What a line says that is itself the statement: it begins so, and the phrase ends there
/// or goes on as such statements do. "Rate limit reached handler added" is none.
pub(super) fn statement(norm: &str) -> Option<LimitKind> {
    let norm = norm.trim_start();
    addressed(norm).or_else(|| limit_reached(norm)).or_else(|| {
        INSIDE.iter().find_map(|(kind, phrases)| {
            phrases
                .iter()
                .any(|phrase| norm.strip_prefix(phrase).is_some_and(ends_or_goes_on))
                .then_some(*kind)
        })
    })
}

const ADDRESSES: [&str; 12] = [
    "you've hit your",
    "you have hit your",
    "you've reached your",
    "you have reached your",
    "you've exceeded your",
    "you have exceeded your",
    "you exceeded your",
    "you've exhausted your",
    "you have exhausted your",
    "you've used up your",
    "you've used all your",
    "your account has reached",
];

const ADDRESSES_WHOLE: [&str; 8] = [
    "you're out of extra usage",
    "you are out of extra usage",
    "you're out of credits",
    "your limit will reset",
    "your quota will reset",
    "your credit balance is too low",
    "you are being rate limited",
    "you have been rate limited",
];

pub(super) fn is_second_person(norm: &str) -> bool {
    addressed(norm).is_some()
}

fn addressed(norm: &str) -> Option<LimitKind> {
    let what = ["limit", "quota", "capacity", "credits", "usage"];
    let near = |rest: &str| {
        let clause = rest
            .split(['.', ',', ';', '·', '!', '?'])
            .next()
            .unwrap_or(rest);
        clause.len() <= 60 && what.iter().any(|word| has_words(clause, word))
    };
    let by_name = ADDRESSES
        .iter()
        .filter_map(|start| norm.strip_prefix(start))
        .any(near);
    let whole = ADDRESSES_WHOLE.iter().any(|start| norm.starts_with(start));
    if !(by_name || whole) {
        return None;
    }
    let head = norm.split(['.', '·']).next().unwrap_or(norm);
    let kind = if has_words(head, "rate limit") || has_words(head, "rate limited") {
        LimitKind::Rate
    } else {
        LimitKind::Usage
    };
    Some(kind)
}

const QUALIFIERS: [&str; 36] = [
    "claude",
    "ai",
    "usage",
    "session",
    "weekly",
    "daily",
    "monthly",
    "hourly",
    "5-hour",
    "five-hour",
    "5h",
    "7-day",
    "opus",
    "sonnet",
    "haiku",
    "pro",
    "max",
    "plan",
    "api",
    "rate",
    "request",
    "requests",
    "token",
    "tokens",
    "your",
    "the",
    "model",
    "credit",
    "spending",
    "message",
    "account",
    "organization",
    "free",
    "team",
    "codex",
    "gemini",
];

/// `5-hour limit reached …`, `Claude AI usage limit reached|…`, `the quota has been exceeded`.
fn limit_reached(norm: &str) -> Option<LimitKind> {
    let mut rest = norm;
    let mut kind = LimitKind::Usage;
    for _ in 0..6 {
        let (word, after) = rest.split_once(' ')?;
        if word == "limit" || word == "quota" {
            let reached = [
                "reached",
                "exceeded",
                "hit",
                "has been reached",
                "has been exceeded",
            ];
            let ended = reached.iter().filter_map(|verb| after.strip_prefix(verb));
            return ended.into_iter().any(ends_or_goes_on).then_some(kind);
        }
        if !QUALIFIERS.contains(&word) {
            return None;
        }
        if ["rate", "request", "requests", "token", "tokens"].contains(&word) {
            kind = LimitKind::Rate;
        }
        rest = after;
    }
    None
}

const GOES_ON: [&str; 10] = [
    "for ", "resets", "reset ", "until ", "please ", "try ", "upgrade ", "or try ", "in ", "at ",
];

fn ends_or_goes_on(rest: &str) -> bool {
    let rest = match rest.strip_prefix(' ') {
        Some(rest) => rest,
        None if rest.is_empty() => return true,
        None => return rest.starts_with(['.', ',', ':', ';', '!', '|', '·', ')', ']', '"', '\'']),
    };
    rest.is_empty()
        || rest.starts_with(['·', '∙', '•', '|', '—', '–', '-', '(', '['])
        || GOES_ON.iter().any(|next| rest.starts_with(next))
}

const STATUS_BEFORE: [&str; 15] = [
    "api error: ",
    "api error ",
    "status ",
    "status: ",
    "status code ",
    "status code: ",
    "statuscode: ",
    "\"code\":",
    "\"code\": ",
    "code: ",
    "error ",
    "error: ",
    "http ",
    "rejected (",
    "last error: ",
];

/// An HTTP status of 400 or above that an error message names.
pub(super) fn http_status(norm: &str) -> Option<u16> {
    let number = |text: &str| -> Option<u16> {
        let digits = text.get(..3)?;
        let whole = !text[3..].starts_with(|c: char| c.is_ascii_alphanumeric());
        let status: u16 = digits.parse().ok()?;
        (whole && (400..600).contains(&status)).then_some(status)
    };
    number(norm).or_else(|| {
        STATUS_BEFORE.iter().find_map(|before| {
            norm.match_indices(before)
                .find_map(|(at, _)| number(&norm[at + before.len()..]))
        })
    })
}
