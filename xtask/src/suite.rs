//! `cargo xtask test`: the tests, each with a time limit, none with a second try. Those that start a browser or
//! an engine's server have a command of their own: `cargo xtask services`.

use std::fs;
use std::time::Duration;

use crate::check::PROFILE;
use crate::shell::{Step, answers, root, run, run_with};
use crate::test_groups::TestGroup;
use crate::{one_by_one, system_tools};

/// Which profile of `.config/nextest.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Ends at the first failure.
    Everyday,
    /// Tells all failures.
    All,
}

/// Builds, then runs the tests of everyday and every documentation example. Tests that are named are run
/// whatever they start.
pub fn run_all(rest: &[String], extent: Extent) -> Step {
    let is_named = rest.iter().any(|arg| !arg.starts_with('-'));
    let group = match is_named {
        true => TestGroup::All,
        false => TestGroup::Everyday,
    };
    run_group(rest, extent, group)?;
    run(
        "cargo",
        &["test", "--profile", PROFILE, "--workspace", "--doc"],
    )?;
    if group == TestGroup::Everyday {
        println!("left out: tests with a browser or an engine's server (cargo xtask services)");
    }
    Ok(())
}

/// Builds, then runs the tests of everyday that a filter of nextest's chooses.
pub fn run_chosen(filter: &str) -> Step {
    let everyday = TestGroup::Everyday.filter().unwrap_or_default();
    let words = ["-E".to_owned(), format!("({filter}) & ({everyday})")];
    run_group(&words, Extent::All, TestGroup::All)
}

/// Builds, then runs the tests that start a browser or an engine's server.
pub fn run_services(rest: &[String], extent: Extent) -> Step {
    run_group(rest, extent, TestGroup::Services)
}

fn run_group(rest: &[String], extent: Extent, group: TestGroup) -> Step {
    let quarantine = Quarantine::read()?;
    system_tools::tell_missing();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    build()?;
    Runner::find().run(group, extent, &WORKSPACE, &rest, &quarantine)
}

const WORKSPACE: [&str; 4] = ["--workspace", "--bins", "--lib", "--tests"];

/// Builds the tests, and the real binaries that they start, which are not built for tests of other packages. In one
/// command: some tests have libraries with more features, and what is above would be built for both.
pub fn build() -> Step {
    run(
        "cargo",
        &[&["build", "--profile", PROFILE], &WORKSPACE[..]].concat(),
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

    fn run(
        self,
        group: TestGroup,
        extent: Extent,
        of: &[&str],
        rest: &[&str],
        quarantine: &Quarantine,
    ) -> Step {
        let name = (TestGroup::VARIABLE, group.name().to_owned());
        let judged = match self {
            Self::Nextest => nextest(extent, of, rest, &both(&quarantine.all_but(), group)),
            Self::Plain => plain(
                extent,
                of,
                rest,
                &[("DESCARTES_TESTS_BUT", quarantine.names()), name.clone()],
            ),
        };
        if quarantine.0.is_empty() {
            return judged;
        }
        println!("\nin quarantine (.config/quarantine.toml), told and not judged:");
        let told = match self {
            Self::Nextest => nextest(Extent::All, of, rest, &both(&quarantine.only(), group)),
            Self::Plain => plain(
                Extent::All,
                of,
                rest,
                &[("DESCARTES_TESTS_ONLY", quarantine.names()), name],
            ),
        };
        if let Err(failed) = told {
            println!("{failed}");
        }
        judged
    }
}

/// Both filters at once: several of nextest's own are a union.
fn both(one: &[String], group: TestGroup) -> Vec<String> {
    let filters = one.iter().skip(1).cloned().chain(group.filter());
    let filters: Vec<String> = filters.map(|filter| format!("({filter})")).collect();
    match filters.is_empty() {
        true => Vec::new(),
        false => vec!["-E".to_owned(), filters.join(" & ")],
    }
}

fn nextest(extent: Extent, of: &[&str], rest: &[&str], filter: &[String]) -> Step {
    // Most tests wait for a process or a grace: with four for each processor none is idle.
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
