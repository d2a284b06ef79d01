//! What a person does at the window, and what came of it.

use std::fs;
use std::time::{Duration, Instant};

use descartes_testkit::wait;
use serde_json::Value;

use super::Window;
use super::places::{CANCEL, FIRST_LOOP, NEW_LOOP, NOTE, PAUSE, REALLY_CANCEL, THEME, VIEW_LOGS};
use super::screen::{Part, Screen, WHOLE};
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

const LONG: Duration = Duration::from_secs(30);

/// Right of the list.
const PAGE: Part = Part {
    x: 290,
    y: 10,
    width: 880,
    height: 760,
};
/// Below the clocks of the page.
const BODY: Part = Part {
    x: 290,
    y: 480,
    width: 880,
    height: 230,
};
/// The list.
const LIST: Part = Part {
    x: 10,
    y: 110,
    width: 250,
    height: 200,
};

/// Left of `Pause`: there `Unpause` begins, which is wider.
const UNPAUSE_ALONE: Part = Part {
    x: PAUSE.0 as u64 - 44,
    y: PAUSE.1 as u64 - 13,
    width: 14,
    height: 26,
};
/// The word on `Cancel`, which is grey while a command is on its way.
const CANCEL_WORD: Part = Part {
    x: CANCEL.0 as u64 - 12,
    y: CANCEL.1 as u64 - 8,
    width: 24,
    height: 16,
};

type Act = fn(&Lab) -> Result<(), Trouble>;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let acts: [(&str, Act); 4] = [
        (
            "a loop from the form: started, paused, spoken to, read, cancelled",
            steer,
        ),
        (
            "a loop from elsewhere: attached to, steered, left alone at its end",
            attach,
        ),
        ("what is drawn in parts is what is drawn as a whole", parts),
        (
            "no display, and one that does not answer: a line and exit code 1",
            blind,
        ),
    ];
    let row = |(name, act): (&str, Act)| {
        let lost: Vec<String> = act(lab).err().into_iter().collect();
        Row::count("window", name, 1, &lost)
    };
    Ok(acts.into_iter().map(row).collect())
}

/// What the command line knows of the only loop.
fn status(trial: &Trial<'_>) -> Value {
    let told = trial.run(trial.descartes(&["loop", "status", "--json"]));
    told.ok()
        .and_then(|ended| serde_json::from_str(&ended.stdout()).ok())
        .unwrap_or(Value::Null)
}

fn until(trial: &Trial<'_>, what: &str, holds: impl Fn(&Value) -> bool) -> Result<(), Trouble> {
    let mut look = || holds(&status(trial)).then_some(());
    wait::poll(LONG, &mut look).ok_or_else(|| {
        let status = status(trial);
        let keys = ["label", "iteration", "pause", "exit_reason"];
        let told: Vec<String> = keys.iter().map(|key| status[*key].to_string()).collect();
        format!("{what}: {}", told.join(", "))
    })
}

/// Waits until the agent of an iteration was told this.
fn until_told(trial: &Trial<'_>, file: &str, words: &str) -> Result<(), Trouble> {
    let prompt = || fs::read_to_string(trial.path(file)).unwrap_or_default();
    let mut look = || prompt().contains(words).then_some(());
    wait::poll(LONG, &mut look).ok_or_else(|| format!("`{words}` is not in {file}: {}", prompt()))
}

/// The buttons of a loop that runs and can be steered. While a command is on its way they are
/// grey and another one is not taken; the journal tells of it sooner than the window.
struct Buttons<'a> {
    screen: &'a Screen,
    running: [Vec<u8>; 2],
}

impl<'a> Buttons<'a> {
    /// Waits until they are there; without them, `Cancel`'s place looked like `bare`.
    fn appear(screen: &'a Screen, bare: &[u8]) -> Result<Self, Trouble> {
        let cancel = screen.settles(CANCEL_WORD, bare)?;
        let running = [screen.pixels(UNPAUSE_ALONE), cancel];
        Ok(Self { screen, running })
    }

