//! Pages, made here and sent whole; what changes on them is sent again.

mod controls;
mod detail;
mod gates;
mod layout;
mod list;
pub mod loop_facts;
mod one;
pub mod parts;
mod start;
mod tasks;
mod text;
mod told;

pub use detail::{history, iteration, output};
pub use layout::{USED_LINK, failed, icon, script, sign_in, style};
pub use list::{list, list_live};
pub use one::{one, one_live};
pub use start::start_form;
pub use told::{diff, report};
