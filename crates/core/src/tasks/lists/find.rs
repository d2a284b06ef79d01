//! Which list a path means, and which format it has: before anything of it is read as tasks.

use std::path::{Path, PathBuf};

use descartes_plans::lists::{ListFormat, Recognized, by_content, by_feature, by_place};
use descartes_store::safe_open::read_user_text;
use descartes_text::shell;
use thiserror::Error;

use super::openspec::{archived_change_of, change_of, task_files};

/// Where beads keeps its database.
const BEADS: &str = ".beads";

/// What a path was found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundList {
    /// A roadmap of ours.
    Roadmap(PathBuf),
    /// A list of another tool.
    List {
        /// Its file or folder.
        path: PathBuf,
        /// Whose it is.
        format: ListFormat,
        /// Task Master's tag.
        tag: Option<String>,
    },
    /// Tasks that a program keeps.
    Tracker(FoundTracker),
}

/// Tasks that a program keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTracker {
    /// Where the program is run.
    pub dir: PathBuf,
    /// Whose they are.
    pub format: ListFormat,
}

/// Why a path is no list that can be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct FindError {
    /// What was found instead.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl FindError {
    fn new(message: String, hint: impl Into<String>) -> Self {
        Self {
            message,
            hint: hint.into(),
        }
    }
}

/// Names that `--source` takes.
pub fn source_names() -> Vec<&'static str> {
    let lists = ListFormat::ALL.into_iter().chain(ListFormat::TRACKERS);
    let lists = lists.map(ListFormat::as_str);
    std::iter::once("roadmap").chain(lists).collect()
}

