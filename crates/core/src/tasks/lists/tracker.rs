//! An issue tracker as a source of tasks. It is asked by its own program; what is done is said to it, or by
//! the commit that lands.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use descartes_kernel::tasks::{KeeperCall, TrackerTasks};
use descartes_plans::graph::{TaskId, TaskStatus};
use descartes_plans::lists::trackers::{
    LIST, TrackerCommands, instead, marked_as_foreign, wanted, with_finished,
};
use descartes_plans::lists::{
    self, KnownTask, ListContext, ListFile, ListFormat, ListTask, TaskList,
};
use descartes_store::safe_open::read_user_text;
use serde_json::json;
use tracing::info;

use super::program::{ProgramEnd, ask};
use super::question_line::QuestionLine;
use super::source::{ListIndex, plan_of};
use crate::tasks::source::{Claim, Keeps, Loaded, SourceError, TaskBrief, TaskSource};
use crate::worktree::deadline::Deadline;
use crate::worktree::git::Git;

/// What git may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Questions that follow from answers.
const ROUNDS: usize = 20;
/// Commits that were not pushed and are looked at.
const COMMITS: &str = "2000";

/// What a tracker answered.
#[derive(Clone, Debug)]
pub struct TrackerAnswers {
    /// The list.
    pub list: TaskList,
    answers: Vec<ListFile>,
}

/// Asks a tracker for its tasks. `known` are those of before, `finished` those that were done here, `seen`
/// its answers of before, `cached` answers to questions besides the one for the list; `line` ends them early.
pub fn read_tracker(
    tracker: &TrackerTasks,
    line: &QuestionLine,
    known: &[KnownTask],
    finished: &BTreeSet<String>,
    seen: &[ListFile],
    cached: &[ListFile],
) -> Result<TrackerAnswers, SourceError> {
    let text = match tracker.commands.list.is_empty() {
        true => exported(tracker)?,
        false => asked(tracker, line)?,
    };
    let before = seen.iter().find(|answer| answer.path == LIST);
    let text = match before {
        Some(before) => with_finished(tracker.format, &before.text, text, finished),
        None => text,
    };
    let mut answers = vec![ListFile {
        path: LIST.to_owned(),
        text,
    }];
    for _ in 0..ROUNDS {
        let requests = wanted(tracker.format, &tracker.commands, &answers);
        if requests.is_empty() {
            break;
        }
        for request in requests {
            let before = cached.iter().find(|answer| answer.path == request.name);
            let text = match before {
                Some(answer) => answer.text.clone(),
                None => match question(tracker, line, &request.words) {
                    // Tasks or their order would be missing, and nobody would notice.
                    Err(error) if request.is_needed() => return Err(error),
                    answer => answer.unwrap_or_default(),
                },
            };
            let path = request.name;
            answers.push(ListFile { path, text });
        }
    }
    // What a tracker is told, it says itself: it may also have been opened again.
    let mut ledger = Vec::new();
    if tracker.commands.done.is_none() {
        ledger.extend(finished.iter().cloned());
        ledger.extend(unpushed(tracker));
    }
    let context = ListContext {
        ledger,
        known,
        claims: tracker.commands.claim.is_some(),
        ..ListContext::default()
    };
    let list = lists::read(tracker.format, &answers, &context, tracker.options);
    Ok(TrackerAnswers { list, answers })
}

fn asked(tracker: &TrackerTasks, line: &QuestionLine) -> Result<String, SourceError> {
    let words = &tracker.commands.list;
    let first = question(tracker, line, words);
    let complaint = match &first {
        Err(SourceError::Tracker { message, .. }) => message.as_str(),
        _ => return first,
    };
    match instead(tracker.format, words, complaint) {
        Some(older) => question(tracker, line, &older),
        None => first,
    }
}

/// What beads has exported, where none of its programs is there: to look at, not to run.
fn exported(tracker: &TrackerTasks) -> Result<String, SourceError> {
    let file = tracker.dir().join(".beads/issues.jsonl");
    read_user_text(&file).map_err(|error| SourceError::Tracker {
        message: format!(
            "neither bd nor br is installed, and {} cannot be read: {error}",
            file.display()
        ),
        hint: hint(tracker),
    })
}

/// Runs a command that answers something and changes nothing.
fn question(
    tracker: &TrackerTasks,
    line: &QuestionLine,
    words: &[String],
) -> Result<String, SourceError> {
    call(tracker, line, KeeperCall::Ask, words, &[], "")
}

