//! What is told of a loop that somebody waits for: a line whenever it stands differently.

use descartes_kernel::event::{Event, GateEnd, Record};
use descartes_kernel::state::LoopState;
use descartes_text::display::one_line;
use descartes_text::units::cut_str;
use descartes_views::view::{Head, Life, Status, activity};
use jiff::Timestamp;

/// Bytes of a line.
const LONGEST: usize = 300;

/// The line for a record, given the state after it; `None` where it says nothing new.
pub fn line(record: &Record, state: &LoopState) -> Option<String> {
    let head = Head::of(state, Life::Alive).progress();
    let text = match &record.event {
        Event::GateFinished { facts, .. } => {
            let how = match facts.end {
                _ if facts.passed() => "passed",
                GateEnd::Cancelled => "cancelled",
                _ => "failed",
            };
            format!("{head}: gate {how}: {}", facts.command)
        }
        Event::LoopFinished { .. } => {
            let status = Status::of(state, Life::Alive);
            match status.end_sentence() {
                Some(sentence) => format!("{}: {sentence}", status.label()),
                None => status.label().to_owned(),
            }
        }
        Event::IterationFinished { iteration, .. } => format!("iteration {iteration} is over"),
        Event::RunStarted { .. }
        | Event::AgentEnded { .. }
        | Event::WaitStarted { .. }
        | Event::WaitEnded { .. }
        | Event::Paused
        | Event::Unpaused
        | Event::Tasks { .. } => {
            let now = activity(state, record.at, Timestamp::now());
            format!("{head}: {}", now.line.text)
        }
        _ => return None,
    };
    let text = one_line(&text);
    Some(match cut_str(&text, LONGEST) {
        cut if cut.len() < text.len() => format!("{cut} …"),
        whole => whole.to_owned(),
    })
}

/// What is told after a silence, so that clients that count time begin anew.
pub fn still(state: &LoopState, life: Life) -> String {
    let (head, now) = (Head::of(state, life), Timestamp::now());
    let secs = head.elapsed(now).as_secs();
    one_line(&format!(
        "{}, {} for {secs} s",
        head.progress(),
        head.status.label()
    ))
}
