//! A loop in the foreground: the host on this thread, its view on another.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use descartes_core::host::{Host, HostEnd};
use descartes_kernel::agent::Profiles;
use descartes_kernel::state::LoopState;
use descartes_store::layout::{PROJECT_FOLDER, STATE_FILE, canonical};

use super::end;
use super::order::{Opened, Order};
use super::signals::{Patience, Switchboard};
use crate::env::Stream;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::surroundings::Surroundings;
use crate::view::feed::{Feed, Want};
use crate::view::run::{View, spawn};
use crate::view::summary::{self, Named};
use crate::view::voice::Voices;
use crate::view::watch::Signal;
use crate::view::{json::Json, live::Live, plain::Plain};

/// After SIGTERM or a closed terminal, a view that is stuck is not waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Words for people.
    Human,
    /// Records for programs.
    Json,
}

/// Carries out an order here, to the loop's end.
pub fn run(
    order: Order,
    format: Format,
    around: &Surroundings,
    printer: &Printer,
) -> Result<i32, CliError> {
    let settings = order.host_settings(around)?;
    let profiles = Arc::clone(&settings.profiles);
    let board = Switchboard::default();
    let _signals = board.receive()?;
    let host = match order.open(settings)? {
        Opened::Held(host) => *host,
        Opened::Done(reason) => return Ok(end::done(&reason, printer)),
        Opened::AtLimit(reason) => return Ok(end::at_limit(&reason, printer)),
    };
    for notice in host.notices() {
        printer.note(notice);
    }
    let named = named(&host, around);
    let (ended, state) = watched(host, &board, format, &profiles, around, printer)?;
    if let (Format::Human, Some(state)) = (format, state) {
        for line in summary::lines(&ended, &state, &named, printer.out) {
            printer.line(&line);
        }
    }
    Ok(ended.exit_code())
}

/// Runs the loop with a view beside it. The view can be slow, stuck or gone: the loop is not.
fn watched(
    mut host: Host,
    board: &Switchboard,
    format: Format,
    profiles: &Profiles,
    around: &Surroundings,
    printer: &Printer,
) -> Result<(HostEnd, Option<LoopState>), CliError> {
    let signal =
        Signal::new().map_err(|error| CliError::system("make an event counter", error.into()))?;
    let want = match format {
        Format::Human => Want::Everything(Voices::of(&host.state().config, profiles, printer.out)),
        Format::Json => Want::Records,
    };
    let feed = Feed::new(host.dir(), host.state().clone(), want)?;
    let listening = Arc::clone(&signal);
    host.listen(Box::new(move |_| {
        listening.wake();
        true
    }));
    board.connect(host.remote(), Some(Arc::clone(&signal)));
    let view = view(format, &signal, around, printer);
    let (done, shown) = channel();
    board_thread(spawn(view, feed, Arc::clone(&signal), done.clone()))?;
    let ended = host.run();
    signal.finish();
    let patience = board.over(done);
    let state = last_words(&shown, patience);
    Ok((ended?, state))
}

fn board_thread(spawned: io::Result<()>) -> Result<(), CliError> {
    spawned.map_err(|error| CliError::system("start a thread", error))
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
    signal: &Arc<Signal>,
    around: &Surroundings,
    printer: &Printer,
) -> Box<dyn View> {
    let (out, err) = (Stream::of(&io::stdout()), Stream::of(&io::stderr()));
    let environment = &around.environment;
    match (format, out) {
        (Format::Json, _) => Box::new(Json::new(io::stdout())),
        (Format::Human, Stream::Terminal) if !environment.is_dumb() => Box::new(Live::new(
            io::stdout(),
            Arc::clone(signal),
            printer.out,
            environment.is_utf8(),
        )),
        (Format::Human, _) => Box::new(Plain::new(io::stdout(), io::stderr(), printer.out, err)),
    }
}

/// How the commands that are suggested name this loop.
fn named(host: &Host, around: &Surroundings) -> Named {
    let default = around.here.join(PROJECT_FOLDER).join(STATE_FILE);
    let is_here = |path: &Path| canonical(path).is_ok_and(|path| path == host.state_file());
    if is_here(&default) {
        Named::Here
    } else {
        Named::As(host.name().to_owned())
    }
}