/// Runs a command of a tracker.
fn call(
    tracker: &TrackerTasks,
    line: &QuestionLine,
    kind: KeeperCall,
    words: &[String],
    variables: &[(&str, &str)],
    input: &str,
) -> Result<String, SourceError> {
    let since = Instant::now();
    let program = words.first().map_or("", String::as_str);
    info!(program, source = tracker.name, "asks the tracker");
    let shown = shown(tracker, words);
    let fail = |message: String| SourceError::Tracker {
        message,
        hint: hint(tracker),
    };
    match ask(words, tracker.dir(), variables, input, kind, line) {
        Ok(ProgramEnd::Answer(answer)) => Ok(answer),
        Ok(ProgramEnd::Failed(said)) => Err(fail(format!("`{shown}` failed: {said}"))),
        Ok(ProgramEnd::Missing) => Err(fail(format!("`{program}` is not installed"))),
        Ok(ProgramEnd::Late) => Err(fail(format!(
            "`{shown}` did not answer within {} seconds",
            since.elapsed().as_secs()
        ))),
        Ok(ProgramEnd::Stopped) => {
            Err(fail(format!("`{shown}` was not waited for: the loop ends")))
        }
        Err(error) => Err(fail(format!("`{shown}` could not be run: {error}"))),
    }
}

/// A command as it is told: a line of the config, or its first words.
fn shown(tracker: &TrackerTasks, words: &[String]) -> String {
    match tracker.format {
        ListFormat::Command => words.last().cloned().unwrap_or_default(),
        _ => {
            let words: Vec<&str> = words.iter().take(3).map(String::as_str).collect();
            words.join(" ")
        }
    }
}

fn hint(tracker: &TrackerTasks) -> String {
    match tracker.format {
        ListFormat::GitHub => {
            "install the GitHub CLI, log in with `gh auth login`, and run this in the repository"
        }
        ListFormat::GitLab => {
            "install the GitLab CLI, log in with `glab auth login`, and run this in the repository"
        }
        ListFormat::Beads => "install beads (bd or br), and try `bd list` in this folder",
        _ => "try the command of `[source]` in your config by hand",
    }
    .to_owned()
}

