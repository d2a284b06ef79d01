//! Durations, sizes and money as people write them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A value that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{value}` is not {what}; write {example}")]
pub struct UnitError {
    value: String,
    what: &'static str,
    example: &'static str,
}

fn bad(value: &str, what: &'static str, example: &'static str) -> UnitError {
    UnitError {
        value: value.to_owned(),
        what,
        example,
    }
}

/// A century: whoever asks for more means "for ever", and no sum of two of them overflows.
pub const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A duration that is written as seconds in files: whole where it is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secs(pub Duration);

impl Secs {
    /// So many seconds.
    pub const fn new(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }
}

impl From<Duration> for Secs {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl fmt::Display for Secs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_duration(self.0))
    }
}

impl Serialize for Secs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.subsec_nanos() == 0 {
            serializer.serialize_u64(self.0.as_secs())
        } else {
            serializer.serialize_f64(self.0.as_secs_f64())
        }
    }
}

impl<'de> Deserialize<'de> for Secs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let secs = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(secs)
            .map(|duration| Self(duration.min(LONGEST)))
            .map_err(serde::de::Error::custom)
    }
}

const DURATION_EXAMPLE: &str = "for example 90s, 30m, 1h30m or 500ms";

/// Reads `90s`, `30m`, `1h30m`, `2d`, `500ms`; a bare number means seconds. More than a century is a century.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    read_duration(text).map(|duration| duration.min(LONGEST))
}

fn read_duration(text: &str) -> Result<Duration, UnitError> {
    let fail = || bad(text, "a duration", DURATION_EXAMPLE);
    let trimmed = text.trim();
    if let Ok(secs) = trimmed.parse::<f64>() {
        return Duration::try_from_secs_f64(secs).map_err(|_| fail());
    }
    let mut total = 0.0_f64;
    let mut rest = trimmed;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(fail)?;
        let number: f64 = rest[..digits].parse().map_err(|_| fail())?;
        rest = rest[digits..].trim_start();
        let end = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let scale = unit_secs(&rest[..end].to_ascii_lowercase()).ok_or_else(fail)?;
        total += number * scale;
        rest = rest[end..].trim_start();
    }
    if trimmed.is_empty() {
        return Err(fail());
    }
    // Milliseconds are the finest unit; rounding keeps 1.5m from becoming 89.999…s.
    Duration::try_from_secs_f64((total * 1000.0).round() / 1000.0).map_err(|_| fail())
}

/// The seconds of a unit: `h`, `min`, `seconds`.
pub fn unit_secs(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// Writes a duration the way `parse_duration` reads it: `1h30m`, `45s`, `500ms`.
pub fn show_duration(duration: Duration) -> String {
    let (secs, ms) = (duration.as_secs(), duration.subsec_millis());
    match (secs, ms / 100) {
        (0, _) if ms == 0 => return "0s".to_owned(),
        (0, _) => return format!("{ms}ms"),
        (..60, 0) => return format!("{secs}s"),
        (..60, tenths) => return format!("{secs}.{tenths}s"),
        _ => {}
    }
    let mut out = String::new();
    let mut left = secs;
    for (unit, size) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        if left >= size {
            out.push_str(&format!("{}{unit}", left / size));
        }
        left %= size;
    }
    out
}

/// Reads `2GB`, `64MiB`, `512k`, `1000`; decimal and binary units.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let fail = || bad(text, "a size", "for example 500MB, 2GB, 64MiB or unlimited");
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let number: f64 = trimmed[..end].parse().map_err(|_| fail())?;
    let scale: f64 = match trimmed[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "ki" | "kib" => 1024.0,
        "mi" | "mib" => 1024.0 * 1024.0,
        "gi" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "ti" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(fail()),
    };
    let bytes = number * scale;
    if (0.0..9e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(fail())
    }
}

/// A count with its noun: `1 file`, `2 files`, `0 processes`.
pub fn plural(count: u64, one: &str) -> String {
    match (count, one.ends_with('s')) {
        (1, _) => format!("1 {one}"),
        (_, true) => format!("{count} {one}es"),
        (_, false) => format!("{count} {one}s"),
    }
}

