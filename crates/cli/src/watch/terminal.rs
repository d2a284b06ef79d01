//! The terminal, taken for a while and given back as it was: at the end, on an error, on a
//! signal and when the program panics.

use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::error::CliError;

/// Whether the mouse is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseUse {
    /// Its wheel scrolls, a click chooses; the terminal's own selection needs Shift then.
    On,
    /// It belongs to the terminal.
    Off,
}

/// The other screen, no cursor, pastes marked.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?2004h";
/// All of it undone, colours too.
const LEAVE: &str = "\x1b[0m\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[?1049l\x1b[?25h";
const MOUSE: &str = "\x1b[?1000h\x1b[?1006h";

/// How the terminal was; what a panic has to put back.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// Whether we have it now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours. Dropped, it is given back.
pub struct Screen {
    /// What is drawn on. Never dropped: its own end would complain to a terminal that may be
    /// gone, and die of that.
    pub terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    mouse: MouseUse,
}

impl Screen {
    /// Takes the terminal.
    pub fn take(mouse: MouseUse) -> Result<Self, CliError> {
        let refused = |error: io::Error| CliError::system("take the terminal", error);
        let before = tcgetattr(io::stdin().as_fd()).map_err(|error| refused(error.into()))?;
        if let Ok(mut kept) = BEFORE.lock() {
            *kept = Some(before);
        }
        give_back_on_panic();
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).map_err(refused)?;
        let mut screen = Self {
            terminal: ManuallyDrop::new(terminal),
            mouse,
        };
        screen.enter().map_err(refused)?;
        Ok(screen)
    }

    /// Takes it again after [`leave`].
    pub fn enter(&mut self) -> io::Result<()> {
        let kept = BEFORE.lock().ok().and_then(|kept| kept.clone());
        if let Some(mut raw) = kept {
            raw.make_raw();
            tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &raw)?;
        }
        TAKEN.store(true, Ordering::SeqCst);
        write_all(ENTER)?;
        if self.mouse == MouseUse::On {
            write_all(MOUSE)?;
        }
        // Clears, and draws all of it anew. `clear` would ask the terminal where its cursor is,
        // and wait for an answer among the keys.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back, once.
pub fn leave() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // A terminal that is gone needs nothing.
    let _ = write_all(LEAVE);
    if let Ok(kept) = BEFORE.try_lock()
        && let Some(before) = &*kept
    {
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, before);
    }
}

fn write_all(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The words of a panic are for the person: they come after the terminal is given back.
fn give_back_on_panic() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            tell(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_testkit::Pty;
    use descartes_testkit::pty::Size;
    use std::time::Duration;

    /// Set, this program is the one that panics, on a terminal of its own.
    const PLAYS: &str = "TEST_PLAYS_THE_PANIC";

    #[test]
    fn a_panic_gives_the_terminal_back_before_its_words() {
        if std::env::var_os(PLAYS).is_some() {
            let _screen = Screen::take(MouseUse::On).unwrap();
            panic!("the words of the panic");
        }
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.env(PLAYS, "1").args(["--nocapture", "--exact"]);
        command.arg("watch::terminal::tests::a_panic_gives_the_terminal_back_before_its_words");
        let mut pty = Pty::spawn(&command, Size::default());
        pty.wait_text("the words of the panic");
        assert!(!pty.is_full_screen());
        pty.wait(Duration::from_secs(20));
        let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
        let place = |text: &str| raw.find(text).unwrap_or_else(|| panic!("{text}: {raw:?}"));
        assert!(place(ENTER) < place(LEAVE), "{raw:?}");
        assert!(place(LEAVE) < place("the words of the panic"), "{raw:?}");
    }
}
