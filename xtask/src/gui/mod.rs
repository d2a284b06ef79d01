//! `cargo xtask gui`: the real window on a display that nobody sees, driven with real clicks and
//! keys, and a stop watch. What came of an act is read from journals and the command line.

mod clicks;
mod load;
// The window's own tests hold these to its layout.
#[path = "../../../crates/gui/tests/it/places.rs"]
mod places;
mod screen;
mod speed;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use descartes_testkit::wait;

use self::screen::Screen;
use crate::lab::build::{self, Faults};
use crate::lab::{self, Lab, Measure, Trial, Trouble};
use crate::system_tools;

const MEASURES: &[Measure] = &[
    Measure {
        name: "window-clicks",
        about: "a person at the window: form, pause, say, logs, colours, cancel, close, attach",
        take: clicks::take,
    },
    Measure {
        name: "window-speed",
        about: "from the journal to the screen; 100,000 iterations and a log of 10 GB",
        take: speed::take,
    },
    Measure {
        name: "window-load",
        about: "what the window costs while nothing happens, and while many loops print",
        take: load::take,
    },
];

/// `gui [--short] [MEASURE…]`. Where no window can be shown or driven it says so and is content.
pub fn run(rest: &[String]) -> Result<(), String> {
    let (form, wanted) = lab::wanted(rest, MEASURES)?;
    if let Some(why) = system_tools::lacking(&["Xvfb", "xdotool"]) {
        println!("skipped: {why}");
        return Ok(());
    }
    let mut lab = build::lab(form, Faults::Not)?;
    let window = build::window(form)?;
    if let Some(trouble) = unable(&window) {
        println!("skipped: {trouble}");
        return Ok(());
    }
    lab.window = Some(window);
    lab::take(&lab, MEASURES, &wanted)
}

/// What the window itself lacks here: it looks for its libraries before it looks for a display.
fn unable(window: &Path) -> Option<String> {
    let output = Command::new(window).env_remove("DISPLAY").output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let lacks = |line: &&str| line.contains("libraries that are missing");
    said.lines()
        .find(lacks)
        .map(|line| line.trim_start_matches("error: ").to_owned())
}

fn program(lab: &Lab) -> Result<&Path, Trouble> {
    lab.window.as_deref().ok_or_else(|| "no window".to_owned())
}

/// The real window, on a display of its own.
struct Window {
    child: Child,
    id: String,
    screen: Screen,
}

impl Window {
    /// Opens it over the loops of a trial, and waits until it is drawn.
    fn open(trial: &Trial<'_>, words: &[&str]) -> Result<Self, Trouble> {
        let screen = Screen::open()?;
        let words_of_it = trial.world.root().join("window.log");
        let log = File::create(&words_of_it).map_err(|error| error.to_string())?;
        let child = trial
            .world
            .command(program(trial.lab)?)
            .args(words)
            .env("DISPLAY", &screen.name)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("descartes-gui: {error}"))?;
        let mut window = Self {
            child,
            id: String::new(),
            screen,
        };
        window.id = window.screen.window().map_err(|trouble| {
            let said = fs::read_to_string(&words_of_it).unwrap_or_default();
            format!(
                "{trouble}; it ended: {:?}; it said: {said}",
                window.child.try_wait()
            )
        })?;
        let black = vec![0; window.screen.pixels(screen::WHOLE).len()];
        window.screen.changes(screen::WHOLE, &black)?;
        Ok(window)
    }

    fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Its exit code, once it has closed by itself.
    fn closed(&mut self) -> Result<Option<i32>, Trouble> {
        let child = &mut self.child;
        let mut look = || child.try_wait().ok().flatten();
        let status = wait::poll(Duration::from_secs(20), &mut look);
        Ok(status.ok_or("the window did not close")?.code())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // It may have closed already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
