//! The verbs of descartes as tools for agents and editors: an MCP server over standard input and
//! output. A view like any other: it looks through `client`, and asks the command line, as a process of
//! its own, for what only that can do. Its async runtime lives in here and ends with the server.

mod answer;
mod calls;
mod input;
mod look;
mod program;
mod progress;
mod server;
mod start_rules;
mod tools;
mod transport;
mod wait;

pub use server::{McpError, McpOptions, StartCheck, serve};
pub use start_rules::{AgentFlags, Nesting};
