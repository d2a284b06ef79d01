//! What a person or a program sees of a loop that runs here.

mod children;
pub mod json;
pub mod lines;
pub mod live;
pub mod plain;
pub mod record_messages;
pub mod region;
pub mod run;
pub mod screen;
pub mod signal;
pub mod status_message;
pub mod summary;
pub mod table;
pub mod tasks;
pub mod voice;
pub mod width;

pub use descartes_views::words;
