//! The real agent CLIs of the tests.
//!
//! `descartes-real-agents install [AGENT…]` installs them, `versions` lists them,
//! `try [AGENT…]` has each write a file by a tool call, and
//! `record DIR [AGENT[-CASE]…]` records their streams as fixtures.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use descartes_testkit::World;
use descartes_testkit::model::ModelServer;
use descartes_testkit::real_clis::{self, Options, RealCli, record};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["install", names @ ..] => install(names),
        ["versions"] => versions(),
        ["try", names @ ..] => attempt(names),
        ["record", folder, names @ ..] => record_all(Path::new(folder), names),
        _ => Err(
            "type one of: install [AGENT…], versions, try [AGENT…], record DIR [AGENT[-CASE]…]"
                .into(),
        ),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn chosen(names: &[&str]) -> Result<Vec<RealCli>, Failure> {
    if names.is_empty() {
        return Ok(RealCli::ALL.to_vec());
    }
    let find =
        |name: &&str| RealCli::from_name(name).ok_or_else(|| format!("no agent {name:?}").into());
    names.iter().map(find).collect()
}

fn install(names: &[&str]) -> Result<(), Failure> {
    for cli in chosen(names)? {
        real_clis::install(cli)?;
    }
    versions()
}

fn versions() -> Result<(), Failure> {
    for cli in RealCli::ALL {
        let version = real_clis::version(cli).unwrap_or_else(|| "not installed".into());
        say(format_args!("{} {version}", cli.name()));
    }
    Ok(())
}

/// A file is written, and said to be.
fn attempt(names: &[&str]) -> Result<(), Failure> {
    let server = ModelServer::start()?;
    for cli in chosen(names)? {
        let world = World::new();
        server.lane(
            cli.name(),
            cli.script(&serde_json::json!([
                cli.writes("I will write it.", "written.txt", "hello\n"),
                cli.ends("It is written. <promise>COMPLETE</promise>"),
            ])),
        );
        let launch = cli.launch(&world, &server.url(cli.name()), &Options::default());
        let launch = launch.ok_or("not installed; type: descartes-real-agents install")?;
        let start = Instant::now();
        let run = world.run_within(
            launch.command(&world, record::PROMPT),
            Duration::from_secs(120),
        );
        let requests = server.log(cli.name()).len();
        let seconds = start.elapsed().as_secs_f32();
        if !world.has("written.txt") || requests < cli.requests_of_a_run() {
            return Err(format!("{} did not do it\n{run}", cli.name()).into());
        }
        say(format_args!(
            "{}: ok, {requests} requests, {seconds:.1} s, {}",
            cli.name(),
            run.status
        ));
    }
    Ok(())
}

fn record_all(folder: &Path, names: &[&str]) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    let server = ModelServer::start()?;
    for cli in RealCli::ALL {
        for case in record::cases() {
            let name = format!("{}-{}", cli.name(), case.name);
            let wanted = names.is_empty()
                || names
                    .iter()
                    .any(|given| *given == cli.name() || *given == name);
            if wanted && let Some(recorded) = record::record(&server, cli, &case, folder) {
                say(format_args!(
                    "{name}: exit {:?}, {} requests",
                    recorded.exit, recorded.requests
                ));
            }
        }
    }
    Ok(())
}
