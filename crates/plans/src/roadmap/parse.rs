//! A roadmap from its text.

use std::collections::HashSet;

use super::keys::Depends;
use super::lines::{LineKind, RoadmapLine, lines};
use super::model::{CheckMark, Roadmap, RoadmapTask};
use super::tasks::TaskHead;
use super::{foreign, sections, tasks};
use crate::graph::{Dependency, Rules, TaskGraph, TaskNode, TaskStatus};
use descartes_text::finding::{self, Finding, Place};

/// Reads a roadmap. It is never refused: what cannot be read stands in its findings.
pub fn parse(text: &str) -> Roadmap {
    let mut roadmap = Roadmap::default();
    let mut findings = Vec::new();
    let all = lines(text, &mut findings);
    roadmap.findings = findings;
    roadmap.title = title(&all);
    let (before, sections) = split(&all);
    for section in &sections {
        read_section(section, &mut roadmap);
    }
    if !sections
        .iter()
        .any(|section| section.kind == SectionKind::Tasks)
    {
        tasks_anywhere(before, &sections, &mut roadmap);
    } else {
        stray_tasks(&sections, &mut roadmap.findings);
    }
    if let Some((format, place)) = foreign::recognize(&all) {
        roadmap.foreign = Some(format);
        // What else is odd about it, seen as a roadmap, would only mislead.
        roadmap.findings = vec![format.finding(place)];
    }
    finding::sort(&mut roadmap.findings);
    roadmap
}

/// Where the tasks of a roadmap begin, without reading what stands under them.
pub(super) fn heads(text: &str) -> Vec<TaskHead<'_>> {
    let all = lines(text, &mut Vec::new());
    let (before, sections) = split(&all);
    let of = |kind: SectionKind| {
        let sections = sections.iter().filter(move |section| section.kind == kind);
        sections.map(|section| section.lines)
    };
    let mut heads = Vec::new();
    if of(SectionKind::Tasks).next().is_some() {
        for part in of(SectionKind::Tasks) {
            tasks::heads(part, &mut heads);
        }
    } else {
        for part in std::iter::once(before).chain(of(SectionKind::Other)) {
            tasks::heads(part, &mut heads);
        }
    }
    heads
}

/// The ids of all tasks, without reading what stands under them.
pub fn task_ids(text: &str) -> HashSet<String> {
    let heads = heads(text).into_iter();
    heads.map(|head| head.id.to_owned()).collect()
}

/// Everything that there is to say about a roadmap before it is run, in the order of the file.
pub fn check(text: &str) -> Vec<Finding> {
    parse(text).check()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SectionKind {
    Objective,
    Constraints,
    Criteria,
    Tasks,
    Growth,
    Other,
}

struct Section<'l, 'a> {
    kind: SectionKind,
    lines: &'l [RoadmapLine<'a>],
}

fn kind_of(heading: &str) -> SectionKind {
    match heading.trim_end_matches(':').to_lowercase().as_str() {
        "objective" | "objectives" | "goal" => SectionKind::Objective,
        "constraints" => SectionKind::Constraints,
        "success criteria" => SectionKind::Criteria,
        "tasks" => SectionKind::Tasks,
        "growth mode" | "growth" => SectionKind::Growth,
        _ => SectionKind::Other,
    }
}

/// The lines before the first second-level heading, and the parts under those headings.
fn split<'l, 'a>(all: &'l [RoadmapLine<'a>]) -> (&'l [RoadmapLine<'a>], Vec<Section<'l, 'a>>) {
    let heads: Vec<(usize, &str)> = all
        .iter()
        .enumerate()
        .filter_map(|(at, line)| match line.heading() {
            Some((2, name)) => Some((at, name)),
            _ => None,
        })
        .collect();
    let ends = heads.iter().skip(1).map(|(at, _)| *at).chain([all.len()]);
    let section = |((at, name), end): (&(usize, &str), usize)| Section {
        kind: kind_of(name),
        lines: &all[at + 1..end],
    };
    let before = heads.first().map_or(all.len(), |(at, _)| *at);
    (
        &all[..before],
        heads.iter().zip(ends).map(section).collect(),
    )
}

