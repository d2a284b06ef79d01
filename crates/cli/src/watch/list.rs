//! The list at the left: which loops, in which order, children under their parents.

use std::collections::HashMap;

use descartes_client::Brief;
use descartes_views::view::Status;

/// Which loops are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    #[default]
    All,
    /// Those that are not over.
    Open,
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub brief: Brief,
    /// Under whom it stands.
    pub depth: Depth,
    /// Children that are not shown.
    pub hidden: usize,
}

/// Whether a loop stands by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Top,
    Child,
}

/// How a loop stands; `None` where that cannot be read.
pub fn status(brief: &Brief) -> Option<&Status> {
    brief.standing.as_ref().ok().map(|brief| &brief.status)
}

/// Whether a process works on it.
pub fn is_live(brief: &Brief) -> bool {
    status(brief).is_some_and(Status::is_live)
}

/// Orders and nests the loops: live ones first, then the newest. The children of a task loop
/// are shown while it, or one of them, is chosen.
pub fn arrange(briefs: &[Brief], show: Show, filter: &str, chosen: Option<&str>) -> Vec<Entry> {
    let known: HashMap<&str, &Brief> = briefs.iter().map(|b| (b.id.as_str(), b)).collect();
    let parent = |brief: &Brief| {
        let parent = brief.parent.as_deref()?;
        known.get(parent).map(|parent| parent.id.as_str())
    };
    let family = chosen
        .and_then(|id| known.get(id))
        .map(|brief| parent(brief).unwrap_or(&brief.id));
    let mut children: HashMap<&str, Vec<&Brief>> = HashMap::new();
    for brief in briefs {
        if let Some(parent) = parent(brief) {
            children.entry(parent).or_default().push(brief);
        }
    }
    let matches = |brief: &Brief| is_meant(brief, filter);
    let mut tops: Vec<&Brief> = briefs.iter().filter(|b| parent(b).is_none()).collect();
    tops.sort_by_key(|brief| !is_live(brief));
    let mut entries = Vec::new();
    for top in tops {
        let below = children.get(top.id.as_str()).map_or(&[][..], Vec::as_slice);
        if show == Show::Open && !is_live(top) && chosen != Some(&top.id) {
            continue;
        }
        let found: Vec<&&Brief> = below.iter().filter(|child| matches(child)).collect();
        if !matches(top) && found.is_empty() {
            continue;
        }
        let open = family == Some(&top.id);
        entries.push(Entry {
            brief: top.clone(),
            depth: Depth::Top,
            hidden: if open { 0 } else { below.len() },
        });
        if open {
            let shown = if matches(top) {
                below.iter().collect()
            } else {
                found
            };
            // In the order of the work.
            entries.extend(shown.into_iter().rev().map(|child| Entry {
                brief: (*child).clone(),
                depth: Depth::Child,
                hidden: 0,
            }));
        }
    }
    entries
}

fn is_meant(brief: &Brief, filter: &str) -> bool {
    let label = status(brief).map_or("unreadable", Status::label);
    let text = format!(
        "{} {} {label} {}",
        brief.name,
        brief.id,
        brief.folder.display()
    );
    let text = text.to_lowercase();
    let mut words = filter.split_whitespace();
    words.all(|word| text.contains(&word.to_lowercase()))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use descartes_client::LoopBrief;
    use descartes_kernel::outcome::IterativeExitReason;

    /// A loop in a list.
    pub fn brief(id: &str, name: &str, parent: Option<&str>, status: Status) -> Brief {
        Brief {
            id: id.into(),
            name: name.into(),
            parent: parent.map(str::to_owned),
            task: None,
            worker: None,
            folder: "/home/me/project".into(),
            started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            standing: Ok(LoopBrief {
                status,
                iterations: 8,
                limit: Some(20),
                tasks: None,
                spent: Default::default(),
            }),
        }
    }

    fn ended() -> Status {
        Status::Ended {
            reason: IterativeExitReason::MaxIterationsReached,
        }
    }

    fn ids(entries: &[Entry]) -> Vec<&str> {
        entries
            .iter()
            .map(|entry| entry.brief.id.as_str())
            .collect()
    }

    #[test]
    fn live_loops_come_first_and_children_under_a_chosen_parent() {
        let briefs = [
            brief("5", "old", None, ended()),
            brief("4", "tasks/2", Some("2"), Status::Running),
            brief("3", "tasks/1", Some("2"), ended()),
            brief("2", "tasks", None, Status::Running),
            brief("1", "lost", Some("9"), ended()),
        ];
        let all = |chosen, filter| arrange(&briefs, Show::All, filter, chosen);
        assert_eq!(ids(&all(Some("5"), "")), ["2", "5", "1"]);
        assert_eq!(all(None, "")[0].hidden, 2);
        assert_eq!(ids(&all(Some("2"), "")), ["2", "3", "4", "5", "1"]);
        assert_eq!(ids(&all(Some("4"), "")), ["2", "3", "4", "5", "1"]);
        assert_eq!(ids(&all(None, "LIMIT old")), ["5"]);
        assert_eq!(ids(&arrange(&briefs, Show::Open, "", None)), ["2"]);
    }
}
