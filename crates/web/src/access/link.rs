//! The one-time code in the printed address.

use std::sync::{Mutex, PoisonError};

use subtle::ConstantTimeEq;

use super::tokens::random_text;
use crate::WebError;

/// A code that lets one browser in, once.
pub struct OneTimeLink {
    code: Mutex<Option<String>>,
}

impl OneTimeLink {
    pub fn new() -> Result<(Self, String), WebError> {
        let code = random_text()?;
        let link = Self {
            code: Mutex::new(Some(code.clone())),
        };
        Ok((link, code))
    }

    /// Whether this is the code; from then on it is none.
    pub fn take(&self, given: &str) -> bool {
        let mut code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        let right = |code: &mut String| bool::from(given.as_bytes().ct_eq(code.as_bytes()));
        code.take_if(right).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_once_and_a_wrong_one_does_not_use_it_up() {
        let (link, code) = OneTimeLink::new().unwrap();
        assert!(!link.take("wrong"));
        assert!(link.take(&code));
        assert!(!link.take(&code));
    }
}
