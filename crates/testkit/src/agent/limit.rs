//! What the known agents print when their provider's limit is reached, with a reset that is yet to
//! come. Short forms of what the real ones print: the fields that tell of the limit are theirs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Trouble;
use super::output::Out;

/// Prints the limit and gives the exit code that the agent then has.
pub(super) fn print(agent: &str, from_now: Duration) -> Result<u8, Trouble> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let reset = (now + from_now).as_secs();
    let (text, code) = match agent {
        "claude" => (claude(reset), 1),
        "codex" => (codex(reset), 1),
        "gemini" => (gemini(from_now.as_secs()), 173),
        "opencode" => (opencode(now.as_millis(), from_now.as_secs()), 1),
        _ => return Err(Trouble::Script(format!("no limit of {agent:?} is known"))),
    };
    Out::Stdout.write(text.as_bytes())?;
    Ok(code)
}

fn claude(reset: u64) -> String {
    let clock = clock(reset, ["am", "pm"]);
    let message = format!("You've hit your limit · resets {clock} (UTC)");
    let session = "00000000-0000-4000-8000-000000000001";
    format!(
        r#"{{"type":"system","subtype":"init","cwd":"/project","session_id":"{session}","tools":["Bash"],"model":"claude-sonnet-5"}}
{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{reset},"rateLimitType":"five_hour","overageStatus":"rejected","isUsingOverage":false}},"session_id":"{session}"}}
{{"type":"assistant","message":{{"model":"<synthetic>","role":"assistant","type":"message","content":[{{"type":"text","text":"{message}"}}]}},"session_id":"{session}","error":"rate_limit"}}
{{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"num_turns":1,"result":"{message}","session_id":"{session}","total_cost_usd":0,"usage":{{"input_tokens":0,"output_tokens":0}},"permission_denials":[],"terminal_reason":"completed"}}
"#
    )
}

fn codex(reset: u64) -> String {
    let clock = clock(reset, [" AM", " PM"]);
    let message = format!(
        "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at {clock}."
    );
    format!(
        r#"{{"type":"thread.started","thread_id":"00000000-0000-4000-8000-000000000001"}}
{{"type":"turn.started"}}
{{"type":"error","message":"{message}"}}
{{"type":"turn.failed","error":{{"message":"{message}"}}}}
"#
    )
}

fn gemini(seconds: u64) -> String {
    format!(
        r#"{{"type":"init","session_id":"00000000-0000-4000-8000-000000000001","model":"gemini-2.5-pro"}}
{{"type":"result","status":"error","error":{{"type":"unknown","message":"[API Error: Resource has been exhausted (e.g. check quota).\nSuggested retry after {seconds}s.]\nPlease wait and try again later."}},"stats":{{"total_tokens":0,"input_tokens":0,"output_tokens":0,"cached":0}}}}
"#
    )
}

fn opencode(now_ms: u128, seconds: u64) -> String {
    format!(
        r#"{{"type":"error","timestamp":{now_ms},"sessionID":"ses_1","error":{{"name":"APIError","data":{{"message":"Too Many Requests","statusCode":429,"isRetryable":true,"responseHeaders":{{"content-type":"application/json","retry-after":"{seconds}"}},"responseBody":"{{}}"}}}}}}
"#
    )
}

/// The time of day in UTC, as people on a twelve-hour clock write it.
fn clock(epoch: u64, halves: [&str; 2]) -> String {
    let minutes = epoch / 60 % (24 * 60);
    let (hour, minute) = (minutes / 60, minutes % 60);
    let half = if hour < 12 { halves[0] } else { halves[1] };
    let hour = if hour % 12 == 0 { 12 } else { hour % 12 };
    format!("{hour}:{minute:02}{half}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_has_twelve_hours() {
        assert_eq!(clock(1_794_706_358, ["am", "pm"]), "1:32am");
        assert_eq!(clock(0, [" AM", " PM"]), "12:00 AM");
        assert_eq!(clock(12 * 3600 + 5 * 60, [" AM", " PM"]), "12:05 PM");
        assert_eq!(clock(23 * 3600 + 59 * 60, [" AM", " PM"]), "11:59 PM");
    }

    #[test]
    fn every_line_of_a_limit_is_json() {
        let streams = [claude(0), codex(0), gemini(7), opencode(0, 7)];
        for line in streams.iter().flat_map(|stream| stream.lines()) {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }
}
