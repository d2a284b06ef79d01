//! The region at the bottom of the terminal, as a pure function of what is known: lines that
//! fit the width, whatever it is.

use std::time::Duration;

use super::width::{cut_end, cut_start, one_line, width};
use super::words;
use crate::style::{Paint, Tone};
use descartes_text::units::plural;

/// What is going on.
#[derive(Clone, Debug, PartialEq)]
pub enum Doing {
    /// Between two iterations.
    Starting,
    /// The agent works.
    Agent { command: String, elapsed: Duration },
    /// A gate runs.
    Gate {
        /// Which, from 1.
        number: usize,
        /// Of how many.
        of: usize,
        command: String,
        elapsed: Duration,
    },
    /// The iteration is measured and committed.
    Closing,
    /// The loop waits.
    Waiting {
        /// For how long yet.
        left: Duration,
        why: String,
    },
    /// A person holds it.
    Paused,
    /// Tasks are worked on or merged.
    Tasks {
        at_work: String,
        /// Since when the first of them is.
        elapsed: Duration,
    },
}

/// How far a task loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// Tasks that are done.
    pub done: u32,
    pub total: u32,
    /// The wave under way.
    pub wave: u32,
    /// All waves.
    pub waves: u32,
    /// Tasks that are blocked.
    pub blocked: u32,
}

/// A stop that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopping {
    No,
    /// After this iteration.
    AfterIteration,
    /// Now, with grace.
    Now,
    /// By force.
    Kill,
}

/// Everything that the region shows.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The iteration under way, from 1.
    pub iteration: u32,
    /// Iterations that are over.
    pub finished: u32,
    pub limit: Option<u32>,
    /// Time of agents and gates in all.
    pub spent: Duration,
    /// Tokens and dollars, where they are known.
    pub cost: Vec<String>,
    /// What is going on.
    pub doing: Doing,
    /// Whether the end was asked for.
    pub stopping: Stopping,
    /// The last thing that happened.
    pub last: Option<String>,
    /// Output of a line that has no end yet.
    pub partial: String,
    /// How far it is, in a task loop.
    pub tasks: Option<Tasks>,
}

/// The terminal that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    pub columns: u16,
    pub rows: u16,
    pub paint: Paint,
    /// Whether more than ASCII is shown.
    pub utf8: bool,
}

/// Below so many rows the region is one line.
const FEW_ROWS: u16 = 8;
const WIDEST_RULE: usize = 72;
const WIDEST_BAR: usize = 20;
const NARROWEST_BAR: usize = 5;
/// Columns between two pieces.
const GAP: usize = 3;

/// A piece of a line; the least important go first where there is no room.
struct LinePart {
    tone: Tone,
    text: String,
    importance: u8,
}

fn piece(importance: u8, tone: Tone, text: impl Into<String>) -> LinePart {
    LinePart {
        tone,
        text: text.into(),
        importance,
    }
}

/// The lines of the region, each narrower than the terminal: one that fills the last column
/// makes some terminals begin a new line.
pub fn lines(facts: &Facts, terminal: Terminal) -> Vec<String> {
    let room = usize::from(terminal.columns).saturating_sub(1).max(1);
    let status = status_line(facts, room, terminal);
    if terminal.rows < FEW_ROWS {
        return vec![status];
    }
    let rule = if terminal.utf8 { "─" } else { "-" }.repeat(room.min(WIDEST_RULE));
    let mut out = Vec::new();
    if !facts.partial.is_empty() {
        out.push(fit_ascii(
            &cut_start(&one_line(&facts.partial), room),
            terminal,
        ));
    }
    out.push(terminal.paint.text(Tone::Dim, &rule));
    out.push(status);
    out.push(doing_line(facts, room, terminal));
    if let Some(last) = &facts.last {
        let text = cut_end(&one_line(last), room);
        out.push(terminal.paint.text(Tone::Dim, &fit_ascii(&text, terminal)));
    }
    out
}

/// `iteration 3 of at most 20 [███░░░] · 42s · 12.3k tokens · $0.41`
fn status_line(facts: &Facts, room: usize, terminal: Terminal) -> String {
    let mut pieces = vec![
        title(facts, room),
        piece(8, Tone::Normal, words::seconds(facts.spent)),
    ];
    if let Some(blocked) = facts.tasks.map(|tasks| tasks.blocked).filter(|n| *n > 0) {
        pieces.push(piece(7, Tone::Warn, format!("{blocked} blocked")));
    }
    // Dollars stand last and matter more than tokens.
    let cost = (4..).zip(&facts.cost);
    pieces.extend(cost.map(|(importance, text)| piece(importance, Tone::Normal, text.as_str())));
    let pieces = fitting(pieces, room);
    let left = room.saturating_sub(total(&pieces) + 3);
    let mut texts = painted(&pieces, room, terminal);
    // The bar takes what room is left, or none.
    let (finished, limit) = match &facts.tasks {
        Some(tasks) => (tasks.done, Some(tasks.total)),
        None => (facts.finished, facts.limit),
    };
    if let (Some(limit), true) = (limit, left >= NARROWEST_BAR) {
        let bar = bar(finished, limit, left.min(WIDEST_BAR), terminal);
        texts[0].push_str(&format!(" {bar}"));
    }
    texts.join(&gap(terminal))
}

