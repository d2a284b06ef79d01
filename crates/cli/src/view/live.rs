//! The view on a terminal: output scrolls above a region that stays at the bottom.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use descartes_agents::reader::Source;
use descartes_kernel::event::{Event, Record, StopBy};
use descartes_kernel::notice::Notice;
use descartes_kernel::state::{LoopState, Pause, Phase, Spent};
use descartes_kernel::tasks::TasksState;
use descartes_text::display::{self, Clean, Colours, Returns, Shown};
use descartes_text::units::show_size;
use descartes_views::view::{Head, Life, activity};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::lines::Lines;
use super::record_messages::{self, tell};
use super::region::{self, Facts, Terminal};
use super::run::View;
use super::screen::{Row, Screen};
use super::signal::Signal;
use super::status_message::{Role, StatusMessage};
use super::words;
use crate::style::{Paint, Tone};

/// Lines are handed to the terminal at the latest when so many bytes are waiting.
const FULL: usize = 64 << 10;
const WIDEST_HEADING: usize = 72;
/// Drawn at most ten times a second.
const PACE: Duration = Duration::from_millis(100);

/// Whether the terminal rings when a person should look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bell {
    /// It does.
    Rings,
    /// It does not.
    #[default]
    Silent,
}

/// The live view.
pub struct Live<W> {
    out: W,
    signal: Arc<Signal>,
    terminal: Terminal,
    screen: Screen,
    /// Of standard output and standard error.
    lines: [Lines; 2],
    above: Vec<String>,
    waiting: usize,
    last: Option<String>,
    /// What the run under way told of its use.
    used: Spent,
    /// When the last record came: a gate began then.
    since: Timestamp,
    zone: TimeZone,
    bell: Bell,
}

impl<W: Write + Send> Live<W> {
    /// A view for this terminal; its size is asked again at every drawing.
    pub fn new(out: W, signal: Arc<Signal>, paint: Paint, utf8: bool, bell: Bell) -> Self {
        Self {
            out,
            signal,
            terminal: Terminal {
                columns: 80,
                rows: 24,
                paint,
                utf8,
            },
            screen: Screen::default(),
            lines: Default::default(),
            above: Vec::new(),
            waiting: 0,
            last: None,
            used: Spent::default(),
            since: Timestamp::now(),
            zone: TimeZone::system(),
            bell,
        }
    }

    fn draw(&mut self, state: &LoopState, now: Timestamp) -> io::Result<()> {
        self.measure();
        if self.signal.was_away() {
            self.screen = Screen::default();
        }
        let facts = self.facts(state, now);
        let rows = region::lines(&facts, self.terminal)
            .into_iter()
            .map(Row::new)
            .collect();
        let frame = self.screen.frame(&self.above, rows, self.terminal.columns);
        self.above.clear();
        self.waiting = 0;
        self.write(&frame)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.run_over()?;
        self.measure();
        self.write_above()
    }

    fn write(&mut self, frame: &str) -> io::Result<()> {
        if frame.is_empty() {
            return Ok(());
        }
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }

    fn measure(&mut self) {
        if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
            && size.ws_col > 0
            && size.ws_row > 0
        {
            (self.terminal.columns, self.terminal.rows) = (size.ws_col, size.ws_row);
        }
    }

    fn push(&mut self, line: String) -> io::Result<()> {
        self.waiting += line.len() + 1;
        self.above.push(line);
        if self.waiting < FULL {
            return Ok(());
        }
        // The region comes back with the next drawing.
        self.write_above()
    }

    fn push_all(&mut self, source: Source, lines: Vec<String>) -> io::Result<()> {
        let paint = self.terminal.paint;
        lines.into_iter().try_for_each(|line| match source {
            Source::Stdout => self.push(line),
            Source::Stderr => self.push(paint.text(Tone::Dim, &line)),
        })
    }

    /// What waits, in place of the region.
    fn write_above(&mut self) -> io::Result<()> {
        let mut frame = self.screen.erase(self.terminal.columns);
        for line in self.above.drain(..) {
            frame.push_str(&line);
            frame.push('\n');
        }
        self.waiting = 0;
        self.write(&frame)
    }

    fn painted(&self, talk: &StatusMessage) -> String {
        let Terminal {
            columns,
            paint,
            utf8,
            ..
        } = self.terminal;
        let words = display::text(&talk.text, Colours::Drop);
        match talk.role {
            Role::Heading => {
                let dash = if utf8 { "─" } else { "-" };
                let room = WIDEST_HEADING.min(usize::from(columns).saturating_sub(1));
                let used = super::width::width(&words) + 4;
                let rest = dash.repeat(room.saturating_sub(used));
                let text = paint.text(talk.tone, &words);
                let (before, after) = (format!("{dash}{dash} "), format!(" {rest}"));
                format!(
                    "{}{text}{}",
                    paint.text(Tone::Dim, &before),
                    paint.text(Tone::Dim, &after)
                )
            }
            Role::Line => {
                let dot = if utf8 { "●" } else { "*" };
                format!(
                    "{} {}",
                    paint.text(talk.tone, dot),
                    paint.text(talk.tone, &words)
                )
            }
            Role::Quote => {
                let bar = if utf8 { "│" } else { "|" };
                format!("{}{}", paint.text(Tone::Dim, &format!("  {bar} ")), words)
            }
        }
    }

