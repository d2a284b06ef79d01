//! `cargo xtask test`: every test, each with a time limit, none with a second try.

use std::fs;
use std::time::Duration;

use crate::check::PROFILE;
use crate::shell::{Step, answers, root, run, run_with};
use crate::{one_by_one, system_tools};

/// Which profile of `.config/nextest.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Ends at the first failure.
    Everyday,
    /// Tells all failures.
    All,
}

/// Builds, then runs every test and documentation example.
pub fn run_all(rest: &[String], extent: Extent) -> Step {
    let quarantine = Quarantine::read()?;
    system_tools::tell_missing();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let workspace = ["--workspace", "--bins", "--lib", "--tests"];
    // Tests start the real binaries, which are not built for tests of other packages. In one command with the
    // tests: some of these have libraries with more features, and what is above would be built for both.
    run(
        "cargo",
        &[&["build", "--profile", PROFILE], &workspace[..]].concat(),
    )?;
    Runner::find().run(extent, &workspace, &rest, &quarantine)?;
    run(
        "cargo",
        &["test", "--profile", PROFILE, "--workspace", "--doc"],
    )
}

/// Who runs the tests.
#[derive(Debug, Clone, Copy)]
enum Runner {
    Nextest,
    /// No registry has a prebuilt nextest, and from source it takes longer to build than all of this:
    /// where it is missing, `cargo test` hands each program to [`one_by_one`].
    Plain,
}

impl Runner {
    fn find() -> Self {
        if answers("cargo", &["nextest", "--version"]) {
            return Self::Nextest;
        }
        println!(
            "cargo-nextest is not installed: the plain runner does the same, each test in a process of its own \
             with the limit of .config/nextest.toml (`cargo install cargo-nextest --locked` gets it)"
        );
        Self::Plain
    }

    fn run(self, extent: Extent, of: &[&str], rest: &[&str], quarantine: &Quarantine) -> Step {
        let judged = match self {
            Self::Nextest => nextest(extent, of, rest, &quarantine.all_but()),
            Self::Plain => plain(
                extent,
                of,
                rest,
                &[("DESCARTES_TESTS_BUT", quarantine.names())],
            ),
        };
        if quarantine.0.is_empty() {
            return judged;
        }
        println!("\nin quarantine (.config/quarantine.toml), told and not judged:");
        let told = match self {
            Self::Nextest => nextest(Extent::All, of, rest, &quarantine.only()),
            Self::Plain => plain(
                Extent::All,
                of,
                rest,
                &[("DESCARTES_TESTS_ONLY", quarantine.names())],
            ),
        };
        if let Err(failed) = told {
            println!("{failed}");
        }
        judged
    }
}

fn nextest(extent: Extent, of: &[&str], rest: &[&str], filter: &[String]) -> Step {
    // Most tests wait for a process or a grace: with three for each processor none is idle.
    let threads = one_by_one::threads().to_string();
    let profile = match extent {
        Extent::Everyday => "default",
        Extent::All => "ci",
    };
    let mut args = vec![
        "nextest",
        "run",
        "--cargo-profile",
        PROFILE,
        "--profile",
        profile,
    ];
    // Where nothing of it is in a package, that is no failure.
    args.extend(["--no-tests", "pass"]);
    args.extend(of);
    let chosen = |arg: &&str| arg.starts_with("-j") || arg.starts_with("--test-threads");
    if !rest.iter().any(chosen) {
        args.extend(["--test-threads", &threads]);
    }
    args.extend(filter.iter().map(String::as_str));
    args.extend(rest);
    run("cargo", &args)
}

fn plain(extent: Extent, of: &[&str], rest: &[&str], names: &[(&str, String)]) -> Step {
    let me = std::env::current_exe().map_err(|error| format!("xtask: {error}"))?;
    let runner = format!(
        "target.'cfg(all())'.runner = ['{}', '{}']",
        me.display(),
        one_by_one::VERB
    );
    let mut args = vec!["test", "--profile", PROFILE, "--config", &runner];
    if extent == Extent::All {
        args.push("--no-fail-fast");
    }
    args.extend(of);
    args.extend(rest);
    run_with("cargo", &args, names)
}

/// Tests that are not judged until they are repaired.
struct Quarantine(Vec<String>);

impl Quarantine {
    fn read() -> Result<Self, String> {
        let said = |error: &dyn std::fmt::Display| format!(".config/quarantine.toml: {error}");
        let text = fs::read_to_string(root().join(".config/quarantine.toml"));
        Self::parse(&text.map_err(|error| said(&error))?).map_err(|error| said(&error))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| error.to_string())?;
        let tests = table.get("test").and_then(toml::Value::as_array);
        let name = |test: &toml::Value| {
            let key = |key: &str| test.get(key).and_then(toml::Value::as_str);
            let given = |word: &&str| !word.trim().is_empty();
            match (
                key("name"),
                key("since").filter(given),
                key("reason").filter(given),
            ) {
                (Some(name), Some(_), Some(_)) => Ok(name.to_owned()),
                (name, ..) => Err(format!("{name:?} needs `name`, `since` and `reason`")),
            }
        };
        let names: Result<Vec<String>, String> = tests.into_iter().flatten().map(name).collect();
        Ok(Self(names?))
    }

    fn names(&self) -> String {
        self.0.join("\n")
    }

    fn only(&self) -> Vec<String> {
        let names: Vec<String> = self.0.iter().map(|name| format!("test(={name})")).collect();
        vec!["-E".to_owned(), names.join(" | ")]
    }

    fn all_but(&self) -> Vec<String> {
        match self.0.is_empty() {
            true => Vec::new(),
            false => vec!["-E".to_owned(), format!("not ({})", self.only()[1])],
        }
    }
}

/// After how long a test is ended: what nextest is told, read from its own file.
pub fn limit() -> Result<Duration, String> {
    let text = fs::read_to_string(root().join(".config/nextest.toml"));
    let text = text.map_err(|error| format!(".config/nextest.toml: {error}"))?;
    limit_in(&text).ok_or_else(|| ".config/nextest.toml: no slow-timeout that ends".to_owned())
}

fn limit_in(text: &str) -> Option<Duration> {
    let table: toml::Table = text.parse().ok()?;
    let slow = table.get("profile")?.get("default")?.get("slow-timeout")?;
    let seconds: u64 = slow
        .get("period")?
        .as_str()?
        .strip_suffix('s')?
        .parse()
        .ok()?;
    let periods = u64::try_from(slow.get("terminate-after")?.as_integer()?).ok()?;
    Some(Duration::from_secs(seconds * periods))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_that_of_nextest() {
        assert!(limit().unwrap() >= Duration::from_secs(60));
        assert_eq!(limit_in("[profile.default]\nslow-timeout = \"60s\""), None);
    }

    #[test]
    fn an_entry_of_the_quarantine_has_a_reason() {
        let entry = "[[test]]\nname = \"a::b\"\nsince = \"2026-01-31\"\nreason = \"why\"\n";
        let list = Quarantine::parse(entry).unwrap();
        assert_eq!(list.all_but(), ["-E", "not (test(=a::b))"]);
        assert!(Quarantine::parse(&entry.replace("why", " ")).is_err());
        assert!(Quarantine::read().is_ok());
    }
}
