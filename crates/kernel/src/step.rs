//! The policy of a loop.
