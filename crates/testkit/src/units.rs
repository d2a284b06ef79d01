//! Durations and sizes as scripts write them.

use std::time::Duration;

/// Reads `250us`, `10ms`, `1.5s`, `2m`, `1h`; a bare number is seconds.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let scale = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * scale).ok()
}

/// Reads `100`, `64K`, `512M`, `10G` (powers of 1024) and `10KB`, `5MB`, `1GB` (powers of 1000).
pub fn size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text.get(..digits)?.parse().ok()?;
    let scale = match text.get(digits..)? {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(scale)
}

fn split_unit(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_every_unit_and_refuse_the_rest() {
        assert_eq!(duration("250us"), Some(Duration::from_micros(250)));
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        assert_eq!(duration("3"), Some(Duration::from_secs(3)));
        assert_eq!(duration("3 parsecs"), None);
        assert_eq!(duration(""), None);
    }

    #[test]
    fn sizes_keep_binary_and_decimal_apart() {
        assert_eq!(size("64K"), Some(65_536));
        assert_eq!(size("10GB"), Some(10_000_000_000));
        assert_eq!(size("7"), Some(7));
        assert_eq!(size("7Q"), None);
        assert_eq!(size("K"), None);
    }
}
