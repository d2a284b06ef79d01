//! A program on a terminal of its own, its screen read as a person would see it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::wait;
use crate::world::bins;

/// Rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Lines of text.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self {
            rows: 24,
            columns: 80,
        }
    }
}

/// A piece of a line of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Painted {
    pub text: String,
    /// One of the terminal's own colours; `None` for its usual one.
    pub colour: Option<u8>,
    pub dim: bool,
    pub bold: bool,
}

/// A program that believes it is alone with a person at a terminal.
#[derive(Debug)]
pub struct Pty {
    child: Child,
    terminal: Option<Terminal>,
    seen: Arc<Mutex<Seen>>,
}

/// Our end of the terminal; gone, the terminal hangs up.
#[derive(Debug)]
struct Terminal {
    keyboard: File,
    /// Held while the program runs: the screen ends when the last holder of this side is gone, and
    /// the program may not have opened it yet.
    held: Option<File>,
    stop: UnixStream,
    reader: JoinHandle<()>,
}

struct Seen {
    screen: vt100::Parser,
    raw: Vec<u8>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seen")
            .field("screen", &self.screen.screen().contents())
            .finish()
    }
}

impl Pty {
    /// Starts the command with a new terminal as its standard streams and its controlling
    /// terminal, so that typing Ctrl-C sends SIGINT and closing it sends SIGHUP. It gets the
    /// variables that the command sets and `TERM`, nothing else.
    ///
    /// # Panics
    /// When no terminal is to be had, or the command cannot be started.
    pub fn spawn(command: &Command, size: Size) -> Self {
        let (keyboard, name) = open_terminal(size);
        let held = Some(open_slave(&name));
        let child = on_terminal(command, &name)
            .spawn()
            .expect("start on a terminal");
        let seen = Arc::new(Mutex::new(Seen {
            screen: parser(size),
            raw: Vec::new(),
        }));
        let (stop, stopped) = UnixStream::pair().expect("a pair of sockets");
        let screen = keyboard.try_clone().expect("share the terminal");
        let shared = Arc::clone(&seen);
        let reader = thread::spawn(move || follow(screen, &stopped, &shared));
        Self {
            child,
            terminal: Some(Terminal {
                keyboard,
                held,
                stop,
                reader,
            }),
            seen,
        }
    }

    /// The id of the program on the terminal.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    /// What a person would see now, without trailing blanks.
    pub fn screen(&self) -> String {
        self.seen().screen.screen().contents()
    }

    /// The lines of the screen in pieces of one look each, for pictures.
    pub fn painted(&self) -> Vec<Vec<Painted>> {
        let seen = self.seen();
        let screen = seen.screen.screen();
        let (rows, columns) = screen.size();
        let (rows, columns) = (rows.get(), columns.get());
        let line = |row| {
            let mut pieces: Vec<Painted> = Vec::new();
            for cell in (0..columns).filter_map(|column| screen.cell(row, column)) {
                let colour = match cell.fgcolor() {
                    vt100::Color::Idx(colour) => Some(colour),
                    _ => None,
                };
                let look = (colour, cell.dim(), cell.bold());
                let text = match cell.contents() {
                    "" => " ",
                    text => text,
                };
                match pieces.last_mut() {
                    Some(last) if (last.colour, last.dim, last.bold) == look => {
                        last.text.push_str(text);
                    }
                    _ => pieces.push(Painted {
                        text: text.to_owned(),
                        colour: look.0,
                        dim: look.1,
                        bold: look.2,
                    }),
                }
            }
            pieces
        };
        (0..rows).map(line).collect()
    }

    /// Every byte the program wrote so far.
    pub fn raw(&self) -> Vec<u8> {
        self.seen().raw.clone()
    }

    /// True while the program shows its alternate screen.
    pub fn is_full_screen(&self) -> bool {
        self.seen().screen.screen().alternate_screen()
    }

