//! What kind of failure an error message tells of.

use super::{Failure, FailureKind};
use crate::provider_limit::{self, LimitKind};

const KINDS: [(FailureKind, &[&str]); 4] = [
    (
        FailureKind::ContextTooLong,
        &[
            "prompt is too long",
            "prompt as too long",
            "context limit",
            "input is too long",
            "context_length_exceeded",
            "context length",
            "context window",
            "contextoverflow",
            "input token count",
            "maximum number of tokens",
        ],
    ),
    (
        FailureKind::MaxTokens,
        &[
            "max_output_tokens",
            "output token maximum",
            "max_tokens",
            "outputlength",
        ],
    ),
    (
        FailureKind::EmptyAnswer,
        &["empty response", "no visible output"],
    ),
    (
        FailureKind::Interrupted,
        &["interrupted by user", "messageaborted", "aborted by user"],
    ),
];

/// A failure from the agent's words and the HTTP status it tells with them.
pub(super) fn failure(message: &str, status: Option<u16>) -> Failure {
    Failure {
        kind: kind(message, status),
        message: message.to_owned(),
    }
}

fn kind(message: &str, status: Option<u16>) -> FailureKind {
    let lower = message.to_ascii_lowercase();
    let held = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if let Some((kind, _)) = KINDS.iter().find(|(_, words)| held(words)) {
        return *kind;
    }
    let by_words = provider_limit::kind_in_error(message);
    let by_status = status.and_then(provider_limit::kind_of_status);
    // A used-up plan comes with the status of a rate limit or worse: the words say more.
    let kind = match (by_status, by_words) {
        (Some(_), Some(LimitKind::Usage)) => Some(LimitKind::Usage),
        (Some(by_status), _) => Some(by_status),
        (None, by_words) => by_words,
    };
    kind.map_or(FailureKind::Other, FailureKind::Provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_apart() {
        use LimitKind::*;
        let provider = FailureKind::Provider;
        let table = [
            (
                "API Error: 400 prompt is too long: 9 > 8",
                Some(400),
                FailureKind::ContextTooLong,
            ),
            (
                "Incomplete response returned, reason: max_output_tokens",
                None,
                FailureKind::MaxTokens,
            ),
            (
                "The model returned an empty response with no text",
                None,
                FailureKind::EmptyAnswer,
            ),
            (
                "You've hit your limit · resets 1am (UTC)",
                Some(429),
                provider(Usage),
            ),
            ("slow down", Some(429), provider(Rate)),
            ("whatever", Some(529), provider(Overload)),
            ("API key not valid", Some(400), provider(Login)),
            ("connect ECONNREFUSED 127.0.0.1:9", None, provider(Network)),
            (
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
                None,
                FailureKind::ContextTooLong,
            ),
            ("boom", None, FailureKind::Other),
            ("boom", Some(400), FailureKind::Other),
        ];
        for (message, status, want) in table {
            assert_eq!(failure(message, status).kind, want, "{message}");
        }
    }
}