/// Finds the list at a path: a file, or a folder that a tool keeps its lists in.
pub fn find(path: &Path, source: Option<&str>) -> Result<FoundList, FindError> {
    let wanted = source.map(named).transpose()?;
    // `.` and a slash at the end say nothing.
    let path = &path.components().collect::<PathBuf>();
    if let Some(change) = archived_change_of(path) {
        return Err(archived(change));
    }
    if let Some(Wanted::List(format)) = wanted.filter(Wanted::is_tracker) {
        return tracker_at(path, format);
    }
    if path.is_dir() {
        return find_in_folder(path, wanted);
    }
    refuse_lone_returns(path)?;
    match wanted {
        Some(Wanted::Roadmap) => Ok(FoundList::Roadmap(path.to_owned())),
        Some(Wanted::List(format)) => Ok(list(path, format)),
        None => find_file(path),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Roadmap,
    List(ListFormat),
}

impl Wanted {
    fn is_tracker(&self) -> bool {
        matches!(self, Self::List(format) if format.is_tracker())
    }
}

/// The project that a path is in, or is.
fn tracker_at(path: &Path, format: ListFormat) -> Result<FoundList, FindError> {
    let dir = match path.file_name() {
        Some(name) if name == BEADS && path.is_dir() => path.parent().unwrap_or(path),
        _ if path.is_dir() => path,
        _ => {
            let message = format!("{} is not a folder", path.display());
            let hint = format!(
                "name the project, or omit it: descartes roadmap run --source {}",
                format.as_str()
            );
            return Err(FindError::new(message, hint));
        }
    };
    Ok(FoundList::Tracker(FoundTracker {
        dir: dir.to_owned(),
        format,
    }))
}

fn named(name: &str) -> Result<Wanted, FindError> {
    if name == "roadmap" {
        return Ok(Wanted::Roadmap);
    }
    ListFormat::from_name(name)
        .map(Wanted::List)
        .ok_or_else(|| {
            let near = descartes_text::finding::nearest(name, source_names());
            let hint = match near {
                Some(near) => format!("did you mean --source {near}?"),
                None => format!("known sources: {}", source_names().join(", ")),
            };
            FindError::new(format!("there is no source `{name}`"), hint)
        })
}

fn list(path: &Path, format: ListFormat) -> FoundList {
    let is_task_file = path.is_file() && format.is_folder() && format != ListFormat::Bmad;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let path = match (format, is_task_file) {
        (ListFormat::Backlog, true) => folder.parent().unwrap_or(&folder).to_owned(),
        (_, true) => folder,
        _ => path.to_owned(),
    };
    let tag = (format == ListFormat::TaskMaster).then(|| task_master_tag(&path));
    FoundList::List { path, format, tag }
}

/// The tag that Task Master works on.
fn task_master_tag(path: &Path) -> String {
    let state = path.parent().and_then(Path::parent);
    let state = state.and_then(|folder| read_user_text(&folder.join("state.json")).ok());
    let state: Option<serde_json::Value> = state.and_then(|text| serde_json::from_str(&text).ok());
    let tag = state
        .as_ref()
        .and_then(|state| state.get("currentTag")?.as_str());
    tag.unwrap_or("master").to_owned()
}

/// What an archived change needs to be worked on again.
fn archived(change: &Path) -> FindError {
    let name = change.file_name().unwrap_or_default().to_string_lossy();
    // It is archived as `2026-10-01-NAME`.
    let is_dated = name.len() > 11
        && name
            .bytes()
            .take(11)
            .enumerate()
            .all(|(at, byte)| match at {
                4 | 7 | 10 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
    let bare = if is_dated { &name[11..] } else { &name };
    let open = change
        .parent()
        .and_then(Path::parent)
        .map(|all| all.join(bare));
    FindError::new(
        format!(
            "{} is an OpenSpec change that was archived",
            change.display()
        ),
        format!(
            "name a change that is open; to work on this one again: mv {} {}",
            shell::path(change),
            shell::path(&open.unwrap_or_default())
        ),
    )
}

/// Files with line ends that nobody has used since 2001: all of it would be one line.
fn refuse_lone_returns(path: &Path) -> Result<(), FindError> {
    let Ok(text) = read_user_text(path) else {
        return Ok(());
    };
    if !text.contains('\r') || text.contains('\n') {
        return Ok(());
    }
    let message = format!(
        "the lines of {} end with a carriage return alone",
        path.display()
    );
    let hint = format!("convert it: sed -i 's/\\r/\\n/g' {}", shell::path(path));
    Err(FindError::new(message, hint))
}

fn find_file(path: &Path) -> Result<FoundList, FindError> {
    let text = read_user_text(path).map_err(|error| {
        let hint = "name a file or folder that is there";
        FindError::new(format!("cannot read {}: {error}", path.display()), hint)
    })?;
    let shown = path.to_string_lossy();
    let is_tracked = |change: &Path| task_files(change).iter().any(|file| file == path);
    if change_of(path).is_some_and(is_tracked) {
        return Ok(list(path, ListFormat::OpenSpec));
    }
    if let Some(format) = by_place(&shown) {
        return Ok(list(path, format));
    }
    match content_of(path, &text) {
        Recognized::Roadmap => Ok(FoundList::Roadmap(path.to_owned())),
        Recognized::List(format) => Ok(list(path, format)),
        Recognized::Other { what, instead } => Err(FindError::new(
            format!("{} is {what}", path.display()),
            instead,
        )),
    }
}

/// What a file is, by its text and by what lies beside it.
fn content_of(path: &Path, text: &str) -> Recognized {
    let shown = path.to_string_lossy();
    let beside = ["spec.md", "plan.md"]
        .iter()
        .any(|name| path.with_file_name(name).is_file());
    match by_feature(&shown, text, beside) {
        Some(format) => Recognized::List(format),
        None => by_content(&shown, text),
    }
}

/// The list of a format that was asked for in a folder that does not look like it.
fn asked_for(folder: &Path, wanted: Wanted) -> Option<FoundList> {
    let file = |name: &str| Some(folder.join(name)).filter(|file| file.is_file());
    match wanted {
        Wanted::Roadmap => file("ROADMAP.md")
            .or(file("tasks.md"))
            .map(FoundList::Roadmap),
        Wanted::List(
            format @ (ListFormat::OpenSpec
            | ListFormat::Kiro
            | ListFormat::SpecKit
            | ListFormat::Plan
            | ListFormat::Checklist),
        ) => file("tasks.md").map(|file| list(&file, format)),
        Wanted::List(format @ (ListFormat::Tk | ListFormat::Ccpm | ListFormat::Tickets)) => {
            Some(list(folder, format))
        }
        Wanted::List(_) => None,
    }
}

/// Where the tools keep their lists, seen from a project.
fn find_in_folder(folder: &Path, wanted: Option<Wanted>) -> Result<FoundList, FindError> {
    let mut found = candidates(folder);
    if let Some(wanted) = wanted {
        found.retain(|(_, known)| wanted == Wanted::List(*known));
        if let (true, Some(list)) = (found.is_empty(), asked_for(folder, wanted)) {
            return Ok(list);
        }
    }
    let ours = wanted.is_none().then(|| our_roadmap(folder)).flatten();
    let tasks = folder.join("tasks.md");
    if found.is_empty() && ours.is_none() && tasks.is_file() {
        return find_file(&tasks);
    }
    let shown = |path: &Path, format: &str| format!("{} ({format})", path.display());
    let mut names: Vec<String> = ours.iter().map(|path| shown(path, "roadmap")).collect();
    names.extend(
        found
            .iter()
            .map(|(path, format)| shown(path, format.as_str())),
    );
    let first = ours.clone().or_else(|| Some(found.first()?.0.clone()));
    match found.as_slice() {
        _ if names.len() > 1 => Err(FindError::new(
            format!(
                "{} holds several task lists: {}",
                folder.display(),
                names.join(", ")
            ),
            format!(
                "name one of them, for example: {}",
                first.unwrap_or_default().display()
            ),
        )),
        [(path, format)] if format.is_tracker() => tracker_at(path, *format),
        // Its name alone says little.
        [(path, ListFormat::PassesJson)] if wanted.is_none() => find_file(path),
        [(path, format)] => Ok(list(path, *format)),
        _ => ours.map(FoundList::Roadmap).ok_or_else(|| {
            FindError::new(
                format!("there is no task list in {}", folder.display()),
                "name its file; known places: ROADMAP.md, openspec/changes/NAME, .kiro/specs/NAME, \
                 specs/NNN-NAME, .taskmaster, backlog, .tickets, .beads, .claude/epics/NAME, \
                 .scratch/NAME/issues, prd.json, TODO.md; issues of a tracker: --source github --label LABEL",
            )
        }),
    }
}

/// A roadmap of ours in a folder: other files of that name are plans for people.
fn our_roadmap(folder: &Path) -> Option<PathBuf> {
    let file = folder.join("ROADMAP.md");
    let text = read_user_text(&file).ok()?;
    (content_of(&file, &text) == Recognized::Roadmap).then_some(file)
}

fn candidates(folder: &Path) -> Vec<(PathBuf, ListFormat)> {
    let direct = own_list(folder);
    if !direct.is_empty() {
        return direct;
    }
    let mut found = Vec::new();
    if let Some(feature) = spec_kit_feature(folder) {
        found.push((feature, ListFormat::SpecKit));
    }
    let many = [
        ("openspec/changes", ListFormat::OpenSpec),
        ("changes", ListFormat::OpenSpec),
        (".kiro/specs", ListFormat::Kiro),
        ("specs", ListFormat::SpecKit),
    ];
    for (name, format) in many {
        for list in lists_below(&folder.join(name), format) {
            let fits = match (name, by_place(&list.to_string_lossy())) {
                (_, None) if format == ListFormat::OpenSpec => change_of(&list).is_some(),
                ("specs", None) => found.is_empty() || !has_format(&found, ListFormat::SpecKit),
                (_, place) => place == Some(format),
            };
            let is_numbered = name != "specs" || is_numbered(&list);
            if fits && is_numbered {
                found.push((list, format));
            }
        }
    }
    let files = [
        (".taskmaster/tasks/tasks.json", ListFormat::TaskMaster),
        ("prd.json", ListFormat::PassesJson),
        ("feature_list.json", ListFormat::PassesJson),
    ];
    for (name, format) in files {
        let file = folder.join(name);
        if file.is_file() {
            found.push((file, format));
        }
    }
    for name in ["backlog", ".backlog"] {
        found.extend(own_list(&folder.join(name)));
    }
    found.extend(own_list(&folder.join(".tickets")));
    for folder in folders_in(&folder.join(".claude/epics")) {
        found.extend(own_list(&folder));
    }
    for folder in folders_in(&folder.join(".scratch")) {
        let issues = folder.join("issues");
        if has_numbered_tasks(&issues) {
            found.push((issues, ListFormat::Tickets));
        }
    }
    if folder.join(BEADS).is_dir() {
        found.extend(own_list(&folder.join(BEADS)));
    }
    found
}

fn has_format(found: &[(PathBuf, ListFormat)], format: ListFormat) -> bool {
    found.iter().any(|(_, known)| *known == format)
}

/// The list that a folder itself is.
fn own_list(folder: &Path) -> Vec<(PathBuf, ListFormat)> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let above = folder
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default();
    if change_of(folder) == Some(folder) {
        let tracked = task_files(folder).into_iter();
        return tracked.map(|file| (file, ListFormat::OpenSpec)).collect();
    }
    let tasks = folder.join("tasks.md");
    if tasks.is_file() {
        let place = by_place(&tasks.to_string_lossy());
        let text = read_user_text(&tasks).unwrap_or_default();
        let format = match (place, content_of(&tasks, &text)) {
            (Some(format), _) | (None, Recognized::List(format)) => format,
            _ => return Vec::new(),
        };
        // Boxes without ids beside a spec of spec-kit's are a check list.
        return vec![(tasks, format)];
    }
    let mut found = Vec::new();
    if name == BEADS {
        found.push((folder.to_owned(), ListFormat::Beads));
    }
    let task_master = folder.join("tasks/tasks.json");
    if name == ".taskmaster" && task_master.is_file() {
        found.push((task_master, ListFormat::TaskMaster));
    }
    let is_backlog = folder.join("config.yml").is_file() || folder.join("config.yaml").is_file();
    if folder.join("tasks").is_dir() && (is_backlog || name == ".backlog") {
        found.push((folder.to_owned(), ListFormat::Backlog));
    }
    if name == ".tickets" && folder.is_dir() {
        found.push((folder.to_owned(), ListFormat::Tk));
    }
    if above == "epics" && has_numbered_tasks(folder) {
        found.push((folder.to_owned(), ListFormat::Ccpm));
    }
    if name == "issues" && has_numbered_tasks(folder) {
        found.push((folder.to_owned(), ListFormat::Tickets));
    } else if has_numbered_tasks(&folder.join("issues")) {
        found.push((folder.join("issues"), ListFormat::Tickets));
    }
    let status = folder.join("sprint-status.yaml");
    if status.is_file() {
        found.push((status, ListFormat::Bmad));
    }
    found
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    folders
}

fn has_numbered_tasks(folder: &Path) -> bool {
    let Ok(entries) = fs_err::read_dir(folder) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with(|c: char| c.is_ascii_digit()) && name.ends_with(".md")
    })
}

