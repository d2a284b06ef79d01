//! The region at the bottom of the terminal, as a pure function of what is known: lines that
//! fit the width, whatever it is.

use std::time::Duration;

use descartes_views::view::{Activity, Head, short_progress};

use super::width::{cut_end, cut_start, one_line, width};
use super::words;
use crate::style::{Paint, Tone};

/// Everything that the region shows.
#[derive(Clone, Debug)]
pub struct Facts {
    pub head: Head,
    /// Time of agents and gates in all.
    pub spent: Duration,
    /// Tokens and dollars, where they are known.
    pub cost: Vec<String>,
    pub activity: Activity,
    /// What becomes of a stop that was asked for.
    pub stopping: Option<&'static str>,
    /// The last thing that happened.
    pub last: Option<String>,
    /// Output of a line that has no end yet.
    pub partial: String,
    /// The wave under way, in a task loop.
    pub wave: Option<String>,
    /// Tasks that are blocked.
    pub blocked: usize,
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
        piece(9, Tone::Strong, title(&facts.head, room)),
        piece(8, Tone::Normal, words::seconds(facts.spent)),
    ];
    pieces.extend(facts.wave.as_ref().map(|wave| piece(6, Tone::Normal, wave)));
    if facts.blocked > 0 {
        pieces.push(piece(7, Tone::Warn, format!("{} blocked", facts.blocked)));
    }
    let cost = (4..).zip(&facts.cost);
    pieces.extend(cost.map(|(importance, text)| piece(importance, Tone::Normal, text)));
    let pieces = fitting(pieces, room);
    // The bar takes what is left, at least its two brackets, a blank and a few cells.
    let left = room.saturating_sub(total(&pieces) + 3);
    let mut texts = painted(&pieces, room, terminal);
    if let (Some(fraction), NARROWEST_BAR..) = (facts.head.fraction(), left) {
        let bar = bar(fraction, left.min(WIDEST_BAR), terminal);
        texts[0].push_str(&format!(" {bar}"));
    }
    texts.join(&gap(terminal))
}

fn title(head: &Head, room: usize) -> String {
    let long = head.progress();
    match width(&long) + 8 <= room {
        true => long,
        false => short_progress(head.iteration, head.limit, head.tasks).0,
    }
}

fn bar(fraction: f64, cells: usize, terminal: Terminal) -> String {
    let full = (cells as f64 * fraction).floor() as usize;
    let (on, off) = match terminal.utf8 {
        true => ("█", "░"),
        false => ("#", "."),
    };
    format!("[{}{}]", on.repeat(full), off.repeat(cells - full))
}

fn doing_line(facts: &Facts, room: usize, terminal: Terminal) -> String {
    if let Some(stop) = facts.stopping {
        return join(vec![piece(9, Tone::Warn, stop)], room, terminal);
    }
    let Activity { line, elapsed } = &facts.activity;
    let time = elapsed.map(words::seconds);
    let tail = time.as_ref().map_or(0, |time| width(time) + GAP);
    let text = cut_end(&line.text, room.saturating_sub(tail).max(8));
    let mut pieces = vec![piece(9, line.tone, text)];
    pieces.extend(time.map(|time| piece(8, Tone::Normal, time)));
    join(pieces, room, terminal)
}

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
    use descartes_views::view::Status;

    fn terminal(columns: u16) -> Terminal {
        Terminal {
            columns,
            rows: 24,
            paint: Paint::Plain,
            utf8: true,
        }
    }

    fn doing(text: &str, secs: u64) -> Activity {
        Activity {
            line: text.to_owned().into(),
            elapsed: Some(Duration::from_secs(secs)),
        }
    }

    fn facts() -> Facts {
        Facts {
            head: Head {
                title: "auth".into(),
                status: Status::Running,
                iteration: 3,
                limit: Some(20),
                tasks: None,
                started_at: Default::default(),
                ended_at: None,
                spent: Default::default(),
            },
            wave: None,
            blocked: 0,
            spent: Duration::from_millis(252_400),
            cost: vec!["12.3k tokens".into(), "$0.41".into()],
            activity: doing("gate 1 of 2: cargo test --workspace", 12),
            stopping: None,
            last: Some("iteration 2: refused by cargo test (exit code 101)".into()),
            partial: String::new(),
        }
    }

    #[test]
    fn at_eighty_columns_everything_is_there() {
        let got = lines(&facts(), terminal(80)).join("\n");
        insta::assert_snapshot!(got, @r"
        ────────────────────────────────────────────────────────────────────────
        iteration 3 of at most 20 [███░░░░░░░░░░░░░░░░░] · 4m12s · 12.3k tokens · $0.41
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
        wide.activity = doing(&"日本語 のとても長い コマンド ".repeat(9), 9_000);
        wide.partial = "entwürfe…🎉".repeat(30);
        wide.last = Some("x\ty\n".repeat(60));
        wide.head.limit = None;
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
    fn a_stop_and_the_wave_of_a_task_loop_show() {
        let mut facts = facts();
        facts.stopping = Some("ending the agent");
        let got = lines(&facts, terminal(80)).join("\n");
        assert!(got.contains("ending the agent"), "{got}");
        facts.head.tasks = Some((2, 5));
        facts.wave = Some("wave 1 of 2".into());
        facts.blocked = 1;
        let got = &lines(&facts, terminal(100))[1];
        assert!(got.starts_with("2 of 5 tasks done [████████░"), "{got}");
        assert!(got.contains("wave 1 of 2 · 1 blocked"), "{got}");
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
