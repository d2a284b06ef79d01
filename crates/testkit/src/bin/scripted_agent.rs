//! The scripted agent; its language is described in `descartes_testkit::agent`.

use std::process::ExitCode;

use descartes_testkit::{agent, stamp};

fn main() -> ExitCode {
    // Before anything else: every latency is computed from this number.
    let started = stamp::now_ns();
    agent::main(started)
}
