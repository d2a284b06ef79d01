//! A scripted model server: it answers real agent CLIs from a script, so that they can be tested
//! without a provider, a key or a network.
//!
//! It listens on loopback alone and speaks, streaming and not:
//!
//! | API | path below a lane |
//! |---|---|
//! | Anthropic Messages | `POST /v1/messages`, `/v1/messages/count_tokens` |
//! | OpenAI Responses | `POST /v1/responses` |
//! | OpenAI Chat Completions | `POST /v1/chat/completions` |
//! | Gemini | `POST /v1beta/models/M:generateContent`, `:streamGenerateContent`, `:countTokens` |
//! | model lists | `GET …/models` |
//!
//! Every test has a lane of its own, `/s/LANE/…`, with its own script and log, so tests can share a
//! server. Over HTTP a lane is scripted by `PUT /__script/LANE` and read by `GET /__log/LANE` and
//! `GET /__last/LANE` (the newest request's body).
//!
//! # Scripts
//!
//! A list of turns, or `{"turns": […], "exhausted": "last"|"stop"|"error", "side": "canned"|"turn"}`.
//! Each request that offers a shell tool takes the next turn; others (titles, routing, summaries)
//! get a canned answer and are logged as `side`, unless `side` is `turn`. After the last turn the
//! last one is given again without its tools, or the server says so, or fails.
//!
//! ```json
//! [{"text": "I will write it.", "tool": {"shell": "echo hi > f"}, "usage": {"input": 900, "output": 40}},
//!  {"fault": "429", "retry_after": 1, "repeat": 2},
//!  {"thinking": "Is it there?", "text": "Done. <promise>COMPLETE</promise>"}]
//! ```
//!
//! The keys of a turn are the fields of [`Turn`], its faults are those of [`Fault`]. `{"shell": …}`
//! is put onto whichever shell tool the CLI offers, with the arguments that its schema asks for.

mod anthropic;
mod chat;
mod errors;
mod exchange;
mod gemini;
mod http;
mod lane;
mod reply;
mod responses;
mod route;
mod script;
mod server;
mod tools;

pub use lane::{LogEntry, UserText};
pub use script::{Exhausted, Fault, Script, Side, Tool, Tools, Turn, Usage};
pub use server::ModelServer;
