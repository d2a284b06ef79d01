//! Starting a loop, which runs commands: only where the server was told that it may, and only in folders
//! in which this user has started a loop before, or below those that were named.

use std::path::Path;
use std::sync::Arc;

use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use descartes_client::Loops;
use serde::Deserialize;
use serde_json::json;

use crate::program;
use crate::reply::{RequestFailure, blocking, json_reply};
use crate::start_like::FormerLoop;
use crate::start_masks::{ChangedSecret, restored};
use crate::start_rules::StartRules;
use crate::state::WebState;

/// Stands in the field of the promise for a loop that has none.
pub const NO_PROMISE: &str = "none";

/// The rules; refused where starting is off.
pub fn rules(app: &WebState) -> Result<StartRules, RequestFailure> {
    app.start.clone().ok_or_else(|| {
        RequestFailure::new(
            StatusCode::FORBIDDEN,
            "this server starts no loops",
            "descartes serve --allow-start",
        )
    })
}

/// What the form sends; what is empty stays as the project's config has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StartForm {
    project: String,
    /// The loop whose settings filled in the form, with their secrets masked; what has no field is as there.
    like: String,
    /// The state file of a loop that has ended makes room.
    force: bool,
    prompt: String,
    name: String,
    agent: String,
    permissions: String,
    promise: String,
    /// One a line.
    gates: String,
    max_iterations: String,
    max_duration: String,
    max_cost: String,
    max_tokens: String,
}

impl StartForm {
    /// The loop that this one is to be like, if any. Nothing of it is taken to another folder.
    fn former(&self, loops: &Loops, folder: &Path) -> Result<Option<FormerLoop>, RequestFailure> {
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
    fn restored(mut self, former: &FormerLoop) -> Result<Self, RequestFailure> {
        let config = &former.config;
        let whole = |typed: &str, known: &str| {
            restored(typed, known).map_err(|ChangedSecret(line)| {
                let message = format!("a line with a masked secret was changed: {line}");
                let hint = "leave the line as it is, or type it with the secret itself";
                RequestFailure::new(StatusCode::UNPROCESSABLE_ENTITY, message, hint)
            })
        };
        self.prompt = whole(&self.prompt, &config.prompt)?;
        self.gates = whole(&self.gates, &config.verify.join("\n"))?;
        self.agent = whole(&self.agent, &config.command_line())?;
        Ok(self)
    }

    /// The command line that a person would have typed. Values stand behind `=`: none is taken for a flag.
    fn words(&self, former: Option<&FormerLoop>) -> Result<Vec<String>, RequestFailure> {
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
        let gates = self.gates.lines().map(str::trim);
        let gates = gates.filter(|gate| !gate.is_empty());
        words.extend(gates.map(|gate| format!("--verify={gate}")));
        words.extend(self.force.then(|| "--force".to_owned()));
        Ok(words)
    }
}

/// Starts a loop in the background, as `descartes loop start --detach` does.
pub async fn start(
    State(app): State<Arc<WebState>>,
    form: Result<Form<StartForm>, axum::extract::rejection::FormRejection>,
) -> Response {
    let done = async {
        let rules = rules(&app)?;
        let Form(form) = form.map_err(|error| {
            let hint = "the fields are listed in docs/web.md";
            RequestFailure::new(error.status(), error.body_text(), hint)
        })?;
        let loops = app.loops.clone();
        let checked = blocking(move || {
            let folder = rules.check(&loops, &form.project)?;
            let former = form.former(&loops, &folder)?;
            let form = match &former {
                Some(former) => form.restored(former)?,
                None => form,
            };
            Ok((form.words(former.as_ref())?, folder))
        });
        let (words, folder) = checked.await?;
        started(&app, &words, &folder).await
    };
    done.await.unwrap_or_else(IntoResponse::into_response)
}

async fn started(
    app: &Arc<WebState>,
    words: &[String],
    folder: &Path,
) -> Result<Response, RequestFailure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let told = program::run(app, &words, Some(folder), 64 << 10).await?;
    let text = String::from_utf8_lossy(&told.output).into_owned();
    let id = text.lines().last().unwrap_or_default().trim().to_owned();
    Ok(json_reply(&json!({
        "loop_id": id,
        "answer": "effective",
        "message": "started in the background",
    })))
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
