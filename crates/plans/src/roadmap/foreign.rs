//! Task lists of other tools: recognised, so that none of them is run as a roadmap of ours.

use super::foreign_format::ForeignFormat;
use super::keys::known_keys;
use super::lines::{LineKind, RoadmapLine, lines};
use super::task_line::item;
use descartes_text::finding::Place;

/// The other tool's format that a text has, with the line that tells.
///
/// Property lines of ours under a box decide first: who wrote `depends:` or `check:` there wrote a
/// roadmap, whatever the ids look like.
pub(super) fn recognize(all: &[RoadmapLine<'_>]) -> Option<(ForeignFormat, Place)> {
    let facts = FormatHints::of(all);
    if facts.has_properties || facts.first_box.is_none() {
        return None;
    }
    // A box of ours under `## Tasks` has an id in bold letters; those of plan files have "Step 1".
    if let (Some(place), true) = (facts.task_heading, facts.has_steps || !facts.is_ours) {
        return Some((ForeignFormat::Plan, place));
    }
    if facts.is_ours {
        return None;
    }
    let formats = [
        (ForeignFormat::Gsd, facts.phase_box),
        (ForeignFormat::Conductor, facts.track_box),
        (ForeignFormat::SpecKit, facts.spec_kit()),
        (ForeignFormat::Kiro, facts.kiro()),
    ];
    formats
        .into_iter()
        .find_map(|(format, place)| Some((format, place?)))
}

/// Whether a text is a roadmap of ours: by its properties, by `## Tasks` with ids in bold letters, or
/// since each of its boxes has such an id, without blanks.
pub fn is_ours(text: &str) -> bool {
    let all = lines(text, &mut Vec::new());
    let facts = FormatHints::of(&all);
    facts.has_properties || facts.is_ours || (facts.has_ids && !facts.has_other_boxes)
}

/// What a text holds that tells whose it is.
#[derive(Default)]
struct FormatHints {
    first_box: Option<Place>,
    /// A property of ours under a box.
    has_properties: bool,
    /// A box with an id in bold letters under `## Tasks`.
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
    /// A heading `Phase 1`, or the labels `[P]` and `[US1]` behind an id.
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
        for line in all.iter().filter(|line| line.kind == LineKind::Plain) {
            if let Some((level, heading)) = line.heading() {
                if level <= 2 {
                    in_tasks = level == 2 && is_named(heading, "tasks");
                }
                facts.take_heading(level, heading, line.place(0));
            } else if let Some(found) = item(line) {
                let place = line.place(line.indent());
                facts.first_box.get_or_insert(place);
                let id = found.name.map(|name| name.id);
                facts.is_ours |= in_tasks && id.is_some();
                let is_id = id.is_some_and(|id| !id.contains(char::is_whitespace));
                facts.has_ids |= is_id;
                facts.has_other_boxes |= !is_id && line.indent() == 0;
                facts.take_box(id.unwrap_or(found.rest), found.rest, place);
            } else if line.indent() > 0 {
                facts.take_detail(line.text.trim());
            }
        }
        facts
    }

    fn take_heading(&mut self, level: usize, heading: &str, place: Place) {
        let heading = heading.trim_start_matches("[Final] ");
        if level >= 2 && counted(heading, "Task") {
            self.task_heading.get_or_insert(place);
        }
        self.has_phases |= counted(heading, "Phase");
        self.has_requirements |= is_named(heading, "task dependency graph");
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
            self.has_phases |= after.contains("[P]") || after.contains("[US");
        }
        if is_dotted_number(rest) {
            self.dotted_box.get_or_insert(place);
        }
    }

    fn take_detail(&mut self, text: &str) {
        let text = text.trim_start_matches(['-', '*', '+']).trim_start();
        self.has_requirements |= text.starts_with("_Requirements:");
        let key = text.split_once(':').map(|(key, _)| key.trim());
        let is_known = |key: &str| known_keys().any(|known| known.eq_ignore_ascii_case(key));
        self.has_properties |= self.first_box.is_some() && key.is_some_and(is_known);
    }

    /// Ids such as `T001` alone may be ours; under phases or with labels they are spec-kit's.
    fn spec_kit(&self) -> Option<Place> {
        self.numbered_box.filter(|_| self.has_phases)
    }

    fn kiro(&self) -> Option<Place> {
        self.dotted_box.filter(|_| self.has_requirements)
    }
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
