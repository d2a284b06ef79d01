//! The prompt of an iteration.
