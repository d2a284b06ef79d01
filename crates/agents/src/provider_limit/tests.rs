use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn zone(name: &str) -> TimeZone {
    jiff::tz::TimeZoneDatabase::bundled().get(name).unwrap()
}

/// A Sunday, 03:00 UTC.
const NOW: &str = "2026-11-15T03:00:00Z";

fn told_now(text: &str) -> Option<ReportedLimit> {
    told(text, at(NOW), &zone("Europe/Berlin"))
}

#[test]
fn limits_are_told_with_their_kind_and_their_end() {
    use LimitKind::*;
    let long_stderr = format!(
        "{}Error when talking to Gemini API Full report available at: /tmp/report.json \
         RetryableQuotaError: Resource has been exhausted (e.g. check quota).\n\
         Suggested retry after 30s.\n    at classify (file:///x:1:2)\n    at retry (file:///x:3:4) {{\n  \
         status: 429\n}}\n",
        "Ripgrep is not available. Falling back to GrepTool.\n".repeat(40)
    );
    let table: &[(&str, LimitKind, Option<&str>)] = &[
        // Clock times with a zone.
        (
            "5-hour limit reached · resets 3pm (Europe/Stockholm)",
            Usage,
            Some("2026-11-15T14:00:00Z"),
        ),
        (
            "You've hit your limit · resets 5pm (Europe/Vilnius)",
            Usage,
            Some("2026-11-15T15:00:00Z"),
        ),
        (
            "You've hit your session limit · resets 4:30am (UTC)",
            Usage,
            Some("2026-11-15T04:30:00Z"),
        ),
        (
            "Claude usage limit reached. Your limit will reset at 7pm (Asia/Tokyo).",
            Usage,
            Some("2026-11-15T10:00:00Z"),
        ),
        (
            "You've hit your limit · resets Nov 18, 12:32am (UTC)",
            Usage,
            Some("2026-11-18T00:32:00Z"),
        ),
        (
            "Opus weekly limit reached ∙ resets Nov 18 at 12pm (America/New_York)",
            Usage,
            Some("2026-11-18T17:00:00Z"),
        ),
        // Behind a title that BEL ends.
        (
            "\x1b]0;claude\x07You've hit your limit · resets 5pm (Europe/Vilnius)",
            Usage,
            Some("2026-11-15T15:00:00Z"),
        ),
        // A time that has passed is tomorrow's.
        (
            "You've hit your limit · resets 1:32am (UTC)",
            Usage,
            Some("2026-11-16T01:32:00Z"),
        ),
        // One that passed while the message travelled is now.
        (
            "You've hit your limit · resets 2:59am (UTC)",
            Usage,
            Some("2026-11-15T02:59:00Z"),
        ),
        // Local clock times, typographic apostrophe.
        (
            "You’ve hit your usage limit. Upgrade to Pro (https://example.com/pro), visit https://example.com/usage to purchase more credits or try again at 5:18 AM.",
            Usage,
            Some("2026-11-15T04:18:00Z"),
        ),
        (
            "ERROR: You've hit your usage limit. Try again at Nov 18th, 2026 1:18 AM.",
            Usage,
            Some("2026-11-18T00:18:00Z"),
        ),
        (
            "You've hit your usage limit. Upgrade your plan to continue, or try again later.",
            Usage,
            None,
        ),
        (
            "You're out of extra usage · resets 6am (UTC)",
            Usage,
            Some("2026-11-15T06:00:00Z"),
        ),
        // Epochs.
        (
            "Claude AI usage limit reached|1794706358",
            Usage,
            Some("2026-11-15T01:32:38Z"),
        ),
        (
            "Claude AI usage limit reached|1794800000000",
            Usage,
            Some("2026-11-16T03:33:20Z"),
        ),
        // Durations.
        (
            "Usage limit reached. Try again in 3 hours 20 minutes.",
            Usage,
            Some("2026-11-15T06:20:00Z"),
        ),
        (
            "Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, Used 30000. Please try again in 1.5s.",
            Rate,
            Some("2026-11-15T03:00:01.5Z"),
        ),
        (
            "[API Error: Resource has been exhausted (e.g. check quota).\nSuggested retry after 1s.]\nPlease wait and try again later. To increase your limits, switch to another /auth method",
            Rate,
            Some("2026-11-15T03:00:01Z"),
        ),
        (
            "[API Error: You have exhausted your daily quota on this model.]",
            Usage,
            None,
        ),
        (
            "Attempt 1 failed: You have exhausted your capacity on this model. Your quota will reset after 1h0m0s.. Retrying after 4080438ms...",
            Usage,
            Some("2026-11-15T04:00:00Z"),
        ),
        (
            "Attempt 2 failed: Too many requests. Retrying after 4080438ms...",
            Rate,
            Some("2026-11-15T04:08:00.438Z"),
        ),
        (&long_stderr, Rate, Some("2026-11-15T03:00:30Z")),
        // Headers and bodies inside messages.
        (
            "Error: 429 Too Many Requests, retry-after: 90",
            Rate,
            Some("2026-11-15T03:01:30Z"),
        ),
        (
            "Error: 429 Too Many Requests (Retry-After: Sun, 15 Nov 2026 04:31:29 GMT",
            Rate,
            Some("2026-11-15T04:31:29Z"),
        ),
        (
            r#"API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#,
            Rate,
            None,
        ),
        (
            r#"{"error":{"type":"usage_limit_reached","resets_at":1794716358}}"#,
            Usage,
            Some("2026-11-15T04:19:18Z"),
        ),
        (
            r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":3600}}"#,
            Usage,
            Some("2026-11-15T04:00:00Z"),
        ),
        // No time told.
        (
            "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.",
            Rate,
            None,
        ),
        (
            "exceeded retry limit, last status: 429 Too Many Requests, request id: req_1",
            Rate,
            None,
        ),
        (
            "Quota exceeded. Check your plan and billing details.",
            Usage,
            None,
        ),
        (
            "Your credit balance is too low to access the API",
            Usage,
            None,
        ),
        // Overload.
        (
            "API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment.",
            Overload,
            None,
        ),
        (
            "API Error: 529 Overloaded. This is a server-side issue, usually temporary",
            Overload,
            None,
        ),
        ("Error: 503 Service Unavailable", Overload, None),
        ("HTTP/1.1 502 Bad Gateway", Overload, None),
        // Network.
        (
            "API Error: Unable to connect to API (ECONNREFUSED)",
            Network,
            None,
        ),
        (
            "stream disconnected before completion: error sending request for url (http://localhost:9/v1)",
            Network,
            None,
        ),
        (
            "2026-11-15T00:25:14.094600Z ERROR codex_core::client: stream disconnected: idle timeout",
            Network,
            None,
        ),
        // Login.
        ("Invalid API key · Fix external API key", Login, None),
        ("Invalid API key · Please run /login", Login, None),
        ("API Error: 401 Unauthorized", Login, None),
        (
            "unexpected status 401 Unauthorized: Incorrect API key provided: dummy. You can find your API key online",
            Login,
            None,
        ),
        (
            r#"[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
            Login,
            None,
        ),
        ("Not logged in · Please run /login", Login, None),
        (
            "ERROR: Missing environment variable: `OPENAI_API_KEY`.",
            Login,
            None,
        ),
        ("\u{1b}[31m✗ Error:\u{1b}[0m not logged in", Login, None),
    ];
    for (text, kind, until) in table {
        let told = told_now(text).unwrap_or_else(|| panic!("not seen: {text}"));
        assert_eq!(told.kind, *kind, "{text}");
        assert_eq!(told.until, until.map(at), "{text}");
        assert!(
            !told.words.is_empty() && told.words.len() <= WORDS_KEPT + 8,
            "{text}"
        );
    }
}

