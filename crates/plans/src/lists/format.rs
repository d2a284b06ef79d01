//! The formats of task lists, by name.

use serde::{Deserialize, Serialize};

/// A format of another tool that is run in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListFormat {
    /// `openspec/changes/NAME/tasks.md`.
    #[serde(rename = "openspec")]
    OpenSpec,
    /// `.kiro/specs/NAME/tasks.md`, of Kiro and cc-sdd.
    Kiro,
    /// `specs/NNN-NAME/tasks.md`.
    SpecKit,
    /// `### Task N: …` with steps as boxes (superpowers, ralphex).
    Plan,
    /// Any other file with boxes.
    Checklist,
    /// JSON with a boolean `passes` for each story.
    PassesJson,
    /// `.taskmaster/tasks/tasks.json`.
    TaskMaster,
    /// `backlog/tasks/*.md`.
    Backlog,
    /// `.tickets/*.md`.
    Tk,
    /// `.claude/epics/NAME/*.md`.
    Ccpm,
    /// `.scratch/NAME/issues/*.md`.
    Tickets,
    /// `sprint-status.yaml` with a file for each story.
    Bmad,
    /// Issues of beads, by `bd` or `br`.
    Beads,
    /// Issues of GitHub, by `gh`.
    #[serde(rename = "github")]
    GitHub,
    /// Issues of GitLab, by `glab`.
    #[serde(rename = "gitlab")]
    GitLab,
    /// Tasks that a command of the config prints.
    Command,
}

impl ListFormat {
    /// Those whose tasks a program keeps: nothing of them is in a file that is read here.
    pub const TRACKERS: [Self; 3] = [Self::Beads, Self::GitHub, Self::GitLab];

    /// All that are kept in files, in the order in which they are tried.
    pub const ALL: [Self; 12] = [
        Self::OpenSpec,
        Self::Kiro,
        Self::SpecKit,
        Self::Plan,
        Self::Checklist,
        Self::PassesJson,
        Self::TaskMaster,
        Self::Backlog,
        Self::Tk,
        Self::Ccpm,
        Self::Tickets,
        Self::Bmad,
    ];

    /// The name that is typed and printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenSpec => "openspec",
            Self::Kiro => "kiro",
            Self::SpecKit => "spec-kit",
            Self::Plan => "plan",
            Self::Checklist => "checklist",
            Self::PassesJson => "passes-json",
            Self::TaskMaster => "task-master",
            Self::Backlog => "backlog",
            Self::Tk => "tk",
            Self::Ccpm => "ccpm",
            Self::Tickets => "tickets",
            Self::Bmad => "bmad",
            Self::Beads => "beads",
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Command => "command",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = Self::ALL.into_iter().chain(Self::TRACKERS);
        all.into_iter().find(|format| format.as_str() == name)
    }

    /// Whether a program keeps its tasks.
    pub const fn is_tracker(self) -> bool {
        matches!(
            self,
            Self::Beads | Self::GitHub | Self::GitLab | Self::Command
        )
    }

    /// Whether it can say what is worked on.
    pub const fn can_claim(self) -> bool {
        matches!(
            self,
            Self::TaskMaster
                | Self::Backlog
                | Self::Tk
                | Self::Ccpm
                | Self::Beads
                | Self::GitHub
                | Self::GitLab
        )
    }

    /// Whether anybody can have written the text of its tasks.
    pub const fn is_written_by_anybody(self) -> bool {
        matches!(self, Self::GitHub | Self::GitLab | Self::Command)
    }

    /// What people call such a list.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::OpenSpec => "an OpenSpec change",
            Self::Kiro => "a Kiro spec",
            Self::SpecKit => "a spec-kit feature",
            Self::Plan => "a plan with `### Task N` headings",
            Self::Checklist => "a check list",
            Self::PassesJson => "stories in JSON, each with `passes` or `status`",
            Self::TaskMaster => "Task Master's tasks",
            Self::Backlog => "Backlog.md tasks",
            Self::Tk => "tk tickets",
            Self::Ccpm => "a ccpm epic",
            Self::Tickets => "a folder of tickets",
            Self::Bmad => "BMAD stories",
            Self::Beads => "beads issues",
            Self::GitHub => "GitHub issues",
            Self::GitLab => "GitLab issues",
            Self::Command => "tasks of a command",
        }
    }

    /// Whether each task is a file of its own.
    pub const fn is_folder(self) -> bool {
        matches!(
            self,
            Self::Backlog | Self::Tk | Self::Ccpm | Self::Tickets | Self::Bmad
        )
    }
}

/// What a list is called, from its path: a file with a general name is called after its folder.
pub fn name_of(path: &str) -> String {
    if let Some((_, inside)) = path.rsplit_once("openspec/changes/")
        && let Some((change, _)) = inside.split_once('/')
    {
        return change.to_lowercase();
    }
    let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
    let general = [
        "tasks",
        "plan",
        "issues",
        "specs",
        "changes",
        "sprint-status",
    ];
    let first = parts.next().unwrap_or("tasks");
    let stem = first.rsplit_once('.').map_or(first, |(stem, _)| stem);
    let stem = if stem.is_empty() { first } else { stem };
    let is_general = |name: &str| general.contains(&name.to_lowercase().as_str());
    let name = match is_general(stem) {
        true => parts.find(|part| !is_general(part)).unwrap_or(stem),
        false => stem,
    };
    name.trim_start_matches('.').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_called_after_what_tells_them_apart() {
        for (path, name) in [
            ("/p/specs/003-csv/tasks.md", "003-csv"),
            ("/p/openspec/changes/add-login/tasks.md", "add-login"),
            ("/p/openspec/changes/add-login/todo.md", "add-login"),
            ("/p/.taskmaster/tasks/tasks.json", "taskmaster"),
            ("/p/docs/plans/2026-cache.md", "2026-cache"),
            ("/p/backlog", "backlog"),
            ("/p/.scratch/csv/issues", "csv"),
            ("/p/.tickets", "tickets"),
        ] {
            assert_eq!(name_of(path), name, "{path}");
        }
        for format in ListFormat::ALL {
            assert_eq!(ListFormat::from_name(format.as_str()), Some(format));
            let json = serde_json::to_string(&format).unwrap();
            assert_eq!(json, format!("\"{}\"", format.as_str()));
        }
    }
}
