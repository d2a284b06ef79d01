//! A loop in the foreground: the host on this thread, its view on another.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use descartes_client::logs::Thoughts;
use descartes_client::{Known, Loops, Output, Query};
use descartes_core::host::{Host, HostEnd, HostError, HostSettings, Resumed};
use descartes_kernel::state::LoopState;
use descartes_proc::Signals;
use descartes_store::debug_log;
use descartes_store::layout::{PROJECT_FOLDER, STATE_FILE, state_file_path};

use super::end;
use super::order::Order;
use super::permissions;
use super::signals::{Patience, Switchboard};
use crate::args::start::ShowArgs;
use crate::env::Stream;
use crate::error::CliError;
use crate::notify::Listeners;
use crate::printer::Out;
use crate::settings::command_context::CommandContext;
use crate::view::run::{Show, View};
use crate::view::signal::Signal;
use crate::view::summary::{self, Named};
use crate::view::{json::JsonRecords, live::Live, plain::Plain};

/// After SIGTERM or a closed terminal, a view that is stuck is not waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Words for people, with the agent's thoughts or without.
    Human(Thoughts),
    /// Words for people who are told what to type next by somebody else.
    Story,
    /// Records for programs.
    Json,
}

impl Format {
    /// What happens and nothing to type next, or JSON.
    pub fn of_story(json: bool) -> Self {
        match json {
            true => Self::Json,
            false => Self::Story,
        }
    }

    /// As the flags `--json` and `--show-thinking` ask for.
    pub fn asked(show: ShowArgs) -> Self {
        match (show.json, show.show_thinking) {
            (true, _) => Self::Json,
            (false, true) => Self::Human(Thoughts::Shown),
            (false, false) => Self::Human(Thoughts::Hidden),
        }
    }
}

/// Carries out an order here, to the loop's end.
pub fn run(order: Order, format: Format, ctx: &CommandContext) -> Result<i32, CliError> {
    let settings = order.host_settings(ctx)?;
    let loops = loops(&settings);
    let listeners = order.listeners(ctx)?;
    if let Some(words) = order.waits_for_guard(ctx) {
        ctx.printer.talk(words);
    }
    let (opened, board, _signals) = open(order, settings, format, ctx)?;
    let mut host = match end::going_on(opened) {
        Ok(host) => *host,
        Err(over) => return Ok(over.tell(&ctx.printer)),
    };
    for notice in host.notices() {
        ctx.printer.note(notice);
    }
    for trouble in listeners.troubles() {
        ctx.printer.warning(&trouble);
    }
    listeners.attach(&mut host);
    let named = named(&host, ctx);
    let (ended, state) = watched(host, &loops, &board, &listeners, format, ctx)?;
    if let Some(state) = state.filter(|_| format != Format::Json) {
        let next = match format {
            Format::Human(_) => summary::next(&ended, &state, &named),
            _ => Vec::new(),
        };
        let lines = summary::lines(&ended, &state, &next, ctx.printer.out);
        ctx.printer.line(&format!("\n{}", lines.join("\n")));
    }
    Ok(ended.exit_code())
}

/// Opens the loop. Where its agent would be denied its tools, the person at the terminal is asked once.
fn open(
    mut order: Order,
    settings: HostSettings,
    format: Format,
    ctx: &CommandContext,
) -> Result<(Resumed, Switchboard, Signals), CliError> {
    let board = Switchboard::default();
    let signals = board.receive()?;
    let mut told = Vec::new();
    let denied = match board.open(order.clone(), settings, &mut told) {
        Err(CliError::Host(HostError::Denied { denied, .. }))
            if matches!(format, Format::Human(_)) =>
        {
            denied
        }
        opened => {
            let opened = opened?;
            told.iter().for_each(|notice| ctx.printer.note(notice));
            return Ok((opened, board, signals));
        }
    };
    // Ctrl-C at the question ends us as anywhere else.
    let given_back = signals.give_back();
    given_back.map_err(|error| CliError::system("give signals back", error))?;
    if let Some(permissions) = permissions::ask(&denied, &ctx.printer) {
        order.permit(permissions);
    }
    let board = Switchboard::default();
    let signals = board.receive()?;
    let settings = order.host_settings(ctx)?;
    told.clear();
    let opened = board.open(order, settings, &mut told)?;
    told.iter().for_each(|notice| ctx.printer.note(notice));
    Ok((opened, board, signals))
}

