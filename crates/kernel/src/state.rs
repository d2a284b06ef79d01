//! The state of a loop.
