//! The real agent CLIs under descartes: loops, faults, stops and what watching them costs, all
//! against the scripted model server, with no provider and no key.

mod cpu;
mod faults;
mod happy;
mod stage;
mod stops;
mod table;

use std::path::PathBuf;

use descartes_testkit::model::ModelServer;
use descartes_testkit::real_clis::{self, RealCli};

use crate::shell::{Step, root, run};
use stage::Stage;
use table::Table;

const USAGE: &str = "cargo xtask agents [--short] [claude] [codex] [gemini] [opencode]";

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// A loop and two stops of each kind: what CI runs.
    Short,
    /// Everything.
    Whole,
}

/// Runs the campaign.
pub fn run_all(args: &[String]) -> Step {
    let (extent, clis) = chosen(args)?;
    let missing: Vec<RealCli> = clis
        .iter()
        .copied()
        .filter(|cli| cli.program().is_none())
        .collect();
    if !missing.is_empty() {
        println!("installing {} from npm", names(&missing));
        if let Err(error) = real_clis::install(&missing) {
            println!(
                "skipped: the real agents are not tested here, npm did not install them: {error}"
            );
            return Ok(());
        }
    }
    let binary = binary()?;
    let server = ModelServer::start().map_err(|error| format!("the model server: {error}"))?;
    let mut table = Table::default();
    for cli in clis {
        let version = real_clis::version(cli).unwrap_or_default();
        println!("{} {version}", cli.name());
        let stage = |case: &str| Stage::new(&binary, &server, cli, case);
        happy::run(&stage, &mut table)?;
        stops::run(&stage, extent, &mut table)?;
        if extent == Extent::Whole {
            faults::run(&stage, &mut table)?;
            cpu::run(&stage, &mut table)?;
        }
    }
    table.finish()
}

fn chosen(args: &[String]) -> Result<(Extent, Vec<RealCli>), String> {
    let mut extent = Extent::Whole;
    let mut clis = Vec::new();
    for arg in args {
        match (arg.as_str(), RealCli::from_name(arg)) {
            ("--short", _) => extent = Extent::Short,
            (_, Some(cli)) => clis.push(cli),
            (other, None) => return Err(format!("no agent `{other}`\nusage: {USAGE}")),
        }
    }
    if clis.is_empty() {
        clis = match extent {
            // The others take long to start.
            Extent::Short => vec![RealCli::Claude, RealCli::Codex],
            Extent::Whole => RealCli::ALL.to_vec(),
        };
    }
    Ok((extent, clis))
}

fn names(clis: &[RealCli]) -> String {
    let names: Vec<&str> = clis.iter().map(|cli| cli.name()).collect();
    names.join(", ")
}

/// The binary under test: `DESCARTES_BIN`, else built here.
fn binary() -> Result<PathBuf, String> {
    if let Some(given) = std::env::var_os("DESCARTES_BIN") {
        return Ok(PathBuf::from(given));
    }
    let profile = crate::check::PROFILE;
    run(
        "cargo",
        &["build", "--profile", profile, "--package", "descartes-cli"],
    )?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join(profile).join("descartes"))
}
