//! The scheduler of task loops.
