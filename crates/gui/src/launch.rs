//! From the command line to a window; and what is said where none can be opened.

use std::ffi::OsString;
use std::io::Write;
use std::panic;

use descartes_client::ClientError;
use descartes_kernel::outcome::exit;
use descartes_store::debug_log::{self, Filter};
use iced::window;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tracing::debug;

use crate::app::App;
use crate::feed::{Desk, words};
use crate::font;
use crate::model::{Chosen, Model};
use crate::theme::Mode;

const HELP: &str = "\
The desktop window of descartes: all loops, one of them in full, and the ways to steer it.

Usage: descartes-gui [--light | --dark] [LOOP]

  LOOP         the loop to show first: its id or name
  --light      light theme
  --dark       dark theme
  -h, --help
  -V, --version
";

/// What Debian and Ubuntu need.
const PACKAGES: &str =
    "sudo apt-get install libx11-6 libx11-xcb1 libxcursor1 libxi6 libxkbcommon-x11-0";

/// The libraries that the window loads when it opens.
const LIBRARIES: [&str; 5] = [
    "libX11.so.6",
    "libX11-xcb.so.1",
    "libXcursor.so.1",
    "libXi.so.6",
    "libxkbcommon-x11.so.0",
];

#[derive(Debug, Default, PartialEq, Eq)]
struct WindowArgs {
    mode: Mode,
    loop_name: Option<String>,
}

enum Asked {
    Window(WindowArgs),
    Text(String),
}

/// Runs the program; gives the exit code.
pub fn run(arguments: &[OsString]) -> i32 {
    let usage = |message: String| {
        (
            exit::USAGE,
            format!("{message}\nhint: see: descartes-gui --help"),
        )
    };
    let ended = match parse(arguments) {
        Ok(Asked::Text(text)) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            Ok(())
        }
        Ok(Asked::Window(wish)) => log().and_then(|()| window(wish)),
        Err(message) => Err(usage(message)),
    };
    match ended {
        Ok(()) => 0,
        Err((code, message)) => {
            let _ = writeln!(std::io::stderr(), "error: {message}");
            code
        }
    }
}

/// An exit code, and what is said: an error, and a hint on a line of its own.
type Failure = (i32, String);

/// Logs to standard error where `DESCARTES_LOG` is set.
fn log() -> Result<(), Failure> {
    let Some(value) = std::env::var_os(debug_log::VARIABLE).filter(|value| !value.is_empty())
    else {
        return Ok(());
    };
    let wrong = |error| (exit::USAGE, format!("{error}\nhint: {}", Filter::EXAMPLE));
    Filter::of_variable(&value)
        .map(debug_log::to_stderr)
        .map_err(wrong)
}

fn parse(arguments: &[OsString]) -> Result<Asked, String> {
    let mut wish = WindowArgs::default();
    for argument in arguments {
        match argument.to_str() {
            Some("-h" | "--help") => return Ok(Asked::Text(HELP.to_owned())),
            Some("-V" | "--version") => {
                let version = concat!(
                    "descartes-gui ",
                    env!("CARGO_PKG_VERSION"),
                    // By this `descartes gui` tells ours from others of the same name.
                    " (window of descartes loops)\n"
                );
                return Ok(Asked::Text(version.to_owned()));
            }
            Some("--light") => wish.mode = Mode::Light,
            Some("--dark") => wish.mode = Mode::Dark,
            Some(flag) if flag.starts_with('-') => return Err(format!("unknown flag `{flag}`")),
            Some(name) if wish.loop_name.is_none() => wish.loop_name = Some(name.to_owned()),
            _ => return Err("only one LOOP can be given".to_owned()),
        }
    }
    Ok(Asked::Window(wish))
}

fn window(wish: WindowArgs) -> Result<(), Failure> {
    if let Some((message, hint)) = no_window(std::env::var_os("DISPLAY"), installed) {
        return Err((exit::ERROR, format!("{message}\nhint: {hint}")));
    }
    let failed = |error: ClientError| (error.exit_code(), words(&error));
    let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let desk = Desk::of_process(&here);
    let chosen = wish.loop_name.map(|name| desk.handle(&name));
    let chosen = chosen.transpose().map_err(failed)?;
    let chosen = chosen.map(|handle| handle.id().to_owned());
    debug!(dir = %here.display(), chosen, "window opens");
    let start = WindowStart {
        mode: wish.mode,
        here: here.display().to_string(),
        chosen,
    };
    open(start, desk)
}

