//! What SCUD's own settings say about gates.

use serde::Deserialize;

/// The gates that a project has set for SCUD: `[swarm.backpressure]` of `.scud/config.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Backpressure {
    /// Commands, run in order.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Whether the first red one ends the round.
    #[serde(default = "yes")]
    pub stop_on_failure: bool,
    /// Time for each command.
    #[serde(default = "five_minutes")]
    pub timeout_secs: u64,
}

fn yes() -> bool {
    true
}

fn five_minutes() -> u64 {
    300
}

#[derive(Deserialize)]
struct Config {
    swarm: Option<Swarm>,
}

#[derive(Deserialize)]
struct Swarm {
    backpressure: Option<Backpressure>,
}

/// Reads the gates from the text of `.scud/config.toml`; all other settings may be missing or odd.
pub fn backpressure(text: &str) -> Result<Option<Backpressure>, toml::de::Error> {
    let config: Config = toml::from_str(text)?;
    let found = config.swarm.and_then(|swarm| swarm.backpressure);
    Ok(found.filter(|found| !found.commands.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_found_whatever_else_stands_there() {
        let text = "[swarm]\nharness = \"rho\"\n[swarm.backpressure]\ncommands = [\"cargo check\", \"cargo test\"]\n";
        let found = backpressure(text).unwrap().unwrap();
        assert_eq!(found.commands, ["cargo check", "cargo test"]);
        assert_eq!((found.stop_on_failure, found.timeout_secs), (true, 300));
        assert_eq!(backpressure("[llm]\nprovider = \"x\"\n").unwrap(), None);
        assert_eq!(backpressure("").unwrap(), None);
        assert_eq!(
            backpressure("[swarm.backpressure]\ncommands = []\n").unwrap(),
            None
        );
        assert!(backpressure("[swarm").is_err());
    }
}