/// Issues that commits here close, and that nobody has pushed: the tracker does not know of them yet.
fn unpushed(tracker: &TrackerTasks) -> Vec<String> {
    let words = [
        "log",
        "--format=%B",
        "-n",
        COMMITS,
        "HEAD",
        "--not",
        "--remotes",
    ];
    let call = Git::default().read(tracker.dir()).args(words);
    let Ok(output) = call.run(Deadline::after(LIMIT)) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ids = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Closes #"));
    ids.filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

/// An issue tracker.
#[derive(Debug)]
pub struct TrackerSource {
    tracker: TrackerTasks,
    /// Tasks as they were known when it was last asked.
    known: Vec<KnownTask>,
    /// What it answered last.
    seen: Option<Vec<ListFile>>,
    /// What it answers is news, also where it is the same.
    forgotten: bool,
    /// Tasks that were done here.
    finished: BTreeSet<String>,
    /// Tasks that it was told of.
    claimed: BTreeSet<String>,
    /// Ends what it is being asked.
    line: Arc<QuestionLine>,
}

impl TrackerSource {
    /// The tasks of a tracker; nothing is asked yet.
    pub fn new(tracker: &TrackerTasks) -> Self {
        Self {
            tracker: tracker.clone(),
            known: Vec::new(),
            seen: None,
            forgotten: false,
            finished: BTreeSet::new(),
            claimed: BTreeSet::new(),
            line: Arc::default(),
        }
    }

    fn read(&self) -> Result<TrackerAnswers, SourceError> {
        let seen = self.seen.as_deref().unwrap_or_default();
        read_tracker(
            &self.tracker,
            &self.line,
            &self.known,
            &self.finished,
            seen,
            &[],
        )
    }

    /// Only the list itself is asked for anew.
    fn read_again(&self) -> Result<TrackerAnswers, SourceError> {
        let cached = self.seen.as_deref().unwrap_or_default();
        read_tracker(
            &self.tracker,
            &self.line,
            &self.known,
            &self.finished,
            cached,
            cached,
        )
    }

    /// Tells the tracker something about a task.
    fn tell(
        &self,
        kind: KeeperCall,
        command: Option<&Vec<String>>,
        task: &str,
    ) -> Result<(), SourceError> {
        let Some(command) = command else {
            return Ok(());
        };
        let title = self.known.iter().find(|known| known.id == task);
        let title = title.map(|known| known.title.as_str());
        let input = json!({"id": task, "title": title}).to_string();
        let words = TrackerCommands::about(command, task);
        let variables = [("DESCARTES_TASK_ID", task)];
        call(&self.tracker, &self.line, kind, &words, &variables, &input).map(drop)
    }

    fn release(&mut self, task: &str) -> Result<(), SourceError> {
        if self.claimed.contains(task) {
            self.tell(
                KeeperCall::Tell,
                self.tracker.commands.release.as_ref(),
                task,
            )?;
            self.claimed.remove(task);
        }
        Ok(())
    }

    fn brief(&self, index: &ListIndex<'_>, task: &ListTask) -> TaskBrief {
        let source = self.tracker.format.describe();
        let rule = format!(
            "The task comes from {source}. Do only this task. Do not claim, change or close it there: that \
             is done when your work has been verified."
        );
        let mut brief = index.brief(task, &[], rule);
        // What strangers wrote is never run.
        if self.tracker.format.is_written_by_anybody() {
            brief.gates.clear();
            let from = format!("issue {} of the tracker", task.id);
            brief.text.description = marked_as_foreign(&brief.text.description, &from);
        }
        brief
    }
}

impl TaskSource for TrackerSource {
    fn load(&mut self) -> Result<Loaded, SourceError> {
        if self.tracker.commands.list.is_empty() {
            return Err(SourceError::Tracker {
                message: "neither bd nor br is installed".to_owned(),
                hint: hint(&self.tracker),
            });
        }
        let read = self.read()?;
        let list = &read.list;
        let (plan, findings) = plan_of(list, self.tracker.options, &self.tracker.path)?;
        let index = ListIndex::of(list);
        let briefs = list
            .tasks
            .iter()
            .map(|task| (TaskId::from(task.id.as_str()), self.brief(&index, task)));
        let briefs: HashMap<TaskId, TaskBrief> = briefs.collect();
        let tasks = list.tasks.iter();
        self.known = tasks.map(KnownTask::of).collect();
        self.seen = Some(read.answers);
        self.forgotten = false;
        Ok(Loaded {
            plan,
            briefs,
            guidance: Vec::new(),
            findings,
        })
    }

    fn recall(&mut self, known: Vec<KnownTask>, begun: BTreeSet<String>) {
        self.known = known;
        if self.tracker.commands.claim.is_some() {
            self.claimed = begun;
        }
    }

    fn news(&mut self) -> Result<Option<Loaded>, SourceError> {
        match Some(self.read()?.answers) == self.seen && !self.forgotten {
            true => Ok(None),
            false => self.load().map(Some),
        }
    }

    fn notices(&self) -> Vec<String> {
        let commands = &self.tracker.commands;
        let told = [
            ("when it is begun", &commands.claim),
            ("when it is done", &commands.done),
        ];
        let told = told.iter().filter_map(|(when, command)| {
            let shown = shown(&self.tracker, command.as_ref()?);
            Some(format!(
                "for each task, {when}, this is run in your name: {shown}"
            ))
        });
        let mut notices: Vec<String> = told.collect();
        if commands.done.is_none() {
            notices.push(
                "issues are closed by their commits (`Closes #N`) once you push them to the \
                 default branch; --close-issues closes each when its work has landed here"
                    .to_owned(),
            );
        }
        notices
    }

    fn claim(&mut self, task: &TaskId) -> Result<Claim, SourceError> {
        let read = self.read_again()?;
        match read.list.task(task) {
            Some(found) if found.is_done() => return Ok(Claim::Found(TaskStatus::Done)),
            Some(found) if TaskList::held_reason(found).is_some() => {
                return Ok(Claim::Found(TaskStatus::Deferred));
            }
            Some(_) => {}
            None => return Ok(Claim::Found(TaskStatus::Cancelled)),
        }
        if self.tracker.commands.claim.is_some() && !self.claimed.contains(&**task) {
            self.tell(KeeperCall::Ask, self.tracker.commands.claim.as_ref(), task)?;
            self.claimed.insert(task.to_string());
        }
        Ok(Claim::Taken)
    }

    fn set(&mut self, task: &TaskId, status: TaskStatus) -> Result<(), SourceError> {
        match status {
            TaskStatus::Done => {
                self.tell(KeeperCall::Tell, self.tracker.commands.done.as_ref(), task)?;
                self.claimed.remove(&**task);
                self.finished.insert(task.to_string());
                Ok(())
            }
            TaskStatus::InProgress => Ok(()),
            _ => self.release(task),
        }
    }

    fn reopen(&mut self, task: &TaskId) -> Result<(), SourceError> {
        self.finished.remove(&**task);
        self.tell(
            KeeperCall::Tell,
            self.tracker.commands.reopen.as_ref(),
            task,
        )
    }

    fn line(&self) -> Option<Arc<QuestionLine>> {
        Some(Arc::clone(&self.line))
    }

    fn forget(&mut self) {
        // What it said stays known: it no longer names what was closed.
        self.forgotten = true;
    }

    fn keeps(&self) -> Keeps {
        Keeps::Done
    }

    fn shielded(&self) -> Vec<PathBuf> {
        match self.tracker.format {
            ListFormat::Beads => vec![self.tracker.dir().join(".beads")],
            _ => Vec::new(),
        }
    }
}