    /// Waits until the window knows that the loop is paused, and takes the next command.
    fn paused(&self) -> Result<(), Trouble> {
        self.until("the window does not show the pause", |unpause, running| {
            unpause != running
        })
    }

    /// Waits until the window knows that the loop goes on, and takes the next command.
    fn going_on(&self) -> Result<(), Trouble> {
        self.until("the window still shows the pause", |unpause, running| {
            unpause == running
        })
    }

    fn until(&self, what: &str, holds: impl Fn(&[u8], &[u8]) -> bool) -> Result<(), Trouble> {
        let [unpause, cancel] = &self.running;
        let mut look = || {
            let ready = self.screen.pixels(CANCEL_WORD) == *cancel;
            (ready && holds(&self.screen.pixels(UNPAUSE_ALONE), unpause)).then_some(())
        };
        wait::poll(LONG, &mut look).ok_or_else(|| what.to_owned())
    }
}

fn steer(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let window = Window::open(&trial, &["--light"])?;
    let screen = &window.screen;
    let agent = trial.agent(
        "print this is iteration ${ITERATION}\nsave-prompt prompt-${ITERATION}\n\
         wait-file go-${ITERATION}",
    );

    let before = screen.quiet(PAGE)?;
    screen.click(NEW_LOOP)?;
    let empty = screen.settles(PAGE, &before)?;
    screen.types(&agent)?;
    for _ in 0..2 {
        // A person looks where the cursor is before typing on.
        screen.settles(PAGE, &empty)?;
        screen.key("Tab")?;
    }
    screen.quiet(PAGE)?;
    screen.types("go on and on")?;
    screen.quiet(PAGE)?;
    let (filled, no_button) = (screen.pixels(LIST), screen.pixels(CANCEL_WORD));
    screen.photograph("1-form")?;
    screen.key("ctrl+Return")?;
    until_told(&trial, "prompt-1", "go on and on")?;
    until(&trial, "not started", |status| status["label"] == "Running")?;
    screen.settles(LIST, &filled)?;
    let buttons = Buttons::appear(screen, &no_button)?;
    screen.photograph("2-started")?;

    screen.click(PAUSE)?;
    until(&trial, "not paused", |status| status["pause"] == "asked")?;
    buttons.paused()?;
    screen.click(NOTE)?;
    screen.types("mind the gap")?;
    screen.key("Return")?;
    trial.wait_for_events("command_accepted", 2)?;
    screen.key("Escape")?;
    screen.quiet(LIST)?;
    screen.photograph("3-paused")?;
    trial.world.write("go-1", "");
    until(&trial, "not held", |status| status["pause"] == "held")?;
    if trial.world.has("prompt-2") {
        return Err("it went on though it was paused".to_owned());
    }
    // The same button lets it go on.
    buttons.paused()?;
    screen.click(PAUSE)?;
    until_told(&trial, "prompt-2", "mind the gap")?;
    buttons.going_on()?;

    let before = screen.quiet(BODY)?;
    screen.click(VIEW_LOGS)?;
    screen.settles(BODY, &before)?;
    screen.photograph("4-logs")?;
    let light = screen.brightness(WHOLE);
    screen.click(THEME)?;
    let mut look = || (screen.brightness(WHOLE) < 70).then_some(());
    wait::poll(LONG, &mut look)
        .ok_or_else(|| format!("not dark: {} after {light}", screen.brightness(WHOLE)))?;
    screen.quiet(BODY)?;
    screen.photograph("5-dark")?;
    screen.key("t")?;
    let mut look = || (screen.brightness(WHOLE) > 180).then_some(());
    wait::poll(LONG, &mut look).ok_or("not light again")?;

    let before = screen.quiet(BODY)?;
    screen.click(CANCEL)?;
    screen.settles(BODY, &before)?;
    screen.photograph("6-cancel")?;
    if status(&trial)["exit_reason"]["type"] != "running" {
        return Err("Cancel did not ask".to_owned());
    }
    screen.click(REALLY_CANCEL)?;
    until(&trial, "not cancelled", |status| {
        status["exit_reason"]["type"] == "user_cancelled"
    })?;
    screen.quiet(LIST)?;
    screen.photograph("7-cancelled")
}

