//! What the form sends that starts a loop, and the command line that it stands for.

use std::path::Path;

use axum::http::StatusCode;
use descartes_client::Loops;
use serde::de::Error as _;
use serde::de::value::{Error as FieldError, MapDeserializer};
use serde::{Deserialize, Deserializer};

use crate::reply::RequestFailure;
use crate::start_gates::{TypedGates, UnclearGates};
use crate::start_like::FormerLoop;
use crate::start_masks::{ChangedSecret, restored};

/// Stands in the field of the promise for a loop that has none.
pub const NO_PROMISE: &str = "none";
/// The field that stands in a form once for each gate.
pub const EACH_GATE: &str = "gate";
/// Where a program finds what it may send.
pub const FIELDS: &str = "the fields are listed in docs/web.md";

/// What the form sends; what is empty stays as the project's config has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StartForm {
    pub project: String,
    /// The loop whose settings filled in the form, with their secrets masked; what has no field is as there.
    like: String,
    /// The state file of a loop that has ended makes room.
    #[serde(deserialize_with = "yes_or_no")]
    force: bool,
    prompt: String,
    name: String,
    agent: String,
    permissions: String,
    promise: String,
    /// One a line.
    gates: String,
    /// One each, of any number of lines.
    #[serde(skip)]
    each_gate: Vec<String>,
    max_iterations: String,
    max_duration: String,
    max_cost: String,
    max_tokens: String,
}

fn yes_or_no<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = |_| D::Error::custom(format!("`{text}` is neither true nor false"));
    text.parse().map_err(wrong)
}

impl StartForm {
    /// The form of these fields.
    pub fn of(fields: Vec<(String, String)>) -> Result<Self, RequestFailure> {
        // Without its script a browser sends line ends of its own, which no shell knows.
        let plain = |(name, value): (String, String)| (name, value.replace("\r\n", "\n"));
        let (gates, others): (Vec<_>, Vec<_>) = fields
            .into_iter()
            .map(plain)
            .partition(|(name, _)| name == EACH_GATE);
        let read = Self::deserialize(MapDeserializer::new(others.into_iter()));
        let mut form = read.map_err(|error: FieldError| {
            let (status, hint) = (StatusCode::UNPROCESSABLE_ENTITY, FIELDS);
            RequestFailure::new(status, error.to_string(), hint)
        })?;
        form.each_gate = gates.into_iter().map(|(_, gate)| gate).collect();
        Ok(form)
    }

    /// The gates that are meant.
    fn whole_gates(&self, former: Option<&FormerLoop>) -> Result<Vec<String>, RequestFailure> {
        let typed = TypedGates {
            each: self.each_gate.clone(),
            lines: self.gates.clone(),
        };
        let known = former.map_or(&[][..], |former| &former.config.verify);
        typed.whole(known).map_err(|unclear| match unclear {
            UnclearGates::Secret(changed) => secret_changed(changed),
            UnclearGates::Piece(line) => RequestFailure::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("this is one line of a gate of several lines: {line}"),
                "load the form again; programs send such a gate whole, in a field `gate` of its own",
            ),
        })
    }

    /// The loop that this one is to be like, if any. Nothing of it is taken to another folder.
    pub fn former(
        &self,
        loops: &Loops,
        folder: &Path,
    ) -> Result<Option<FormerLoop>, RequestFailure> {
        let refused =
            |status, message: String, hint: &str| Err(RequestFailure::new(status, message, hint));
        let former = match self.like.as_str() {
            "" => None,
            like => Some(FormerLoop::find(loops, like)?),
        };
        match former {
            Some(former) if !former.is_of(folder) => refused(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!(
                    "these are the settings of a loop in {}, and not of {}",
                    former.handle.meta().working_dir.display(),
                    folder.display()
                ),
                "open /start?project=FOLDER for the settings of the other folder, or leave out `like`",
            ),
            former if !self.force => Ok(former),
            Some(former) if former.has_ended(loops) => Ok(Some(former)),
            _ => refused(
                StatusCode::CONFLICT,
                "only a loop that has ended makes room for another".to_owned(),
                "resume or cancel the one that is there",
            ),
        }
    }

    /// The same with the secrets that were masked in it.
    pub fn restored(mut self, former: &FormerLoop) -> Result<Self, RequestFailure> {
        let config = &former.config;
        let whole = |typed: &str, known: &str| restored(typed, known).map_err(secret_changed);
        self.prompt = whole(&self.prompt, &config.prompt)?;
        self.agent = whole(&self.agent, &config.command_line())?;
        Ok(self)
    }

    /// The command line that a person would have typed. Values stand behind `=`: none is taken for a flag.
    pub fn words(&self, former: Option<&FormerLoop>) -> Result<Vec<String>, RequestFailure> {
        let pairs = [
            ("--prompt", &self.prompt),
            ("--name", &self.name),
            ("--permissions", &self.permissions),
            ("--completion-promise", &self.promise),
            ("--max-iterations", &self.max_iterations),
            ("--max-duration", &self.max_duration),
            ("--max-cost", &self.max_cost),
            ("--max-tokens", &self.max_tokens),
        ];
        let mut words: Vec<String> = ["--color", "never", "loop", "start", "--detach"]
            .map(str::to_owned)
            .to_vec();
        let agent = self.agent.trim();
        let same = former.filter(|former| former.config.command_line() == agent);
        match same.is_some() || agent.contains([' ', '/']) {
            _ if agent.is_empty() => {}
            true => words.push(format!("--command={agent}")),
            false => words.push(format!("--backend={agent}")),
        }
        words.extend(
            former
                .into_iter()
                .flat_map(|former| former.flags(same.is_some())),
        );
        if self.prompt.trim().is_empty() {
            let config = former.map(|former| &former.config);
            match config.and_then(|config| config.prompt_file.as_ref()) {
                Some(file) => words.push(format!("--prompt-file={}", file.display())),
                None if config.is_some_and(|config| !config.wants_prompt()) => {}
                None => {
                    return Err(RequestFailure::new(
                        StatusCode::UNPROCESSABLE_ENTITY,
                        "the prompt is empty",
                        "say what is to be done",
                    ));
                }
            }
        }
        for (flag, value) in pairs {
            match value.trim() {
                "" => {}
                NO_PROMISE if flag == "--completion-promise" => {
                    words.push("--no-promise".to_owned())
                }
                value => words.push(format!("{flag}={value}")),
            }
        }
        let gates = self.whole_gates(former)?;
        words.extend(gates.iter().map(|gate| format!("--verify={gate}")));
        words.extend(self.force.then(|| "--force".to_owned()));
        Ok(words)
    }
}

fn secret_changed(ChangedSecret(line): ChangedSecret) -> RequestFailure {
    RequestFailure::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        format!("a line with a masked secret was changed: {line}"),
        "leave the line as it is, or type it with the secret itself",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_taken_for_a_flag() {
        let form = StartForm {
            prompt: "--verify=true".into(),
            agent: "claude".into(),
            gates: "cargo test\n\n --flag \n".into(),
            max_iterations: " 5 ".into(),
            ..StartForm::default()
        };
        assert_eq!(
            form.words(None).unwrap()[3..],
            [
                "start",
                "--detach",
                "--backend=claude",
                "--prompt=--verify=true",
                "--max-iterations=5",
                "--verify=cargo test",
                "--verify=--flag",
            ]
        );
    }
}
