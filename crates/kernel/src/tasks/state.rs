//! Where every task of a loop stands: a fold of its journal, for views and the state file.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::git_words::{commit_reason, telling_line};
use crate::field_change::FieldChange;
use crate::fleet::{KnownOffer, LimitedLogin, add_limit};
use crate::sched::{BlockReason, CommitEnd, Event, MarkCheck, MarkEnd, Next, Seen};
use crate::spent::Spent;
use descartes_plans::graph::{TaskId, TaskStatus};
use descartes_text::shell;
use descartes_text::units::Secs;

/// One task of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTask {
    pub id: TaskId,
    pub title: String,
    /// Its wave, from 1.
    pub wave: u32,
    /// How hard it is; 0 is unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub complexity: u32,
    /// What it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<TaskId>,
    /// Blocks of the plan that it depends on as a whole, by position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_blocks: Vec<u32>,
    /// The heading that it stands under, in lists whose tasks have no ids. Not told by older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// What its file has run for it: gates and agents of its own. Not told by older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
}

/// Many tasks that many others depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedBlock {
    pub tasks: Vec<TaskId>,
    /// Blocks before this one that belong to it, by position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<u32>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What is known about a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEntry {
    pub title: String,
    /// Its wave, from 1.
    pub wave: u32,
    /// How hard it is; 0 is unknown.
    pub complexity: u32,
    pub status: TaskStatus,
    /// Attempts that were begun.
    pub attempts: u32,
    /// What it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<TaskId>,
    /// Blocks of the plan that it depends on as a whole, by position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_blocks: Vec<u32>,
    /// Whether its status is somebody else's mark, made while the loop ran and not proven.
    #[serde(default, skip_serializing_if = "is_false")]
    pub marked: bool,
    /// Whether nothing but the end of its agent says that it is done.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unproven: bool,
    /// The heading that it stands under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// What its file has run for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl TaskEntry {
    /// Whether it is done and proven, or was done before the loop began.
    pub fn is_done(&self) -> bool {
        self.status == TaskStatus::Done && !self.marked
    }
}

/// A task that somebody else marked while the loop ran, as the state file tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedEntry {
    pub task_id: TaskId,
    /// Its title; empty where it is no longer in the file.
    pub title: String,
    /// How it was marked: `done`, `cancelled`, `deferred`, or `removed`.
    pub mark: String,
    /// What the gates said about one that was marked done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<MarkCheck>,
    /// Since when it is known.
    pub marked_at: Timestamp,
}

impl MarkedEntry {
    /// What became of it, in words: `marked done, its gates pass`.
    pub fn describe(&self) -> String {
        let check = match self.check {
            None => "",
            Some(MarkCheck::Waiting) => ", its gates have not run",
            Some(MarkCheck::Green) => ", its gates pass",
            Some(MarkCheck::NoGate) => ", it has no gate",
            Some(MarkCheck::Red) => ", a gate fails",
        };
        match self.mark.as_str() {
            REMOVED => "removed from the file".to_owned(),
            mark => format!("marked {mark}{check}"),
        }
    }
}

const REMOVED: &str = "removed";

/// A task that an agent works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTask {
    pub task: TaskId,
    /// Its worktree slot.
    pub slot: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    pub since: Timestamp,
}

/// A commit of a wave, as the state file tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaveCommit {
    /// The wave, from 1.
    pub wave: u32,
    /// The commit; none where there was nothing to commit.
    pub commit_hash: Option<String>,
    pub timestamp: Timestamp,
    /// What was done in it.
    pub tasks_completed: Vec<TaskId>,
}

/// A commit that marks tasks as done in their file, and changes nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkCommit {
    pub commit_hash: String,
    pub timestamp: Timestamp,
    /// How many commits of waves are below it.
    pub waves_below: usize,
}

/// A blocked task, as the state file tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedEntry {
    pub task_id: TaskId,
    pub title: String,
    /// Why, in words.
    pub reason: String,
    /// Attempts that were made.
    pub attempts: u32,
    pub blocked_at: Timestamp,
    /// How much time its last attempt had, where that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out_after: Option<Secs>,
}

