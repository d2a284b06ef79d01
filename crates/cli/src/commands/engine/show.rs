//! What `descartes engine` prints.

use descartes_bridge::engine_command::{EngineReport, EngineState};

use crate::error::CliError;
use crate::printer::Printer;

/// Above this a disk cannot take the leases of many workers.
const SLOW_WRITE_US: u64 = 5000;

pub fn json(report: &EngineReport, printer: &Printer) -> Result<i32, CliError> {
    printer.json(report);
    Ok(0)
}

pub fn started(report: &EngineReport, printer: &Printer) -> Result<i32, CliError> {
    let EngineReport::Started {
        address,
        pid,
        server,
        already,
        waits_for,
    } = report
    else {
        return Err(unexpected(report));
    };
    let said = match already {
        true => "the engine runs already",
        false => "the engine runs",
    };
    printer.line(&format!(
        "{said} at {address} (nats-server {server}, process {pid})"
    ));
    if !waits_for.is_empty() {
        printer.talk(&format!(
            "nothing can be stored before the other servers of its cluster run: {}",
            waits_for.join(", ")
        ));
    }
    printer.hint("a key for a worker: descartes engine join-token worker-1");
    Ok(0)
}

/// Each server of a cluster has a file of its own with the keys.
fn hint_others(others: &[String], printer: &Printer) {
    if !others.is_empty() {
        printer.hint(&format!(
            "copy engine/setup.json of the state folder to {}, and type there: descartes engine start",
            others.join(" and ")
        ));
    }
}

pub fn checked(report: &EngineReport, printer: &Printer) -> Result<i32, CliError> {
    let EngineReport::Checked {
        address,
        server,
        write_us,
        marker_ms,
    } = report
    else {
        return Err(unexpected(report));
    };
    printer.line(&format!("{address}: nats-server {server}"));
    printer.line("  refuses what does not know the last value");
    printer.line(&format!(
        "  left a marker {marker_ms} ms after a lease of one second was taken"
    ));
    let write = *write_us;
    let (millis, hundredths) = (write / 1000, write % 1000 / 10);
    printer.line(&format!(
        "  a synced write takes {millis}.{hundredths:02} ms (median of 21)"
    ));
    if write > SLOW_WRITE_US {
        let writes = 1_000_000 / write.max(1);
        printer.warning(&format!(
            "that is a slow disk: about {writes} writes a second, enough for {} workers with a beat every 15 s",
            writes * 15 / 2
        ));
    }
    Ok(0)
}

pub fn status(report: &EngineReport, printer: &Printer) -> Result<i32, CliError> {
    let EngineReport::Status(state) = report else {
        return Err(unexpected(report));
    };
    let EngineState {
        address,
        pid,
        server,
        keys,
        workers,
        trouble,
        ..
    } = state;
    match (address, pid) {
        (Some(address), Some(pid)) => {
            let server = server.as_deref().unwrap_or("of unknown version");
            printer.line(&format!(
                "running at {address} (nats-server {server}, process {pid})"
            ));
        }
        (Some(address), None) => {
            printer.line(&format!("not running; it was at {address}"));
            printer.hint("descartes engine start");
        }
        (None, _) => {
            printer.line("no engine was started here");
            printer.hint("descartes engine start");
        }
    }
    let named = |names: &[String]| match names.is_empty() {
        true => "nobody".to_owned(),
        false => names.join(", "),
    };
    if address.is_some() {
        printer.line(&format!("  keys     {}", named(keys)));
    }
    if pid.is_some() {
        printer.line(&format!("  workers  {}", named(workers)));
    }
    match trouble {
        None => Ok(0),
        Some(trouble) => Err(CliError::failed(&trouble.message, &trouble.hint)),
    }
}

pub fn stopped(report: &EngineReport, printer: &Printer) -> Result<i32, CliError> {
    match report {
        EngineReport::Stopped { was_running: true } => {
            printer.line("the engine is stopped; its keys and data stay");
            Ok(0)
        }
        EngineReport::Stopped { was_running: false } => {
            printer.line("the engine was not running");
            Ok(0)
        }
        other => Err(unexpected(other)),
    }
}

/// The line to type alone on stdout: it can be piped to another machine.
pub fn token(report: &EngineReport, printer: &Printer) -> Result<i32, CliError> {
    let EngineReport::Token {
        name,
        engine,
        loopback,
        others,
    } = report
    else {
        return Err(unexpected(report));
    };
    printer.line(&format!("descartes worker --engine '{engine}'"));
    printer.talk(&format!(
        "this line has the key of {name}: it is shown once and kept nowhere here"
    ));
    hint_others(others, printer);
    if *loopback {
        printer.hint("for other machines: descartes engine stop, then descartes engine start --listen 0.0.0.0:4222");
    }
    Ok(0)
}

pub fn revoked(report: &EngineReport, printer: &Printer) -> Result<i32, CliError> {
    let EngineReport::Revoked {
        name,
        running,
        others,
    } = report
    else {
        return Err(unexpected(report));
    };
    let cut = match running {
        true => "its connections are cut",
        false => "the engine does not run",
    };
    printer.line(&format!("{name} has no key any more; {cut}"));
    hint_others(others, printer);
    Ok(0)
}

fn unexpected(report: &EngineReport) -> CliError {
    CliError::refused(
        format!("descartes-fleet answered something else: {report:?}"),
        "install descartes and descartes-fleet of one version",
    )
}
