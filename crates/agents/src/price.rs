//! Prices for agents that tell tokens only. The table is the user's; it is shipped empty,
//! and sums made with it are marked as estimates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::run::{Cost, Tokens};

/// Dollars for a million tokens of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// Read by the model.
    pub input: f64,
    /// Written by the model.
    pub output: f64,
    /// Read from a cache; where absent, as input.
    pub cache_read: Option<f64>,
    /// Written to a cache; where absent, as input.
    pub cache_write: Option<f64>,
}

/// Prices by model; a name that ends in `*` stands for every model that begins so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// The price of a model: its own, else that of the longest beginning.
    pub fn of(&self, model: &str) -> Option<&Price> {
        let begins = |key: &str| {
            key.strip_suffix('*')
                .is_some_and(|head| model.starts_with(head))
        };
        self.0.get(model).or_else(|| {
            self.0
                .iter()
                .filter(|(key, _)| begins(key))
                .max_by_key(|(key, _)| key.len())
                .map(|(_, p)| p)
        })
    }

    /// What these tokens of this model come to; unknown where the table does not know it.
    pub fn estimate(&self, model: &str, tokens: &Tokens) -> Option<Cost> {
        tokens.total()?;
        let price = self.of(model)?;
        let part = |count: Option<u64>, dollars: f64| count.unwrap_or(0) as f64 * dollars;
        let micros = part(tokens.input, price.input)
            + part(tokens.output, price.output)
            + part(tokens.cache_read, price.cache_read.unwrap_or(price.input))
            + part(tokens.cache_write, price.cache_write.unwrap_or(price.input));
        Some(Cost {
            micros: micros.round().max(0.0) as u64,
            estimated: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_uses_the_closest_price_and_says_that_it_is_one() {
        let text = r#"{"gpt-*": {"input": 1.0, "output": 10.0}, "gpt-5": {"input": 2.0, "output": 8.0, "cache_read": 0.5}}"#;
        let prices: Prices = serde_json::from_str(text).unwrap();
        let tokens = Tokens {
            input: Some(1_000_000),
            output: Some(500_000),
            cache_read: Some(2_000_000),
            cache_write: None,
        };
        let cost = prices.estimate("gpt-5", &tokens).unwrap();
        assert_eq!(
            cost,
            Cost {
                micros: 7_000_000,
                estimated: true
            }
        );
        assert_eq!(prices.estimate("gpt-4", &tokens).unwrap().micros, 8_000_000);
        assert_eq!(prices.estimate("other", &tokens), None);
        assert_eq!(
            prices.estimate("gpt-5", &Tokens::default()),
            None,
            "unknown stays unknown"
        );
    }
}