/// Where finished work is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "landing", rename_all = "snake_case")]
pub enum Landing {
    /// In the user's checkout.
    Landed {
        /// The commit that was proven.
        commit: String,
        /// A last one on top of it, which changes the statuses in the task file and nothing else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        statuses: Option<String>,
    },
    /// On a branch of ours, since it could not be brought into the user's checkout.
    Ready {
        commit: String,
        branch: String,
        /// Why it waits.
        why: String,
        /// What a person has to do first, where `descartes work land` cannot land it as it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by_hand: Option<ByHand>,
        /// Whether nothing but a full disk keeps it from landing.
        #[serde(default, skip_serializing_if = "is_false")]
        full_disk: bool,
    },
}

/// How a person brings in work that conflicts with their branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum ByHand {
    /// By merging its branch.
    Merge,
    /// By taking over its own commits alone: the branch no longer holds the commit that the work
    /// was built on, and a merge would bring that back.
    CherryPick {
        /// That commit.
        after: String,
    },
}

impl Landing {
    /// The commit that the user's branch was brought to, done marks included; none where work waits.
    pub fn head(&self) -> Option<&str> {
        match self {
            Self::Landed { commit, statuses } => Some(statuses.as_ref().unwrap_or(commit)),
            Self::Ready { .. } => None,
        }
    }

    /// What a person types to bring in work that waits; none where it has landed.
    pub fn command(&self) -> Option<String> {
        match self {
            Self::Landed { .. } => None,
            Self::Ready {
                branch, by_hand, ..
            } => Some(match by_hand {
                None => "descartes work land".to_owned(),
                Some(ByHand::Merge) => format!("git merge {}", shell::word(branch)),
                Some(ByHand::CherryPick { after }) => {
                    let short = after.get(..12).unwrap_or(after);
                    format!(
                        "git cherry-pick {}",
                        shell::word(&format!("{short}..{branch}"))
                    )
                }
            }),
        }
    }
}

/// Where the work of a loop goes, and what it is built on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkBase {
    /// The branch that was checked out when the loop began; none where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The commit of that branch which the work is built on, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit that holds everything that was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
    /// In place: the tree that was last committed, or that the loop began from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// In place: the last task that was proven since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ProvenStep>,
}

/// A task that was proven in place, and the tree that it left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenStep {
    pub task: String,
    pub tree: String,
}

/// Where the gates were run that prove a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProvenAt {
    /// In the integration worktree, which no agent enters.
    Integration,
    /// In the user's own tree, where the agent worked.
    InPlace,
}

/// A tree on which every gate was green.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenTree {
    /// The tree that was checked out; none where there is no git.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tree: String,
    /// What was run.
    pub gates: Vec<String>,
    pub place: ProvenAt,
    /// Whose work it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// Folders of dependencies that were copied from the task's own worktree, without which it
    /// was red.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<String>,
}

impl ProvenTree {
    /// Whether it proves this tree by these gates.
    pub fn proves(&self, tree: &str, gates: &[String]) -> bool {
        self.place == ProvenAt::Integration
            && self.tree == tree
            && gates.iter().all(|gate| self.gates.contains(gate))
    }
}

/// Proven trees that are remembered: the newest are those that land.
const PROVEN: usize = 16;

/// A worktree that was not removed, since it holds what is found nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTree {
    pub path: std::path::PathBuf,
    /// What it holds.
    pub holds: Vec<String>,
}

