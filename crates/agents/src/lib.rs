//! Command line agents: how each is called, what its output says, and whether that holds a promise, a
//! result or a provider's limit. Bytes and values only; no process is started here.

pub mod agent;
mod built_in;
pub mod price;
pub mod promise;
pub mod provider_limit;
pub mod reader;
pub mod run;
