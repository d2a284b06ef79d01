//! Bans, licences and sources of everything that is built, by the rules of `deny.toml`.
//!
//! The rules are cargo-deny's. Its own program is built from source where it is missing, which takes
//! longer than all other checks together, and the prebuilt one that registries have cannot read what
//! today's cargo tells; so the three questions are asked here, of `cargo metadata`.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::shell::{Step, root};

/// Where a crate may come from, beside this repository: the registry that cargo itself knows.
const REGISTRY: &str = "/crates.io-index";

/// The tables of `deny.toml` that are asked for.
struct Rules {
    licenses: Vec<String>,
    /// A crate, and licences that are fine for it alone.
    exceptions: Vec<(String, Vec<String>)>,
    banned: Vec<Ban>,
}

/// A crate that is not wanted.
struct Ban {
    name: String,
    reason: String,
    /// Crates that may have it all the same.
    wrappers: Vec<String>,
}

/// Looks at all crates that `Cargo.lock` names.
pub fn check() -> Step {
    let text =
        fs::read_to_string(root().join("deny.toml")).map_err(|e| format!("deny.toml: {e}"))?;
    let rules = Rules::parse(&text).map_err(|error| format!("deny.toml: {error}"))?;
    let output = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let told: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let packages = told["packages"].as_array().cloned().unwrap_or_default();
    let wrong = packages
        .iter()
        .flat_map(|p| rules.complaints(p, &users_of(p, &told)));
    let wrong: Vec<String> = wrong.collect();
    println!(
        "$ deny.toml: {} crates, {} refused",
        packages.len(),
        wrong.len()
    );
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("deny.toml:\n  {}", wrong.join("\n  "))),
    }
}

/// The crates that use a package.
fn users_of(package: &Value, told: &Value) -> Vec<String> {
    let nodes = told["resolve"]["nodes"].as_array().into_iter().flatten();
    let uses = |node: &&Value| {
        let all = node["deps"].as_array().into_iter().flatten();
        all.into_iter().any(|of| of["pkg"] == package["id"])
    };
    let ids: Vec<&Value> = nodes.filter(uses).map(|node| &node["id"]).collect();
    let packages = told["packages"].as_array().into_iter().flatten();
    let users = packages.filter(|package| ids.contains(&&package["id"]));
    users
        .filter_map(|user| user["name"].as_str().map(str::to_owned))
        .collect()
}

