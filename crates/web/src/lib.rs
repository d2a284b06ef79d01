//! The loops of descartes in a browser: pages made here, an API with the shapes of `--json`, events as
//! server-sent events, and metrics. A view like any other: it reads what `client` gives, and steers
//! by its control socket. Its async runtime lives in here.

mod access;
mod api;
mod bodies;
mod door;
mod error;
mod guests;
mod live;
mod pages;
mod program;
mod reply;
mod routes;
mod server;
mod signed_out;
mod sse;
mod stall;
mod start;
mod start_form;
mod start_gates;
mod start_like;
mod start_masks;
mod start_rules;
mod state;
mod steer;
mod tls;

pub use error::WebError;
pub use server::{Server, bind};
pub use state::{ConnectionEnds, RequesterCheck, ServeOptions, SteeringCheck, TlsFiles};