    fn facts(&self, state: &LoopState, now: Timestamp) -> Facts {
        let under_way = state
            .run()
            .map_or(Duration::ZERO, |run| words::between(run.started_at, now));
        let partial = self.lines.each_ref().map(Lines::partial);
        let tasks = state.tasks.as_deref();
        let wave = |tasks: &TasksState| {
            let now = tasks.current_wave().unwrap_or(tasks.waves);
            format!("wave {now} of {}", tasks.waves)
        };
        Facts {
            head: Head::of(state, Life::Alive),
            spent: Duration::from_millis(state.spent.ms) + under_way,
            cost: words::spent(&state.spent.plus(&self.used)),
            activity: activity(state, self.since, now),
            stopping: stopping(state, self.signal.interrupts()),
            last: self.last.clone(),
            partial: partial
                .into_iter()
                .find(|text| !text.is_empty())
                .unwrap_or_default(),
            wave: tasks.map(wave),
            blocked: tasks.map_or(0, |tasks| tasks.blocked.len()),
        }
    }
}

impl<W: Write + Send> View for Live<W> {
    fn open(&mut self, state: &LoopState) -> io::Result<()> {
        let opening = display::one_line(&record_messages::opening(state));
        let line = self.terminal.paint.text(Tone::Dim, &opening);
        self.push(line)
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        let line = self
            .terminal
            .paint
            .text(Tone::Dim, &format!("note: {text}"));
        self.push(line)
    }

    /// Draws what changed.
    fn refresh(&mut self, state: &LoopState, now: Timestamp) -> io::Result<()> {
        self.draw(state, now)
    }

    /// Shows what is left and takes the region away.
    fn close(&mut self) -> io::Result<()> {
        self.finish()
    }

    fn pace(&self) -> Duration {
        PACE
    }

    /// Clocks in the region go on by the second, unless they stand still.
    fn tick(&self, state: &LoopState) -> Option<Duration> {
        match (&state.phase, state.requests.pause) {
            (Phase::Ready { .. }, Pause::Held) => None,
            _ => Some(Duration::from_secs(1)),
        }
    }

    fn record(&mut self, record: &Record, state: &LoopState) -> io::Result<()> {
        self.since = record.at;
        if self.bell == Bell::Rings && Notice::of(record).is_some() {
            self.write("\u{7}")?;
        }
        if is_shown_below(&record.event) {
            return Ok(());
        }
        for talk in tell(record, state, &self.zone) {
            if talk.role == Role::Line {
                self.last = Some(talk.text.clone());
            }
            self.push(self.painted(&talk))?;
        }
        Ok(())
    }

    fn cleaner(&self, _: Source) -> Clean {
        Clean::new(self.terminal.paint.colours()).returns(Returns::Pass)
    }

    fn output(&mut self, source: Source, shown: &Shown) -> io::Result<()> {
        let mut lines = Vec::new();
        self.lines[source as usize].push(shown, |line| lines.push(line));
        self.push_all(source, lines)
    }

    fn spent(&mut self, spent: &Spent) -> io::Result<()> {
        self.used = *spent;
        Ok(())
    }

    fn skipped(&mut self, iteration: u32, bytes: u64) -> io::Result<()> {
        // What was begun is not continued by what comes now.
        self.lines[Source::Stdout as usize].finish(|_| {});
        let text = skip_words(iteration, bytes);
        let line = self.terminal.paint.text(Tone::Dim, &text);
        self.push(line)
    }

    fn run_over(&mut self) -> io::Result<()> {
        // From here on it is part of what the loop has spent.
        self.used = Spent::default();
        for source in [Source::Stdout, Source::Stderr] {
            let mut lines = Vec::new();
            self.lines[source as usize].finish(|line| lines.push(line));
            self.push_all(source, lines)?;
        }
        Ok(())
    }
}

/// What the region says for as long as it holds: a line above it would say it twice.
fn is_shown_below(event: &Event) -> bool {
    match event {
        Event::Paused => true,
        Event::StopRequested { by } => matches!(by, StopBy::Interrupt | StopBy::InterruptAgain),
        _ => false,
    }
}

/// What stands where output was passed over.
pub fn skip_words(iteration: u32, bytes: u64) -> String {
    format!(
        "[… {} not shown: descartes loop logs {iteration} …]",
        show_size(bytes)
    )
}

