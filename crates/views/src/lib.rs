//! Loops as people see them: folds of their states and records, the rows that every view shows of
//! them, and pictures of both. The same for every medium.

pub mod picture;
pub mod tone;
pub mod view;
pub mod words;
