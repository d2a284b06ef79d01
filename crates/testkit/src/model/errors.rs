//! Refusals: what each fault's answer is called, and its status.

use serde_json::Value;

use super::http::Headers;
use super::script::{Fault, Turn};

/// An answer that is none.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) headers: Headers,
    pub(super) body: Value,
}

/// What a refusal's body is made of.
pub(super) struct Circumstances<'a> {
    pub(super) fault: Fault,
    pub(super) turn: &'a Turn,
    pub(super) model: &'a str,
    /// The Unix time.
    pub(super) now: u64,
    /// The request's number.
    pub(super) number: u64,
}

impl Circumstances<'_> {
    /// When a usage limit ends, and in how many seconds.
    pub(super) fn reset(&self) -> (u64, u64) {
        let reset = self.turn.reset_at(self.now);
        (reset, reset.saturating_sub(self.now))
    }

    /// The script's words, else the usual ones.
    pub(super) fn message(&self, usual: &str) -> String {
        self.turn
            .message
            .clone()
            .unwrap_or_else(|| usual.to_owned())
    }
}

/// The status of a fault that is told by one; none for those that break the exchange itself.
pub(super) fn status(fault: Fault) -> Option<u16> {
    Some(match fault {
        Fault::BadRequest | Fault::Context => 400,
        Fault::BadKey => 401,
        Fault::Forbidden => 403,
        Fault::NotFound => 404,
        Fault::TooLarge => 413,
        Fault::RateLimit | Fault::Quota | Fault::UsageLimit => 429,
        Fault::ServerError => 500,
        Fault::BadGateway => 502,
        Fault::Unavailable => 503,
        Fault::Overloaded => 529,
        Fault::StreamError
        | Fault::Cut
        | Fault::CutEarly
        | Fault::Hang
        | Fault::Stall
        | Fault::Html
        | Fault::Empty
        | Fault::UsageText => return None,
    })
}

/// Seconds since 1970 as `2026-11-15T00:00:00Z`.
pub(super) fn rfc3339(epoch: u64) -> String {
    let (days, second) = (epoch / 86_400, epoch % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z",
        second % 60
    )
}

/// The date of a day counted from 1970, by the well-known arithmetic on eras of 400 years that
/// begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_794_706_358), "2026-11-15T01:32:38Z");
    }
}
