//! The only way a loop's state changes.