/// The tasks of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksState {
    /// The tag or the roadmap's name.
    pub tag: String,
    /// Every task by its id.
    pub tasks: BTreeMap<TaskId, TaskEntry>,
    /// The order of the plan: waves one after the other.
    pub order: Vec<TaskId>,
    /// Many tasks that many others depend on, written once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<PlannedBlock>,
    /// Waves in all.
    pub waves: u32,
    /// Tasks that agents work on.
    pub running: Vec<RunningTask>,
    /// The task that is being merged.
    pub merging: Option<TaskId>,
    /// Tasks that are merged together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub train: Vec<TaskId>,
    /// Commits of waves.
    pub wave_commits: Vec<WaveCommit>,
    /// Commits that mark tasks as done in their file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mark_commits: Vec<MarkCommit>,
    /// Tasks whose last run met no gate: the agent's word is all there is.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ungated: BTreeSet<TaskId>,
    /// Tasks that could not be done.
    pub blocked: Vec<BlockedEntry>,
    /// Tasks that somebody else marked or removed while the loop ran: none of them is proven.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marked: Vec<MarkedEntry>,
    /// Where finished work is.
    pub landing: Option<Landing>,
    /// The loops of the tasks' attempts.
    #[serde(default)]
    pub loops: BTreeMap<TaskId, String>,
    /// By task: the worker on another machine that last opened its loop.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workers: BTreeMap<TaskId, String>,
    /// By task: the last offer of it to workers on other machines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offers: BTreeMap<TaskId, KnownOffer>,
    /// Offers at engines that the loop has left, of whose end nothing is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_offers: Vec<EngineOffer>,
    /// By task: the number of the offer that was over last: its result is written down, or there is none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<TaskId, u64>,
    /// By task: the number of the offer whose worker was stopped while no host was there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stopped_offers: BTreeMap<TaskId, u64>,
    /// What is wrong with the engine of workers on other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_trouble: Option<String>,
    /// Logins of workers on other machines that their providers have limited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited_logins: Vec<LimitedLogin>,
    /// By task: iterations of its own loop that this one has heard of.
    #[serde(rename = "told")]
    pub reported_iterations: BTreeMap<TaskId, u32>,
    /// By task: what its own loop used, as far as this one has heard of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spent: BTreeMap<TaskId, Spent>,
    /// Trees on which every gate was green, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proven: Vec<ProvenTree>,
    /// Worktrees that were not removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptTree>,
    /// Where the work goes, and what it is built on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<WorkBase>,
    /// In place: what was proven since the last commit, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<ProvenStep>,
    #[serde(default)]
    committing: Option<(u32, Vec<TaskId>)>,
    #[serde(default)]
    has_begun: bool,
}

/// An offer at an engine that the loop has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineOffer {
    pub engine: String,
    /// The task, or the wave that one agent was given.
    pub task: TaskId,
    #[serde(flatten)]
    pub offer: KnownOffer,
    /// Who was at work on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// What an event means for the count of iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// An attempt that counts is over.
    Yes,
    /// Nothing was counted.
    No,
}

impl TasksState {
    /// The tasks that are being merged: one alone, or those of a train.
    pub fn being_merged(&self) -> &[TaskId] {
        match self.train.is_empty() {
            true => self.merging.as_slice(),
            false => &self.train,
        }
    }

    /// Whether what the last offer of this work came to is written down.
    pub fn has_result(&self, work: &str) -> bool {
        let offer = self.offers.get(work);
        offer.is_some_and(|offer| self.results.get(work) == Some(&offer.epoch))
    }

    /// Offers to workers on other machines of whose end nothing is written down: agents may be at work on them
    /// even where this loop has no host.
    pub fn open_offers(&self) -> impl Iterator<Item = (&TaskId, &KnownOffer)> {
        let is_stopped =
            |work, offer: &KnownOffer| self.stopped_offers.get(work) == Some(&offer.epoch);
        let offers = self.offers.iter();
        offers.filter(move |(work, offer)| {
            !offer.is_left && !self.has_result(work) && !is_stopped(*work, offer)
        })
    }

    /// The engine of all these offers is left: agents may be at work on those that are open.
    pub fn leave_offers(&mut self, engine: &str) {
        let open: Vec<EngineOffer> = self
            .open_offers()
            .map(|(work, offer)| EngineOffer {
                engine: engine.to_owned(),
                task: work.clone(),
                offer: *offer,
                worker: self.workers.get(work).cloned(),
            })
            .collect();
        self.left_offers.extend(open);
        for offer in self.offers.values_mut() {
            offer.is_left = true;
        }
    }

