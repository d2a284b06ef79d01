//! Task lists of other tools: recognised, so that none of them is run as a roadmap of ours.

use super::foreign_format::ForeignFormat;
use super::lines::{LineKind, RoadmapLine, lines};
use super::property::looks_like_property;
use super::task_heading::task_heading;
use super::task_line::{Name, item};
use descartes_text::finding::Place;

/// The other tool's format that a text has, with the line that tells.
///
/// Property lines of ours under a task line of ours decide first: who wrote `depends:` or `check:`
/// there wrote a roadmap, whatever the ids look like.
pub(super) fn recognize(all: &[RoadmapLine<'_>]) -> Option<(ForeignFormat, Place)> {
    FormatHints::of(all).foreign()
}

/// Whose a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A roadmap: by its properties, by `## Tasks` with ids in bold letters, or since each of its boxes
    /// has such an id, without blanks.
    Ours,
    /// Another tool's.
    Foreign(ForeignFormat),
    Unknown,
}

/// Whose a text is, without reading its tasks.
pub fn whose(text: &str) -> Whose {
    let facts = FormatHints::of(&lines(text, &mut Vec::new()));
    let is_ours =
        facts.has_properties || facts.is_ours || (facts.has_ids && !facts.has_other_boxes);
    match facts.foreign() {
        Some((format, _)) => Whose::Foreign(format),
        None if is_ours => Whose::Ours,
        None => Whose::Unknown,
    }
}

/// Whether a text in a folder of spec-kit's is its list. Property lines of ours tell otherwise; `beside`
/// is whether the feature's other documents are there too.
pub fn is_spec_kit(text: &str, beside: bool) -> bool {
    let facts = FormatHints::of(&lines(text, &mut Vec::new()));
    let told = beside || facts.has_phases;
    facts.numbered_box.is_some() && told && !facts.has_properties
}

/// What a text holds that tells whose it is.
#[derive(Default)]
struct FormatHints {
    first_box: Option<Place>,
    /// A property of ours under a task line of ours.
    has_properties: bool,
    /// A task line of ours under `## Tasks`.
    is_ours: bool,
    /// A box with an id in bold letters and without blanks.
    has_ids: bool,
    /// A box of the first level without one.
    has_other_boxes: bool,
    /// `### Task 1: …`.
    task_heading: Option<Place>,
    /// `- [ ] **Step 1: …**`.
    has_steps: bool,
    /// `- [ ] **Phase 1: …**`.
    phase_box: Option<Place>,
    /// `- [ ] **Track: …**`.
    track_box: Option<Place>,
    /// `- [ ] T001 …`, in bold letters or not.
    numbered_box: Option<Place>,
    /// A heading `Phase 1`, or `[P]`, `[US1]` or `depends on T001` behind an id.
    has_phases: bool,
    /// `- [ ] 2.1 …`.
    dotted_box: Option<Place>,
    /// `_Requirements: 1.2_` or `## Task Dependency Graph`.
    has_requirements: bool,
}