fn title(facts: &Facts, room: usize) -> LinePart {
    if let Some(tasks) = &facts.tasks {
        let Tasks {
            done,
            total,
            wave,
            waves,
            ..
        } = tasks;
        let all = plural(u64::from(*total), "task");
        let long = format!("{done} of {all}, wave {wave} of {waves}");
        let text = match width(&long) + 8 <= room {
            true => long,
            false => format!("{done}/{total}"),
        };
        return piece(9, Tone::Strong, text);
    }
    let long = words::iteration(facts.iteration, facts.limit);
    let text = match facts.limit {
        _ if width(&long) + 8 <= room => long,
        Some(limit) => format!("{}/{}", facts.iteration, limit.max(facts.iteration)),
        None => format!("{}", facts.iteration),
    };
    piece(9, Tone::Strong, text)
}

/// Iterations that are over, against the limit.
fn bar(finished: u32, limit: u32, cells: usize, terminal: Terminal) -> String {
    let share = f64::from(finished.min(limit)) / f64::from(limit.max(1));
    let full = ((cells as f64) * share).floor() as usize;
    let (on, off) = if terminal.utf8 {
        ("█", "░")
    } else {
        ("#", ".")
    };
    format!("[{}{}]", on.repeat(full), off.repeat(cells - full))
}

fn doing_line(facts: &Facts, room: usize, terminal: Terminal) -> String {
    let stop = match facts.stopping {
        Stopping::No => None,
        Stopping::AfterIteration => Some("stopping after this iteration, Ctrl-C again ends it now"),
        Stopping::Now => Some("ending the agent, Ctrl-C again kills it"),
        Stopping::Kill => Some("killing the agent"),
    };
    if let Some(stop) = stop {
        return join(vec![piece(9, Tone::Warn, stop)], room, terminal);
    }
    let (tone, text, since) = match &facts.doing {
        Doing::Starting => (Tone::Normal, "starting".to_owned(), None),
        Doing::Agent { command, elapsed } => (
            Tone::Normal,
            format!("agent: {}", one_line(command)),
            Some(*elapsed),
        ),
        Doing::Gate {
            number,
            of,
            command,
            elapsed,
        } => {
            let which = if *of > 1 {
                format!("gate {number} of {of}")
            } else {
                "gate".to_owned()
            };
            (
                Tone::Warn,
                format!("{which}: {}", one_line(command)),
                Some(*elapsed),
            )
        }
        Doing::Closing => (Tone::Normal, "finishing the iteration".to_owned(), None),
        Doing::Waiting { left, why } => {
            let text = format!("waiting {}: {}", words::seconds(*left), one_line(why));
            (Tone::Warn, text, None)
        }
        Doing::Tasks { at_work, elapsed } => (Tone::Normal, one_line(at_work), Some(*elapsed)),
        Doing::Paused => (
            Tone::Warn,
            "paused, continue with: descartes loop unpause".to_owned(),
            None,
        ),
    };
    let time = since.map(words::seconds).unwrap_or_default();
    // The time at the end must not be pushed out by a long command.
    let tail = if time.is_empty() { 0 } else { width(&time) + 3 };
    let mut pieces = vec![piece(
        9,
        tone,
        cut_end(&text, room.saturating_sub(tail).max(8)),
    )];
    if !time.is_empty() {
        pieces.push(piece(8, Tone::Normal, time));
    }
    join(pieces, room, terminal)
}

/// Joins what fits; the first piece is cut where even it does not.
fn join(pieces: Vec<LinePart>, room: usize, terminal: Terminal) -> String {
    let pieces = fitting(pieces, room);
    painted(&pieces, room, terminal).join(&gap(terminal))
}

fn gap(terminal: Terminal) -> String {
    terminal
        .paint
        .text(Tone::Dim, if terminal.utf8 { " · " } else { " - " })
}

fn total(pieces: &[LinePart]) -> usize {
    let text: usize = pieces.iter().map(|piece| width(&piece.text)).sum();
    text + GAP * pieces.len().saturating_sub(1)
}

fn fitting(mut pieces: Vec<LinePart>, room: usize) -> Vec<LinePart> {
    while pieces.len() > 1 && total(&pieces) > room {
        let least = pieces.iter().map(|piece| piece.importance).min();
        let at = pieces
            .iter()
            .rposition(|piece| Some(piece.importance) == least);
        pieces.remove(at.unwrap_or(pieces.len() - 1));
    }
    pieces
}