    /// Takes a plan: tasks that are known stay as they are. Gives the commands of tasks that are not
    /// as they were.
    pub fn plan(
        &mut self,
        tag: &str,
        tasks: &[PlannedTask],
        blocks: &[PlannedBlock],
    ) -> Vec<FieldChange> {
        let mut changed = Vec::new();
        self.blocks = blocks.to_vec();
        let mut old = std::mem::take(&mut self.tasks);
        self.tag = tag.to_owned();
        self.order = tasks.iter().map(|task| task.id.clone()).collect();
        self.waves = tasks.iter().map(|task| task.wave).max().unwrap_or(0);
        for task in tasks {
            let known = old.remove(&task.id);
            let before = known.as_ref().and_then(|known| known.commands.as_ref());
            if let (Some(before), Some(now)) = (before, &task.commands)
                && before != now
            {
                let list = |commands: &[String]| match commands.is_empty() {
                    true => "none".to_owned(),
                    false => commands.join(", "),
                };
                changed.push(FieldChange {
                    field: format!("task {}", task.id),
                    from: list(before),
                    to: list(now),
                });
            }
            let entry = TaskEntry {
                title: task.title.clone(),
                wave: task.wave,
                complexity: task.complexity,
                status: known.as_ref().map_or(TaskStatus::Pending, |k| k.status),
                attempts: known.as_ref().map_or(0, |known| known.attempts),
                after: task.after.clone(),
                after_blocks: task.after_blocks.clone(),
                marked: known.as_ref().is_some_and(|known| known.marked),
                unproven: known.as_ref().is_some_and(|known| known.unproven),
                under: task.under.clone(),
                commands: task.commands.clone(),
            };
            self.tasks.insert(task.id.clone(), entry);
        }
        // What came back is not gone.
        let tasks = &self.tasks;
        self.marked
            .retain(|entry| entry.mark != REMOVED || !tasks.contains_key(&entry.task_id));
        changed
    }

    /// The first tasks that a task depends on, those of blocks included; at most so many.
    pub fn first_before<'a>(&'a self, entry: &'a TaskEntry, most: usize) -> Vec<&'a TaskId> {
        let mut first: Vec<&TaskId> = entry.after.iter().take(most).collect();
        let mut open: Vec<u32> = entry.after_blocks.iter().rev().copied().collect();
        while let Some(block) = open.pop().and_then(|at| self.blocks.get(at as usize)) {
            first.extend(block.tasks.iter().take(most - first.len()));
            if first.len() >= most {
                break;
            }
            open.extend(block.blocks.iter().rev());
        }
        first
    }

    /// Takes an event of the scheduler; tells whether it ends an attempt that counts.
    pub fn apply(&mut self, event: &Event, at: Timestamp) -> Counted {
        for (task, status) in event.statuses() {
            self.set(task, status);
        }
        match event {
            Event::Began { .. } => self.has_begun = true,
            Event::Replanned { added, removed, .. } => {
                self.has_begun = true;
                for task in removed {
                    self.mark(task, None, at);
                }
                for task in added {
                    self.begin_anew(task);
                }
            }
            Event::AttemptStarted {
                task,
                slot,
                attempt,
            } => {
                if let Some(entry) = self.tasks.get_mut(task) {
                    entry.attempts += 1;
                }
                // Nobody has it yet.
                self.workers.remove(task);
                self.running.push(RunningTask {
                    task: task.clone(),
                    slot: *slot,
                    attempt: *attempt,
                    since: at,
                });
            }
            Event::ClaimRefused { task, found } => {
                self.leave(task);
                if let Some(entry) = self.tasks.get_mut(task) {
                    entry.attempts = entry.attempts.saturating_sub(1);
                }
                self.mark(task, Some(*found), at);
            }
            Event::AttemptEnded { task, end, next } => {
                let over = self.leave(task);
                self.next(task, next, at);
                if let Some(entry) = self.tasks.get_mut(task) {
                    entry.unproven =
                        matches!(end, crate::sched::AttemptEnd::Green { unproven: true, .. });
                }
                if let crate::sched::AttemptEnd::CutOff { timeout, .. } = end {
                    let mut blocked = self.blocked.iter_mut();
                    if let Some(entry) = blocked.find(|entry| entry.task_id == *task) {
                        entry.timed_out_after = *timeout;
                    }
                }
                if let crate::sched::AttemptEnd::Limited {
                    until,
                    login: Some(of),
                } = end
                {
                    let (of, until) = (of.clone(), *until);
                    self.limited_logins.retain(|limit| limit.until > at);
                    add_limit(&mut self.limited_logins, LimitedLogin { of, until });
                }
                let counts = !matches!(end, crate::sched::AttemptEnd::Limited { .. });
                if over && counts {
                    return Counted::Yes;
                }
            }
            Event::MergeStarted { task } => self.merging = Some(task.clone()),
            Event::TrainStarted { tasks, .. } | Event::TrainStacked { tasks, .. } => {
                self.train.clone_from(tasks);
                self.merging = self.train.first().cloned();
            }
            Event::TrainEnded { .. } => {
                self.train.clear();
                self.merging = None;
            }
            Event::MergeEnded { task, next, .. } => {
                if *next == Next::Done {
                    self.marked.retain(|entry| entry.task_id != *task);
                }
                self.train.retain(|member| member != task);
                self.merging = self.train.first().cloned();
                self.next(task, next, at);
            }
            Event::StatusSeen { task, status, seen } if *seen != Seen::Note => {
                self.blocked.retain(|entry| entry.task_id != *task);
                if *seen == Seen::Mark {
                    self.mark(task, Some(*status), at);
                }
            }
            Event::MarkChecked {
                task,
                end,
                set_back: false,
            } => {
                let check = match end {
                    MarkEnd::Green => MarkCheck::Green,
                    MarkEnd::NoGate => MarkCheck::NoGate,
                    MarkEnd::Red { .. } => MarkCheck::Red,
                    MarkEnd::Interrupted => MarkCheck::Waiting,
                };
                let marked = self.marked.iter_mut();
                let entry = marked.rev().find(|entry| entry.task_id == *task);
                if let Some(entry) = entry.filter(|entry| entry.check.is_some()) {
                    entry.check = Some(check);
                }
            }
            Event::Retried { tasks } => {
                self.blocked.retain(|entry| !tasks.contains(&entry.task_id));
            }
            Event::WaveCommitStarted { wave, tasks } => {
                self.committing = Some((*wave, tasks.clone()));
            }
            Event::WaveCommitEnded { wave, end } => self.committed(*wave, end, at),
            _ => {}
        }
        Counted::No
    }

