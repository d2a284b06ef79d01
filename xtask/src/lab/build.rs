//! The programs under test, built once and set aside, so that the next build of another kind does
//! not replace them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Form, Lab};
use crate::shell::{root, run};

/// Whether fault points are wanted too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// Yes.
    Wanted,
    /// No.
    Not,
}

/// Builds what is measured. `DESCARTES_BIN`, `DESCARTES_FAULTY_BIN` and
/// `DESCARTES_SCRIPTED_AGENT` stand in for builds.
pub fn lab(form: Form, faults: Faults) -> Result<Lab, String> {
    let profile = form.pick("ci", "release");
    let faulty = match (faults, given("DESCARTES_FAULTY_BIN")) {
        (Faults::Not, _) => None,
        (Faults::Wanted, Some(path)) => Some(path),
        // A binary from elsewhere is taken as it is: fault points are left out with it.
        (Faults::Wanted, None) if given("DESCARTES_BIN").is_some() => None,
        (Faults::Wanted, None) => {
            // Where xtask is built in the same command, they are in already.
            let features = ["--features", "descartes-cli/faults"];
            let features = form.pick(&[][..], &features[..]);
            let part = [&["--bin", "descartes"][..], features].concat();
            cargo(form, "descartes-cli", &part)?;
            Some(set_aside(profile, "descartes", "descartes-faulty")?)
        }
    };
    let descartes = match given("DESCARTES_BIN") {
        Some(path) => path,
        None => {
            cargo(form, "descartes-cli", &["--bin", "descartes"])?;
            set_aside(profile, "descartes", "descartes")?
        }
    };
    let agent = match given("DESCARTES_SCRIPTED_AGENT") {
        Some(path) => path,
        None => {
            let name = "descartes-scripted-agent";
            cargo(form, "descartes-testkit", &["--bin", name])?;
            set_aside(profile, name, name)?
        }
    };
    // What the testkit starts by itself is what is measured, not what an older build left behind.
    descartes_testkit::lie_at(&descartes, &agent);
    Ok(Lab {
        form,
        descartes,
        faulty,
        agent,
        window: None,
        sandbox: None,
        seed: seed(form),
    })
}

/// The desktop window, set aside beside the command line, as both are installed.
/// `DESCARTES_GUI_BIN` stands in for the build.
pub fn window(form: Form) -> Result<PathBuf, String> {
    if let Some(path) = given("DESCARTES_GUI_BIN") {
        return Ok(path);
    }
    let profile = form.pick("ci", "release");
    cargo(form, "descartes-gui", &["--bin", "descartes-gui"])?;
    set_aside(profile, "descartes-gui", "descartes-gui")
}

/// The program that speaks to an engine; `DESCARTES_FLEET` stands in for the build.
pub fn fleet(form: Form) -> Result<PathBuf, String> {
    if let Some(path) = given("DESCARTES_FLEET") {
        return Ok(path);
    }
    let profile = form.pick("ci", "release");
    cargo(form, "descartes-fleet", &["--bin", "descartes-fleet"])?;
    set_aside(profile, "descartes-fleet", "descartes-fleet")
}

fn given(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from)
}

/// The short form does the same at every change; the long one looks further each time.
fn seed(form: Form) -> u64 {
    let now = || match form {
        Form::Short => 1,
        Form::Long => descartes_testkit::stamp::now_ns() % 1_000_000,
    };
    env::var("DESCARTES_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(now)
}

/// Builds a part of a package. The short form builds it as the tests were built: by itself a package
/// would get other features of the same libraries, and minutes would go into building all of them again.
fn cargo(form: Form, package: &str, part: &[&str]) -> Result<(), String> {
    let mut args = vec!["build", "--quiet", "--profile", form.pick("ci", "release")];
    match form {
        Form::Short => args.push("--workspace"),
        Form::Long => args.extend(["-p", package]),
    }
    args.extend(part);
    run("cargo", &args)
}

/// Builds an example, which is optimised as the programs under test are; `DESCARTES_EXAMPLES`,
/// a folder, stands in for the build.
pub fn example(form: Form, package: &str, name: &str) -> Result<PathBuf, String> {
    if let Some(folder) = given("DESCARTES_EXAMPLES") {
        return Ok(folder.join(name));
    }
    let profile = form.pick("ci", "release");
    cargo(form, package, &["--example", name])?;
    Ok(target().join(profile).join("examples").join(name))
}

fn target() -> PathBuf {
    given("CARGO_TARGET_DIR").unwrap_or_else(|| root().join("target"))
}

fn set_aside(profile: &str, name: &str, kept: &str) -> Result<PathBuf, String> {
    let folder = root().join("target/measurements/bin").join(profile);
    let (from, to) = (target().join(profile).join(name), folder.join(kept));
    let said = |error: std::io::Error| format!("{}: {error}", to.display());
    fs::create_dir_all(&folder).map_err(said)?;
    copy(&from, &to).map_err(said)?;
    Ok(to)
}

/// By another name first: a program that runs cannot be written to.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let new = to.with_extension("new");
    fs::copy(from, &new)?;
    fs::rename(new, to)
}
