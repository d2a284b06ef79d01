//! Where tasks are worked on, and how their work comes together.

use std::path::{Path, PathBuf};

use descartes_kernel::sandbox::SandboxConfig;
use descartes_kernel::sched::{CommitEnd, MergeEnd, TrainEnd};
use descartes_kernel::tasks::{KeptTree, Landing, ProvenStep, ProvenTree, TaskMarks, WorkBase};
use serde::{Deserialize, Serialize};

use super::git::Repo;
use super::git_error::GitError;
use super::locks::Locks;

/// A piece of work: a task, or the tasks of a wave in one agent's hands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Work {
    /// What its branch and its loop are called after.
    pub(super) id: String,
    /// For commit messages.
    pub(super) title: String,
    /// Lines at the end of the message of what lands.
    pub(super) trailers: Vec<String>,
    /// In place: the tasks that it depends on, directly or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) upon: Vec<String>,
}

impl Work {
    /// Work of that name alone.
    pub(super) fn named(id: String, title: String) -> Self {
        Self {
            id,
            title,
            trailers: Vec::new(),
            upon: Vec::new(),
        }
    }

    /// The message of a commit that brings several pieces together.
    pub(super) fn messages(all: &[Self]) -> String {
        let titles: Vec<&str> = all.iter().map(|work| work.title.as_str()).collect();
        let trailers = all.iter().flat_map(|work| work.trailers.clone());
        with_trailers(titles.join("\n"), &trailers.collect::<Vec<_>>())
    }

    /// The message of the commit that lands.
    pub(super) fn message(&self) -> String {
        with_trailers(self.title.clone(), &self.trailers)
    }
}

fn with_trailers(subject: String, trailers: &[String]) -> String {
    match trailers.is_empty() {
        true => subject,
        false => format!("{subject}\n\n{}", trailers.join("\n")),
    }
}

/// A wave to be committed.
#[derive(Clone, Debug)]
pub(super) struct Wave {
    /// The wave, from 1.
    pub(super) number: u32,
    /// Its tasks that are done.
    pub(super) done: usize,
    /// All that were to be done.
    pub(super) total: usize,
    /// Lines at the end of its message.
    pub(super) trailers: Vec<String>,
}

impl Wave {
    /// The message of its commit.
    pub(super) fn message(&self, tag: &str) -> String {
        with_trailers(self.subject(tag), &self.trailers)
    }

    /// The first line of that.
    pub(super) fn subject(&self, tag: &str) -> String {
        let (wave, done, total) = (self.number, self.done, self.total);
        match done < total {
            true => format!("feat({tag}): wave {wave}, {done} of {total} tasks"),
            false => format!("feat({tag}): complete wave {wave}"),
        }
    }
}

/// Whether an attempt was proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proven {
    Green,
    No,
}

/// Runs the gates on a tree.
pub(super) trait RunGates {
    /// What is run.
    fn commands(&self) -> &[String];
    /// Runs all of them, to the first that is red.
    fn run(&mut self, dir: &Path) -> Result<(), GateFailure>;
    /// Whether somebody wants nothing to come of them any more.
    fn is_stopped(&mut self) -> bool {
        false
    }
    /// The same as `run`, with those of every task that is done.
    fn run_whole(&mut self, dir: &Path) -> Result<(), GateFailure> {
        self.run(dir)
    }
}

/// Why gates were not green.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GateFailure {
    /// One was red; the evidence.
    Red(String),
    /// Somebody stopped them: nothing is known.
    Stopped,
}

/// The gates of a merge or landing.
pub(super) type Gates<'a> = &'a mut dyn RunGates;

/// What became of a merge.
#[derive(Debug)]
pub(crate) struct MergeDone {
    pub(super) end: MergeEnd,
    pub(super) landing: Option<Landing>,
    /// Trees that were proven on the way.
    pub(super) proven: Vec<ProvenTree>,
}

/// What became of stacking the work of several tasks; the rest of it fits.
#[derive(Debug, Default)]
pub(crate) struct StackDone {
    /// What does not fit onto the merged work, or cannot be committed.
    pub(super) out: Vec<(String, MergeEnd)>,
    /// What does not fit onto the work of another.
    pub(super) held: Vec<String>,
}