    fn set(&mut self, task: &TaskId, status: TaskStatus) {
        // What is told of one that is no longer in the file stays.
        if let Some(entry) = self.tasks.get_mut(task) {
            entry.status = status;
            entry.marked = false;
            self.marked.retain(|entry| entry.task_id != *task);
        }
    }

    /// A task that came into the file, or back into it: only what is still under way for it counts.
    fn begin_anew(&mut self, task: &TaskId) {
        let runs = self.running.iter().any(|running| running.task == *task);
        let Some(entry) = self.tasks.get_mut(task) else {
            return;
        };
        if runs || self.merging.as_ref() == Some(task) || self.train.contains(task) {
            entry.status = TaskStatus::InProgress;
        }
    }

    /// Somebody else gave a task this status while the loop ran, or took it out of the file. Only
    /// statuses that end a task are marks.
    fn mark(&mut self, task: &TaskId, status: Option<TaskStatus>, at: Timestamp) {
        use TaskStatus::{Cancelled, Deferred, Done};
        if !matches!(status, None | Some(Done | Cancelled | Deferred)) {
            return;
        }
        let mut title = String::new();
        if let Some(entry) = self.tasks.get_mut(task) {
            entry.marked = true;
            title.clone_from(&entry.title);
        }
        self.marked.retain(|entry| entry.task_id != *task);
        self.marked.push(MarkedEntry {
            task_id: task.clone(),
            title,
            mark: status.map_or_else(|| REMOVED.to_owned(), |status| status.to_string()),
            check: (status == Some(Done)).then_some(MarkCheck::Waiting),
            marked_at: at,
        });
    }

    /// Takes a task out of its slot; tells whether the slot is free now.
    fn leave(&mut self, task: &TaskId) -> bool {
        let Some(at) = self
            .running
            .iter()
            .position(|running| running.task == *task)
        else {
            return false;
        };
        let slot = self.running.remove(at).slot;
        self.running.iter().all(|running| running.slot != slot)
    }

