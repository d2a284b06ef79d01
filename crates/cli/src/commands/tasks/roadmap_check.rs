//! `descartes roadmap check`: what a list is, what would be run of it, and what is wrong with it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use descartes_core::host::{HostError, missing_programs, program_of};
use descartes_core::tasks::lists::{
    QuestionLine, SpecDocument, documents, find, open_checklists, read_list, read_tracker,
};
use descartes_core::tasks::{AgentTrouble, look_for_agent};
use descartes_kernel::tasks::TaskFile;
use descartes_plans::graph::{TaskGraph, TaskStatus, render};
use descartes_plans::lists::{ListOptions, TaskBlock, TaskList};
use descartes_plans::roadmap::{self, Roadmap};
use descartes_plans::spec::estimate_tokens;
use descartes_text::finding::{self, Finding, Place, Severity};
use descartes_text::path_text::encode;
use descartes_text::units::plural;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::task_list::task_file;
use crate::args::tasks::RoadmapFileArgs;
use crate::error::CliError;
use crate::settings::agent::profiles;
use crate::settings::command_context::{CommandContext, ProjectConfig};
use crate::settings::prompt::read_text;
use crate::style::Tone;

pub fn run(args: &RoadmapFileArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let typed = args.file.clone().unwrap_or_else(|| PathBuf::from("."));
    let path = ctx.absolute(&typed);
    if let Some(refused) = args.json.then(|| refusal(&path, args)).flatten() {
        ctx.printer.json(&json!({
            "file": encode(&typed), "format": null, "tasks": [], "waves": [],
            "left_out": [], "spec_files": [], "gates": [], "findings": [refused],
        }));
        return Ok(1);
    }
    let found = task_file(args.file.as_deref(), &args.list, ctx)?;
    // A folder was named: what is wrong stands in its file.
    let shown = match *found.path() == path {
        true => typed,
        false => found
            .path()
            .strip_prefix(&ctx.here)
            .unwrap_or(found.path())
            .to_owned(),
    };
    let mut checked = match found {
        TaskFile::List {
            path,
            format,
            options,
            tag,
        } => {
            let read = read_list(&path, format, options, tag.as_deref(), &[]).map_err(|error| {
                CliError::refused(format!("cannot read {}: {error}", path.display()), "")
            })?;
            let mut list = read.list;
            let open = open_checklists(&path, format);
            for (file, open) in open.iter().filter(|_| !options.skip_human) {
                let items = plural(*open as u64, "item");
                let message = format!("{}: {items} not ticked, for a person", file.display());
                let finding = Finding::warning(Place::FILE, message);
                list.findings
                    .push(finding.hint("tick them, or --skip-human"));
            }
            Checked::of_list(&list, documents(&path, format), options)
        }
        TaskFile::Tracker(tracker) => {
            let read = read_tracker(
                &tracker,
                &QuestionLine::default(),
                &[],
                &BTreeSet::new(),
                &[],
                &[],
            );
            let mut list = read.map_err(HostError::from)?.list;
            if tracker.commands.list.is_empty() {
                let finding = Finding::warning(
                    Place::FILE,
                    "neither bd nor br is installed: this is an export, which may be old",
                );
                list.findings
                    .push(finding.hint("install one of them to run the tasks"));
            }
            Checked::of_list(&list, Vec::new(), tracker.options)
        }
        _ => {
            let text = read_text("the roadmap", &path)?;
            let read = roadmap::parse(&text);
            let mut checked = Checked::of_roadmap(&read);
            checked.findings.extend(agents(&read, ctx)?);
            finding::sort(&mut checked.findings);
            checked
        }
    };
    let programs = checked.missing_programs(ctx);
    checked.findings.extend(programs);
    let bad = checked
        .findings
        .iter()
        .any(|finding| finding.severity != Severity::Note);
    match args.json {
        true => ctx.printer.json(&checked.json(&shown)),
        false => checked.print(&shown, ctx),
    }
    Ok(i32::from(bad))
}

/// Agents of open tasks that are not there. One that is known may be installed where the roadmap is run: a note.
fn agents(read: &Roadmap, ctx: &CommandContext) -> Result<Vec<Finding>, CliError> {
    let mut findings = Vec::new();
    // Profiles tell what is known; nothing is started.
    let written = ctx.with(ProjectConfig::AsWritten);
    let profiles = profiles(&written.layers(&ctx.here)?.settings)?;
    let mut told = BTreeSet::new();
    for task in &read.tasks {
        if task.mark.status() == TaskStatus::Done {
            continue;
        }
        let asked = match &task.keys.agent {
            Some(agent) => std::slice::from_ref(agent),
            None => task.keys.cli.as_slice(),
        };
        for agent in asked {
            let variables = ctx.environment.variables();
            let trouble = look_for_agent(agent, &profiles, variables, &ctx.here);
            let Some(AgentTrouble { error, is_known }) = trouble else {
                continue;
            };
            let place = Place::line(task.place.line);
            let message = format!("task {}: {error}", task.id);
            match is_known {
                // Said once.
                true if told.insert(agent) => findings.push(Finding::note(place, message)),
                true => {}
                false => {
                    let finding = Finding::error(place, message);
                    findings.push(finding.hint(error.hint().unwrap_or_default()));
                }
            }
        }
    }
    Ok(findings)
}

