//! Reads a graph file into tags and tasks, and tells what SCUD would make of it.

use super::model::{ScudError, ScudFile, ScudTag, ScudTask};
use super::rows::{Index, Rows, read_complexity, read_priority, read_status};
use super::scan::{HEADER, Scanner, ScgItem, ScgLine, Section, cells, unescape};
use super::scg_text::ScgText;
use crate::graph::natural_cmp;
use descartes_text::finding::{self, Finding, Place};

pub(super) fn parse(text: &str) -> Result<ScudFile, ScudError> {
    let mut file = ScudFile::default();
    let mut phase: Option<TagReader<'_>> = None;
    let mut last = 1;
    for line in Scanner::new(text) {
        last = line.number;
        match line.item {
            ScgItem::Phase => {
                if let Some(done) = phase.replace(TagReader::default()) {
                    done.finish(&mut file);
                    warn_of_windows_rule(&line, &mut file.findings);
                }
            }
            ScgItem::Stray(found) => return Err(not_a_graph(line.number, found)),
            item => {
                let phase = phase.get_or_insert_default();
                phase.take(item, line.number, &mut file.findings);
            }
        }
    }
    match phase {
        Some(phase) if phase.tag.is_none() => return Err(not_a_graph(last + 1, "")),
        Some(phase) => phase.finish(&mut file),
        None => {}
    }
    warn_of_whole_file(text, &mut file);
    finding::sort(&mut file.findings);
    Ok(file)
}

fn not_a_graph(line: u32, found: &str) -> ScudError {
    let found: String = found.chars().take(40).collect();
    let message = format!(
        "expected `{HEADER} v1` and then `# Phase: <tag>`, found `{found}`; this is not a SCUD \
         graph, or its beginning is missing"
    );
    ScudError { line, message }
}

fn warn_of_windows_rule(header: &ScgLine<'_>, findings: &mut Vec<Finding>) {
    if header.crlf {
        let message =
            "SCUD does not see this tag: with CRLF line endings it reads only one tag per file";
        findings.push(
            Finding::warning(Place::line(header.number), message)
                .hint("save the file with LF line endings"),
        );
    }
}

fn warn_of_whole_file(text: &str, file: &mut ScudFile) {
    let findings = &mut file.findings;
    if text.starts_with('\u{feff}') {
        let message = "SCUD cannot read a file that starts with a byte order mark";
        findings.push(Finding::warning(Place::line(1), message));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let line = text.lines().count() as u32;
        let message = "the file does not end with a newline: it may be truncated";
        findings.push(Finding::warning(Place::line(line), message));
    }
    for (i, tag) in file.tags.iter().enumerate() {
        if file.tags[..i]
            .iter()
            .any(|earlier| earlier.name == tag.name)
        {
            let message = format!(
                "the tag `{}` appears again here: SCUD keeps this part and drops the earlier one",
                tag.name
            );
            findings.push(Finding::error(Place::line(tag.line), message));
        }
    }
}