    fn next(&mut self, task: &TaskId, next: &Next, at: Timestamp) {
        if let Next::Yield { status } = next {
            self.mark(task, Some(*status), at);
        }
        if let Next::Block { reason } = next {
            let entry = self.tasks.get(task);
            let entry = BlockedEntry {
                task_id: task.clone(),
                title: entry.map_or_else(String::new, |entry| entry.title.clone()),
                reason: reason.describe(),
                attempts: entry.map_or(0, |entry| entry.attempts),
                blocked_at: at,
                timed_out_after: None,
            };
            self.blocked.retain(|old| old.task_id != *task);
            self.blocked.push(entry);
        }
    }

    fn committed(&mut self, wave: u32, end: &CommitEnd, at: Timestamp) {
        let tasks = match self.committing.take() {
            Some((open, tasks)) if open == wave => tasks,
            _ => Vec::new(),
        };
        if let CommitEnd::Committed { commit } = end {
            self.wave_commits.push(WaveCommit {
                wave,
                commit_hash: commit.clone(),
                timestamp: at,
                tasks_completed: tasks,
            });
        }
    }

    /// Takes where finished work is.
    pub fn landed(&mut self, landing: &Landing, at: Timestamp) {
        if let Landing::Landed {
            statuses: Some(commit),
            ..
        } = landing
        {
            // The wave under way is told after it has landed.
            let waves_below = self.wave_commits.len() + usize::from(self.committing.is_some());
            self.mark_commits.retain(|old| old.commit_hash != *commit);
            self.mark_commits.push(MarkCommit {
                commit_hash: commit.clone(),
                timestamp: at,
                waves_below,
            });
        }
        self.landing = Some(landing.clone());
    }

    /// Takes where the work goes, and what it is built on.
    pub fn build_on(&mut self, base: &WorkBase) {
        let known = self.base.as_ref();
        if known.and_then(|known| known.tree.as_ref()) != base.tree.as_ref() {
            self.steps.clear();
        }
        self.steps.extend(base.last.clone());
        self.base = Some(base.clone());
    }

    /// Tasks whose work was merged, and that no commit of a wave holds yet.
    pub fn not_landed(&self) -> Vec<TaskId> {
        let landed: BTreeSet<&TaskId> = self
            .wave_commits
            .iter()
            .flat_map(|wave| &wave.tasks_completed)
            .collect();
        let done = self.tasks.iter().filter(|(id, task)| {
            let by_us = task.attempts > 0 && !task.marked;
            task.status == TaskStatus::Done && by_us && !landed.contains(id)
        });
        done.map(|(id, _)| id.clone()).collect()
    }

    /// Tasks that are done by the word of nobody: there is no gate, and no promise was asked for.
    pub fn unproven(&self) -> impl Iterator<Item = &TaskId> {
        let is_unproven = |id: &&TaskId| {
            let entry = self.tasks.get(*id);
            entry.is_some_and(|entry| entry.is_done() && entry.unproven)
        };
        self.order.iter().filter(is_unproven)
    }

    /// Whether an attempt of this loop proved a task.
    pub fn is_proven_here(&self, task: &TaskId) -> bool {
        let entry = self.tasks.get(task);
        entry.is_some_and(|entry| entry.attempts > 0 && entry.is_done())
    }

    /// Takes a proof.
    pub fn prove(&mut self, proof: &ProvenTree) {
        self.proven.retain(|old| old.tree != proof.tree);
        self.proven.push(proof.clone());
        let over = self.proven.len().saturating_sub(PROVEN);
        self.proven.drain(..over);
    }

    /// Whether the statuses of the file were ever taken.
    pub fn begun(&self) -> bool {
        self.has_begun
    }

    /// The wave that is worked on, from 1; `None` when nothing is open.
    pub fn current_wave(&self) -> Option<u32> {
        let open = |entry: &&TaskEntry| {
            matches!(entry.status, TaskStatus::Pending | TaskStatus::InProgress)
        };
        self.tasks
            .values()
            .filter(open)
            .map(|entry| entry.wave)
            .filter(|wave| *wave > 0)
            .min()
    }

    /// Tasks of a wave that are done, and all of them.
    pub fn wave_count(&self, wave: u32) -> (usize, usize) {
        self.count_waves(wave..=wave)
    }

    /// Tasks that are done, and all that are work.
    pub fn count(&self) -> (usize, usize) {
        self.count_waves(1..=self.waves)
    }

