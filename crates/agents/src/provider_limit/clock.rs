//! Dates and clock times as people write them: `7pm (Asia/Tokyo)`, `Nov 18, 12:32am (UTC)`.

use jiff::{
    SignedDuration, Timestamp, ToSpan,
    civil::{Date, DateTime, Time, Weekday},
    tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase},
};

/// A clock time that passed so short ago was read late, and means now.
const JUST_PASSED: SignedDuration = SignedDuration::from_secs(120);

enum Day {
    /// Only a clock time: today, or tomorrow when it has passed.
    Next,
    Tomorrow,
    Weekday(Weekday),
    Date {
        month: i8,
        day: i8,
        year: Option<i16>,
    },
}

/// The instant named at the text's beginning. The text is normalized (lower case).
pub(super) fn instant(text: &str, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    if let Some(iso) = iso(text, local) {
        return Some(iso);
    }
    let (day, rest) = day(text);
    let (time, rest) = match time(rest) {
        Some((time, rest)) => (time, rest),
        None if matches!(day, Day::Date { .. }) => (Time::midnight(), rest),
        None => return None,
    };
    let zone = zone(rest).unwrap_or_else(|| local.clone());
    resolve(&day, time, &zone, now)
}

/// `2026-11-18T00:32:00Z`, `2026-11-18 00:32`
fn iso(text: &str, local: &TimeZone) -> Option<Timestamp> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || "-:.tz+ ".contains(c)))
        .unwrap_or(text.len());
    let text = text[..end]
        .trim()
        .trim_end_matches('.')
        .to_ascii_uppercase();
    if text.len() < 16 {
        return None;
    }
    text.parse::<Timestamp>().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        local.to_ambiguous_timestamp(civil).compatible().ok()
    })
}

fn day(text: &str) -> (Day, &str) {
    let text = strip_words(text, &["the ", "on "]);
    if let Some(rest) = text.strip_prefix("tomorrow") {
        return (Day::Tomorrow, joined(rest));
    }
    if let Some(rest) = text.strip_prefix("today") {
        return (Day::Next, joined(rest));
    }
    let (weekday, rest) = match name(text, &WEEKDAYS) {
        Some((index, rest)) => (Weekday::from_monday_zero_offset(index).ok(), joined(rest)),
        None => (None, text),
    };
    match (date(rest), weekday) {
        (Some((date, rest)), _) => (date, joined(rest)),
        (None, Some(weekday)) => (Day::Weekday(weekday), rest),
        (None, None) => (Day::Next, text),
    }
}

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// A weekday or month, written out or as its first three letters.
fn name<'a>(text: &'a str, names: &[&str]) -> Option<(i8, &'a str)> {
    let end = text
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let word = &text[..end];
    let index = names.iter().position(|name| {
        word == *name
            || (3..=4).contains(&word.len()) && name.starts_with(word) && word != "mar"
            || word == "mar" && *name == "march"
    })?;
    Some((
        i8::try_from(index).ok()?,
        text[end..].strip_prefix('.').unwrap_or(&text[end..]),
    ))
}

/// `nov 18`, `november 18th, 2026`, `18 nov 2026`
fn date(text: &str) -> Option<(Day, &str)> {
    let (month, day, rest) = match name(text, &MONTHS) {
        Some((month, rest)) => {
            let (day, rest) = day_number(rest.trim_start())?;
            (month, day, rest)
        }
        None => {
            let (day, rest) = day_number(text)?;
            let (month, rest) = name(rest.trim_start(), &MONTHS)?;
            (month, day, rest)
        }
    };
    let after = rest.trim_start_matches([',', ' ']);
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let year = (digits == 4).then(|| after[..4].parse().ok()).flatten();
    let rest = if year.is_some() { &after[4..] } else { rest };
    Some((
        Day::Date {
            month: month + 1,
            day,
            year,
        },
        rest,
    ))
}

fn day_number(text: &str) -> Option<(i8, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let day: i8 = text.get(..digits)?.parse().ok()?;
    let rest = &text[digits..];
    let rest = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|end| rest.strip_prefix(end))
        .unwrap_or(rest);
    ((1..=31).contains(&day) && !rest.starts_with(':')).then_some((day, rest))
}

fn joined(text: &str) -> &str {
    strip_words(text.trim_start_matches([',', ' ']), &["at ", "around "])
}

fn strip_words<'a>(text: &'a str, words: &[&str]) -> &'a str {
    words
        .iter()
        .fold(text, |text, word| text.strip_prefix(word).unwrap_or(text))
}