/// Why something that is there is no list.
fn refusal(path: &Path, args: &RoadmapFileArgs) -> Option<Finding> {
    if args.list.custom().is_some() || !path.exists() {
        return None;
    }
    let error = find(path, args.list.source.as_deref()).err()?;
    Some(Finding::error(Place::FILE, error.message).hint(error.hint))
}

/// One task, as scripts read it.
#[derive(Serialize)]
struct CheckedTask {
    id: String,
    title: String,
    status: &'static str,
    /// What the list itself calls it, where that is more than to do, doing or done.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    depends: Depends,
    optional: bool,
    container: bool,
    line: u32,
}

fn state_of(status: TaskStatus) -> Option<&'static str> {
    let is_other = matches!(
        status,
        TaskStatus::Review | TaskStatus::Blocked | TaskStatus::Deferred | TaskStatus::Cancelled
    );
    is_other.then_some(status.as_str())
}

/// Ids of all that a task waits for. Those of a block are kept once, and written with each task.
struct Depends {
    /// The ids of the list, and which of them the blocks have.
    ids: Rc<[String]>,
    blocks: Vec<TaskBlock>,
    named: Vec<String>,
}

impl Depends {
    fn named(named: Vec<String>) -> Self {
        Self {
            ids: Rc::default(),
            blocks: Vec::new(),
            named,
        }
    }
}

impl Serialize for Depends {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let blocks = TaskBlock::all_positions(&self.blocks).into_iter();
        let blocks = blocks.filter_map(|at| self.ids.get(at as usize));
        serializer.collect_seq(blocks.chain(&self.named))
    }
}

/// The whole, as scripts read it.
#[derive(Serialize)]
struct CheckedJson<'a, F: Serialize> {
    file: F,
    format: &'static str,
    tasks: &'a [CheckedTask],
    waves: Vec<Vec<String>>,
    left_out: &'a [Value],
    spec_files: Vec<Value>,
    gates: Vec<Value>,
    findings: &'a [Finding],
}

/// What there is to say about a list.
struct Checked {
    format: &'static str,
    /// What people call it; none for a roadmap of ours.
    what: Option<&'static str>,
    tasks: Vec<CheckedTask>,
    graph: TaskGraph,
    left_out: Vec<Value>,
    spec_files: Vec<(String, usize)>,
    gates: Vec<(String, String)>,
    findings: Vec<Finding>,
}

impl Checked {
    fn of_roadmap(read: &Roadmap) -> Self {
        let status = |task: &roadmap::RoadmapTask| match task.mark.status() {
            TaskStatus::Done => "done",
            _ => "todo",
        };
        let tasks = read.tasks.iter().map(|task| {
            let depends = task.keys.depends.iter().map(|on| on.id.to_string());
            CheckedTask {
                id: task.id.to_string(),
                title: task.description.clone(),
                status: status(task),
                state: state_of(task.mark.status()),
                depends: Depends::named(depends.collect()),
                optional: false,
                container: false,
                line: task.place.line,
            }
        });
        let gates = read.tasks.iter().flat_map(|task| {
            let from = format!("`check:` of task {}", task.id);
            task.keys
                .check
                .iter()
                .map(move |gate| (gate.clone(), from.clone()))
        });
        Self {
            format: "roadmap",
            what: None,
            tasks: tasks.collect(),
            graph: read.graph(),
            left_out: Vec::new(),
            spec_files: Vec::new(),
            gates: gates.collect(),
            findings: read.check(),
        }
    }