    /// In one pass: a list in which each task waits for the one before has as many waves as tasks.
    fn count_waves(&self, waves: std::ops::RangeInclusive<u32>) -> (usize, usize) {
        let all = self.tasks.values();
        let (mut done, mut total) = (0, 0);
        for entry in all.filter(|entry| waves.contains(&entry.wave)) {
            total += 1;
            done += usize::from(entry.is_done());
        }
        (done, total)
    }

    /// Adds to what a task's own loop used.
    pub(crate) fn spend(&mut self, task: &TaskId, spent: &Spent) {
        let known = self.spent.entry(task.clone()).or_default();
        *known = known.plus(spent);
    }

    /// The fields of the state file.
    pub fn fields(&self) -> Map<String, Value> {
        let current: Vec<&TaskId> = self.running.iter().map(|running| &running.task).collect();
        let (done, total) = self.count();
        let mut fields = Map::new();
        let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
        put("tag", json!(self.tag));
        put("current_wave", json!(self.current_wave()));
        put("total_waves", json!(self.waves));
        put("current_task", json!(current.first()));
        put("current_tasks", json!(current));
        put("tasks_done", json!(done));
        put("tasks_total", json!(total));
        put("wave_commits", json!(self.wave_commits));
        put("blocked_tasks", json!(self.blocked));
        put("marked_tasks", json!(self.marked));
        let unproven: Vec<&TaskId> = self.unproven().collect();
        if !unproven.is_empty() {
            put("unproven_tasks", json!(unproven));
        }
        if let Some(landing) = &self.landing {
            put("landing", json!(landing));
        }
        if !self.kept.is_empty() {
            put("kept_worktrees", json!(self.kept));
        }
        fields
    }
}

impl BlockReason {
    /// In words, in one line.
    pub fn describe(&self) -> String {
        match self {
            Self::Attempts { last, made, limit } => {
                let what = last.kind.describe();
                let count = match limit {
                    0 => String::new(),
                    limit => format!("{made} of {limit} attempts used: "),
                };
                match telling_line(&last.text) {
                    "" => format!("{count}{what}"),
                    text => format!("{count}{what}: {text}"),
                }
            }
            Self::Agent { message } => format!("the agent gave up: {}", telling_line(message)),
            Self::Limit { message } => message.clone(),
            Self::Commit { message } => format!("no commit: {}", commit_reason(message)),
        }
    }
}

impl crate::sched::EvidenceKind {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::RedGate => "verification failed",
            Self::RedMerge => "verification failed after the merge",
            Self::Conflict => "the merge had conflicts",
            Self::AgentFailed => "the agent failed",
            Self::CutOff => "the agent was cut off",
            Self::OutOfScope => "files outside the task's scope were changed",
            Self::Uncarried => "git cannot transfer all of the work out of its worktree",
            Self::NothingDone => "the agent changed nothing and did not claim to be done",
            Self::NoPromise => "the agent did not print the promise",
            Self::MarkedRed => "it was marked done, but verification failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::{AttemptEnd, Evidence, EvidenceKind};

    fn at() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn state() -> TasksState {
        let mut state = TasksState::default();
        let task = |id: &str, wave| PlannedTask {
            commands: None,
            under: None,
            id: id.into(),
            title: format!("Task {id}"),
            wave,
            complexity: 0,
            after: Vec::new(),
            after_blocks: Vec::new(),
        };
        state.plan("auth", &[task("1", 1), task("2", 1), task("3", 2)], &[]);
        state
    }

    fn start(state: &mut TasksState, task: &str, slot: u32) {
        state.apply(
            &Event::AttemptStarted {
                task: task.into(),
                slot,
                attempt: 1,
            },
            at(),
        );
    }

    fn end(state: &mut TasksState, task: &str, end: AttemptEnd, next: Next) -> Counted {
        state.apply(
            &Event::AttemptEnded {
                task: task.into(),
                end,
                next,
            },
            at(),
        )
    }