/// Writes a size in decimal units: `1.5 GB`.
pub fn show_size(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

/// Reads `5`, `$5`, `2.50`, `5 USD`.
pub fn parse_usd(text: &str) -> Result<f64, UnitError> {
    let fail = || bad(text, "an amount of US dollars", "for example 5 or 2.50");
    let cleaned = text
        .trim()
        .trim_start_matches('$')
        .trim_end_matches("USD")
        .trim();
    let usd: f64 = cleaned.parse().map_err(|_| fail())?;
    if usd.is_finite() && usd > 0.0 {
        Ok(usd)
    } else {
        Err(fail())
    }
}

/// Writes an amount of US dollars: `$2.50`, and `$0.0090` where cents would hide it.
pub fn show_usd(usd: f64) -> String {
    let digits = if usd > 0.0 && usd < 0.01 { 4 } else { 2 };
    format!("${usd:.digits$}")
}

/// Reads a count with optional `k` or `M`: `200k`, `1.5M`, `100_000`.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let fail = || bad(text, "a count", "for example 50000, 200k or 1.5M");
    let cleaned = text.trim().replace(['_', ','], "");
    let (number, scale) = match cleaned.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => match cleaned.strip_suffix(['m', 'M']) {
            Some(number) => (number, 1e6),
            None => (cleaned.as_str(), 1.0),
        },
    };
    let value: f64 = number.parse().map_err(|_| fail())?;
    let value = value * scale;
    if value.is_finite() && (1.0..9e18).contains(&value) {
        Ok(value as u64)
    } else {
        Err(fail())
    }
}

/// Cuts a text to at most `max` bytes at a character boundary.
pub fn cut_str(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// At most `max` characters of a text on one line, with an ellipsis where it was cut.
pub fn shorten(text: &str, max: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(max) {
        None => flat,
        Some(_) => {
            let keep: String = flat.chars().take(max.saturating_sub(1)).collect();
            format!("{}…", keep.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_read_as_people_write_them() {
        let table = [
            ("90", 90_000),
            ("90s", 90_000),
            ("30m", 1_800_000),
            ("45min", 2_700_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("1.5m", 90_000),
            ("500ms", 500),
            ("2d", 172_800_000),
            ("0", 0),
            ("1e19", LONGEST.as_millis()),
            ("100000000000000d", LONGEST.as_millis()),
        ];
        for (text, ms) in table {
            assert_eq!(parse_duration(text).unwrap().as_millis(), ms, "{text}");
        }
        for text in ["", "m", "5 parsecs", "-3s", "1h-5m", "NaN", "1e999"] {
            let error = parse_duration(text).unwrap_err().to_string();
            assert!(error.contains("30m"), "{text}: {error}");
        }
    }

    #[test]
    fn nouns_agree_with_their_counts() {
        let count = |count| [plural(count, "iteration"), plural(count, "process")];
        assert_eq!(count(0), ["0 iterations", "0 processes"]);
        assert_eq!(count(1), ["1 iteration", "1 process"]);
        assert_eq!(count(2), ["2 iterations", "2 processes"]);
    }

    #[test]
    fn sizes_counts_and_money_read_as_people_write_them() {
        assert_eq!(parse_size("2GB").unwrap(), 2_000_000_000);
        assert_eq!(parse_size("64 MiB").unwrap(), 64 << 20);
        assert_eq!(parse_size("123").unwrap(), 123);
        assert!(parse_size("many").is_err());
        assert_eq!(parse_count("200k").unwrap(), 200_000);
        assert!(parse_count("0").is_err());
        assert_eq!(parse_usd("$2.50").unwrap(), 2.5);
        let shown = [0.0, 0.009, 0.01, 2.5].map(show_usd);
        assert_eq!(shown, ["$0.00", "$0.0090", "$0.01", "$2.50"]);
        let error = parse_usd("-1").unwrap_err().to_string();
        assert!(error.contains("is not an amount of US dollars"), "{error}");
    }

    proptest! {
        #[test]
        fn a_shown_duration_reads_back(secs in 0_u64..10_000_000) {
            let duration = Duration::from_secs(secs);
            prop_assert_eq!(parse_duration(&show_duration(duration)).unwrap(), duration);
        }

        #[test]
        fn parsers_never_panic(text in "\\PC{0,20}") {
            let _ignored = (parse_duration(&text), parse_size(&text), parse_usd(&text), parse_count(&text));
        }
    }
}
