//! A scripted model server to be used from a shell; see `descartes_testkit::model`.
//!
//! `descartes-scripted-model [PORT] [SCRIPT.json]` prints its address and answers until it is ended.

use std::io::Write;
use std::process::ExitCode;

use descartes_testkit::model::ModelServer;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let server = ModelServer::start_on(port)?;
    if let Some(file) = arguments.next() {
        let script = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        server.lane("default", serde_json::from_str(&script)?);
    }
    writeln!(std::io::stdout(), "{}", server.root_url())?;
    loop {
        std::thread::park();
    }
}
