//! `cargo xtask web`: `descartes serve` asked over HTTP, and its pages in a real browser, with a stop watch.

mod list;
mod long;
mod screen;
mod served;
mod streams;

use crate::lab::build::{self, Faults};
use crate::lab::{self, Measure};

/// Its name in rows.
const MEASURE: &str = "web";

const MEASURES: &[Measure] = &[
    Measure {
        name: "web-list",
        about: "the list of many finished loops, beside `loop list --json`",
        take: list::take,
    },
    Measure {
        name: "web-long",
        about: "pages of a loop with 100,000 iterations and 10 GB of output, beside those of a small one",
        take: long::take,
    },
    Measure {
        name: "web-screen",
        about: "from an agent's line to the screen of a real browser; seven windows of one browser",
        take: screen::take,
    },
    Measure {
        name: "web-streams",
        about: "what 100 event streams cost, and that the loops do not notice them",
        take: streams::take,
    },
];

/// `web [--short] [MEASURE…]`. What needs a browser says so where there is none.
pub fn run(rest: &[String]) -> Result<(), String> {
    let (form, wanted) = lab::wanted(rest, MEASURES)?;
    lab::take(&build::lab(form, Faults::Not)?, MEASURES, &wanted)
}