#[test]
fn prose_about_limits_is_no_limit() {
    let long = "I went through the code and the tests. ".repeat(30);
    let table = [
        "I implemented the rate limit reached handler",
        "I implemented the rate limit reached handler.",
        "Rate limit reached handler is in place.",
        "Rate limit exceeded errors are now retried with back-off.",
        "Usage limit reached banner now shows the reset time (resets 3pm).",
        "Overloaded functions were renamed.",
        "Too many requests are no longer sent at start.",
        "Not logged in users now see the sign-in page.",
        "Connection refused errors are caught.",
        "Error handling for rate limit exceeded is now in place.",
        "Failed to reproduce the rate limit exceeded bug.",
        "I handle \"rate limit exceeded\" errors now.",
        "The message says `5-hour limit reached · resets 3pm` and the parser reads it.",
        "> You've hit your limit · resets 3pm\nis what the fixture says.",
        "What I did:\n- Rate limit exceeded: returns 429 with Retry-After\n- Unauthorized: returns 401",
        "```\nError: 429 Too Many Requests\n```\nis what the server now answers.",
        "The API answers 429 when the client has too many requests.",
        "All done. <promise>COMPLETE</promise>",
        "Error: EDQUOT: disk quota exceeded, write",
        "Error: missing environment variable DATABASE_URL",
        "You have 3 failing tests that exceeded the time limit.",
        "",
        "   \n\n",
    ];
    for text in table {
        assert_eq!(told_now(text), None, "{text}");
    }
    let quoted_early = format!(
        "Error: 429 Too Many Requests\n{}",
        "a line of work\n".repeat(50)
    );
    assert_eq!(
        told_now(&quoted_early),
        None,
        "an error long ago in a long text"
    );
    let long_prose = format!("{long}\nRate limit exceeded: handled.\n{long}");
    assert_eq!(told_now(&long_prose), None);
}

