//! Starting a loop, which runs commands: only where the server was told that it may, and only in folders
//! in which this user has started a loop before, or below those that were named.

use std::path::Path;
use std::sync::Arc;

use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::program;
use crate::reply::{RequestFailure, blocking, json_reply};
use crate::start_form::{FIELDS, StartForm};
use crate::start_rules::StartRules;
use crate::state::WebState;

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

/// Starts a loop in the background, as `descartes loop start --detach` does.
pub async fn start(
    State(app): State<Arc<WebState>>,
    form: Result<Form<Vec<(String, String)>>, axum::extract::rejection::FormRejection>,
) -> Response {
    let done = async {
        let rules = rules(&app)?;
        let Form(fields) =
            form.map_err(|error| RequestFailure::new(error.status(), error.body_text(), FIELDS))?;
        let form = StartForm::of(fields)?;
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
