use super::super::reset_in_headers;
use super::*;

/// A Sunday, 03:00 UTC.
const NOW: &str = "2026-11-15T03:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn clock_times_follow_the_zone_through_its_changes() {
    let new_york = jiff::tz::TimeZoneDatabase::bundled()
        .get("America/New_York")
        .unwrap();
    // Clocks go back on 2026-11-01 at 2:00: 1:30 comes twice.
    let table = [
        (
            "resets 1:30am",
            "2026-11-01T04:00:00Z",
            "2026-11-01T05:30:00Z",
        ),
        (
            "resets 1:30am",
            "2026-11-01T05:40:00Z",
            "2026-11-01T06:30:00Z",
        ),
        (
            "resets 1:30am",
            "2026-11-01T07:00:00Z",
            "2026-11-02T06:30:00Z",
        ),
        // They go forward on 2026-03-08 at 2:00: 2:30 does not exist, 3:30 is meant.
        (
            "resets 2:30am",
            "2026-03-08T06:00:00Z",
            "2026-03-08T07:30:00Z",
        ),
        // Tomorrow is a civil day later, not 24 hours.
        ("resets 9pm", "2026-11-01T02:00:00Z", "2026-11-02T02:00:00Z"),
        ("resets 9am", "2026-10-31T14:00:00Z", "2026-11-01T14:00:00Z"),
    ];
    for (text, now, want) in table {
        assert_eq!(
            reset_in(text, at(now), &new_york),
            Some(at(want)),
            "{text} at {now}"
        );
    }
}

#[test]
fn times_in_all_their_spellings() {
    let utc = TimeZone::UTC;
    let table = [
        ("resets 3pm", Some("2026-11-15T15:00:00Z")),
        ("resets at 3:30 PM", Some("2026-11-15T15:30:00Z")),
        ("resets at 3:30 p.m. (UTC)", Some("2026-11-15T15:30:00Z")),
        ("try again at 15:00", Some("2026-11-15T15:00:00Z")),
        ("resets 12am", Some("2026-11-16T00:00:00Z")),
        ("resets 12pm", Some("2026-11-15T12:00:00Z")),
        ("resets tomorrow at 9am", Some("2026-11-16T09:00:00Z")),
        ("resets Monday 9am", Some("2026-11-16T09:00:00Z")),
        ("resets Sun 2am", Some("2026-11-22T02:00:00Z")),
        ("resets Dec 1", Some("2026-12-01T00:00:00Z")),
        (
            "resets 18 Nov 2026, 10:00 (UTC+2)",
            Some("2026-11-18T08:00:00Z"),
        ),
        ("resets Nov 18, 10am PST", Some("2026-11-18T18:00:00Z")),
        (
            "resets at 2026-11-18T00:32:00Z",
            Some("2026-11-18T00:32:00Z"),
        ),
        ("available again in an hour", Some("2026-11-15T04:00:00Z")),
        ("please wait 20 seconds", Some("2026-11-15T03:00:20Z")),
        (
            "try again in 2 days, 3 hours and 5 minutes",
            Some("2026-11-17T06:05:00Z"),
        ),
        ("retryDelay\": \"34s\"", Some("2026-11-15T03:00:34Z")),
        ("retryDelayMs: 1000,", Some("2026-11-15T03:00:01Z")),
        ("resets 3pm (Mars/Olympus)", Some("2026-11-15T15:00:00Z")),
        // Nothing to read.
        ("try again later", None),
        ("try again in a moment", None),
        ("resets soon", None),
        ("resets 3", None),
        ("resets 25:00", None),
        ("resets 13pm", None),
        ("resets Feb 31", None),
        ("resets in 9999 days", None),
        ("|12345", None),
        ("retry-after: soon", None),
        ("resets", None),
    ];
    for (text, want) in table {
        assert_eq!(reset_in(text, at(NOW), &utc), want.map(at), "{text}");
    }
    let new_year = at("2026-12-31T20:00:00Z");
    assert_eq!(
        reset_in("resets Jan 2, 3am", new_year, &utc),
        Some(at("2027-01-02T03:00:00Z"))
    );
}

#[test]
fn headers_tell_when_to_come_back() {
    let now = at(NOW);
    type Headers = &'static [(&'static str, &'static str)];
    let table: &[(Headers, Option<&str>)] = &[
        (&[("retry-after", "90")], Some("2026-11-15T03:01:30Z")),
        (
            &[("Retry-After", "Sun, 15 Nov 2026 04:00:00 GMT")],
            Some("2026-11-15T04:00:00Z"),
        ),
        (
            &[("retry-after-ms", "1500"), ("retry-after", "2")],
            Some("2026-11-15T03:00:01.5Z"),
        ),
        (
            &[("x-codex-primary-reset-at", "1794716358")],
            Some("2026-11-15T04:19:18Z"),
        ),
        (
            &[("x-codex-primary-reset-after-seconds", "60")],
            Some("2026-11-15T03:01:00Z"),
        ),
        (
            &[
                ("x-codex-primary-reset-after-seconds", "60"),
                ("x-codex-primary-used-percent", "12"),
                ("x-codex-secondary-reset-after-seconds", "7200"),
                ("x-codex-secondary-used-percent", "100.0"),
            ],
            Some("2026-11-15T05:00:00Z"),
        ),
        (
            &[("anthropic-ratelimit-unified-reset", "1794716358")],
            Some("2026-11-15T04:19:18Z"),
        ),
        (
            &[
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            Some("2026-11-15T03:06:00Z"),
        ),
        (
            &[
                ("x-ratelimit-remaining-tokens", "5"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            None,
        ),
        (&[("retry-after", "-4")], None),
        (&[("retry-after", "NaN")], None),
        (&[("date", "Sun, 15 Nov 2026 04:00:00 GMT")], None),
        (&[], None),
    ];
    for (headers, want) in table {
        let got = reset_in_headers(headers.iter().copied(), now);
        assert_eq!(got, want.map(at), "{headers:?}");
    }
}