fn painted(pieces: &[LinePart], room: usize, terminal: Terminal) -> Vec<String> {
    let paint = |piece: &LinePart| {
        let text = fit_ascii(&cut_end(&piece.text, room), terminal);
        terminal.paint.text(piece.tone, &text)
    };
    pieces.iter().map(paint).collect()
}

/// On a terminal without UTF-8, everything else becomes `?`.
fn fit_ascii(text: &str, terminal: Terminal) -> String {
    if terminal.utf8 {
        return text.to_owned();
    }
    text.chars()
        .map(|c| if c.is_ascii() { c } else { '?' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(columns: u16) -> Terminal {
        Terminal {
            columns,
            rows: 24,
            paint: Paint::Plain,
            utf8: true,
        }
    }

    fn facts() -> Facts {
        Facts {
            tasks: None,
            iteration: 3,
            finished: 2,
            limit: Some(20),
            spent: Duration::from_millis(252_400),
            cost: vec!["12.3k tokens".into(), "$0.41".into()],
            doing: Doing::Gate {
                number: 1,
                of: 2,
                command: "cargo test --workspace".into(),
                elapsed: Duration::from_secs(12),
            },
            stopping: Stopping::No,
            last: Some("iteration 2: refused by cargo test (exit code 101)".into()),
            partial: String::new(),
        }
    }

    #[test]
    fn at_eighty_columns_everything_is_there() {
        let got = lines(&facts(), terminal(80)).join("\n");
        insta::assert_snapshot!(got, @r"
        ────────────────────────────────────────────────────────────────────────
        iteration 3 of at most 20 [██░░░░░░░░░░░░░░░░░░] · 4m12s · 12.3k tokens · $0.41
        gate 1 of 2: cargo test --workspace · 12s
        iteration 2: refused by cargo test (exit code 101)
        ");
    }

    #[test]
    fn narrow_terminals_keep_what_matters() {
        let got = lines(&facts(), terminal(24)).join("\n");
        insta::assert_snapshot!(got, @r"
        ───────────────────────
        3/20 · 4m12s · $0.41
        gate 1 of 2: car… · 12s
        iteration 2: refused b…
        ");
    }

    #[test]
    fn every_line_fits_every_width() {
        let mut wide = facts();
        wide.doing = Doing::Agent {
            command: "日本語 のとても長い コマンド ".repeat(9),
            elapsed: Duration::from_secs(9_000),
        };
        wide.partial = "entwürfe…🎉".repeat(30);
        wide.last = Some("x\ty\n".repeat(60));
        wide.limit = None;
        for columns in 20..=200 {
            for facts in [&facts(), &wide] {
                for line in lines(facts, terminal(columns)) {
                    assert!(width(&line) < usize::from(columns), "{columns}: {line}");
                    assert!(!line.contains('\n'));
                }
            }
        }
        for columns in 0..20 {
            for line in lines(&wide, terminal(columns)) {
                assert!(
                    width(&line) <= usize::from(columns).max(1),
                    "{columns}: {line}"
                );
            }
        }
    }

    #[test]
    fn a_low_terminal_gets_one_line_and_one_without_utf8_gets_ascii() {
        let low = Terminal {
            rows: 5,
            ..terminal(80)
        };
        assert_eq!(lines(&facts(), low).len(), 1);
        let ascii = Terminal {
            utf8: false,
            ..terminal(80)
        };
        for line in lines(&facts(), ascii) {
            assert!(line.is_ascii(), "{line}");
        }
    }

    #[test]
    fn a_stop_says_what_the_next_ctrl_c_does() {
        for (stopping, words) in [
            (Stopping::AfterIteration, "after this iteration"),
            (Stopping::Now, "again kills"),
            (Stopping::Kill, "killing"),
        ] {
            let got = lines(
                &Facts {
                    stopping,
                    ..facts()
                },
                terminal(80),
            )
            .join("\n");
            assert!(got.contains(words), "{got}");
        }
    }

    #[test]
    fn waits_and_pauses_show() {
        let waiting = Doing::Waiting {
            left: Duration::from_secs(272),
            why: "usage limit, resets 3pm".into(),
        };
        let got = lines(
            &Facts {
                doing: waiting,
                ..facts()
            },
            terminal(80),
        )
        .join("\n");
        assert!(
            got.contains("waiting 4m32s: usage limit, resets 3pm"),
            "{got}"
        );
        let got = lines(
            &Facts {
                doing: Doing::Paused,
                ..facts()
            },
            terminal(80),
        )
        .join("\n");
        assert!(got.contains("descartes loop unpause"), "{got}");
    }

    #[test]
    fn colours_do_not_count_as_columns() {
        let painted = Terminal {
            paint: Paint::Colour,
            ..terminal(80)
        };
        let plain: Vec<String> = lines(&facts(), painted)
            .iter()
            .map(|line| descartes_text::display::text(line, descartes_text::display::Colours::Drop))
            .collect();
        assert_eq!(plain, lines(&facts(), terminal(80)));
    }
}
