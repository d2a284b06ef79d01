//! What agents tell on standard error alone: gemini sleeps for an hour after one line there, opencode
//! tries again without a word but in its log, and qwen says there why it does.

use std::time::Duration;

use super::json::head;
use super::{AgentEvent, lines};

/// Longer lines tell nothing here.
const LINE: usize = 16 * 1024;
const WHY_BYTES: usize = 300;

/// Reads an agent's standard error for its own retries and waits.
#[derive(Default)]
pub struct StderrReader {
    lines: lines::StreamLines,
    attempt: Option<u32>,
    why: String,
}

impl StderrReader {
    /// Takes the next bytes and appends the retries they tell of.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<AgentEvent>) {
        let Self {
            lines,
            attempt,
            why,
        } = self;
        lines.push(bytes, |line| {
            let lines::Line::Whole(line) = line else {
                return;
            };
            if line.len() <= LINE {
                let line = String::from_utf8_lossy(line);
                let told = retry(&line, attempt, why);
                out.extend(told.or_else(|| logged(&line)).or_else(|| announced(&line)));
            }
        });
    }
}

/// `Attempt 2 failed: why. Retrying after 5366ms...`, which may be broken over two lines.
fn retry(line: &str, attempt: &mut Option<u32>, why: &mut String) -> Option<AgentEvent> {
    if let Some(rest) = line.strip_prefix("Attempt ")
        && let Some((number, reason)) = rest.split_once(" failed")
    {
        *attempt = number.parse().ok();
        let reason = reason.trim_start_matches([':', ' ']);
        let reason = reason.split("Retrying ").next().unwrap_or(reason);
        *why = head(reason.trim_end_matches(['.', ' ']), WHY_BYTES).to_owned();
    }
    let (_, wait) = line.split_once("Retrying after ")?;
    let digits = wait.bytes().take_while(u8::is_ascii_digit).count();
    let millis: u64 = wait[..digits].parse().ok()?;
    wait[digits..].starts_with("ms").then(|| AgentEvent::Retry {
        attempt: attempt.take(),
        max: None,
        after: Some(Duration::from_millis(millis)),
        why: std::mem::take(why),
    })
}

/// A request of opencode's that failed: `… level=ERROR … message="stream error" …
/// error.error="AI_APICallError: why"`. It tries again, or tells the same as its error.
fn logged(line: &str) -> Option<AgentEvent> {
    if !line.contains(" level=ERROR ") || !line.contains("message=\"stream error\"") {
        return None;
    }
    let (_, why) = line.split_once("error.error=\"")?;
    let why = why.trim_end().trim_end_matches('"');
    let why = why.split_once("Error: ").map_or(why, |(_, rest)| rest);
    Some(AgentEvent::Retry {
        attempt: None,
        max: None,
        after: None,
        why: head(why, WHY_BYTES).to_owned(),
    })
}

/// Qwen's `Retrying in 60s (attempt 1/10): why`.
fn announced(line: &str) -> Option<AgentEvent> {
    let (wait, rest) = line
        .strip_prefix("Retrying in ")?
        .split_once("s (attempt ")?;
    let (count, why) = rest.split_once("): ")?;
    let (attempt, max) = count.split_once('/')?;
    Some(AgentEvent::Retry {
        attempt: attempt.parse().ok(),
        max: max.parse().ok(),
        after: Some(Duration::from_secs(wait.parse().ok()?)),
        why: head(why, WHY_BYTES).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(Option<u32>, u128, String)> {
        let mut reader = StderrReader::default();
        let mut out = Vec::new();
        for byte in text.as_bytes() {
            reader.push(&[*byte], &mut out);
        }
        let told = |event| match event {
            AgentEvent::Retry {
                attempt,
                after: Some(after),
                why,
                ..
            } => (attempt, after.as_millis(), why),
            other => panic!("{other:?}"),
        };
        out.into_iter().map(told).collect()
    }

    #[test]
    fn waits_are_told_with_their_reason() {
        let one = "Loaded.\nAttempt 1 failed: You have exhausted your capacity. Your quota will reset after 1h0m0s.. Retrying after 4080438ms...\n";
        let why = "You have exhausted your capacity. Your quota will reset after 1h0m0s";
        assert_eq!(read(one), [(Some(1), 4_080_438, why.to_owned())]);
        let two = "Attempt 2 failed: Resource has been exhausted (e.g. check quota).\nSuggested retry after 1s.. Retrying after 5366ms...\n";
        let why = "Resource has been exhausted (e.g. check quota)";
        assert_eq!(read(two), [(Some(2), 5366, why.to_owned())]);
    }

    #[test]
    fn an_announced_wait_is_a_retry() {
        let line = "Retrying in 60s (attempt 1/10): [API Error: 429 Rate limit reached]\n";
        let why = "[API Error: 429 Rate limit reached]".to_owned();
        assert_eq!(read(line), [(Some(1), 60_000, why)]);
        assert!(read("Retrying in 5s\nRetrying in xs (attempt 1/2): no\n").is_empty());
    }

    #[test]
    fn a_logged_error_of_a_request_is_a_retry() {
        let line = "timestamp=2026-11-15T06:45:09.894Z level=ERROR run=e0 message=\"stream error\" providerID=p small=false error.error=\"AI_APICallError: Rate limit reached for gpt-5. Please try again in 1s.\"\n";
        let mut out = Vec::new();
        StderrReader::default().push(line.as_bytes(), &mut out);
        let why = "Rate limit reached for gpt-5. Please try again in 1s.".to_owned();
        let told = AgentEvent::Retry {
            attempt: None,
            max: None,
            after: None,
            why,
        };
        assert_eq!(out, [told]);
        let other = line.replace("stream error", "process");
        let mut out = Vec::new();
        StderrReader::default().push(other.as_bytes(), &mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn other_lines_tell_nothing() {
        let text = "Retrying after lunch\nAttempt to fail\nAttempt 3 failed. Max attempts reached\nRetrying after 5 minutes\n";
        assert!(read(text).is_empty());
    }
}
