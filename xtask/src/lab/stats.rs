//! Of many numbers, the few that are told.

/// The value below which this share of them lies; NaN of none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

/// The one in the middle; NaN of none.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The largest; 0 of none.
pub fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Nanoseconds as milliseconds.
pub fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let seen = [5.0, 1.0, 3.0, 2.0, 4.0];
        assert_eq!(median(&seen), 3.0);
        assert_eq!(quantile(&seen, 1.0), 5.0);
        assert_eq!(max(&seen), 5.0);
        assert!(median(&[]).is_nan());
    }
}