fn title(all: &[RoadmapLine<'_>]) -> Option<String> {
    let name = all
        .iter()
        .find_map(|line| line.heading().filter(|(level, _)| *level == 1))?
        .1;
    let plain = match name.get(..8) {
        Some(word) if word.eq_ignore_ascii_case("roadmap:") => name[8..].trim(),
        _ => name,
    };
    (!plain.is_empty()).then(|| plain.to_owned())
}

fn read_section(section: &Section<'_, '_>, roadmap: &mut Roadmap) {
    let visible: Vec<RoadmapLine<'_>> = section
        .lines
        .iter()
        .filter(|line| line.kind != LineKind::Comment)
        .copied()
        .collect();
    match section.kind {
        SectionKind::Objective => roadmap.objective = sections::prose(&visible),
        SectionKind::Constraints => {
            roadmap.constraints = sections::constraints(&visible, &mut roadmap.findings);
        }
        SectionKind::Criteria => roadmap.criteria = sections::criteria(&visible),
        SectionKind::Growth => roadmap.growth = sections::growth(&visible),
        SectionKind::Tasks => tasks::read(section.lines, roadmap),
        SectionKind::Other => {}
    }
}

/// A file without "## Tasks" has its tasks where its author put them.
fn tasks_anywhere(before: &[RoadmapLine<'_>], sections: &[Section<'_, '_>], roadmap: &mut Roadmap) {
    let others = sections
        .iter()
        .filter(|section| section.kind == SectionKind::Other);
    let parts = std::iter::once(before).chain(others.map(|section| section.lines));
    for part in parts.filter(|part| part.iter().any(tasks::is_task)) {
        tasks::read(part, roadmap);
    }
    if let Some(first) = roadmap.tasks.first() {
        let message = "there is no section `## Tasks`: tasks are taken from the whole file";
        roadmap
            .findings
            .push(Finding::warning(first.place, message));
    }
}

fn stray_tasks(sections: &[Section<'_, '_>], findings: &mut Vec<Finding>) {
    // A criterion in bold letters is no task.
    let quiet = [SectionKind::Tasks, SectionKind::Criteria];
    for section in sections
        .iter()
        .filter(|section| !quiet.contains(&section.kind))
    {
        for line in section.lines.iter().filter(|line| tasks::is_task(line)) {
            let message = "this task is outside `## Tasks` and will not run";
            findings.push(Finding::warning(line.place(line.indent()), message));
        }
    }
}

impl Roadmap {
    /// The first open task that names its own agent: its line, and what is said of it.
    pub fn own_agent(&self) -> Option<String> {
        let names = |task: &&RoadmapTask| {
            let asks = task.keys.agent.is_some() || !task.keys.cli.is_empty();
            asks && task.mark.status() != TaskStatus::Done
        };
        let task = self.tasks.iter().find(names)?;
        Some(format!(
            "line {}: task {} names its own agent, which this run does not allow",
            task.place.line, task.id
        ))
    }

    /// The graph of the tasks.
    pub fn graph(&self) -> TaskGraph {
        TaskGraph::new(self.tasks.iter().map(|task| self.node(task)).collect())
    }

    fn node(&self, task: &RoadmapTask) -> TaskNode {
        let mut node = TaskNode::new(task.id.as_str(), task.description.clone());
        node.status = task.mark.status();
        node.place = task.place;
        node.agent = task
            .keys
            .agent
            .clone()
            .or_else(|| task.keys.cli.first().cloned());
        node.rules = Rules {
            on_fail: task.keys.on_fail.unwrap_or_default(),
            ..Rules::default()
        };
        let depends = task.keys.depends.iter();
        let depends = depends.map(|on| Dependency {
            id: on.id.as_str().into(),
            place: on.place,
        });
        node.dependencies = depends.collect();
        node
    }

    /// Everything that there is to say about it before it is run, in the order of the file.
    pub fn check(&self) -> Vec<Finding> {
        if self.foreign.is_some() {
            return self.findings.clone();
        }
        let graph = self.graph();
        let mut findings = self.findings.clone();
        findings.extend(graph.check().iter().map(|problem| problem.finding(&graph)));
        for task in &self.tasks {
            let depends = task.keys.depends.iter();
            findings.extend(depends.filter_map(|on| {
                let other = graph
                    .find(&on.id)
                    .map(|other| &self.tasks[other as usize])?;
                held_by(task, on, other)
            }));
        }
        if self.tasks.is_empty() {
            let hint = "write - [ ] **some-id**: what to do, under a heading ## Tasks";
            findings.push(Finding::error(Place::FILE, "the roadmap has no tasks").hint(hint));
        }
        finding::sort(&mut findings);
        findings
    }
}

/// An open task that waits for one that a person took out.
fn held_by(task: &RoadmapTask, on: &Depends, other: &RoadmapTask) -> Option<Finding> {
    let waits = task.mark.status() == TaskStatus::Pending;
    let out = matches!(other.mark, CheckMark::LeftOut | CheckMark::Stopped);
    (waits && out).then(|| {
        let mark = other.mark.character();
        let message = format!(
            "task `{}` is waiting for `{}`, which is marked [{mark}]",
            task.id, on.id
        );
        Finding::warning(on.place, message).hint(format!(
            "remove `{}` from its dependencies, or reopen it",
            on.id
        ))
    })
}