/// What becomes of a stop that was asked for. Ctrl-C counts here before the host has written it down.
fn stopping(state: &LoopState, interrupts: u32) -> Option<&'static str> {
    Some(match (state.requests.stop, interrupts) {
        (None, 0) => return None,
        (_, 3..) => "killing the agent",
        (None | Some(StopBy::Interrupt), 0 | 1) => {
            "stopping after this iteration, Ctrl-C again ends it now"
        }
        _ => "ending the agent, Ctrl-C again kills it",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_kernel::config::IterativeLoopConfig;
    use descartes_kernel::event::{FORMAT, TreeFacts};
    use descartes_kernel::transition::{apply, begin};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn started() -> LoopState {
        let began = at("2026-01-02T10:00:00Z");
        let created = Event::LoopCreated {
            loop_id: "x".into(),
            name: "x".into(),
            config: Box::new(IterativeLoopConfig {
                command: "agent".into(),
                ..Default::default()
            }),
            started_at: began,
            iterations: 0,
            summaries: vec![],
            spent: None,
            ended: None,
        };
        let mut state = begin(&Record {
            v: FORMAT,
            seq: 0,
            at: began,
            event: created,
        })
        .unwrap();
        let run = Event::RunStarted {
            run: 1,
            iteration: 1,
            agent: 0,
            guard_pid: None,
            prompt: String::new(),
            prompt_bytes: 0,
            before: TreeFacts::default(),
            notes: vec![],
        };
        apply(
            &mut state,
            &Record {
                v: FORMAT,
                seq: 1,
                at: began,
                event: run,
            },
        )
        .unwrap();
        state
    }

    #[test]
    fn the_terminal_rings_when_a_person_should_look_and_only_then() {
        let state = started();
        let rings = |bell, event| {
            let signal = Signal::new().unwrap();
            let mut live = Live::new(Vec::new(), signal, Paint::Plain, true, bell);
            let record = Record {
                v: FORMAT,
                seq: 2,
                at: state.started_at,
                event,
            };
            live.record(&record, &state).unwrap();
            live.out.contains(&7)
        };
        let over = || Event::LoopFinished {
            reason: descartes_kernel::outcome::IterativeExitReason::GatesPassed,
        };
        assert!(rings(Bell::Rings, over()));
        assert!(!rings(Bell::Silent, over()));
        assert!(!rings(Bell::Rings, Event::Nudged { iterations: 5 }));
    }

    #[test]
    fn a_stop_and_a_pause_are_told_once_while_they_hold() {
        let mut state = started();
        let mut live = Live::new(
            Vec::new(),
            Signal::new().unwrap(),
            Paint::Plain,
            true,
            Bell::Silent,
        );
        let ready = Event::IterationInterrupted {
            iteration: 1,
            run: 1,
            spent_ms: 0,
            tokens: None,
            cost: None,
        };
        let stop = Event::StopRequested {
            by: StopBy::Interrupt,
        };
        let mut shown = String::new();
        for (seq, event) in (2..).zip([stop, ready, Event::Paused]) {
            let record = Record {
                v: FORMAT,
                seq,
                at: state.started_at,
                event,
            };
            apply(&mut state, &record).unwrap();
            live.record(&record, &state).unwrap();
            live.draw(&state, state.started_at).unwrap();
            shown = String::from_utf8(std::mem::take(&mut live.out)).unwrap();
            if seq == 2 {
                assert_eq!(shown.matches("stopping").count(), 1, "{shown}");
            }
            // The next frame is drawn whole.
            live.screen = Screen::default();
            state.requests.stop = None;
        }
        assert_eq!(shown.matches("paused").count(), 1, "{shown}");
    }

    #[test]
    fn the_rungs_of_ctrl_c_show_before_the_host_has_written_them_down() {
        let mut state = started();
        let says = |state: &LoopState, interrupts, words| {
            let stop = stopping(state, interrupts).unwrap();
            assert!(stop.starts_with(words), "{interrupts}: {stop}");
        };
        assert_eq!(stopping(&state, 0), None);
        says(&state, 1, "stopping after this iteration");
        state.requests.stop = Some(StopBy::Interrupt);
        says(&state, 1, "stopping after this iteration");
        says(&state, 2, "ending the agent");
        says(&state, 3, "killing the agent");
        state.requests.stop = Some(StopBy::Terminate);
        says(&state, 0, "ending the agent");
    }

    #[test]
    fn unfinished_lines_show_in_the_region_and_finished_ones_above_it() {
        let state = started();
        let mut live = Live::new(
            Vec::new(),
            Signal::new().unwrap(),
            Paint::Plain,
            true,
            Bell::Rings,
        );
        live.output(
            Source::Stdout,
            &display::bytes(b"whole\npart", Colours::Keep),
        )
        .unwrap();
        live.draw(&state, at("2026-01-02T10:00:05Z")).unwrap();
        let drawn = String::from_utf8(std::mem::take(&mut live.out)).unwrap();
        assert!(drawn.starts_with("whole\npart\n───"), "{drawn}");
        assert!(drawn.contains("agent: agent · 5s"), "{drawn}");
        live.output(Source::Stdout, &display::bytes(b"ly\n", Colours::Keep))
            .unwrap();
        live.finish().unwrap();
        let drawn = String::from_utf8(live.out).unwrap();
        assert!(drawn.ends_with("partly\n"), "{drawn}");
    }
}