/// What the gates said about a stack.
#[derive(Debug)]
pub(crate) struct TrainDone {
    pub(super) end: TrainEnd,
    pub(super) landing: Option<Landing>,
    /// Trees that were proven on the way.
    pub(super) proven: Vec<ProvenTree>,
}

/// What became of the commit of a wave.
#[derive(Debug)]
pub(crate) struct WaveDone {
    pub(super) end: CommitEnd,
    pub(super) landing: Option<Landing>,
    /// Trees that were proven on the way.
    pub(super) proven: Vec<ProvenTree>,
}

/// What became of finished work that had not landed when everything else was over.
#[derive(Debug, Default)]
pub(crate) struct LandDone {
    pub(super) landing: Option<Landing>,
    /// Trees that were proven on the way.
    pub(super) proven: Vec<ProvenTree>,
}

/// What became of the work that an attempt left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finished {
    /// All of it is in a commit, or ignored by git.
    Safe,
    /// Some of it is what git cannot carry; what the agent has to know.
    Uncarried(String),
}

/// What is left when a task loop is over.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    /// The branch on which finished work waits from now on, where that is another than before.
    pub(super) waits: Option<String>,
    /// Worktrees that were not removed.
    pub(super) kept: Vec<KeptTree>,
}

/// Whether a loop begins or is taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    Yes,
    No,
}

