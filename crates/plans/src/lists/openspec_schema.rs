//! A workflow of OpenSpec that a project has made its own: which files it consists of, and which of them holds
//! the tasks.

/// What of a schema decides what is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSpecSchema {
    /// The file with the tasks, or a pattern for several, as seen from the change.
    pub tracks: Option<String>,
    /// The other files of a change, likewise, in the order in which they are written.
    pub documents: Vec<String>,
}

impl OpenSpecSchema {
    /// Reads `schema.yaml`: `generates` of each artifact, and `tracks` of `apply`. Of YAML, only what is
    /// written so is understood.
    pub fn read(text: &str) -> Self {
        let mut read = Self::default();
        let mut generates: Vec<(String, String)> = Vec::new();
        let mut section = "";
        // Where the keys of the section stand; what is deeper is text.
        let mut column: Option<usize> = None;
        let mut id = String::new();
        for line in text.lines() {
            let bare = line.trim_start();
            let indent = line.len() - bare.len();
            if bare.is_empty() || bare.starts_with('#') {
                continue;
            }
            if indent == 0 && !bare.starts_with('-') {
                section = bare.split(':').next().unwrap_or_default();
                column = None;
                continue;
            }
            let item = bare.strip_prefix('-').map(str::trim_start);
            let item = item.filter(|_| column.is_none_or(|column| indent < column));
            let entry = item.unwrap_or(bare);
            let at = line.len() - entry.len();
            if *column.get_or_insert(at) != at {
                continue;
            }
            let Some((key, value)) = entry.split_once(':') else {
                continue;
            };
            let value = plain(value);
            match (section, key.trim()) {
                ("artifacts", "id") => value.clone_into(&mut id),
                ("artifacts", "generates") if is_inside(value) => {
                    generates.push((id.clone(), value.to_owned()));
                }
                ("apply", "tracks") if is_inside(value) => read.tracks = Some(value.to_owned()),
                _ => {}
            }
        }
        if read.tracks.is_none() {
            let tasks = generates.iter().find(|(id, _)| id == "tasks");
            read.tracks = tasks.map(|(_, file)| file.clone());
        }
        let others = generates.into_iter().map(|(_, file)| file);
        read.documents = others
            .filter(|file| Some(file) != read.tracks.as_ref())
            .collect();
        read
    }
}

/// The schema that `.openspec.yaml` of a change or `config.yaml` of a project names.
pub fn openspec_schema_name(config: &str) -> Option<&str> {
    let name = config
        .lines()
        .find_map(|line| line.strip_prefix("schema:"))
        .map(plain)?;
    let is_name = !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.');
    is_name.then_some(name)
}

/// A value without quotes and without a comment behind it.
fn plain(value: &str) -> &str {
    let value = value.trim();
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next().unwrap_or_default(),
        _ => value.split(" #").next().unwrap_or_default().trim_end(),
    }
}

/// Whether a path stays inside of the change.
fn is_inside(path: &str) -> bool {
    let leads_out = path.starts_with('/') || path.split('/').any(|part| part == "..");
    !path.is_empty() && path != "null" && !leads_out
}

/// Whether a path fits a pattern with `*`, `?` and, for any folders, `**`.
pub fn path_fits(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').filter(|part| *part != ".").collect();
    let path: Vec<&str> = path.split('/').collect();
    parts_fit(&pattern, &path)
}

fn parts_fit(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => (0..=path.len()).any(|skip| parts_fit(rest, &path[skip..])),
        (Some((first, rest)), Some((name, behind))) => {
            let (first, name): (Vec<char>, Vec<char>) =
                (first.chars().collect(), name.chars().collect());
            name_fits(&first, &name) && parts_fit(rest, behind)
        }
        _ => false,
    }
}

fn name_fits(pattern: &[char], name: &[char]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), _) => (0..=name.len()).any(|skip| name_fits(rest, &name[skip..])),
        (Some(('?', rest)), Some((_, behind))) => name_fits(rest, behind),
        (Some((c, rest)), Some((d, behind))) => c == d && name_fits(rest, behind),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_says_which_files_belong_to_a_change() {
        let text = "name: mine\nartifacts:\n  - id: brief\n    generates: brief.md # short\n    \
                    instruction: |\n      Write it.\n      generates: no.md\n      - generates: no.md\n\n  \
                    - id: specs\n    generates: \"specs/**/*.md\"\n  - id: todo\n    generates: todo.md\n\
                    apply:\n  requires: [todo]\n  tracks: todo.md\n  instruction: |\n    tracks: no.md\n";
        let read = OpenSpecSchema::read(text);
        assert_eq!(read.tracks.as_deref(), Some("todo.md"));
        assert_eq!(read.documents, ["brief.md", "specs/**/*.md"]);
        let flat =
            "artifacts:\n- id: tasks\n  generates: steps/*.md\n- id: x\n  generates: ../../etc\n";
        let read = OpenSpecSchema::read(flat);
        assert_eq!(read.tracks.as_deref(), Some("steps/*.md"));
        assert_eq!(read.documents, Vec::<String>::new());
    }

    #[test]
    fn names_and_patterns() {
        assert_eq!(
            openspec_schema_name("x: y\nschema: 'mine' # ours\n"),
            Some("mine")
        );
        assert_eq!(openspec_schema_name("schema: ../../x\n"), None);
        assert_eq!(openspec_schema_name("  schema: mine\n"), None);
        for (pattern, path, fits) in [
            ("todo.md", "todo.md", true),
            ("specs/**/*.md", "specs/a/b/spec.md", true),
            ("specs/**/*.md", "specs/spec.md", true),
            ("specs/**/*.md", "other/spec.md", false),
            ("tasks/*.md", "tasks/1.md", true),
            ("tasks/*.md", "tasks/a/1.md", false),
            ("./t?.md", "ta.md", true),
        ] {
            assert_eq!(path_fits(pattern, path), fits, "{pattern} {path}");
        }
    }
}
