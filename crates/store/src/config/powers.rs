//! Which values of a project's own file need the user's trust, in the form that is shown and hashed.

use super::keys::Trust;
use super::settings::key_named;
use crate::layout::{PROJECT_FOLDER, canonical};
use descartes_kernel::trust::Powers;
use std::path::{Path, PathBuf};
use toml::Value;

/// What needs trust of `key = value` in the config file of `project`; entries of tables come as
/// `agents.name`. Nothing where it starts nothing and widens nothing.
pub(super) fn of(key: &str, value: &Value, project: &Path) -> Powers {
    let top = key.split('.').next().unwrap_or(key);
    let needs = match key_named(top).map_or(Trust::Never, |key| key.trust) {
        Trust::Never => false,
        Trust::Always => value.as_array().is_none_or(|list| !list.is_empty()),
        Trust::OutsideProject => texts(value).any(|name| is_outside(key, name, project)),
        Trust::AsFlag => texts(value).any(|word| word.starts_with('-')),
    };
    let mut out = Powers::new();
    match (needs, key.split_once('.'), value) {
        (false, ..) => {}
        // One line for each field of an agent: a change is then seen where it is.
        (true, Some((top, name)), Value::Table(fields)) if !fields.is_empty() => {
            for (field, value) in fields {
                out.insert(
                    format!("{top}.{}.{}", name_of(name), name_of(field)),
                    text_of(value),
                );
            }
        }
        (true, Some((top, name)), value) => {
            out.insert(format!("{top}.{}", name_of(name)), text_of(value));
        }
        (true, None, value) => {
            out.insert(key.to_owned(), text_of(value));
        }
    }
    out
}

/// The project that a config file belongs to.
pub(super) fn project_of(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap_or(file);
    match folder.file_name() {
        Some(name) if name == PROJECT_FOLDER => folder.parent().unwrap_or(folder).to_owned(),
        _ => folder.to_owned(),
    }
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    value
        .as_str()
        .into_iter()
        .chain(list.iter().filter_map(Value::as_str))
}

/// Whether a path leads out of the project, by its own words or through links. What cannot be told
/// does.
fn is_outside(key: &str, name: &str, project: &Path) -> bool {
    // A template is a text or the name of a file; standard input is no file.
    if (key == "spec_template" && name.contains('{')) || (key == "prompt_file" && name == "-") {
        return false;
    }
    match (canonical(project), canonical(&project.join(name))) {
        (Ok(project), Ok(file)) => !file.starts_with(project),
        _ => true,
    }
}

fn name_of(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("{name:?}"),
    }
}

/// A value in one line and in one form, without anything that a terminal would obey. Two different
/// values are two different texts.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(text_of).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) => {
            let mut items: Vec<String> = table
                .iter()
                .map(|(key, value)| format!("{} = {}", name_of(key), text_of(value)))
                .collect();
            items.sort();
            match items.is_empty() {
                true => "{}".to_owned(),
                false => format!("{{ {} }}", items.join(", ")),
            }
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            value.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str, project: &Path) -> Vec<String> {
        let table: toml::Table = text.parse().unwrap();
        let mut out = Powers::new();
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("agents" | "prices" | "source", Value::Table(entries)) => {
                    for (name, value) in entries {
                        out.extend(of(&format!("{key}.{name}"), value, project));
                    }
                }
                _ => out.extend(of(key, value, project)),
            }
        }
        let line = |(key, value): (String, String)| format!("{key} = {value}");
        out.into_iter().map(line).collect()
    }

    #[test]
    fn what_starts_or_widens_needs_trust_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir_all(project.join("specs")).unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("../secret", project.join("link.md")).unwrap();
        let table: &[(&str, &[&str])] = &[
            ("max_iterations = 3\nparallel = 4\nauto_commit = true", &[]),
            ("verify = ['make test']", &["verify = [\"make test\"]"]),
            ("verify = []\non_event = []", &[]),
            ("permissions = 'all'", &["permissions = \"all\""]),
            (
                "[agents.a]\ncommand = 'x'\nargs = ['-y']\n[agents.'b c']\n[prices.m]\ninput = 1.0",
                &[
                    "agents.\"b c\" = {}",
                    "agents.a.args = [\"-y\"]",
                    "agents.a.command = \"x\"",
                ],
            ),
            ("prompt_file = 'PROMPT.md'\nspec_file = ['specs/a.md']", &[]),
            ("prompt_file = '-'\nspec_template = '../{task}'", &[]),
            (
                "prompt_file = '../secret'",
                &["prompt_file = \"../secret\""],
            ),
            ("prompt_file = 'link.md'", &["prompt_file = \"link.md\""]),
            (
                "spec_file = ['a.md', '/etc/hosts']",
                &["spec_file = [\"a.md\", \"/etc/hosts\"]"],
            ),
            (
                "worktree_copy = ['.env', '../x']",
                &["worktree_copy = [\".env\", \"../x\"]"],
            ),
            (
                "spec_template = '../t.md'",
                &["spec_template = \"../t.md\""],
            ),
            ("model = 'opus'", &[]),
            ("model = '--yolo'", &["model = \"--yolo\""]),
            ("nonsense = 'x'", &[]),
            (
                "on_event = \"a\\u001b[2J\\u202eb\\nc\"",
                &["on_event = \"a\\u{1b}[2J\\u{202e}b\\nc\""],
            ),
        ];
        for (text, expected) in table {
            assert_eq!(&keys(text, &project), expected, "{text}");
        }
    }
}