/// What a window begins with.
struct WindowStart {
    mode: Mode,
    here: String,
    chosen: Option<String>,
}

impl WindowStart {
    fn model(&self) -> Model {
        let mut model = Model::new(Timestamp::now(), self.mode, self.here.clone());
        model.zone = TimeZone::system();
        model.chosen = self.chosen.clone().map(Chosen::new);
        model
    }
}

/// iced gives up by panicking where the display refuses; that becomes a line, too. A release does not unwind,
/// so the hook is the last that runs.
fn end_with_words_on_panic() {
    panic::set_hook(Box::new(|info| {
        let words = info.payload_as_str().unwrap_or("unknown reason");
        let (code, message) = not_shown(words.lines().next().unwrap_or_default());
        let _ = writeln!(std::io::stderr(), "error: {message}");
        #[expect(
            clippy::exit,
            reason = "the process is about to end anyway, without the right code"
        )]
        std::process::exit(code);
    }));
}

fn not_shown(why: &str) -> Failure {
    let hint = "loops run on without it; in a terminal: descartes watch";
    let message = format!("the window cannot be shown: {why}\nhint: {hint}");
    (exit::ERROR, message)
}

fn open(start: WindowStart, desk: Desk) -> Result<(), Failure> {
    end_with_words_on_panic();
    let boot = move || {
        let app = App::new(start.model(), desk.clone());
        let shown = app.sent_off();
        (app, shown)
    };
    let mut application = iced::application(boot, App::update, App::view)
        .title(App::title)
        .theme(App::theme)
        .style(App::style)
        .subscription(App::subscription)
        .default_font(font::SANS)
        .antialiasing(true)
        .window(window::Settings {
            size: iced::Size::new(1180.0, 780.0),
            min_size: Some(iced::Size::new(760.0, 480.0)),
            ..window::Settings::default()
        });
    for font in font::ALL {
        application = application.font(font);
    }
    let ended = application.run();
    drop(panic::take_hook());
    ended.map_err(|error| not_shown(&error.to_string()))
}

/// Why no window can be opened, and what to do about it.
fn no_window(
    display: Option<OsString>,
    installed: impl Fn(&str) -> bool,
) -> Option<(String, String)> {
    let missing: Vec<&str> = LIBRARIES
        .into_iter()
        .filter(|name| !installed(name))
        .collect();
    if !missing.is_empty() {
        let message = format!(
            "the window needs libraries that are missing: {}",
            missing.join(", ")
        );
        return Some((message, format!("on Debian and Ubuntu: {PACKAGES}")));
    }
    if display.is_none_or(|display| display.is_empty()) {
        let message = "there is no display: DISPLAY is not set".to_owned();
        let hint = "over SSH use `ssh -X`; in a terminal: descartes watch";
        return Some((message, hint.to_owned()));
    }
    None
}

/// Whether the loader knows a library: it stands in its cache, or where the user says. Where
/// there is no cache it is not known, and tried.
fn installed(name: &str) -> bool {
    let said = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let by_hand = std::env::split_paths(&said).any(|folder| folder.join(name).exists());
    let cached = std::fs::read("/etc/ld.so.cache").map_or(true, |cache| {
        let file = format!("/{name}");
        let mut paths = cache.split(|byte| *byte == 0);
        paths.any(|path| path.ends_with(file.as_bytes()))
    });
    by_hand || cached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_the_command_that_brings_it() {
        let all = |_: &str| true;
        assert_eq!(no_window(Some(":0".into()), all), None);
        let (message, hint) = no_window(None, all).unwrap();
        assert!(message.contains("DISPLAY") && hint.contains("descartes watch"));
        let (message, hint) = no_window(Some(":0".into()), |name| name != "libXi.so.6").unwrap();
        assert!(message.ends_with("missing: libXi.so.6"), "{message}");
        assert!(hint.contains("apt-get install") && hint.contains("libxi6"));
    }

    #[test]
    fn the_command_line_is_small() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let Ok(Asked::Window(wish)) = parse(&words("--dark auth")) else {
            panic!("a window");
        };
        assert_eq!(
            (wish.mode, wish.loop_name.as_deref()),
            (Mode::Dark, Some("auth"))
        );
        assert!(parse(&words("--tall")).is_err());
        assert!(parse(&words("a b")).is_err());
    }
}
