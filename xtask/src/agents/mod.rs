//! The real agent CLIs under descartes: loops, faults, stops and what watching them costs, all
//! against the scripted model server, with no provider and no key.

mod confined;
mod cpu;
mod drift;
mod faults;
mod happy;
mod shape;
mod stage;
mod stops;
mod table;
mod tools;

use std::path::PathBuf;

use descartes_testkit::model::ModelServer;
use descartes_testkit::real_clis::{self, RealCli};

use crate::lab::Form;
use crate::shell::{Step, root, run};
use stage::Stage;
use table::Table;

const USAGE: &str = "cargo xtask agents [--short | --drift] [--sandbox=LEVEL] [loop] [stops] [faults] [cpu] [mcp] [confined] [AGENT…]";

/// The parts of the campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Two iterations with a gate.
    Loop,
    /// Cancel and the signals, in the middle of a tool call.
    Stops,
    /// Each way in which a provider or a CLI goes wrong.
    Faults,
    /// What watching costs.
    Cpu,
    /// The CLI's model calls our tools.
    Mcp,
    /// Tool call, commit and gate in a sandbox.
    Confined,
}

impl Part {
    const ALL: [Self; 6] = [
        Self::Loop,
        Self::Stops,
        Self::Faults,
        Self::Cpu,
        Self::Mcp,
        Self::Confined,
    ];

    fn from_name(name: &str) -> Option<Self> {
        let names = ["loop", "stops", "faults", "cpu", "mcp", "confined"];
        let at = names.iter().position(|known| *known == name)?;
        Some(Self::ALL[at])
    }
}

/// What was asked for on the command line.
struct Chosen {
    form: Form,
    parts: Vec<Part>,
    clis: Vec<RealCli>,
    /// The sandbox that the agents run in.
    sandbox: Option<String>,
    /// The newest versions are held against the tested ones.
    drift: bool,
}

/// Runs the campaign.
pub fn run_all(args: &[String]) -> Step {
    let Chosen {
        form,
        parts,
        clis,
        sandbox,
        drift,
    } = chosen(args)?;
    if drift {
        return drift::run(clis, &binary()?);
    }
    let clis = installed(clis);
    if clis.is_empty() {
        return Ok(());
    }
    let binary = binary()?;
    let server = ModelServer::start().map_err(|error| format!("the model server: {error}"))?;
    let mut table = Table::new();
    for cli in clis {
        let version = real_clis::version(cli).unwrap_or_default();
        println!("{} {version}", cli.name());
        let sandbox = sandbox.as_deref();
        let stage = |case: &str| Stage::new(&binary, &server, cli, case).in_sandbox(sandbox);
        for part in &parts {
            match part {
                Part::Loop => happy::run(&stage, form, &mut table)?,
                Part::Stops => stops::run(&stage, form, &mut table)?,
                Part::Faults => faults::run(&stage, form, &mut table)?,
                Part::Cpu => cpu::run(&stage, form, &mut table)?,
                Part::Mcp if tools::KNOWN.contains(&cli) => {
                    tools::run(&binary, &server, cli, &mut table);
                }
                // `descartes install` does not know its settings.
                Part::Mcp => {}
                Part::Confined if confined::KNOWN.contains(&cli) && confined::works(&binary) => {
                    confined::run(&stage, form, &mut table)?;
                }
                // What it needs was not measured, or bwrap does not work here.
                Part::Confined => {}
            }
        }
    }
    table.finish(form)
}

fn chosen(args: &[String]) -> Result<Chosen, String> {
    let mut form = Form::Long;
    let (mut parts, mut clis, mut sandbox, mut drift) = (Vec::new(), Vec::new(), None, false);
    for arg in args {
        if let Some(level) = arg.strip_prefix("--sandbox=") {
            sandbox = Some(level.to_owned());
            continue;
        }
        match (arg.as_str(), RealCli::from_name(arg), Part::from_name(arg)) {
            ("--short", ..) => form = Form::Short,
            ("--drift", ..) => drift = true,
            (_, Some(cli), _) => clis.push(cli),
            (_, None, Some(part)) => parts.push(part),
            (other, None, None) => return Err(format!("no agent `{other}`\nusage: {USAGE}")),
        }
    }
    if clis.is_empty() {
        clis = match form {
            // The others take long to start.
            Form::Short => vec![RealCli::Claude, RealCli::Codex],
            Form::Long => RealCli::ALL.to_vec(),
        };
    }
    if drift && (form == Form::Short || !parts.is_empty() || sandbox.is_some()) {
        return Err(format!("--drift has cases of its own\nusage: {USAGE}"));
    }
    if parts.is_empty() {
        parts = match form {
            Form::Short => vec![Part::Loop, Part::Stops, Part::Mcp, Part::Confined],
            Form::Long => Part::ALL.to_vec(),
        };
    }
    Ok(Chosen {
        form,
        parts,
        clis,
        sandbox,
        drift,
    })
}

/// Installs those that are missing, and says which cannot be had here.
fn installed(clis: Vec<RealCli>) -> Vec<RealCli> {
    let there = |cli: &RealCli| {
        if cli.program().is_some() {
            return true;
        }
        println!("installing {} ({})", cli.name(), cli.package());
        let installed = real_clis::install(*cli);
        if let Err(error) = &installed {
            println!("skipped: {} is not tested here: {error}", cli.name());
        }
        installed.is_ok() && cli.program().is_some()
    };
    clis.into_iter().filter(there).collect()
}

/// The binary under test: `DESCARTES_BIN`, else built here.
fn binary() -> Result<PathBuf, String> {
    if let Some(given) = std::env::var_os("DESCARTES_BIN") {
        return Ok(PathBuf::from(given));
    }
    let profile = crate::check::PROFILE;
    // As the tests were built: by itself the package would get other features of the same libraries.
    let part = ["--workspace", "--bin", "descartes"];
    run(
        "cargo",
        &[&["build", "--profile", profile], &part[..]].concat(),
    )?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join(profile).join("descartes"))
}