    /// Types these bytes; `\x03` is Ctrl-C.
    ///
    /// # Panics
    /// When the terminal is closed.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let terminal = self
            .terminal
            .as_mut()
            .expect("a terminal that was not closed");
        terminal
            .keyboard
            .write_all(bytes.as_ref())
            .expect("type on the terminal");
    }

    /// Gives the terminal another size; the program gets SIGWINCH.
    ///
    /// # Panics
    /// When the terminal is closed.
    pub fn resize(&self, size: Size) {
        let terminal = self
            .terminal
            .as_ref()
            .expect("a terminal that was not closed");
        let [rows, columns] = non_zero(size);
        // Nothing that is drawn for the new size meets the old one.
        let mut seen = self.seen();
        tcsetwinsize(terminal.keyboard.as_fd(), winsize(size)).expect("resize the terminal");
        seen.screen.screen_mut().set_size(rows, columns);
    }

    /// Closes the terminal, as when its window is closed: the program gets SIGHUP.
    ///
    /// # Panics
    /// When the reader of the screen failed.
    pub fn hang_up(&mut self) {
        if let Some(terminal) = self.terminal.take() {
            drop(terminal.stop);
            terminal.reader.join().expect("the reader of the screen");
        }
    }

    /// Waits until the screen holds what `holds` looks for, and gives it.
    ///
    /// # Panics
    /// When it does not within the time; the screen is shown.
    #[track_caller]
    pub fn wait_screen(&self, within: Duration, holds: impl Fn(&str) -> bool) -> String {
        let found = wait::poll(within, &mut || {
            Some(self.screen()).filter(|screen| holds(screen))
        });
        found.unwrap_or_else(|| panic!("not on the screen after {within:?}:\n{}", self.screen()))
    }

    /// Waits until the text stands on the screen, and gives the screen.
    ///
    /// # Panics
    /// When it does not within a minute.
    #[track_caller]
    pub fn wait_text(&self, text: &str) -> String {
        self.wait_screen(Duration::from_secs(60), |screen| screen.contains(text))
    }

    /// Waits for the program's end and the last of its output.
    ///
    /// # Panics
    /// When it still runs after `within`; the screen is shown.
    #[track_caller]
    pub fn wait(&mut self, within: Duration) -> ExitStatus {
        let ended = wait::poll(within, &mut || {
            self.child.try_wait().expect("wait for a child")
        });
        let status =
            ended.unwrap_or_else(|| panic!("still running after {within:?}:\n{}", self.screen()));
        if let Some(terminal) = &mut self.terminal {
            terminal.held = None;
            // What it drew last may still be on its way on a busy machine. A child of the program may hold
            // the terminal open; its screen is not ours to await for ever.
            let finished = &mut || terminal.reader.is_finished().then_some(());
            wait::poll(Duration::from_secs(10), finished);
        }
        status
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("the screen")
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.terminal = None;
    }
}

fn open_terminal(size: Size) -> (File, PathBuf) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("open a terminal");
    grantpt(&master).expect("grant the terminal");
    unlockpt(&master).expect("unlock the terminal");
    tcsetwinsize(&master, winsize(size)).expect("size the terminal");
    let name = ptsname(&master, Vec::new()).expect("the terminal's name");
    let name = PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes()));
    (File::from(master), name)
}

fn open_slave(name: &Path) -> File {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .custom_flags(nix::fcntl::OFlag::O_NOCTTY.bits());
    options.open(name).expect("open the terminal's other end")
}

/// Only a session leader can take a terminal, and only between fork and exec could it be made one
/// here; so the scripted agent's hidden verb does it and becomes the program.
fn on_terminal(command: &Command, terminal: &Path) -> Command {
    let mut wrapped = Command::new(bins::scripted_agent());
    wrapped
        .arg("--on-terminal")
        .arg(terminal)
        .arg(command.get_program())
        .args(command.get_args());
    wrapped.env_clear();
    wrapped.envs(
        command
            .get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    wrapped.env("TERM", "xterm-256color");
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    wrapped
}

fn follow(mut screen: File, stopped: &UnixStream, seen: &Mutex<Seen>) {
    let mut buffer = vec![0; 64 * 1024];
    while wait_readable(&screen, stopped) {
        // Linux answers EIO once the last process has closed the terminal.
        let Ok(count @ 1..) = screen.read(&mut buffer) else {
            return;
        };
        let mut seen = seen.lock().expect("the screen");
        seen.raw.extend_from_slice(&buffer[..count]);
        seen.screen.process(&buffer[..count]);
    }
}

/// Waits until the screen has something to read; false once the terminal is to be closed.
fn wait_readable(screen: &File, stopped: &UnixStream) -> bool {
    let mut fds = [
        PollFd::new(screen, PollFlags::IN),
        PollFd::new(stopped, PollFlags::IN),
    ];
    while poll(&mut fds, None).is_err() {}
    fds[1].revents().is_empty()
}

fn parser(size: Size) -> vt100::Parser {
    let [rows, columns] = non_zero(size);
    vt100::Parser::new(rows, columns, 10_000)
}

fn non_zero(size: Size) -> [NonZeroU16; 2] {
    [size.rows, size.columns].map(|count| NonZeroU16::new(count).unwrap_or(NonZeroU16::MIN))
}

fn winsize(size: Size) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
