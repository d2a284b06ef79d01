//! `descartes watch`: all loops of this user on one screen. It reads journals and logs and
//! sends commands through the client, as every view does; loops do not notice it.

mod app;
mod detail;
mod draw;
mod input;
mod keys;
mod list;
mod pager;
mod reader;
mod send;
mod terminal;
mod theme;

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use descartes_client::Loops;
use descartes_proc::{HostSignal, Signals};
use descartes_store::watching;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use self::app::{Act, App, Places};
use self::draw::Context;
use self::input::{Key, Keys};
use self::pager::Paged;
use self::reader::{Reader, ReaderEvent};
pub use self::terminal::MouseUse;
use self::terminal::Screen;
pub use self::theme::{Charset, Depth, Theme};
use crate::error::CliError;
use crate::style::{Cell, Tone};
use crate::view::signal::Signal;

/// No more than twenty pictures a second.
const FRAME: Duration = Duration::from_millis(50);
/// What follows an ESC within this belongs to it.
const SEQUENCE: Duration = Duration::from_millis(30);
/// The exit code of a program whose terminal went away.
const HUNG_UP: i32 = 129;
/// How long a message stands.
const MESSAGE: Duration = Duration::from_secs(8);

/// How it looks and where it begins.
#[derive(Clone, Debug)]
pub struct Options {
    /// The loop that is looked at first.
    pub chosen: Option<String>,
    /// Colours and marks.
    pub theme: Theme,
    /// Whether the mouse is listened to.
    pub mouse: MouseUse,
    /// The command that shows long texts.
    pub pager: Vec<String>,
    /// The person's own folder.
    pub home: Option<PathBuf>,
}

/// What signals have to say.
#[derive(Debug)]
struct Calls {
    screen: Arc<Signal>,
    /// The exit code, once there is one.
    end: AtomicI32,
    resized: AtomicBool,
    /// A pager has the terminal: Ctrl-C is meant for it.
    away: AtomicBool,
}

impl Calls {
    fn receive(self: &Arc<Self>) -> Result<Signals, CliError> {
        let calls = Arc::clone(self);
        let wanted = [
            HostSignal::Interrupt,
            HostSignal::Terminate,
            HostSignal::Hangup,
            HostSignal::Resize,
            HostSignal::Continue,
        ];
        let received = Signals::receive(&wanted, Box::new(move |signal| calls.take(signal)));
        received.map_err(|error| CliError::system("receive signals", error))
    }

    fn take(&self, signal: HostSignal) {
        let code = match signal {
            HostSignal::Interrupt if self.away.load(Ordering::Relaxed) => return,
            HostSignal::Interrupt => 130,
            HostSignal::Terminate => 143,
            HostSignal::Hangup => HUNG_UP,
            HostSignal::Resize | HostSignal::Continue | HostSignal::Stop => {
                self.resized.store(true, Ordering::Relaxed);
                return self.screen.wake();
            }
        };
        self.end.store(code, Ordering::Relaxed);
        self.screen.wake();
    }

    fn end(&self) -> Option<i32> {
        match self.end.load(Ordering::Relaxed) {
            0 => None,
            code => Some(code),
        }
    }
}

/// Shows all loops until the person has seen enough.
pub fn run(loops: Loops, options: Options) -> Result<i32, CliError> {
    let refused = |error: std::io::Error| CliError::system("watch", error);
    let screen = Signal::new().map_err(|error| refused(error.into()))?;
    let calls = Arc::new(Calls {
        screen: Arc::clone(&screen),
        end: AtomicI32::new(0),
        resized: AtomicBool::new(false),
        away: AtomicBool::new(false),
    });
    // Before the first thread: those that come later would not have the signals blocked.
    let _signals = calls.receive()?;
    let reader = Reader::start(loops.clone(), &screen).map_err(refused)?;
    let (answer, answers) = channel();
    let mut watch = WatchScreen {
        app: App::new(options.chosen.clone()),
        terminal: Screen::take(options.mouse)?,
        keys: Keys::default(),
        last_key: None,
        zone: TimeZone::system(),
        places: Places::default(),
        loops,
        options,
        reader,
        screen,
        calls,
        answer,
        answers,
    };
    watch.run()
}

struct WatchScreen {
    app: App,
    terminal: Screen,
    keys: Keys,
    /// When something was typed last.
    last_key: Option<Instant>,
    zone: TimeZone,
    places: Places,
    loops: Loops,
    options: Options,
    reader: Reader,
    screen: Arc<Signal>,
    calls: Arc<Calls>,
    answer: Sender<Cell>,
    answers: Receiver<Cell>,
}

impl WatchScreen {
    /// A terminal that is gone is the end, whether or not somebody tells.
    fn run(&mut self) -> Result<i32, CliError> {
        self.go_on().or_else(|error| match error.raw_os_error() {
            Some(code) if code == nix::errno::Errno::EIO as i32 => Ok(HUNG_UP),
            _ => Err(CliError::system("draw on the terminal", error)),
        })
    }

