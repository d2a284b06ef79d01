//! The desktop window of descartes: every loop of this machine at a glance, one of them in
//! full, and the ways to steer it.
//!
//! [`model`] is all that the window knows, [`update`] the pure function that changes it and
//! says what is to be done ([`message::Effect`]); [`view`] draws it. [`feed`] reads journals and
//! logs, sends commands and starts loops, on threads of its own; [`app`] joins the three.
//! Closing the window ends nothing.

pub mod app;
pub mod feed;
pub mod font;
pub mod launch;
pub mod message;
pub mod model;
pub mod style;
pub mod theme;
pub mod update;
pub mod view;