    fn of_list(list: &TaskList, documents: Vec<SpecDocument>, options: ListOptions) -> Self {
        let ids: Rc<[String]> = list.tasks.iter().map(|task| task.id.clone()).collect();
        let tasks = list.tasks.iter().map(|task| CheckedTask {
            id: task.id.clone(),
            title: task.title.clone(),
            status: task.progress(),
            state: state_of(task.status),
            depends: Depends {
                ids: Rc::clone(&ids),
                blocks: task.blocks.clone(),
                named: task.depends.clone(),
            },
            optional: task.optional,
            container: task.container,
            line: task.line,
        });
        let passed = list.tasks.iter().filter_map(|task| {
            let why = TaskList::passed_over(task, options)?;
            Some(json!({"line": task.line, "text": task.title, "why": why}))
        });
        let left_out = list
            .left_out
            .iter()
            .map(|left| json!({"line": left.line, "text": left.text, "why": left.why}));
        let mut gates: Vec<(String, String)> = {
            let all = list.gates.iter();
            all.map(|gate| (gate.command.clone(), gate.from.clone()))
                .collect()
        };
        for task in &list.tasks {
            let own = task.gates.iter();
            gates.extend(own.map(|gate| (gate.clone(), format!("task {}", task.id))));
        }
        let files = documents.into_iter().map(|document| {
            let tokens = estimate_tokens(&document.text);
            (document.path.display().to_string(), tokens as usize)
        });
        Self {
            format: list.format.as_str(),
            what: Some(list.format.describe()),
            tasks: tasks.collect(),
            graph: list.graph(options),
            left_out: left_out.chain(passed).collect(),
            spec_files: files.collect(),
            gates,
            findings: list.check(options),
        }
    }

    /// Programs that gates begin with and that are not there: a note, since agents may bring them, and the list
    /// may be meant for another machine.
    fn missing_programs(&self, ctx: &CommandContext) -> Vec<Finding> {
        let gates = self
            .gates
            .iter()
            .filter_map(|(gate, from)| Some((program_of(gate)?, gate, from)));
        let gates: Vec<_> = gates.collect();
        let programs = gates.iter().map(|(program, ..)| *program).collect();
        let mut missing = missing_programs(&programs, ctx.environment.variables(), &ctx.here);
        let mut findings = Vec::new();
        for (program, gate, from) in gates {
            // Said once.
            if missing.remove(program) {
                let message = format!(
                    "the gate `{gate}` (from {from}) runs `{program}`, which is not installed here"
                );
                findings.push(Finding::note(Place::FILE, message));
            }
        }
        findings
    }

    fn waves(&self) -> Vec<Vec<String>> {
        let Ok(plan) = self.graph.clone().plan() else {
            return Vec::new();
        };
        let ids = |wave: &Vec<u32>| {
            let ids = wave
                .iter()
                .map(|task| plan.graph().node(*task).id.to_string());
            ids.collect()
        };
        plan.waves()
            .iter()
            .map(|wave| ids(&wave.to_vec()))
            .collect()
    }

    fn json(&self, file: &Path) -> impl Serialize {
        let files = self.spec_files.iter();
        let files: Vec<Value> = files
            .map(|(path, tokens)| json!({"path": path, "tokens": tokens}))
            .collect();
        let gates = self.gates.iter();
        let gates: Vec<Value> = gates
            .map(|(command, from)| json!({"command": command, "from": from}))
            .collect();
        CheckedJson {
            file: encode(file),
            format: self.format,
            tasks: &self.tasks,
            waves: self.waves(),
            left_out: &self.left_out,
            spec_files: files,
            gates,
            findings: &self.findings,
        }
    }

    fn print(&self, file: &Path, ctx: &CommandContext) {
        let shown = file.display();
        if let Some(what) = self.what {
            self.print_list(what, file, ctx);
        }
        for finding in &self.findings {
            ctx.printer.line(&format!("{shown}:{finding}"));
        }
        if self.findings.is_empty() {
            let tasks = plural(self.tasks.len() as u64, "task");
            ctx.printer
                .line(&format!("{shown}: {tasks}, no problems found"));
        }
    }

    /// What was recognised, and what would be run of it.
    fn print_list(&self, what: &str, file: &Path, ctx: &CommandContext) {
        let title = |text: &str| ctx.printer.out.text(Tone::Strong, text);
        let printer = &ctx.printer;
        let (shown, format) = (file.display(), self.format);
        printer.line(&format!("{shown} is {what} ({format})"));
        if let Ok(plan) = self.graph.clone().plan() {
            printer.line(&title("Waves"));
            for line in render::text(&plan, &plan.effective_statuses()).lines() {
                printer.line(&format!("  {line}"));
            }
        }
        let field = |value: &Value, name: &str| match &value[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if !self.left_out.is_empty() {
            printer.line(&title("Left out"));
        }
        for left in &self.left_out {
            let (line, text, why) = (field(left, "line"), field(left, "text"), field(left, "why"));
            printer.line(&format!("  line {line}: {text}: {why}"));
        }
        if !self.spec_files.is_empty() {
            printer.line(&title("Spec files"));
        }
        for (path, tokens) in &self.spec_files {
            printer.line(&format!("  {path}  {tokens} tokens"));
        }
        printer.line(&title("Gates"));
        if self.gates.is_empty() {
            printer.line(
                "  none in the list: --verify, the config, or what the project's files suggest",
            );
        }
        for (command, from) in &self.gates {
            printer.line(&format!("  {command}  (from {from})"));
        }
    }
}