/// The lists of every folder in a folder, save those that were put away.
fn lists_below(folder: &Path, format: ListFormat) -> Vec<PathBuf> {
    let Ok(entries) = fs_err::read_dir(folder) else {
        return Vec::new();
    };
    let folders = entries
        .flatten()
        .filter(|entry| entry.file_name() != "archive");
    let in_folder = |folder: PathBuf| match format {
        ListFormat::OpenSpec if change_of(&folder).is_some() => task_files(&folder),
        _ => vec![folder.join("tasks.md")],
    };
    let mut lists: Vec<PathBuf> = folders.flat_map(|entry| in_folder(entry.path())).collect();
    lists.retain(|list| list.is_file());
    lists.sort();
    lists
}

/// `specs/003-export/tasks.md`.
fn is_numbered(list: &Path) -> bool {
    let folder = list.parent().and_then(Path::file_name).unwrap_or_default();
    folder
        .to_string_lossy()
        .starts_with(|c: char| c.is_ascii_digit())
}

/// The feature that spec-kit works on.
fn spec_kit_feature(folder: &Path) -> Option<PathBuf> {
    let text = read_user_text(&folder.join(".specify/feature.json")).ok()?;
    let json: serde_json::Value = serde_json::from_str(&text).ok()?;
    let feature = folder.join(json.get("feature_directory")?.as_str()?);
    let tasks = feature.join("tasks.md");
    tasks.is_file().then_some(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found at a path of a project that holds this one file.
    fn found(file: &str, text: &str, at: &str, source: Option<&str>) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(file);
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(&file, text).unwrap();
        match find(&dir.path().join(at), source) {
            Ok(FoundList::Roadmap(path)) => {
                format!(
                    "roadmap {}",
                    path.strip_prefix(dir.path()).unwrap().display()
                )
            }
            Ok(FoundList::List { path, format, .. }) => {
                let path = path.strip_prefix(dir.path()).unwrap();
                format!("{} {}", format.as_str(), path.display())
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_folder_is_read_as_its_file_is_and_as_it_was_asked_for() {
        let (feature, tasks) = ("specs/006-x", "specs/006-x/tasks.md");
        let noted = "- [ ] T001 Do\n  - Files: a\n";
        let ours = "## Tasks\n- [ ] **fetch**: Do\n";
        let plain = "- [ ] Do\n";
        for (text, at, source, expected) in [
            (noted, feature, None, "spec-kit specs/006-x/tasks.md"),
            (noted, tasks, None, "spec-kit specs/006-x/tasks.md"),
            (noted, ".", None, "spec-kit specs/006-x/tasks.md"),
            (ours, feature, None, "roadmap specs/006-x/tasks.md"),
            (
                ours,
                feature,
                Some("spec-kit"),
                "spec-kit specs/006-x/tasks.md",
            ),
            (
                ours,
                tasks,
                Some("spec-kit"),
                "spec-kit specs/006-x/tasks.md",
            ),
            (
                noted,
                feature,
                Some("roadmap"),
                "roadmap specs/006-x/tasks.md",
            ),
            (plain, feature, None, "checklist specs/006-x/tasks.md"),
            (
                plain,
                feature,
                Some("spec-kit"),
                "spec-kit specs/006-x/tasks.md",
            ),
        ] {
            assert_eq!(
                found(tasks, text, at, source),
                expected,
                "{text} {at} {source:?}"
            );
        }
    }

    #[test]
    fn one_file_of_a_list_stands_for_the_list() {
        let ticket = "---\nid: a\nstatus: open\n---\n";
        assert_eq!(found("todo/a.md", ticket, "todo", Some("tk")), "tk todo");
        for (file, text, expected) in [
            (".claude/epics/e/001.md", ticket, "ccpm .claude/epics/e"),
            (
                ".scratch/f/issues/01-x.md",
                "Status: ready-for-agent\n\n- [ ] a\n",
                "tickets .scratch/f/issues",
            ),
        ] {
            assert_eq!(found(file, text, file, None), expected);
        }
    }

    #[test]
    fn a_project_is_searched_for_lists_of_ours_first_and_of_others() {
        let ours = "# R\n## Tasks\n- [ ] **fetch**: Do\n";
        let ticket = "---\nid: a\nstatus: open\n---\n";
        for (file, text, expected) in [
            ("ROADMAP.md", ours, "roadmap ROADMAP.md"),
            (".claude/epics/e/001.md", ticket, "ccpm .claude/epics/e"),
            (
                ".scratch/f/issues/01-x.md",
                "Status: ready-for-agent\n\n- [ ] a\n",
                "tickets .scratch/f/issues",
            ),
        ] {
            assert_eq!(found(file, text, ".", None), expected);
        }
        let plan = found("ROADMAP.md", "# 2027\nWe grow.\n", ".", None);
        assert!(plan.contains("there is no task list"), "{plan}");
        assert!(plan.contains("known places: ROADMAP.md"), "{plan}");
    }

    #[test]
    fn what_cannot_be_run_as_it_lies_is_refused_by_name() {
        let file = "openspec/changes/archive/2026-10-01-old/tasks.md";
        for at in [file, "openspec/changes/archive/2026-10-01-old"] {
            let refused = found(file, "## 1\n- [x] 1.1 a\n- [ ] 1.2 b\n", at, None);
            assert!(
                refused.contains("OpenSpec change that was archived"),
                "{refused}"
            );
            assert!(refused.contains("openspec/changes/old\""), "{refused}");
        }
        let refused = found("TODO.md", "- [ ] a\r- [ ] b\r", "TODO.md", None);
        assert!(refused.contains("carriage return alone"), "{refused}");
    }

    #[test]
    fn what_is_no_list_is_refused_unless_it_was_asked_for() {
        let plain = "- [ ] Do\n";
        let refused = found("prd.json", "{\"prd\": {}}", ".", None);
        assert!(
            refused.contains("JSON that is not run in place"),
            "{refused}"
        );
        let template = ".github/pull_request_template.md";
        let refused = found(template, plain, template, None);
        assert!(refused.contains("a template"), "{refused}");
        let asked = found(template, plain, template, Some("checklist"));
        assert_eq!(asked, format!("checklist {template}"));
    }
}
