//! The engine's protocol: what [`descartes_bridge::Engine`] promises, in requests of NATS JetStream.
//!
//! The API of JetStream is JSON in requests to `$JS.API.…`. It is used as it is: which subjects a key
//! must be allowed is then plain to see, and every error has its number.

pub mod api;
pub mod connection;
pub mod follow;
pub mod objects;
pub mod offers;
pub mod streams;
pub mod tls;
pub mod values;
