//! Loops as people see them: folds of their states and records, and pictures of both. The same for every
//! medium.

pub mod picture;
pub mod view;
