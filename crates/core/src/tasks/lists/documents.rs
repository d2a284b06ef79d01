//! The spec files that belong to a list.

use std::path::{Path, PathBuf};

use descartes_plans::lists::{ListFormat, open_boxes, project_context};
use descartes_store::safe_open::read_user_text;

use super::openspec::{change_of, own_documents};

/// A document of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecDocument {
    /// Where it lies.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// More documents than this are no longer read by an agent either.
const MOST: usize = 40;

/// Of it, only what it says about the project is told.
const OPENSPEC_CONFIG: &str = "config.yaml";

/// Check lists beside a list that a person has not ticked to the end, with the number of open boxes: spec-kit
/// has them answered before anything is built.
pub fn open_checklists(path: &Path, format: ListFormat) -> Vec<(PathBuf, usize)> {
    let folder = path.parent().unwrap_or(Path::new(""));
    if format != ListFormat::SpecKit {
        return Vec::new();
    }
    let files = markdown_below(&folder.join("checklists"), 1).into_iter();
    let counted = files.filter_map(|file| {
        let open = open_boxes(&read_user_text(&file).ok()?);
        Some((file, open))
    });
    counted.filter(|(_, open)| *open > 0).collect()
}

/// The documents of a list, the most telling first. Those that cannot be read are not there.
pub fn documents(path: &Path, format: ListFormat) -> Vec<SpecDocument> {
    let folder = match format.is_folder() && format != ListFormat::Bmad {
        true => path,
        false => path.parent().unwrap_or(Path::new("")),
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut add = |names: &[&str]| paths.extend(names.iter().map(|name| folder.join(name)));
    match format {
        ListFormat::SpecKit => {
            add(&["plan.md", "spec.md", "data-model.md"]);
            paths.extend(markdown_below(&folder.join("contracts"), 3));
            let mut add = |name: &str| paths.push(folder.join(name));
            add("research.md");
            add("quickstart.md");
            let root = folder
                .ancestors()
                .find(|above| above.join(".specify").is_dir());
            paths.extend(root.map(|root| root.join(".specify/memory/constitution.md")));
        }
        ListFormat::OpenSpec => {
            let folder = change_of(path).unwrap_or(folder);
            match own_documents(folder) {
                Some(own) => paths.extend(own),
                None => {
                    paths.extend(["proposal.md", "design.md"].map(|name| folder.join(name)));
                    paths.extend(markdown_below(&folder.join("specs"), 4));
                }
            }
            let openspec = folder.parent().and_then(Path::parent);
            paths.extend(openspec.map(|openspec| openspec.join("project.md")));
            paths.extend(openspec.map(|openspec| openspec.join(OPENSPEC_CONFIG)));
        }
        ListFormat::Kiro => {
            add(&["design.md", "requirements.md", "bugfix.md"]);
            let kiro = folder.parent().and_then(Path::parent);
            paths.extend(
                kiro.into_iter()
                    .flat_map(|kiro| markdown_below(&kiro.join("steering"), 1)),
            );
        }
        ListFormat::TaskMaster => {
            let docs = folder.parent().map(|above| above.join("docs"));
            let docs = docs.unwrap_or_default();
            paths.extend(["prd.md", "prd.txt"].map(|name| docs.join(name)));
        }
        ListFormat::Tickets => paths.extend(folder.parent().map(|above| above.join("spec.md"))),
        ListFormat::Ccpm => add(&["epic.md"]),
        _ => {}
    }
    let read = |path: PathBuf| {
        let text = read_user_text(&path).ok()?;
        let text = match path.ends_with(OPENSPEC_CONFIG) {
            true => project_context(&text)?,
            false => text,
        };
        (!text.trim().is_empty()).then_some(SpecDocument { path, text })
    };
    paths.into_iter().take(MOST).filter_map(read).collect()
}

/// Markdown and contract files below a folder, in the order of their names; links are not followed.
fn markdown_below(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs_err::read_dir(folder) else {
        return found;
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs_err::DirEntry::file_name);
    for entry in entries {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let path = entry.path();
        let is_text = path.extension().is_some_and(|end| {
            ["md", "yaml", "yml", "json"]
                .iter()
                .any(|known| end == *known)
        });
        if kind.is_dir() && depth > 1 {
            found.extend(markdown_below(&path, depth - 1));
        } else if kind.is_file() && is_text {
            found.push(path);
        }
    }
    found
}
