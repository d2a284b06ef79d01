//! A loop in this process: opened, shown and steered by signals; or handed to a process in
//! the background.

pub mod background;
mod end;
pub mod foreground;
pub mod order;
mod permissions;
pub mod program;
pub mod signals;
