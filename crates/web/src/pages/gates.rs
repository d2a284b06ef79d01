//! A gate as it was run.

use descartes_views::view::GateRow;
use descartes_views::words;
use maud::{Markup, html};

use super::text::{block, code, pill};

/// Command, how it ended, the last of its output.
pub fn gate_run(gate: &GateRow) -> Markup {
    html! {
        div.gate {
            p { (pill(&gate.verdict())) " " (code(&gate.command)) " " span.dim { (words::millis(gate.duration_ms)) } }
            @if !gate.tail.trim().is_empty() { (block(&gate.tail)) }
        }
    }
}
