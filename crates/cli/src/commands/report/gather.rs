//! Everything that is known of a loop, and what could not be read. A damaged journal tells as
//! much as stands before the damage.

use descartes_client::LoopHandle;
use descartes_core::worktree::Lines;
use descartes_kernel::event::Record;
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::{apply, begin};
use descartes_store::catalog::LoopMeta;
use descartes_views::view::{Life, Story, TaskLanes};

/// Iterations that pictures are drawn of; the page tells when there were more.
const KEEP: usize = 5_000;

/// What a page is made of.
pub struct Gathered {
    /// What never changes about the loop.
    pub meta: LoopMeta,
    /// How it stands, as far as could be read.
    pub state: Option<LoopState>,
    /// Whether a process has it.
    pub life: Life,
    /// Iterations, waits, notes, remarks.
    pub story: Story,
    /// How many lines each row of the story changed, where that is known.
    pub lines: Vec<Option<Lines>>,
    /// Attempts at tasks.
    pub lanes: TaskLanes,
    /// What could not be read, and what a person should know of the files.
    pub troubles: Vec<String>,
}

impl Gathered {
    /// Reads the loop.
    pub fn of(found: &LoopHandle) -> Self {
        let mut gathered = Self {
            meta: found.meta().clone(),
            state: None,
            life: Life::Gone,
            story: Story::new(KEEP),
            lines: Vec::new(),
            lanes: TaskLanes::default(),
            troubles: Vec::new(),
        };
        if found.has_journal() {
            let read = found.records(|record| gathered.take(&record));
            if let Err(error) = read {
                gathered.trouble(format!("{error}; what comes after that is not shown here"));
            }
        }
        match found.look() {
            Ok(look) => {
                gathered.troubles.extend(look.notices);
                gathered.life = look.life;
                gathered.state.get_or_insert(look.state);
            }
            Err(error) => {
                gathered.life = found.life().unwrap_or(Life::Gone);
                gathered.trouble(error.to_string());
            }
        }
        gathered
    }

    fn take(&mut self, record: &Record) {
        self.story.push(record);
        self.lanes.push(record);
        let step = match &mut self.state {
            None => begin(record).map(|state| self.state = Some(state)),
            Some(state) => apply(state, record),
        };
        if let Err(error) = step {
            self.trouble(error.to_string());
        }
    }

    /// Says a thing once.
    fn trouble(&mut self, text: String) {
        let known = self
            .troubles
            .iter()
            .any(|old| old.starts_with(&text) || text.starts_with(old.as_str()));
        if !known {
            self.troubles.push(text);
        }
    }
}
