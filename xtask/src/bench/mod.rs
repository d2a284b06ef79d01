//! `cargo xtask bench`: what it costs, and how quickly it lets go.

pub mod corpus;
pub mod crowd;
pub mod gap;
pub mod history;
pub mod idle;
pub mod mcp;
pub mod output;
pub mod parse;
pub mod promise;
pub mod sandbox;
pub mod stop;
pub mod stuck;
pub mod views;

use crate::lab::build::{self, Faults};
use crate::lab::{self, Measure};

const MEASURES: &[Measure] = &[
    Measure {
        name: "corpus",
        about: "labelled claims and what only looks like one (M4)",
        take: corpus::take,
    },
    Measure {
        name: "stop",
        about: "from a request to stop until everything is gone (M6)",
        take: stop::take,
    },
    Measure {
        name: "promise",
        about: "a promise and then silence; a pipe that is held (M5)",
        take: promise::take,
    },
    Measure {
        name: "stuck",
        about: "who is called stuck and who is not; limits of a provider (M13)",
        take: stuck::take,
    },
    Measure {
        name: "output",
        about: "floods of output: speed, memory, every byte (M2, M3)",
        take: output::take,
    },
    Measure {
        name: "parse",
        about: "streams of agents: speed and memory of their parsers (M-parse)",
        take: parse::take,
    },
    Measure {
        name: "history",
        about: "the next iteration after 100,000 (M10)",
        take: history::take,
    },
    Measure {
        name: "gap",
        about: "from the end of one agent to the start of the next (M1)",
        take: gap::take,
    },
    Measure {
        name: "sandbox",
        about: "what a run in a sandbox costs over one without",
        take: sandbox::take,
    },
    Measure {
        name: "idle",
        about: "a silent agent, start, size (M14)",
        take: idle::take,
    },
    Measure {
        name: "views",
        about: "the terminal view: soon, long histories, many loops, idle",
        take: views::take,
    },
    Measure {
        name: "mcp",
        about: "how soon the MCP server answers a client",
        take: mcp::take,
    },
];

/// `bench [--short] [MEASURE…]`.
pub fn run(rest: &[String]) -> Result<(), String> {
    let (form, wanted) = lab::wanted(rest, MEASURES)?;
    let lab = build::lab(form, Faults::Not)?;
    lab::take(&lab, MEASURES, &wanted)
}