/// One tag's part while it is read.
#[derive(Default)]
struct TagReader<'a> {
    tag: Option<&'a str>,
    line: u32,
    tasks: Vec<ScudTask>,
    index: Index<'a>,
    edges: Vec<(u32, &'a str)>,
    parents: Vec<(u32, &'a str)>,
    agents: Vec<(u32, &'a str)>,
    assignments: Vec<(u32, &'a str)>,
    texts: Vec<ScgText<'a>>,
    is_pipeline: bool,
}

impl<'a> TagReader<'a> {
    fn take(&mut self, item: ScgItem<'a>, line: u32, findings: &mut Vec<Finding>) {
        match item {
            ScgItem::Tag(tag) => (self.tag, self.line) = (Some(tag), line),
            ScgItem::Section(Section::Other, name) if name != "@pipeline" => {
                let message =
                    format!("SCUD reads the rows of `{name}` as part of the section before it");
                findings.push(Finding::warning(Place::line(line), message));
            }
            ScgItem::Row(Section::Meta, row) => self.meta(row),
            ScgItem::Row(Section::Nodes, row) => self.node(row, line, findings),
            ScgItem::Row(Section::Edges, row) => self.edges.push((line, row)),
            ScgItem::Row(Section::Parents, row) => self.parents.push((line, row)),
            ScgItem::Row(Section::Assignments, row) => self.assignments.push((line, row)),
            ScgItem::Row(Section::Agents, row) => self.agents.push((line, row)),
            ScgItem::Row(Section::Details, row) => self.text_head(row, line, findings),
            ScgItem::Text(text) => self.text_line(text, line, findings),
            ScgItem::Blank => {
                if let Some(text) = self.texts.last_mut() {
                    text.blanks += 1;
                }
            }
            ScgItem::Row(Section::Other, _)
            | ScgItem::Section(..)
            | ScgItem::Phase
            | ScgItem::Stray(_) => {}
        }
    }

    fn meta(&mut self, row: &'a str) {
        match row
            .split_once(char::is_whitespace)
            .map(|(key, value)| (key, value.trim()))
        {
            Some(("name", name)) => self.tag = Some(name),
            Some(("mode", "pipeline")) => self.is_pipeline = true,
            _ => {}
        }
    }

    fn node(&mut self, row: &'a str, line: u32, findings: &mut Vec<Finding>) {
        let mut found = cells(row).map(|(cell, _)| cell);
        let five: Vec<&str> = found.by_ref().take(5).collect();
        let [id, title, status, complexity, priority] = five[..] else {
            let message = "SCUD drops this row: it has fewer than five cells";
            findings.push(
                Finding::error(Place::line(line), message)
                    .hint("write id | title | status | complexity | priority"),
            );
            return;
        };
        if id.is_empty() {
            findings.push(Finding::error(Place::line(line), "a task without an id"));
        }
        if found.next().is_some() {
            let message = "SCUD drops everything after the priority when it writes the file";
            findings.push(Finding::note(Place::line(line), message));
        }
        self.index.push(id);
        self.tasks.push(ScudTask {
            id: id.to_owned(),
            title: unescape(title),
            status: read_status(status, line, findings),
            complexity: read_complexity(complexity, line, findings),
            priority: read_priority(priority, line, findings),
            line,
            ..ScudTask::default()
        });
    }

    fn text_head(&mut self, row: &'a str, line: u32, findings: &mut Vec<Finding>) {
        let mut found = cells(row).map(|(cell, _)| cell);
        if let (Some(id), Some(field)) = (found.next(), found.next()) {
            self.texts.push(ScgText {
                line,
                id,
                field,
                ..ScgText::default()
            });
            return;
        }
        let message = "SCUD drops this line: text under @details must be indented by two spaces";
        findings.push(Finding::warning(Place::line(line), message));
        if let Some(text) = self.texts.last_mut() {
            text.push(row);
        }
    }

    fn text_line(&mut self, line_text: &'a str, line: u32, findings: &mut Vec<Finding>) {
        let Some(text) = self.texts.last_mut() else {
            return;
        };
        let place = Place::line(line);
        let trimmed = line_text.trim_start();
        if trimmed.starts_with('@') {
            let message =
                "SCUD cuts the text here: it reads a line that starts with `@` as a section";
            findings.push(Finding::warning(place, message).hint("put a word before the `@`"));
        }
        if trimmed == "---" {
            let message = "other programs that read SCUD files end the tag at this line";
            findings.push(Finding::note(place, message).hint("use *** for a horizontal rule"));
        }
        if text.blanks > 0 && !text.warned {
            text.warned = true;
            let message = "SCUD drops the blank lines of this text when it writes the file";
            findings.push(Finding::note(place, message));
        }
        text.push(line_text);
    }

    fn finish(self, file: &mut ScudFile) {
        let mut tasks = self.tasks;
        let mut rows = Rows {
            index: &self.index,
            tasks: &mut tasks,
            findings: &mut file.findings,
        };
        for (line, row) in self.edges {
            rows.take_edge(row, line);
        }
        for (line, row) in self.parents {
            rows.take_parent(row, line);
        }
        for text in self.texts {
            rows.take_text(text);
        }
        for (line, row) in self.assignments {
            rows.take_name(row, line, |task, name| task.assigned_to = Some(name));
        }
        for (line, row) in self.agents {
            rows.take_name(row, line, |task, name| task.agent_type = Some(name));
        }
        tasks.sort_by(|a, b| natural_cmp(&a.id, &b.id));
        let name = self.tag.unwrap_or_default().to_owned();
        file.tags.push(ScudTag {
            name,
            line: self.line,
            tasks,
            is_pipeline: self.is_pipeline,
        });
    }
}