/// A place where tasks are worked on. Called from several threads; merges and commits from one
/// at a time.
pub(super) trait Workplace: Send + Sync {
    /// Git's locks that it met, where there is git.
    fn locks(&self) -> Option<&Locks> {
        None
    }
    /// The folder of the loop, for what has to be kept as long as that.
    fn keep_in(&self, folder: &Path) {
        let _ = folder;
    }
    /// Work lands on this branch alone, which was made for the loop.
    fn land_on(&self, branch: &str) {
        let _ = branch;
    }
    /// What it runs itself, code of a task among it, is confined at least as far as this.
    fn confine_as(&self, sandbox: &SandboxConfig) {
        let _ = sandbox;
    }
    /// Before the first attempt of a host, with the number of tasks that may run at once.
    /// Tells of work that an earlier loop proved and that waits to land, where this one has just begun.
    fn begin(&self, fresh: Fresh, slots: u32) -> Result<Option<Landing>, GitError> {
        let _ = (fresh, slots);
        Ok(None)
    }
    /// Where work goes and what it is built on, as an earlier host wrote it down, with what was proven
    /// in place since.
    fn recall(&self, base: &WorkBase, steps: &[ProvenStep]) {
        let _ = (base, steps);
    }
    /// The same as it is now; none where work goes nowhere.
    fn base(&self) -> Option<WorkBase> {
        None
    }
    /// Once begun: whether merged work that an earlier host wrote down is in no object any more.
    fn lost_work(&self) -> bool {
        false
    }
    /// Trees that earlier hosts proved.
    fn remember(&self, proven: &[ProvenTree]) {
        let _ = proven;
    }
    /// Makes a slot ready for a piece of work; gives the folder to work in, and what its agent
    /// has to know.
    fn prepare(&self, slot: u32, work: &Work) -> Result<Ready, GitError>;
    /// The agent of an attempt has ended, and its gates are about to run: what they leave is no work.
    fn agent_ended(&self, slot: u32, work: &Work) {
        let _ = (slot, work);
    }
    /// Takes what an attempt left behind into safety.
    fn finish(&self, slot: u32, work: &Work, proven: Proven) -> Result<Finished, GitError>;
    /// Files that a piece of work changed, other than these; none where it cannot be told apart
    /// from the work of others.
    fn outside(&self, work: &Work, files: &[String]) -> Result<Vec<String>, GitError> {
        let _ = (work, files);
        Ok(Vec::new())
    }
    /// What a piece of finished work changed, in a few words.
    fn delivered(&self, work: &Work) -> Option<String> {
        let _ = work;
        None
    }
    /// Puts proven work together with what was merged before.
    fn merge(&self, work: &Work, gates: Gates<'_>, marks: &TaskMarks) -> MergeDone;
    /// Stacks proven work of several tasks in order.
    fn stack(&self, works: &[Work]) -> StackDone {
        StackDone {
            out: Vec::new(),
            held: works.iter().map(|work| work.id.clone()).collect(),
        }
    }
    /// Runs the gates on the work of the first `members`, stacked; merges it where they are green.
    fn gate_train(
        &self,
        works: &[Work],
        members: usize,
        gates: Gates<'_>,
        marks: &TaskMarks,
    ) -> TrainDone {
        let _ = (works, members, gates, marks);
        TrainDone {
            end: TrainEnd::Interrupted,
            landing: None,
            proven: Vec::new(),
        }
    }
    /// Runs the gates on the merged tree as it is; the evidence of the first red one. An error is
    /// git's words where there is no such tree.
    fn gate_merged(&self, gates: Gates<'_>) -> Result<Result<(), GateFailure>, GitError>;
    /// Commits a wave and brings it into the user's checkout.
    fn commit_wave(&self, wave: &Wave, gates: Gates<'_>, marks: &TaskMarks) -> WaveDone;
    /// Writes bundles with what another machine needs for a piece of work. `known` is a commit that it gets
    /// by a bundle of its own. Without a folder no bundles are written.
    fn publish(
        &self,
        work: &Work,
        known: Option<&str>,
        to: Option<&Path>,
    ) -> Result<Published, GitError> {
        let _ = (work, known, to);
        Err(GitError::Refused(NO_WORKERS.to_owned()))
    }
    /// Makes a bare repository there that sees the objects of this place, and nothing that is configured here.
    fn carrier(&self, dir: &Path) -> Result<Repo, GitError> {
        let _ = dir;
        Err(GitError::Refused(NO_WORKERS.to_owned()))
    }
    /// Takes work that another machine did: a bundle whose ref of `delivery` is at its commit. The branch
    /// of the work moves there if the commit is built on what was published.
    fn import(&self, work: &Work, delivery: &WorkDelivery) -> Result<(), GitError> {
        let _ = (work, delivery);
        Err(GitError::Refused(NO_WORKERS.to_owned()))
    }
    /// Ends what is run to make slots ready, and gits that are under way.
    fn stop(&self) {}
    /// The same, without grace.
    fn kill(&self) {
        self.stop();
    }
    /// Tries once more to bring finished work into the user's checkout.
    fn land_rest(&self, gates: Gates<'_>, marks: &TaskMarks) -> LandDone {
        let _ = (gates, marks);
        LandDone::default()
    }
    /// Everything is over: what is not needed any more is removed.
    fn close(&self, done: &[Work]) -> Closed {
        let _ = done;
        Closed::default()
    }
}

/// Why there is nothing that workers could be given.
const NO_WORKERS: &str = "workers need worktrees: omit --in-place";

/// What another machine needs for a piece of work.
#[derive(Clone, Debug)]
pub(super) struct Published {
    /// What was merged before.
    pub(super) base: String,
    /// The work of earlier attempts.
    pub(super) branch: Option<String>,
    /// A commit with all its history.
    pub(super) root: String,
    /// A bundle of that, where it is another than the one that is known.
    pub(super) root_bundle: Option<PathBuf>,
    /// A bundle of the rest, where there is any.
    pub(super) bundle: Option<PathBuf>,
    /// The folder of the repository that the loop works in.
    pub(super) folder: String,
    /// Paths within the repository that are in no commit of ours.
    pub(super) shielded: Vec<String>,
    /// The repository: where it comes from, or its folder.
    pub(super) repository: String,
    /// Who makes the commits: name and address.
    pub(super) author: Option<(String, String)>,
}

/// Work that another machine did.
#[derive(Clone, Debug)]
pub(super) struct WorkDelivery {
    pub(super) epoch: u64,
    pub(super) commit: String,
    /// Where its commits are, unless they are known.
    pub(super) bundle: Option<PathBuf>,
}

/// A slot that is ready.
#[derive(Debug)]
pub(super) struct Ready {
    /// The folder to work in.
    pub(super) dir: PathBuf,
    /// Something the agent has to know, such as a conflict that is in the tree.
    pub(super) note: Option<String>,
}
