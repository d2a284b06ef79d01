//! What is tolerated until it is gone. The list can only get shorter: nothing here adds to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use super::{MOST_MODULES, Structure};
use crate::shell::{Step, root};

const HEAD: &str = "\
# What `cargo xtask check` tolerates until it is gone: type names that are defined in more than two
# modules, with how many, and circles of files that import each other (`reason`: why one must be).
# Entries are only ever removed: `cargo xtask lines --shrink`.

";

/// The list, as it is checked in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tolerated {
    /// In how many modules each of these names is defined.
    type_names: BTreeMap<String, usize>,
    circles: Vec<Circle>,
}

/// Files that import each other, and why that must be; without a reason it is only not taken apart yet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Circle {
    files: BTreeSet<String>,
    reason: Option<String>,
}

fn file() -> PathBuf {
    root().join("xtask/structure.toml")
}

impl Tolerated {
    /// Reads the list.
    pub fn read() -> Result<Self, String> {
        let said = |error: &dyn std::fmt::Display| format!("xtask/structure.toml: {error}");
        let text = fs::read_to_string(file()).map_err(|error| said(&error))?;
        Self::parse(&text).map_err(|error| said(&error))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| error.to_string())?;
        let mut all = Self::default();
        for (name, count) in table
            .get("type_names")
            .and_then(|v| v.as_table())
            .into_iter()
            .flatten()
        {
            let count = count
                .as_integer()
                .and_then(|count| usize::try_from(count).ok());
            let count = count.ok_or_else(|| format!("{name}: not a number of modules"))?;
            all.type_names.insert(name.clone(), count);
        }
        let circles = table.get("circle").and_then(toml::Value::as_array);
        for circle in circles.into_iter().flatten() {
            let files = circle.get("files").and_then(toml::Value::as_array);
            let files = files.ok_or("a circle has a list of `files`")?.iter();
            let names = files.filter_map(|file| file.as_str().map(str::to_owned));
            let reason = circle.get("reason").and_then(toml::Value::as_str);
            all.circles.push(Circle {
                files: names.collect(),
                reason: reason.map(str::to_owned),
            });
        }
        Ok(all)
    }

    /// What was found beyond the list. A circle that is a part of a listed one is within it.
    pub fn complaints(&self, seen: &Structure) -> Vec<String> {
        let mut wrong = Vec::new();
        for circle in &seen.circles {
            if !self
                .circles
                .iter()
                .any(|known| circle.is_subset(&known.files))
            {
                let files: Vec<&str> = circle.iter().map(String::as_str).collect();
                wrong.push(format!(
                    "these files import each other in a circle: {}",
                    files.join(", ")
                ));
            }
        }
        for (name, modules) in &seen.type_names {
            let most = self.type_names.get(name).copied().unwrap_or(MOST_MODULES);
            if modules.len() > most {
                wrong.push(format!(
                    "the type name `{name}` is defined in {} modules, at most {most}: {}",
                    modules.len(),
                    modules.join(", ")
                ));
            }
        }
        wrong
    }

    /// The list without what is there no more.
    pub fn shrunk(&self, seen: &Structure) -> Self {
        let left = |name: &String, most: usize| {
            let modules = seen.type_names.get(name)?.len();
            Some((name.clone(), modules.min(most)))
        };
        let type_names = self.type_names.iter();
        let parts = |known: &Circle| -> Vec<Circle> {
            let within = |circle: &&BTreeSet<String>| circle.is_subset(&known.files);
            let left = seen.circles.iter().filter(within);
            left.map(|files| Circle {
                files: files.clone(),
                reason: known.reason.clone(),
            })
            .collect()
        };
        Self {
            type_names: type_names
                .filter_map(|(name, most)| left(name, *most))
                .collect(),
            circles: self.circles.iter().flat_map(parts).collect(),
        }
    }

    /// Writes the list.
    pub fn write(&self) -> Step {
        let mut text = String::from(HEAD);
        text.push_str("[type_names]\n");
        for (name, most) in &self.type_names {
            let _ = writeln!(text, "{name} = {most}");
        }
        for Circle { files, reason } in &self.circles {
            text.push_str("\n[[circle]]\n");
            if let Some(reason) = reason {
                let _ = writeln!(text, "reason = {}", toml::Value::from(reason.as_str()));
            }
            text.push_str("files = [\n");
            for file in files {
                let _ = writeln!(text, "    \"{file}\",");
            }
            text.push_str("]\n");
        }
        fs::write(file(), text).map_err(|error| format!("xtask/structure.toml: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(circles: &[&[&str]], names: &[(&str, usize)]) -> Structure {
        let set = |files: &&[&str]| files.iter().map(|file| (*file).to_owned()).collect();
        let modules =
            |(name, count): &(&str, usize)| ((*name).to_owned(), vec!["m".to_owned(); *count]);
        Structure {
            circles: circles.iter().map(set).collect(),
            type_names: names.iter().map(modules).collect(),
            ..Structure::default()
        }
    }

    #[test]
    fn the_list_tolerates_what_is_on_it_and_less_and_nothing_more() {
        let list = Tolerated::parse(
            "[type_names]\nLine = 4\n[[circle]]\nreason = \"why\"\nfiles = [\"a\", \"b\", \"c\"]\n",
        );
        let list = list.unwrap();
        let fine = seen(&[&["a", "b"]], &[("Line", 3)]);
        assert_eq!(list.complaints(&fine), Vec::<String>::new());
        let worse = seen(&[&["a", "d"]], &[("Line", 5), ("Found", 3)]);
        assert_eq!(list.complaints(&worse).len(), 3);
        // What is gone cannot come back.
        let shorter = list.shrunk(&fine);
        assert_eq!(shorter.complaints(&fine), Vec::<String>::new());
        assert_eq!(
            shorter
                .complaints(&seen(&[&["b", "c"]], &[("Line", 4)]))
                .len(),
            2
        );
        assert_eq!(shorter.shrunk(&worse).type_names["Line"], 3);
        assert_eq!(shorter.circles[0].reason.as_deref(), Some("why"));
    }
}