/// What a view sees of loops: it knows the same agents as the host.
fn loops(settings: &HostSettings) -> (Loops, Known) {
    let known = Known {
        profiles: Arc::clone(&settings.profiles),
        prices: Arc::clone(&settings.prices),
    };
    (Loops::at(settings.root.clone(), known.clone()), known)
}

/// Runs the loop with a view beside it. The view can be slow, stuck or gone: the loop is not.
fn watched(
    host: Host,
    (loops, known): &(Loops, Known),
    board: &Switchboard,
    listeners: &Listeners,
    format: Format,
    ctx: &CommandContext,
) -> Result<(HostEnd, Option<LoopState>), CliError> {
    let signal =
        Signal::new().map_err(|error| CliError::system("make an event counter", error.into()))?;
    let wanted = match format {
        Format::Human(thoughts) => (Output::Newest, thoughts),
        Format::Story => (Output::Newest, Thoughts::Hidden),
        Format::Json => (Output::No, Thoughts::Hidden),
    };
    let handle = loops.find(&Query::Named(host.loop_id().to_owned()))?;
    let view = view(format, listeners, &signal, ctx);
    let show = Show::new(view, &handle, wanted, known.clone(), Arc::clone(&signal))?;
    board.connect(host.remote(), Some(Arc::clone(&signal)));
    let (done, shown) = channel();
    let spawned = show.spawn(done.clone());
    spawned.map_err(|error| CliError::system("start a thread", error))?;
    let ended = host.run();
    signal.finish();
    let patience = board.over(done);
    let state = last_words(&shown, patience);
    Ok((ended?, state))
}

/// Waits for the view to show the rest, unless a person or the system is in a hurry.
fn last_words(shown: &Receiver<Option<LoopState>>, patience: Patience) -> Option<LoopState> {
    match patience {
        Patience::Long => shown.recv().ok().flatten(),
        Patience::Short => shown.recv_timeout(LAST_WORDS).unwrap_or_default(),
    }
}

fn view(
    format: Format,
    listeners: &Listeners,
    signal: &Arc<Signal>,
    ctx: &CommandContext,
) -> Box<dyn View> {
    let out = Stream::of(&io::stdout());
    let environment = &ctx.environment;
    // Lines of a log in between would tear a region that is drawn anew.
    let logs_here = environment.raw(debug_log::VARIABLE).is_some()
        && Stream::of(&io::stderr()) == Stream::Terminal;
    match (format, out) {
        (Format::Json, _) => Box::new(JsonRecords::new(Out)),
        (_, Stream::Terminal) if !environment.is_dumb() && !logs_here => Box::new(Live::new(
            Out,
            Arc::clone(signal),
            ctx.printer.out,
            environment.is_utf8(),
            listeners.bell,
        )),
        (_, Stream::Terminal | Stream::Pipe) => Box::new(Plain::new(
            (Out, ctx.printer.out),
            (io::stderr(), ctx.printer.err),
        )),
    }
}

/// How the commands that are suggested name this loop.
fn named(host: &Host, ctx: &CommandContext) -> Named {
    let default = ctx.here.join(PROJECT_FOLDER).join(STATE_FILE);
    let is_here = |path: &Path| state_file_path(path).is_ok_and(|path| path == host.state_file());
    if is_here(&default) {
        Named::Here
    } else {
        Named::As(host.name().to_owned())
    }
}