impl FormatHints {
    fn of(all: &[RoadmapLine<'_>]) -> Self {
        let mut facts = Self::default();
        let mut in_tasks = false;
        let mut open: Option<(usize, Name<'_>)> = None;
        for line in all.iter().filter(|line| line.kind == LineKind::Plain) {
            if let Some((level, heading)) = line.heading() {
                if level <= 2 {
                    in_tasks = level == 2 && is_named(heading, "tasks");
                }
                open = open.filter(|_| level > 3);
                facts.take_heading(level, heading, line.place(0));
            } else if let Some(found) = item(line) {
                let place = line.place(line.indent());
                facts.first_box.get_or_insert(place);
                let name = found.name.filter(is_our_name);
                facts.is_ours |= in_tasks && name.is_some();
                let is_id = name.is_some_and(|name| !name.id.contains(char::is_whitespace));
                facts.has_ids |= is_id;
                facts.has_other_boxes |= !is_id && line.indent() == 0;
                let id = found.name.map(|name| name.id);
                facts.take_box(id.unwrap_or(found.rest), found.rest, place);
                // Boxes deeper than a task are a part of it.
                if open.is_none_or(|(indent, _)| line.indent() <= indent) {
                    // Who wrote properties of ours wrote a roadmap, also under `**T1** text`.
                    let has_blanks = |name: &Name<'_>| name.id.contains(char::is_whitespace);
                    let id = found
                        .name
                        .filter(|name| name.has_colon || !has_blanks(name));
                    open = id.map(|name| (line.indent(), name));
                }
            } else if line.indent() > 0 {
                let text = line.text.trim_start_matches([' ', '\t', '-', '*', '+']);
                facts.has_requirements |= text.starts_with("_Requirements:");
                let above =
                    open.filter(|(indent, name)| line.indent() > *indent && !is_step(name.id));
                facts.has_properties |= above.is_some() && looks_like_property(line);
            }
        }
        facts
    }

    fn take_heading(&mut self, level: usize, heading: &str, place: Place) {
        if level >= 2 && task_heading(heading, &["task"]).is_some() {
            self.task_heading.get_or_insert(place);
        }
        self.has_phases |= counted(heading, "Phase");
        self.has_requirements |= is_dependency_graph(heading);
    }

    fn take_box(&mut self, id: &str, rest: &str, place: Place) {
        self.has_steps |= counted(id, "Step");
        if counted(id, "Phase") {
            self.phase_box.get_or_insert(place);
        }
        if id.starts_with("Track:") {
            self.track_box.get_or_insert(place);
        }
        if let Some(after) = after_task_number(rest.trim_start_matches(['*', '_', '`'])) {
            self.numbered_box.get_or_insert(place);
            let told = ["[P]", "[US", "epends on T"];
            self.has_phases = self.has_phases || told.iter().any(|told| after.contains(told));
        }
        if is_dotted_number(rest) {
            self.dotted_box.get_or_insert(place);
        }
    }

    /// The other tool's format, with the line that tells.
    fn foreign(&self) -> Option<(ForeignFormat, Place)> {
        if self.has_properties || self.first_box.is_none() {
            return None;
        }
        // A box of ours under `## Tasks` has an id in bold letters; those of plan files have "Step 1".
        if let (Some(place), true) = (self.task_heading, self.has_steps || !self.is_ours) {
            return Some((ForeignFormat::Plan, place));
        }
        if self.is_ours {
            return None;
        }
        let formats = [
            (ForeignFormat::Gsd, self.phase_box),
            (ForeignFormat::Conductor, self.track_box),
            (ForeignFormat::SpecKit, self.spec_kit()),
            (ForeignFormat::Kiro, self.kiro()),
        ];
        formats
            .into_iter()
            .find_map(|(format, place)| Some((format, place?)))
    }

    /// Ids such as `T001` alone may be ours; under phases or with labels they are spec-kit's.
    fn spec_kit(&self) -> Option<Place> {
        self.numbered_box.filter(|_| self.has_phases)
    }

    fn kiro(&self) -> Option<Place> {
        self.dotted_box.filter(|_| self.has_requirements)
    }
}

/// `**id**: text`; where it cannot be taken for another tool's, also `**id** text`.
fn is_our_name(name: &Name<'_>) -> bool {
    let is_plain = !name.id.contains(char::is_whitespace) && !is_counted_id(name.id);
    name.has_colon || is_plain
}

/// `T1`, `T001`, `T001a`; and in brackets, whatever stands there: `[T001]`, `[B12]`.
fn is_counted_id(id: &str) -> bool {
    if id.starts_with('[') {
        return true;
    }
    let number = id.strip_prefix('T');
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// `Step 1`, `Phase 1`, `Task 1`.
fn is_step(id: &str) -> bool {
    ["Step", "Phase", "Task"]
        .iter()
        .any(|word| counted(id, word))
}

/// `Task Dependency Graph`, with more words behind it or not.
pub(crate) fn is_dependency_graph(heading: &str) -> bool {
    let name = "task dependency graph";
    let begin = heading.get(..name.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(name))
}

fn is_named(heading: &str, name: &str) -> bool {
    heading.trim_end_matches(':').eq_ignore_ascii_case(name)
}

/// `Task 1: …`, `Phase 2.5 – …`: the word and a number behind it.
fn counted(text: &str, word: &str) -> bool {
    let rest = text
        .strip_prefix(word)
        .and_then(|rest| rest.strip_prefix(' '));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// What follows `T001` or `T012a`.
fn after_task_number(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('T')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &rest[digits..];
    let rest = rest
        .strip_prefix(|c: char| c.is_ascii_lowercase())
        .unwrap_or(rest);
    let ends = !rest.starts_with(|c: char| c.is_alphanumeric());
    (digits >= 3 && ends).then_some(rest)
}

/// `2. Switch` or `2.1 Component`.
fn is_dotted_number(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && text[digits..].starts_with('.')
}
