//! `descartes watch` and `descartes loop watch`.

use std::io;

use descartes_client::{ClientError, Query};
use descartes_store::catalog::FindError;

use super::loops::which;
use crate::args::loops::WatchArgs;
use crate::env::Stream;
use crate::error::CliError;
use crate::settings::command_context::CommandContext;
use crate::style::Paint;
use crate::watch::{self, Charset, Depth, MouseUse, Options, Theme};

/// The pager where PAGER names none.
const PAGER: &str = "less -R";

/// Which loop is looked at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The newest of all.
    Any,
    /// The one of this directory, where there is one.
    Here,
}

pub fn run(args: &WatchArgs, first: First, ctx: &CommandContext) -> Result<i32, CliError> {
    let environment = &ctx.environment;
    let on_terminal = [Stream::of(&io::stdin()), Stream::of(&io::stdout())]
        .iter()
        .all(|stream| *stream == Stream::Terminal);
    if !on_terminal || environment.is_dumb() {
        return Err(CliError::usage(
            "watch needs a terminal that can move its cursor",
            "from a script: descartes loop list --all --json, descartes loop status --json",
        ));
    }
    let loops = which::loops(ctx, &ctx.here)?;
    let chosen = match (&args.which.id, &args.which.state_file, first) {
        (None, None, First::Any) => None,
        (None, None, First::Here) => match loops.find(&Query::Here(ctx.here.clone())) {
            Ok(found) => Some(found),
            Err(ClientError::NoneHere(_) | ClientError::Find(FindError::Ambiguous { .. })) => None,
            Err(error) => return Err(error.into()),
        },
        _ => Some(which::find(&args.which, ctx)?),
    };
    let depth = match ctx.printer.out {
        Paint::Plain => Depth::Plain,
        Paint::Colour => Depth::of(environment.text("TERM"), environment.text("COLORTERM")),
    };
    let charset = match environment.is_utf8() {
        true => Charset::Utf8,
        false => Charset::Ascii,
    };
    let pager = environment.text("PAGER").unwrap_or(PAGER);
    watch::run(
        loops,
        Options {
            chosen: chosen.map(|found| found.id().to_owned()),
            theme: Theme::new(depth, charset),
            mouse: match args.no_mouse {
                true => MouseUse::Off,
                false => MouseUse::On,
            },
            pager: shell_words::split(pager).unwrap_or_default(),
            home: ctx.paths.home.clone(),
        },
    )
}
