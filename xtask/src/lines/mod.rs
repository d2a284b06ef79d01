//! `cargo xtask lines`: how much product code there is, which files need each other in a circle,
//! and which type names are crowded. `xtask/structure.toml` has what is tolerated of the last two.

mod circles;
mod source;
mod tokens;
mod tolerated;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{Step, root};
use source::Crate;
use tolerated::Tolerated;

/// What no user gets.
const DEVELOPMENT: [&str; 2] = ["testkit", "xtask"];

/// A type name may be defined in so many modules.
pub const MOST_MODULES: usize = 2;

/// What was found in the sources.
#[derive(Debug, Default)]
pub struct Structure {
    /// Lines and files of each crate.
    crates: Vec<(String, usize, usize)>,
    /// The files of each circle.
    pub circles: Vec<BTreeSet<String>>,
    /// The modules in which a crowded type name is defined.
    pub type_names: BTreeMap<String, Vec<String>>,
}

/// `lines [--shrink] [FOLDER]`: of this or another checkout; `--shrink` drops from the list of what
/// is tolerated what is there no more.
pub fn run(rest: &[String]) -> Step {
    let (shrink, folders): (Vec<&String>, Vec<&String>) =
        rest.iter().partition(|word| *word == "--shrink");
    let checkout = match folders.as_slice() {
        [] => root(),
        [folder] => PathBuf::from(folder),
        _ => return Err("one folder at most".to_owned()),
    };
    let seen = Structure::read(&checkout)?;
    seen.print();
    if !shrink.is_empty() {
        return Tolerated::read()?.shrunk(&seen).write();
    }
    Ok(())
}

/// Fails on circles and crowded type names that are not tolerated.
pub fn check() -> Step {
    let seen = Structure::read(&root())?;
    let tolerated = Tolerated::read()?;
    let wrong = tolerated.complaints(&seen);
    if !wrong.is_empty() {
        return Err(format!("structure:\n  {}", wrong.join("\n  ")));
    }
    if tolerated.shrunk(&seen) != tolerated {
        println!(
            "xtask/structure.toml tolerates more than there is; `cargo xtask lines --shrink` shortens it"
        );
    }
    Ok(())
}

impl Structure {
    fn read(checkout: &Path) -> Result<Self, String> {
        let mut folders: Vec<String> = fs::read_dir(checkout.join("crates"))
            .map_err(|error| format!("{}: {error}", checkout.join("crates").display()))?
            .flatten()
            .map(|entry| format!("crates/{}", entry.file_name().to_string_lossy()))
            .collect();
        folders.sort();
        folders.push("xtask".to_owned());
        let mut seen = Self::default();
        for folder in folders {
            seen.add(&Crate::read(checkout, &folder)?);
        }
        seen.type_names
            .retain(|_, modules| modules.len() > MOST_MODULES);
        Ok(seen)
    }

    fn add(&mut self, of: &Crate) {
        let lines = of.files.iter().map(|file| file.lines).sum();
        self.crates.push((of.name.clone(), lines, of.files.len()));
        if DEVELOPMENT.contains(&of.name.as_str()) {
            return;
        }
        let name = |file: &usize| of.files[*file].path.display().to_string();
        let found = circles::circles(of);
        self.circles
            .extend(found.iter().map(|circle| circle.iter().map(name).collect()));
        for (path, module) in &of.modules {
            let place = [std::slice::from_ref(&of.name), path.as_slice()].concat();
            for name in &module.types {
                let places = self.type_names.entry(name.clone()).or_default();
                places.push(place.join("::"));
            }
        }
    }

    fn print(&self) {
        let is_product = |name: &str| !DEVELOPMENT.contains(&name);
        println!("product code: no tests, no blank lines, no comments\n");
        for (name, lines, files) in &self.crates {
            let note = if is_product(name) {
                ""
            } else {
                "  (development)"
            };
            println!("{lines:>8} lines {files:>4} files  {name}{note}");
        }
        let product = || self.crates.iter().filter(|(name, ..)| is_product(name));
        let lines: usize = product().map(|(_, lines, _)| lines).sum();
        let files: usize = product().map(|(.., files)| files).sum();
        println!("{lines:>8} lines {files:>4} files  in total");
        println!("\nimport circles: {}", self.circles.len());
        for circle in &self.circles {
            println!("  {} files", circle.len());
            circle.iter().for_each(|file| println!("    {file}"));
        }
        let crowded = self.type_names.len();
        println!("\ntype names in more than {MOST_MODULES} modules: {crowded}");
        for (name, modules) in &self.type_names {
            println!("  {name} ({}): {}", modules.len(), modules.join(", "));
        }
    }
}
