//! What is to be done: graphs of tasks, and the files that people keep them in. Read, checked, planned
//! and edited as text; no file is touched here.

pub mod graph;
pub mod lists;
pub mod roadmap;
pub mod scud;
pub mod spec;
