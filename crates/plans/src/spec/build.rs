//! Puts a spec together.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::budget::fit;
use super::plan::find_section;
use super::task::TaskText;
use super::template::assemble;
use super::tokens::{estimate_tokens, quarters};

/// What goes into the spec of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopSpecConfig {
    /// Whether the task itself is told.
    pub include_task: bool,
    /// Whether its section of the plan is told.
    pub include_plan_section: bool,
    /// Files that are told with every task.
    #[serde(with = "descartes_text::path_text::many")]
    pub additional_specs: Vec<PathBuf>,
    /// Budget of the whole; `None` is unlimited.
    pub max_spec_tokens: Option<u32>,
    /// How the parts are arranged: `{task}`, `{plan}`, `{custom}`, `{verification}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_template: Option<String>,
}

impl Default for LoopSpecConfig {
    fn default() -> Self {
        Self {
            include_task: true,
            include_plan_section: true,
            additional_specs: Vec::new(),
            max_spec_tokens: Some(5000),
            spec_template: None,
        }
    }
}

/// A text with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecFile {
    /// Its name, for the heading over it.
    pub name: String,
    pub text: String,
}

/// What a spec is made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpecSources<'a> {
    pub task: Option<&'a TaskText>,
    /// The whole plan.
    pub plan: Option<&'a str>,
    /// Notes from an earlier run.
    pub handoff: Option<&'a str>,
    /// Spec files, in order.
    pub files: &'a [SpecFile],
    /// Gates that will be run.
    pub verification: &'a [String],
}

/// A part of a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "part", content = "name", rename_all = "snake_case")]
pub enum Part {
    Task,
    /// Its section of the plan.
    Plan,
    /// Notes from an earlier run.
    Handoff,
    /// A spec file.
    File(String),
    /// How it will be checked, and the template's own words.
    Frame,
}

/// The size of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSize {
    #[serde(flatten)]
    pub part: Part,
    /// Its tokens before any cut.
    pub tokens: u32,
    /// Its tokens in the spec.
    pub kept: u32,
}

/// What an agent is told about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    pub text: String,
    pub tokens: u32,
    /// The size of every part.
    pub parts: Vec<PartSize>,
    /// What was cut, could not be found, or is too large.
    pub warnings: Vec<String>,
}

/// Builds a spec within its budget; the same sources give the same text.
pub fn build(config: &LoopSpecConfig, sources: &SpecSources<'_>) -> Spec {
    let template = config.spec_template.as_deref();
    let mut warnings = Vec::new();
    let task = sources
        .task
        .filter(|_| config.include_task)
        .map_or_else(String::new, TaskText::render);
    let plan = plan_text(config, sources, &mut warnings);
    let verification = verification_text(sources.verification);
    let frame = assemble(template, [&task, "", "", &verification]);
    let budget = config
        .max_spec_tokens
        .map_or(u64::MAX / 2, |tokens| u64::from(tokens) * 4);
    // Blank lines between the parts cost a token each.
    let room = budget.saturating_sub(quarters(&frame) + 8);
    // Spec files are cut first: the plan is served before them.
    let kept_plan = fit(&plan, room);
    let mut custom = Custom::new(room - quarters(&kept_plan));
    custom.take_all(sources);
    let text = assemble(template, [&task, &kept_plan, &custom.text, &verification]);
    let mut parts = vec![
        size(Part::Task, &task, &task),
        size(Part::Plan, &plan, &kept_plan),
    ];
    parts.extend(custom.parts);
    let rest = quarters(&frame) - quarters(&task).min(quarters(&frame));
    let rest = u32::try_from(rest.div_ceil(4)).unwrap_or(u32::MAX);
    parts.push(PartSize {
        part: Part::Frame,
        tokens: rest,
        kept: rest,
    });
    parts.retain(|part| part.tokens > 0);
    let spec = Spec {
        tokens: estimate_tokens(&text),
        text,
        parts,
        warnings,
    };
    with_warning(spec, config.max_spec_tokens)
}

fn size(part: Part, whole: &str, kept: &str) -> PartSize {
    PartSize {
        part,
        tokens: estimate_tokens(whole),
        kept: estimate_tokens(kept),
    }
}

fn plan_text(
    config: &LoopSpecConfig,
    sources: &SpecSources<'_>,
    warnings: &mut Vec<String>,
) -> String {
    let (Some(plan), Some(task), true) = (sources.plan, sources.task, config.include_plan_section)
    else {
        return String::new();
    };
    match find_section(plan, &task.id, &task.title) {
        Some(text) => format!("# From the plan\n\n{text}"),
        None => {
            let message = "the plan has no section for task `{}`: no heading contains its id or \
                resembles its title";
            warnings.push(message.replacen("{}", &task.id, 1));
            String::new()
        }
    }
}

fn verification_text(gates: &[String]) -> String {
    if gates.is_empty() {
        return String::new();
    }
    let list: Vec<String> = gates.iter().map(|gate| format!("    {gate}")).collect();
    format!(
        "# How it is checked\n\nThese commands run when you finish, and must succeed:\n\n{}",
        list.join("\n")
    )
}

/// The notes and spec files, as far as there is room.
struct Custom {
    text: String,
    room: u64,
    parts: Vec<PartSize>,
}

impl Custom {
    fn new(room: u64) -> Self {
        Self {
            text: String::new(),
            room,
            parts: Vec::new(),
        }
    }

    fn take_all(&mut self, sources: &SpecSources<'_>) {
        let handoff = sources
            .handoff
            .map(str::trim)
            .filter(|handoff| !handoff.is_empty());
        if let Some(handoff) = handoff {
            self.take(
                Part::Handoff,
                format!("# Notes from an earlier run\n\n{handoff}"),
            );
        }
        for file in sources.files {
            let text = format!("# {}\n\n{}", file.name, file.text.trim());
            self.take(Part::File(file.name.clone()), text);
        }
    }

    fn take(&mut self, part: Part, text: String) {
        let gap = if self.text.is_empty() { "" } else { "\n\n" };
        let kept = fit(&text, self.room.saturating_sub(quarters(gap)));
        self.parts.push(size(part, &text, &kept));
        if kept.is_empty() {
            // What comes later is of less weight; it does not slip in because it is small.
            self.room = 0;
            return;
        }
        let was_cut = kept.len() != text.len();
        self.room -= quarters(&kept) + quarters(gap);
        self.room *= u64::from(!was_cut);
        self.text.push_str(gap);
        self.text.push_str(&kept);
    }
}

fn with_warning(mut spec: Spec, budget: Option<u32>) -> Spec {
    let Some(budget) = budget else { return spec };
    let is_cut = spec.parts.iter().any(|part| part.kept < part.tokens);
    if is_cut || spec.tokens > budget {
        let sizes: Vec<String> = spec.parts.iter().map(told).collect();
        spec.warnings.push(format!(
            "the spec exceeds its budget of {budget} tokens ({}); raise --max-spec-tokens or \
             shorten these parts",
            sizes.join(", ")
        ));
    }
    spec
}

fn told(part: &PartSize) -> String {
    let name = match &part.part {
        Part::Task => "task",
        Part::Plan => "plan",
        Part::Handoff => "notes",
        Part::File(name) => name,
        Part::Frame => "frame",
    };
    match part.kept == part.tokens {
        true => format!("{name} {}", part.tokens),
        false => format!("{name} {} of {}", part.kept, part.tokens),
    }
}
