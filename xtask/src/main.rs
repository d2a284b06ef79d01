//! The project's own commands. `cargo xtask` lists them.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a tool for the terminal"
)]

mod agents;
mod bench;
mod check;
mod deny;
mod faults;
mod fleet;
mod fuzz;
mod gui;
mod lab;
mod lines;
mod load;
mod one_by_one;
mod page;
mod peers;
mod shell;
mod suite;
mod system_tools;
mod tasks;
mod test_groups;
mod typos;
mod web;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test      the everyday suite: builds, then every test that needs git and a shell, and documentation examples
  services  the tests that start a browser or an engine's server
  load      all tests twice, and ten times those that look at a clock, beside busy loops and writers to the disk
              [--short]
  check     format, spelling, licences and sources of dependencies, structure, lints, documentation
  lines     product code in lines, files that import each other in a circle, crowded type names
              [--shrink] [FOLDER]
  bench     measures against their floors
              [--short] [MEASURE…]
  faults    everything that can go wrong, tried, and what was lost
              [--short] [CAMPAIGN…]
  agents    the real agent CLIs under descartes: loops, faults, stops, CPU; --drift: their newest versions
              [--short] [AGENT…]
  tasks     graphs of tasks: at scale, killed, beside the real scud
              [--short] [MEASURE…]
  peers     other loops on the same work, beside descartes; `--install` gets them
              [--short] [MEASURE…] | --install [PEER…]
  system-install gets what tests and campaigns use of Debian's packages, as root: bwrap, Chromium, Xvfb, …
  scud-install   builds the real scud for it, which takes minutes
  lists-install  gets openspec, task-master, backlog, specify and br for it, which takes minutes
  gui       the real window on a hidden display: clicks, speed; skipped where Xvfb is missing
              [--short] [MEASURE…]
  web       the pages of `descartes serve`, over HTTP and in Chromium: speed, cost
              [--short] [MEASURE…]
  fleet     a real engine with simulated workers: speed, deaths, zombies, lost engines; skipped without nats-server
              [--short] [MEASURE…]
  fuzz      every parser, fed with changed inputs; what breaks it is kept
              [--seconds N] [--seed N] [TARGET…]
  page      writes docs/measurements.md from the rows of the last long runs
              [--short]: from short ones, to target/measurements/page.short.md
  ci        check, test, and the short form of every measure and campaign
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let done = match command {
        "test" => suite::run_all(rest, suite::Extent::Everyday),
        "services" => suite::run_services(rest, suite::Extent::Everyday),
        one_by_one::VERB => one_by_one::run(rest),
        "lines" => lines::run(rest),
        "load" => load::run(rest),
        "check" => check::check(),
        "bench" => bench::run(rest),
        "faults" => faults::run(rest),
        "agents" => agents::run_all(rest),
        "tasks" => tasks::run(rest),
        "system-install" => system_tools::install(),
        "scud-install" => tasks::install(),
        "lists-install" => tasks::install_list_tools(),
        "peers" => peers::run(rest),
        "page" => page::run(rest),
        "gui" => gui::run(rest),
        "web" => web::run(rest),
        "fleet" => fleet::run(rest),
        "fuzz" => fuzz::run(rest),
        "ci" => check::ci(),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command `{other}`\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