fn texts(value: Option<&toml::Value>) -> Vec<String> {
    let list = value.and_then(toml::Value::as_array).into_iter().flatten();
    list.filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

impl Rules {
    fn parse(text: &str) -> Result<Self, String> {
        let all: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| error.to_string())?;
        let in_table = |table: &str, key: &str| all.get(table).and_then(|table| table.get(key));
        let rows = |table: &str, key: &str| {
            let rows = in_table(table, key).and_then(toml::Value::as_array);
            rows.cloned().unwrap_or_default()
        };
        let word = |row: &toml::Value, key: &str| {
            row.get(key)
                .and_then(toml::Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let exceptions = rows("licenses", "exceptions");
        let banned = rows("bans", "deny");
        Ok(Self {
            licenses: texts(in_table("licenses", "allow")),
            exceptions: exceptions
                .iter()
                .map(|row| (word(row, "crate"), texts(row.get("allow"))))
                .collect(),
            banned: banned
                .iter()
                .map(|row| Ban {
                    name: word(row, "crate"),
                    reason: word(row, "reason"),
                    wrappers: texts(row.get("wrappers")),
                })
                .collect(),
        })
    }

    fn complaints(&self, package: &Value, users: &[String]) -> Vec<String> {
        let name = package["name"].as_str().unwrap_or_default();
        let named = format!("{name} {}", package["version"].as_str().unwrap_or_default());
        let mut wrong = Vec::new();
        let may =
            |ban: &Ban| !ban.wrappers.is_empty() && users.iter().all(|u| ban.wrappers.contains(u));
        let banned = self.banned.iter().find(|ban| ban.name == name);
        if let Some(ban) = banned.filter(|ban| !may(ban)) {
            wrong.push(format!("{named} is banned: {}", ban.reason));
        }
        match package["source"].as_str() {
            None => wrong.extend(wildcards(package).map(|of| format!("{named}: {of} = \"*\""))),
            Some(source) if source.starts_with("registry+") && source.ends_with(REGISTRY) => {}
            Some(source) => wrong.push(format!("{named} comes from {source}")),
        }
        let exception = self.exceptions.iter().find(|(of, _)| of == name);
        let fine = |license: &str| {
            let of_it = exception.is_some_and(|(_, more)| more.iter().any(|m| m == license));
            of_it || self.licenses.iter().any(|known| known == license)
        };
        match package["license"].as_str() {
            None => wrong.push(format!("{named} names no licence")),
            Some(text) if allowed(text, &fine) => {}
            Some(text) => wrong.push(format!("{named} has the licence {text}")),
        }
        wrong
    }
}

/// What one of our own crates takes in any version, from elsewhere.
fn wildcards(package: &Value) -> impl Iterator<Item = &str> {
    let all = package["dependencies"].as_array().into_iter().flatten();
    all.filter(|one| one["req"] == "*" && one["path"].is_null())
        .filter_map(|one| one["name"].as_str())
}

/// Whether an expression of licences can be met: `OR` chooses, `AND` joins and binds closer. An exception
/// (`WITH`) only ever gives more; the old `/` is an `OR`.
fn allowed(text: &str, fine: &dyn Fn(&str) -> bool) -> bool {
    let spaced = text
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any(&mut rest, fine);
    met && rest.is_empty()
}

fn any(rest: &mut &[&str], fine: &dyn Fn(&str) -> bool) -> bool {
    let mut met = all(rest, fine);
    while let ["OR", more @ ..] = rest {
        *rest = more;
        // Both sides are read, whatever the first comes to.
        met |= all(rest, fine);
    }
    met
}

fn all(rest: &mut &[&str], fine: &dyn Fn(&str) -> bool) -> bool {
    let mut met = one(rest, fine);
    while let ["AND", more @ ..] = rest {
        *rest = more;
        met &= one(rest, fine);
    }
    met
}

fn one(rest: &mut &[&str], fine: &dyn Fn(&str) -> bool) -> bool {
    match rest {
        ["(", more @ ..] => {
            *rest = more;
            let met = any(rest, fine);
            match rest {
                [")", more @ ..] => *rest = more,
                _ => return false,
            }
            met
        }
        [license, "WITH", _, more @ ..] | [license, more @ ..] => {
            let met = fine(license);
            *rest = more;
            met
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expression_of_licences_is_met_or_not() {
        let fine = |license: &str| ["MIT", "Apache-2.0", "Unicode-3.0"].contains(&license);
        for text in [
            "MIT",
            "GPL-2.0-only OR MIT",
            "GPL-2.0-only/MIT",
            "(MIT OR GPL-2.0-only) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
        ] {
            assert!(allowed(text, &fine), "{text}");
        }
        for text in [
            "GPL-2.0-only",
            "MIT AND GPL-2.0-only",
            "(MIT",
            "",
            "MIT MIT",
        ] {
            assert!(!allowed(text, &fine), "{text}");
        }
    }

    #[test]
    fn banned_crates_strange_sources_and_licences_are_refused() {
        let rules = Rules::parse(
            "[licenses]\nallow = [\"MIT\"]\nexceptions = [{ crate = \"odd\", allow = [\"Odd\"] }]\n\
             [bans]\ndeny = [{ crate = \"bad\", reason = \"why\" }, \
             { crate = \"held\", wrappers = [\"user\"], reason = \"why\" }]\n",
        )
        .unwrap();
        let ours = "registry+https://example.test/crates.io-index";
        let package = |name: &str, license: &str, source: Option<&str>| {
            let any = json!([{"name": "x", "req": "*", "path": null}]);
            let all = json!({"name": name, "version": "1.0.0", "license": license, "source": source,
                "dependencies": any});
            rules.complaints(&all, &["user".to_owned()]).join("; ")
        };
        assert_eq!(package("good", "MIT", Some(ours)), "");
        assert_eq!(package("odd", "Odd", Some(ours)), "");
        assert_eq!(
            package("bad", "MIT", Some(ours)),
            "bad 1.0.0 is banned: why"
        );
        assert_eq!(
            package("good", "Odd", Some(ours)),
            "good 1.0.0 has the licence Odd"
        );
        assert_eq!(
            package("held", "MIT", Some(ours)),
            "",
            "its user may have it"
        );
        let elsewhere = package("good", "MIT", Some("git+https://example.test/good"));
        assert_eq!(
            elsewhere,
            "good 1.0.0 comes from git+https://example.test/good"
        );
        assert_eq!(package("good", "MIT", None), "good 1.0.0: x = \"*\"");
    }
}
