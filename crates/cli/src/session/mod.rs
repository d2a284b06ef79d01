//! A loop in this process: opened, shown and steered by signals; or handed to a process in
//! the background.

pub mod background;
mod end;
pub mod engines;
pub mod foreground;
pub mod order;
mod permissions;
pub mod program;
pub mod signals;

use crate::args::start::ShowArgs;
use crate::error::CliError;
use crate::settings::command_context::CommandContext;
use foreground::Format;
use order::Order;

/// Carries an order out: here, or by a process in the background.
pub fn run(order: Order, show: ShowArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let format = Format::asked(show);
    match show.detach {
        true => background::start(&order, format, ctx),
        false => foreground::run(order, format, ctx),
    }
}
