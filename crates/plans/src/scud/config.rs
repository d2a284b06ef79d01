//! What SCUD's own settings say about gates.

use serde::Deserialize;
use serde::de::Error as _;

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

/// Reads the gates from the text of `.scud/config.toml`; all other settings may be missing or odd.
pub fn backpressure(text: &str) -> Result<Option<Backpressure>, toml::de::Error> {
    let config: toml::Table = toml::from_str(text)?;
    let Some(swarm) = table(&config, "swarm")? else {
        return Ok(None);
    };
    let Some(found) = table(swarm, "backpressure")? else {
        return Ok(None);
    };
    let found: Backpressure = found.clone().try_into()?;
    Ok((!found.commands.is_empty()).then_some(found))
}

/// A table within a table. Anything else of that name is an error: it may be meant to hold gates.
fn table<'a>(
    within: &'a toml::Table,
    name: &str,
) -> Result<Option<&'a toml::Table>, toml::de::Error> {
    match within.get(name) {
        None => Ok(None),
        Some(toml::Value::Table(table)) => Ok(Some(table)),
        Some(_) => Err(toml::de::Error::custom(format!("`{name}` is not a table"))),
    }
}

#[derive(Deserialize)]
struct AgentSection {
    prompt: Option<AgentPrompt>,
}

#[derive(Deserialize)]
struct AgentPrompt {
    template: Option<String>,
}

/// What a file of `.scud/agents/` says about the role of an agent: the section of its prompt that
/// is called so, else all of it. Lines that ask the agent to set its own status are left out: an
/// agent's word is a claim, and its copy of the task file is not the true one.
pub fn role(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let agent: AgentSection = table.try_into().ok()?;
    let template = agent.prompt?.template?;
    let lines: Vec<&str> = template.lines().collect();
    let is_heading = |line: &&str| line.starts_with('#');
    let role = lines
        .iter()
        .position(|line| is_heading(line) && line.to_lowercase().contains("role"));
    let lines = match role {
        Some(at) => {
            let rest = &lines[at + 1..];
            let end = rest.iter().position(is_heading).unwrap_or(rest.len());
            &rest[..end]
        }
        None => &lines[..],
    };
    let kept: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| !line.contains("scud set-status"))
        .collect();
    let kept = kept.join("\n").trim().to_owned();
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_of_an_agent_is_told_without_orders_to_set_its_status() {
        let text = "[model]\nmodel = \"x\"\n[prompt]\ntemplate = \"\"\"\nTask {task.id}\n## Details\nd\n\
            ## Your Role\nBe careful.\n\nWhen complete: scud set-status {task.id} done\n\"\"\"\n";
        assert_eq!(role(text).as_deref(), Some("Be careful."));
        let plain = "[prompt]\ntemplate = \"Test it all.\"\n";
        assert_eq!(role(plain).as_deref(), Some("Test it all."));
        assert_eq!(role("[agent]\nname = \"x\"\n"), None);
        assert_eq!(role("nonsense"), None);
    }

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