    fn go_on(&mut self) -> std::io::Result<i32> {
        let (mut is_new, mut drawn) = (true, None::<Instant>);
        loop {
            is_new |= self.take_news();
            if let Some(words) = watching::untold() {
                self.app.say(Tone::Warn, words);
                is_new = true;
            }
            is_new |= self.calls.resized.swap(false, Ordering::Relaxed);
            if let Some(code) = self.calls.end() {
                return Ok(code);
            }
            for key in self.typed() {
                is_new = true;
                let act = match key {
                    Some(key) => keys::key(&mut self.app, key, &self.places),
                    // The terminal is gone.
                    None => return Ok(HUNG_UP),
                };
                match act {
                    Some(Act::Quit) => return Ok(0),
                    Some(act) => self.act(act)?,
                    None => {}
                }
            }
            self.reader.want(self.app.want());
            let since = drawn.map_or(FRAME, |drawn| drawn.elapsed());
            let is_due = since >= FRAME;
            if is_due && (is_new || self.ticked(since)) {
                self.draw()?;
                (is_new, drawn) = (false, Some(Instant::now()));
            }
            let limit = if is_new {
                Some(FRAME.saturating_sub(since))
            } else {
                self.rest()
            };
            self.screen.wait(Some(std::io::stdin().as_fd()), limit);
        }
    }

    /// Whether the clock on the screen has moved on.
    fn ticked(&mut self, since: Duration) -> bool {
        let old = |message: &app::WatchMessage| message.at.elapsed() >= MESSAGE;
        let gone = self.app.message.take_if(|message| old(message)).is_some();
        gone || since >= Duration::from_millis(900) && self.app.ticks()
    }

    /// How long there is nothing to do but to wait.
    fn rest(&self) -> Option<Duration> {
        if self.keys.is_open() {
            return Some(SEQUENCE);
        }
        self.app.ticks().then(|| {
            let part = Timestamp::now().subsec_millisecond();
            Duration::from_millis(1000 - u64::try_from(part).unwrap_or(0).min(999))
        })
    }

    fn take_news(&mut self) -> bool {
        let mut is_new = false;
        for told in self.reader.news() {
            is_new = true;
            match told {
                ReaderEvent::Fleet(fleet) => self.app.take_fleet(fleet),
                ReaderEvent::Detail(detail) => self.app.take_detail(*detail),
            }
        }
        for answer in self.answers.try_iter() {
            is_new = true;
            self.app.say(answer.tone, answer.text);
        }
        is_new
    }

    /// What was typed; `None` in it where the terminal is gone.
    fn typed(&mut self) -> Vec<Option<Key>> {
        let mut keys = Vec::new();
        let stdin = std::io::stdin();
        loop {
            let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0);
            if !ready {
                let waited = self.last_key.is_none_or(|last| last.elapsed() >= SEQUENCE);
                if self.keys.is_open() && waited {
                    self.keys.flush(&mut keys);
                }
                return keys.into_iter().map(Some).collect();
            }
            self.last_key = Some(Instant::now());
            let mut bytes = [0; 4096];
            match nix::unistd::read(stdin.as_fd(), &mut bytes) {
                Ok(read @ 1..) => self.keys.push(&bytes[..read], &mut keys),
                Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => {}
                Ok(_) | Err(_) => return vec![None],
            }
        }
    }

    fn draw(&mut self) -> std::io::Result<()> {
        let context = Context {
            theme: self.options.theme,
            now: Timestamp::now(),
            zone: self.zone.clone(),
            home: self.options.home.clone(),
        };
        let (app, places) = (&self.app, &mut self.places);
        self.terminal.terminal.draw(|frame| {
            *places = draw::draw(frame, app, &context);
            draw::scrub(frame.buffer_mut());
        })?;
        self.app.drawn(&self.places);
        Ok(())
    }

    fn act(&mut self, act: Act) -> std::io::Result<()> {
        match act {
            Act::Quit => {}
            Act::Send { id, command } => {
                let post = send::Post {
                    answer: self.answer.clone(),
                    screen: Arc::clone(&self.screen),
                };
                send::send(self.loops.clone(), id, command, post)?;
            }
            Act::Suspend => {
                terminal::leave();
                // Stops here until the shell lets it go on.
                let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGTSTP);
                self.terminal.enter()?;
            }
            Act::Page(what) => self.page(&what)?,
        }
        Ok(())
    }

    fn page(&mut self, what: &Paged) -> std::io::Result<()> {
        let text = match pager::prepare(&self.loops, what) {
            Ok(text) => text,
            Err(error) => {
                self.app.say(crate::style::Tone::Warn, error);
                return Ok(());
            }
        };
        self.calls.away.store(true, Ordering::Relaxed);
        terminal::leave();
        let shown = pager::show(text, &self.options.pager);
        self.calls.away.store(false, Ordering::Relaxed);
        self.terminal.enter()?;
        if let Err(error) = shown {
            self.app.say(crate::style::Tone::Bad, error);
        }
        Ok(())
    }
}