#[test]
fn a_limit_at_the_end_of_a_long_log_is_seen() {
    let log = format!(
        "{}ERROR: You’ve hit your usage limit. Try again at 5:18 AM.\n",
        "exec\nok\n".repeat(500)
    );
    let told = told_now(&log).unwrap();
    assert_eq!(
        (told.kind, told.until),
        (LimitKind::Usage, Some(at("2026-11-15T04:18:00Z")))
    );
    assert!(told.words.starts_with("ERROR: You’ve hit"));
}

#[test]
fn error_messages_are_told_apart() {
    use LimitKind::*;
    let table = [
        (
            "We’re currently experiencing high demand, which may cause temporary errors.",
            Some(Overload),
        ),
        (
            "The server had an error while processing your request. Sorry about that!",
            Some(Overload),
        ),
        (
            r#"{"message":"Overloaded","type":"server_error","code":"overloaded"}"#,
            Some(Overload),
        ),
        ("The usage limit has been reached", Some(Usage)),
        (
            "Failed to get response from the AI model; retried 5 times. Last error: 429 Rate limit reached for gpt-5",
            Some(Rate),
        ),
        (
            "rate limit exceeded: Rate limit reached for gpt-5. Please try again in 1.5s.",
            Some(Rate),
        ),
        ("Model stream ended without a finish reason.", Some(Network)),
        ("unexpected status 403 Forbidden", Some(Login)),
        ("prompt is too long: 210000 tokens > 200000 maximum", None),
        (
            "Incomplete response returned, reason: max_output_tokens",
            None,
        ),
        ("Reached maximum number of turns (1)", None),
        ("", None),
    ];
    for (text, want) in table {
        assert_eq!(kind_in_error(text), want, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_without_a_crash(text in "\\PC{0,200}", marker in "(resets|try again at|retry-after:|in|limit reached\\|) ?") {
        let now = at(NOW);
        let joined = format!("{text} {marker}{text}");
        for text in [&text, &joined] {
            if let Some(until) = reset_in(text, now, &TimeZone::UTC) {
                proptest::prop_assert!(until.duration_since(now) <= jiff::SignedDuration::from_hours(40 * 24));
            }
            let _ = told(text, now, &TimeZone::UTC);
            let _ = told_in_error(text, now, &TimeZone::UTC);
        }
    }
}

#[test]
fn a_reset_more_than_eight_days_away_is_not_believed_and_that_is_said() {
    let now: Timestamp = "2026-11-15T03:00:00Z".parse().unwrap();
    let told = |until: Option<&str>| ReportedLimit {
        kind: LimitKind::Usage,
        until: until.map(|until| until.parse().unwrap()),
        words: "weekly limit reached".into(),
    };
    for believed in [
        None,
        Some("2026-11-15T02:00:00Z"),
        Some("2026-11-15T04:00:00Z"),
        Some("2026-11-22T03:00:00Z"),
        Some("2026-11-23T03:00:00Z"),
    ] {
        assert_eq!(told(believed).believed(now), told(believed), "{believed:?}");
    }
    for far in [
        "2026-11-23T03:00:01Z",
        "2026-12-01T00:00:00Z",
        "3000-01-01T00:00:00Z",
        "9999-12-30T00:00:00Z",
    ] {
        let kept = told(Some(far)).believed(now);
        assert_eq!((kept.kind, kept.until), (LimitKind::Usage, None), "{far}");
        assert!(
            kept.words
                .starts_with("weekly limit reached (ignoring a reset at "),
            "{}",
            kept.words
        );
        assert!(kept.words.contains(far) && kept.words.contains("ignoring a reset"));
    }
    // However it was told: in words too.
    let worded = told_in_error("usage limit reached, resets Dec 1", now, &TimeZone::UTC).unwrap();
    assert!(worded.until.is_some());
    assert_eq!(worded.believed(now).until, None);
}

#[test]
fn what_plain_text_says_of_other_servers_is_no_limit_of_the_provider() {
    use LimitKind::*;
    let table: &[(&str, Option<LimitKind>)] = &[
        // Tests and tools that ask a server on this machine, or of nobody knows which.
        ("Error: connect ECONNREFUSED 127.0.0.1:3000", None),
        ("Error: connect ECONNREFUSED ::1:5432", None),
        ("Error: connect ECONNREFUSED /run/app.sock", None),
        (
            "ConnectionRefusedError: [Errno 111] Connection refused",
            None,
        ),
        ("Error: connection refused", None),
        ("connection refused", None),
        ("Error: fetch failed: http://localhost:8080/health", None),
        ("Error: getaddrinfo ENOTFOUND db.internal", None),
        ("Error: request timed out (http://192.168.1.7/api)", None),
        (
            "requests.exceptions.ConnectionError: HTTPConnectionPool(host='localhost', port=3000): \
             Max retries exceeded (Caused by NewConnectionError('[Errno 111] Connection refused'))",
            None,
        ),
        (
            "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>",
            None,
        ),
        (
            "Error: GET http://localhost:3000/ 503 Service Unavailable",
            None,
        ),
        ("Error: http://127.0.0.1:3000/me: 401 Unauthorized", None),
        ("Error: http://app.local:80/ 429 Too Many Requests", None),
        // A provider.
        (
            "API Error: Unable to connect to API (ECONNREFUSED)",
            Some(Network),
        ),
        (
            "API Error: connect ECONNREFUSED 127.0.0.1:4000",
            Some(Network),
        ),
        (
            "stream disconnected before completion: error sending request for url (http://localhost:9/v1)",
            Some(Network),
        ),
        (
            "Error: connect ECONNREFUSED 104.18.7.192:443",
            Some(Network),
        ),
        (
            "Error: getaddrinfo ENOTFOUND api.anthropic.com",
            Some(Network),
        ),
        (
            "Failed to connect to api.openai.com port 443: Connection refused",
            Some(Network),
        ),
        ("Error: fetch failed", Some(Network)),
        (
            "openai.APIConnectionError: Connection error.",
            Some(Network),
        ),
        ("Error: 429 Too Many Requests", Some(Rate)),
        (
            "You've hit your limit · resets 5pm (Europe/Vilnius)",
            Some(Usage),
        ),
        ("Error: 401 Unauthorized", Some(Login)),
    ];
    for (text, kind) in table {
        let told = told_in_output(text, at(NOW), &zone("Europe/Berlin"));
        assert_eq!(told.map(|told| told.kind), *kind, "{text}");
    }
}