fn attach(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let mut window = Window::open(&trial, &["--dark"])?;
    let screen = &window.screen;
    let (empty, no_button) = (screen.quiet(LIST)?, screen.pixels(CANCEL_WORD));
    let script = "print this is iteration ${ITERATION}\ntouch up-${ITERATION}\n\
                  wait-file go-${ITERATION}\n@3 promise";
    let started = trial.run(trial.start(script, &["--detach", "--name", "elsewhere"]))?;
    if started.code() != Some(0) {
        return Err(format!("no loop: {started}"));
    }
    trial.wait_for("up-1")?;
    screen.settles(LIST, &empty)?;
    screen.click(FIRST_LOOP)?;
    let buttons = Buttons::appear(screen, &no_button)?;
    screen.key("p")?;
    until(&trial, "not paused", |status| status["pause"] == "asked")?;
    buttons.paused()?;
    screen.photograph("8-attached")?;
    screen.key("p")?;
    until(&trial, "still paused", |status| status["pause"] != "asked")?;
    trial.world.write("go-1", "");
    trial.wait_for("up-2")?;

    screen.key("ctrl+q")?;
    match window.closed()? {
        Some(0) => {}
        other => return Err(format!("the window ended with {other:?}")),
    }
    if status(&trial)["label"] != "Running" {
        return Err("the loop ended with the window".to_owned());
    }
    // One that loses its display takes nothing with it either.
    let mut lost = Window::open(&trial, &["elsewhere"])?;
    lost.screen.quiet(LIST)?;
    lost.screen.photograph("9-second")?;
    lost.screen.hands(&["windowkill", &lost.id])?;
    lost.closed()?;
    trial.world.write("go-2", "");
    trial.world.write("go-3", "");
    until(&trial, "did not come to its end", |status| {
        status["exit_reason"]["type"] == "completion_promise_detected" && status["iteration"] == 3
    })
}

/// A clock that ticks is drawn in parts. Where that left something behind, a window that is drawn
/// anew looks different.
fn parts(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let started = trial.run(trial.start("print begun\ntouch up\nhang", &["--detach"]))?;
    if started.code() != Some(0) {
        return Err(format!("no loop: {started}"));
    }
    trial.wait_for("up")?;
    let window = Window::open(&trial, &[])?;
    let screen = &window.screen;
    // From seconds to minutes and shorter words again.
    std::thread::sleep(Duration::from_secs(lab.form.pick(3, 75)));
    // The next tick may come too soon, on a busy machine many times.
    let begun = Instant::now();
    let mut same = looks_the_same_anew(screen)?;
    while !same && begun.elapsed() < LONG {
        same = looks_the_same_anew(screen)?;
    }
    screen.photograph("10-parts")?;
    same.then_some(())
        .ok_or_else(|| "drawn anew, the window looks different".to_owned())
}

/// Right after a tick the window is drawn anew, twice.
fn looks_the_same_anew(screen: &Screen) -> Result<bool, Trouble> {
    screen.changes(WHOLE, &screen.pixels(WHOLE))?;
    std::thread::sleep(Duration::from_millis(150));
    let before = screen.pixels(WHOLE);
    screen.key("t")?;
    screen.changes(WHOLE, &before)?;
    screen.key("t")?;
    let mut look = || (screen.pixels(WHOLE) == before).then_some(());
    Ok(wait::poll(Duration::from_millis(600), &mut look).is_some())
}

fn blind(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let program = super::program(lab)?;
    let cases = [
        ("", "there is no display: DISPLAY is not set"),
        (":4711", "the window cannot be shown"),
    ];
    for (display, words) in cases {
        let mut command = trial.world.command(program);
        command.env("DISPLAY", display);
        let ended = trial.run(command)?;
        let told = ended.stderr();
        let lines = told.lines().count();
        if ended.code() != Some(1) || !told.contains(words) || lines != 2 {
            return Err(format!("DISPLAY={display}: {:?} {told}", ended.code()));
        }
    }
    Ok(())
}
