//! Scripts that make every CLI do the same, whatever it acts by.

use serde_json::{Value, json};

use super::RealCli;
use super::facts::Acts;

impl RealCli {
    /// A turn in which the agent gives a file of the project this text.
    pub fn writes(self, words: &str, file: &str, text: &str) -> Value {
        match self.facts().acts {
            Acts::Answers => json!({"text": format!("{words}\n\n{file}\n```\n{text}```\n")}),
            Acts::Shell | Acts::ShellUntil(_) => {
                let lines: Vec<String> = text.lines().map(|line| format!("'{line}'")).collect();
                let command = format!("printf '%s\\n' {} > {file}", lines.join(" "));
                json!({"text": words, "tool": {"shell": command}})
            }
        }
    }

    /// A turn that ends a run with these words. With what changes a file, where nothing else could be
    /// seen of the run's last turn.
    pub fn ends(self, words: &str) -> Value {
        match self.facts().acts {
            Acts::Shell | Acts::Answers => json!({"text": words}),
            Acts::ShellUntil(call) => json!({"text": words, "tool": end_call(call)}),
        }
    }

    /// How many requests a run takes that writes a file once and says so.
    pub fn requests_of_a_run(self) -> usize {
        match self.facts().acts {
            Acts::Shell | Acts::ShellUntil(_) => 2,
            Acts::Answers => 1,
        }
    }

    /// True when it calls tools that a script can name.
    pub fn has_tools(self) -> bool {
        self.facts().acts != Acts::Answers
    }

    /// Turns, put into what the CLI acts by, as a lane's script.
    pub fn script(self, turns: &Value) -> Value {
        let turns: Vec<Value> = turns.as_array().cloned().unwrap_or_default();
        let turns = turns.into_iter().map(|turn| self.turn(turn));
        let turns: Vec<Value> = turns.collect();
        match self.facts().acts {
            // Without tools, every request is one for a turn.
            Acts::Answers => json!({"turns": turns, "side": "turn"}),
            Acts::Shell | Acts::ShellUntil(_) => json!({"turns": turns}),
        }
    }

    fn turn(self, mut turn: Value) -> Value {
        let plain = turn["text"].is_string() && turn["tool"].is_null();
        if let Acts::ShellUntil(call) = self.facts().acts
            && plain
            && turn["fault"].is_null()
        {
            turn["tool"] = end_call(call);
        }
        turn
    }
}

fn end_call(call: &str) -> Value {
    serde_json::from_str(call).expect("the call that ends a run")
}