/// `3pm`, `3:30 pm`, `1:18 a.m.`, `15:00`, `15:00:30`
fn time(text: &str) -> Option<(Time, &str)> {
    let (hour, mut rest) = number(text)?;
    let mut parts = [0, 0];
    let mut colons = 0;
    for part in &mut parts {
        if let Some((value, after)) = rest.strip_prefix(':').and_then(number) {
            (*part, rest, colons) = (value, after, colons + 1);
        }
    }
    let half = rest.trim_start();
    let pm = ["pm", "p.m.", "p.m"]
        .iter()
        .find_map(|mark| half.strip_prefix(mark));
    let am = ["am", "a.m.", "a.m"]
        .iter()
        .find_map(|mark| half.strip_prefix(mark));
    let hour = match (am, pm) {
        (None, None) if colons == 0 => return None,
        (None, None) => hour,
        _ if !(1..=12).contains(&hour) => return None,
        (Some(_), _) => hour % 12,
        (None, Some(_)) => hour % 12 + 12,
    };
    let time = Time::new(hour, parts[0], parts[1], 0).ok()?;
    Some((time, am.or(pm).unwrap_or(rest)))
}

fn number(text: &str) -> Option<(i8, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let value = (1..=2)
        .contains(&digits)
        .then(|| text[..digits].parse().ok())
        .flatten()?;
    Some((value, &text[digits..]))
}

/// `(Europe/Vilnius)`, ` UTC`, ` (UTC+2)`, ` PST`. The database is the one built in: what a
/// zone means must not depend on the machine.
fn zone(text: &str) -> Option<TimeZone> {
    let text = text.trim_start();
    let text = text.strip_prefix('(').unwrap_or(text);
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || "/_+-:".contains(c)))
        .unwrap_or(text.len());
    let word = text[..end].trim_end_matches(':');
    if word.is_empty() {
        return None;
    }
    offset(word).or_else(|| TimeZoneDatabase::bundled().get(abbreviation(word)).ok())
}

fn offset(word: &str) -> Option<TimeZone> {
    let rest = word
        .strip_prefix("utc")
        .or_else(|| word.strip_prefix("gmt"))
        .unwrap_or(word);
    if rest.is_empty() || word == "z" {
        return Some(TimeZone::UTC);
    }
    let (sign, digits) = match rest.strip_prefix('+') {
        Some(digits) => (1, digits),
        None => (-1, rest.strip_prefix('-')?),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() == 4 => digits.split_at(2),
        None => (digits, "0"),
    };
    let seconds = (hours.parse::<i32>().ok()? * 60 + minutes.parse::<i32>().ok()?) * 60;
    Some(Offset::from_seconds(sign * seconds).ok()?.to_time_zone())
}

fn abbreviation(word: &str) -> &str {
    match word {
        "pst" | "pdt" | "pt" => "America/Los_Angeles",
        "mst" | "mdt" => "America/Denver",
        "cst" | "cdt" | "ct" => "America/Chicago",
        "est" | "edt" | "et" => "America/New_York",
        "bst" => "Europe/London",
        "cet" | "cest" => "Europe/Berlin",
        "jst" => "Asia/Tokyo",
        word => word,
    }
}

fn resolve(day: &Day, time: Time, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
    let today = now.to_zoned(zone.clone()).date();
    let late = now.checked_sub(JUST_PASSED).ok()?;
    let at = |date: Date| in_zone(date.to_datetime(time), zone, late);
    match day {
        Day::Next => [0, 1]
            .into_iter()
            .find_map(|days| at(today.checked_add(days.days()).ok()?).filter(|then| *then >= late)),
        Day::Tomorrow => at(today.tomorrow().ok()?),
        Day::Weekday(weekday) => (0..=7).find_map(|days: i64| {
            let date = today.checked_add(days.days()).ok()?;
            let right = date.weekday() == *weekday;
            right
                .then(|| at(date))
                .flatten()
                .filter(|then| *then >= late)
        }),
        Day::Date { month, day, year } => at(whole_date(*month, *day, *year, today)?),
    }
}

/// A date without a year is the one nearest to today: `Jan 2` in December is next year's.
fn whole_date(month: i8, day: i8, year: Option<i16>, today: Date) -> Option<Date> {
    if let Some(year) = year {
        return Date::new(year, month, day).ok();
    }
    let distance = |date: &Date| (*date - today).get_days().abs();
    [-1, 0, 1]
        .into_iter()
        .filter_map(|more| Date::new(today.year() + more, month, day).ok())
        .min_by_key(distance)
}

/// A clock time that a change of the clocks skips is taken after the gap; one that comes
/// twice is the first of the two, or the second when the first has passed.
fn in_zone(civil: DateTime, zone: &TimeZone, late: Timestamp) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(civil);
    if let AmbiguousOffset::Fold { .. } = ambiguous.offset() {
        let first = ambiguous.earlier().ok()?;
        return if first >= late {
            Some(first)
        } else {
            ambiguous.later().ok()
        };
    }
    ambiguous.compatible().ok()
}
