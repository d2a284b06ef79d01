//! What the newest versions of the CLIs do differently from those that the profiles were tested with.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use descartes_agents::agent::{Profile, Profiles, ResultState, RunSummary, parser};
use descartes_agents::promise::{PromiseMatch, PromiseSpec};
use descartes_agents::reader::{RunReader, Source};
use descartes_agents::run::{EndedBy, ExitStatus};
use descartes_testkit::model::ModelServer;
use descartes_testkit::real_clis::record::{self, Recorded};
use descartes_testkit::real_clis::{self, Installed, RealCli};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::shape::{more, shape};
use super::stage::Stage;
use super::table::{Table, seconds};
use super::{happy, stops};
use crate::lab::Form;
use crate::shell::{Step, root};

/// Recorded cases that are played again: words and a tool, words that are not the agent's own, a
/// wrong key, and what stands for a tool where there is none.
const CASES: [&str; 4] = ["tool", "tool-says-promise", "401", "edit"];

/// Installs the newest of each, plays the cases and prints what changed.
pub fn run(clis: Vec<RealCli>, binary: &Path) -> Step {
    let profiles = Profiles::builtin();
    let server = ModelServer::start().map_err(|error| format!("the model server: {error}"))?;
    let recorded = recordings()?;
    let mut table = Table::new();
    let (mut missing, wanted) = (Vec::new(), clis.len());
    for cli in clis {
        let began = Instant::now();
        match real_clis::install(cli) {
            Ok(Installed::Newest) => {}
            Ok(Installed::Fallback(error)) => {
                println!(
                    "{}: the newest version does not install, so an older one is tried: {error}",
                    cli.name()
                );
            }
            Err(error) => {
                println!("{}: could not be installed: {error}", cli.name());
                missing.push(cli.name());
                continue;
            }
        }
        let profile = profiles.get(cli.name()).ok_or("no such profile")?;
        println!("{}: {}", cli.name(), versions(cli, profile));
        let stage = |case: &str| Stage::new(binary, &server, cli, case);
        happy::run(&stage, Form::Short, &mut table)?;
        stops::cancel_once(&stage, &mut table);
        for (case, old) in &recorded {
            if let Some(case) = case.strip_prefix(cli.name()) {
                let case = case.trim_start_matches('-');
                if CASES.contains(&case) {
                    let seen = replay(&server, cli, profile, case, old);
                    table.add(cli.name(), &format!("recorded {case}"), seen);
                }
            }
        }
        println!("  {}", seconds(began.elapsed()));
    }
    if !missing.is_empty() {
        println!("not installed, so not tried: {}", missing.join(", "));
    }
    if missing.len() == wanted {
        return Err("none of the agents could be installed, so nothing was compared".to_owned());
    }
    table.finish(Form::Short)
}

fn versions(cli: RealCli, profile: &Profile) -> String {
    let tested = profile.known_version.as_deref().unwrap_or("unverified");
    match real_clis::version(cli) {
        Some(newest) if newest == tested => format!("{newest}, as tested"),
        Some(newest) => format!("{tested} → {newest}"),
        None => format!("{tested} → a version that its package does not tell"),
    }
}

fn folder() -> PathBuf {
    root().join("crates/agents/tests/fixtures/streams")
}

/// What happened in each recorded case.
fn recordings() -> Result<BTreeMap<String, Recorded>, String> {
    let file = folder().join("index.json");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Plays a recorded case again. It is wrong where it is understood otherwise; fields that came and
/// went are told.
fn replay(
    server: &ModelServer,
    cli: RealCli,
    profile: &Profile,
    name: &str,
    old: &Recorded,
) -> Result<String, String> {
    let cases = record::cases();
    let case = cases
        .iter()
        .find(|case| case.name == name)
        .ok_or("no such case")?;
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let new = record::record(server, cli, case, place.path()).ok_or("it is not installed")?;
    let file = format!("{}-{name}.{}", cli.name(), cli.extension());
    let [before, after] = [folder(), place.path().to_owned()]
        .map(|place| fs::read_to_string(place.join(&file)).unwrap_or_default());
    let changes = changes(&before, &after);
    for change in &changes {
        println!("       {name}: {change}");
    }
    let was = reading(profile, &before, old);
    let is = reading(profile, &after, &new);
    match was == is {
        true => Ok(format!("{is}; {} changes of format", changes.len())),
        false => Err(format!("was: {was}; is: {is}")),
    }
}

fn changes(before: &str, after: &str) -> Vec<String> {
    let (old, new) = (shape(before), shape(after));
    let gone = more(&new, &old).into_iter().map(|line| format!("- {line}"));
    let came = more(&old, &new).into_iter().map(|line| format!("+ {line}"));
    gone.chain(came).collect()
}

/// How a run is understood, in words.
fn reading(profile: &Profile, stream: &str, recorded: &Recorded) -> String {
    let ended = match recorded.exit {
        Some(code) => format!("exit {code}"),
        None => "no exit".to_owned(),
    };
    let told = match parser(profile.stream, profile.jsonl.as_ref()) {
        Ok(mut parser) if profile.stream.is_understood() => {
            let mut events = Vec::new();
            parser.push(stream.as_bytes(), &mut events);
            parser.finish(&mut events);
            let mut summary = RunSummary::default();
            events.iter().for_each(|event| summary.push(event));
            summary.finish(parser.trouble());
            understood(&summary)
        }
        _ => plain(profile, stream, recorded),
    };
    format!("{ended}, {told}")
}

fn understood(summary: &RunSummary) -> String {
    let result = match summary.result() {
        ResultState::Ok => "result ok".to_owned(),
        ResultState::Missing => "no result".to_owned(),
        ResultState::Error(failure) => format!("failed ({:?})", failure.kind),
    };
    let claims = match summary.claim_text().contains("<promise>COMPLETE</promise>") {
        true => "claims",
        false => "claims nothing",
    };
    format!(
        "{result}, {claims}, {} tool calls, tokens {}, cost {}, {} unknown events, {} bad lines",
        summary.tool_calls,
        told(summary.usage().total().is_some()),
        told(summary.cost().is_some()),
        summary.trouble.unknown_events,
        summary.trouble.bad_lines,
    )
}

fn told(is_told: bool) -> &'static str {
    if is_told { "told" } else { "not told" }
}

fn plain(profile: &Profile, stream: &str, recorded: &Recorded) -> String {
    let spec = PromiseSpec {
        done: Some("COMPLETE".to_owned()),
        abort: None,
        mode: PromiseMatch::Line,
    };
    let mut reader = RunReader::plain(&spec, record::PROMPT).with_errors(&profile.error_starts);
    reader.push(Source::Stdout, stream.as_bytes(), &mut Vec::new());
    let (exit, by) = match recorded.exit {
        Some(code) => (Some(ExitStatus::Code(code)), EndedBy::Exit),
        None => (None, EndedBy::Idle),
    };
    let report = reader.finish(exit, by, Timestamp::now(), &TimeZone::UTC);
    let claims = match report.claim {
        Some(_) => "claims",
        None => "claims nothing",
    };
    let limit = report.limit.map(|limit| limit.kind);
    format!(
        "{claims}, error {}, limit {limit:?}",
        told(report.error.is_some())
    )
}