    #[test]
    fn waves_blocked_tasks_and_commits_are_read_off_the_events() {
        let mut state = state();
        assert_eq!((state.current_wave(), state.count()), (Some(1), (0, 3)));
        start(&mut state, "1", 0);
        let green = AttemptEnd::Green {
            changed: true,
            claimed: true,
            unproven: false,
        };
        assert_eq!(end(&mut state, "1", green, Next::Done), Counted::Yes);
        start(&mut state, "2", 0);
        let reason = BlockReason::Attempts {
            last: Evidence {
                kind: EvidenceKind::RedGate,
                text: "boring\nassert failed\n".into(),
            },
            made: 3,
            limit: 3,
        };
        let red = AttemptEnd::Red { tail: "x".into() };
        end(&mut state, "2", red, Next::Block { reason });
        state.apply(
            &Event::WaveCommitStarted {
                wave: 1,
                tasks: vec!["1".into()],
            },
            at(),
        );
        state.apply(
            &Event::WaveCommitEnded {
                wave: 1,
                end: CommitEnd::Committed {
                    commit: Some("abc".into()),
                },
            },
            at(),
        );
        let fields = state.fields();
        assert_eq!(fields["current_wave"], 2);
        assert_eq!(fields["wave_commits"][0]["tasks_completed"], json!(["1"]));
        assert_eq!(fields["wave_commits"][0]["commit_hash"], "abc");
        assert_eq!(fields["blocked_tasks"][0]["task_id"], "2");
        assert_eq!(
            fields["blocked_tasks"][0]["reason"],
            "3 of 3 attempts used: verification failed: assert failed"
        );
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the kernel itself looks at no clock"
    )]
    #[test]
    fn tasks_are_counted_as_fast_in_many_waves_as_in_one() {
        let state = |waves: u32| {
            let task = |number: u32| PlannedTask {
                id: number.to_string().as_str().into(),
                title: String::new(),
                wave: 1 + number % waves,
                complexity: 0,
                after: Vec::new(),
                after_blocks: Vec::new(),
                under: None,
                commands: None,
            };
            let tasks: Vec<PlannedTask> = (0..10_000).map(task).collect();
            let mut state = TasksState::default();
            state.plan("tag", &tasks, &[]);
            state
        };
        let fastest = |state: &TasksState| {
            let time = |_| {
                let began = std::time::Instant::now();
                assert_eq!(state.count(), (0, 10_000));
                began.elapsed()
            };
            (0..5).map(time).min().unwrap()
        };
        let (many, one) = (fastest(&state(10_000)), fastest(&state(1)));
        assert!(many < 50 * one, "{many:?} and {one:?}");
    }

    #[test]
    fn what_brings_in_waiting_work_follows_from_why_it_waits() {
        let ready = |by_hand| Landing::Ready {
            commit: "c".to_owned(),
            branch: "descartes/auth".to_owned(),
            why: "x".to_owned(),
            by_hand,
            full_disk: false,
        };
        let old = r#"{"landing":"ready","commit":"c","branch":"descartes/auth","why":"x"}"#;
        assert_eq!(serde_json::from_str::<Landing>(old).unwrap(), ready(None));
        let after = "0123456789abcdef".to_owned();
        let table = [
            (None, "descartes work land"),
            (Some(ByHand::Merge), "git merge descartes/auth"),
            (
                Some(ByHand::CherryPick { after }),
                "git cherry-pick 0123456789ab..descartes/auth",
            ),
        ];
        for (by_hand, command) in table {
            let landing = ready(by_hand);
            assert_eq!(landing.command().as_deref(), Some(command));
            let text = serde_json::to_string(&landing).unwrap();
            assert_eq!(serde_json::from_str::<Landing>(&text).unwrap(), landing);
        }
    }

    #[test]
    fn a_limit_and_an_agent_that_still_has_tasks_count_nothing() {
        let mut state = state();
        start(&mut state, "1", 0);
        let limited = AttemptEnd::Limited {
            until: at(),
            login: None,
        };
        assert_eq!(end(&mut state, "1", limited, Next::Again), Counted::No);
        start(&mut state, "1", 0);
        start(&mut state, "2", 0);
        let green = AttemptEnd::Green {
            changed: true,
            claimed: true,
            unproven: false,
        };
        assert_eq!(end(&mut state, "1", green.clone(), Next::Done), Counted::No);
        assert_eq!(end(&mut state, "2", green, Next::Done), Counted::Yes);
    }
}
