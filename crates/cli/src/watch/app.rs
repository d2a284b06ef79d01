//! What the screen shows and how keys change it. Nothing here reads a file or draws.

use std::sync::Arc;
use std::time::Instant;

use descartes_agents::reader::Source;
use descartes_client::Brief;
use descartes_client::logs::LogLine;
use descartes_kernel::control::Command;
use descartes_views::view::{Life, Status};

use super::detail::{Detail, LogPlace, LogView, LogWant, LoopView, Want};
use super::list::{Entry, Show, arrange, is_live, status};
use super::pager::Paged;
use crate::style::Tone;

/// Where keys go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    #[default]
    List,
    Pane,
}

/// What is shown of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    #[default]
    History,
    Output,
    Gates,
    Plots,
    Notes,
    Tasks,
}

impl Tab {
    /// All of them, in order; that of tasks is for task loops alone.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::History, "History"),
        (Self::Output, "Output"),
        (Self::Gates, "Gates"),
        (Self::Plots, "Plots"),
        (Self::Notes, "Notes"),
        (Self::Tasks, "Tasks"),
    ];
}

/// What stands over everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Dialog {
    #[default]
    None,
    Help,
    /// Whether this loop is to be ended.
    Cancel {
        id: String,
        name: String,
    },
    /// A note that is being typed for this loop.
    Say {
        id: String,
        text: String,
    },
    /// The filter that is being typed.
    Filter,
}

/// A line at the bottom.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchMessage {
    pub tone: Tone,
    pub text: String,
    pub at: Instant,
}

/// What has to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Quit,
    /// Ctrl-Z.
    Suspend,
    Send {
        id: String,
        command: Command,
    },
    /// Something in a pager.
    Page(Paged),
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub struct App {
    pub briefs: Vec<Brief>,
    pub entries: Vec<Entry>,
    pub chosen: Option<String>,
    pub show: Show,
    pub filter: String,
    pub focus: Focus,
    pub tab: Tab,
    pub detail: Option<Detail>,
    /// The iteration that is looked at, by its place in the history; `None`: the newest.
    pub row: Option<u64>,
    pub source: Source,
    pub place: LogPlace,
    /// Lines that gates, notes and tasks are scrolled by; [`END`]: their end is followed.
    pub scroll: usize,
    /// Wave columns that the graph is moved by.
    pub column: usize,
    pub dialog: Dialog,
    pub message: Option<WatchMessage>,
    /// Why the loops cannot be listed.
    pub trouble: Option<String>,
    /// Whether the list was read at all.
    pub listed: bool,
    /// Lines of the pane as last drawn: how far a page goes.
    pub page: usize,
    /// Lines that gates, notes and tasks as last drawn could be scrolled by.
    pub last_scroll: usize,
}

/// Further than anything can be scrolled.
pub const END: usize = usize::MAX;

/// Where on the screen things are, for the mouse.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// Columns of the list; 0 where it is not shown.
    pub list: u16,
    /// Row of the first loop, and which one it is.
    pub first: (u16, usize),
    /// Row of the tabs, and where each begins and ends.
    pub tabs: (u16, Vec<(Tab, u16, u16)>),
    /// Row of the first iteration of the history, and which one it is.
    pub rows: Option<(u16, u64)>,
    /// Lines that fit into the pane.
    pub page: usize,
    /// Lines that the pane can be scrolled by.
    pub last_scroll: usize,
}

impl App {
    /// Nothing yet; this loop is chosen once it is known.
    pub fn new(chosen: Option<String>) -> Self {
        let focus = match chosen {
            Some(_) => Focus::Pane,
            None => Focus::List,
        };
        Self {
            chosen,
            focus,
            page: 10,
            ..Self::default()
        }
    }

    /// Takes the list of all loops.
    pub fn take_fleet(&mut self, fleet: Result<Vec<Brief>, String>) {
        self.listed = true;
        match fleet {
            Ok(briefs) => {
                self.briefs = briefs;
                self.trouble = None;
            }
            Err(error) => self.trouble = Some(error),
        }
        self.arrange();
    }

    /// Takes what was read of the loop that is looked at.
    pub fn take_detail(&mut self, detail: Detail) {
        if self.chosen.as_ref() != Some(&detail.id) {
            return;
        }
        if let (LogPlace::Share(_), Some(Ok(log))) = (self.place, &detail.log)
            && let Some(at) = log.at
        {
            self.place = LogPlace::At(at);
        }
        self.detail = Some(detail);
        if self.tab == Tab::Tasks && self.is_known() && !self.has_tasks() {
            self.tab = Tab::History;
        }
    }

    fn is_known(&self) -> bool {
        self.view().is_some()
    }

    /// Orders the list anew; something is always chosen where there is something.
    pub fn arrange(&mut self) {
        self.list();
        if self.place_in_list().is_none() {
            let first = self.entries.first().map(|entry| entry.brief.id.clone());
            if first.is_some() || self.listed {
                self.choose(first);
            }
        }
    }

    /// Where the chosen loop stands in the list.
    pub fn place_in_list(&self) -> Option<usize> {
        let chosen = self.chosen.as_deref()?;
        self.entries
            .iter()
            .position(|entry| entry.brief.id == chosen)
    }

    /// Takes where things were drawn.
    pub fn drawn(&mut self, places: &Places) {
        self.page = places.page;
        self.last_scroll = places.last_scroll;
    }

    /// Looks at another loop.
    pub fn choose(&mut self, id: Option<String>) {
        if self.chosen == id {
            return;
        }
        self.chosen = id;
        self.detail = None;
        self.row = None;
        self.scroll = 0;
        self.column = 0;
        self.place = LogPlace::Follow;
        self.list();
    }

    fn list(&mut self) {
        let chosen = self.chosen.as_deref();
        self.entries = arrange(&self.briefs, self.show, &self.filter, chosen);
    }

    /// What is known of the chosen loop.
    pub fn view(&self) -> Option<&Arc<LoopView>> {
        self.detail.as_ref()?.standing.as_ref()
    }

    /// Whether it is a task loop.
    pub fn has_tasks(&self) -> bool {
        self.view().is_some_and(|view| view.state.tasks.is_some())
    }

    /// The tabs that there are.
    pub fn tabs(&self) -> &'static [(Tab, &'static str)] {
        match self.has_tasks() {
            true => &Tab::ALL,
            false => &Tab::ALL[..5],
        }
    }

    /// The loop in the list that is chosen.
    pub fn brief(&self) -> Option<&Brief> {
        let chosen = self.chosen.as_deref()?;
        self.briefs.iter().find(|brief| brief.id == chosen)
    }

    /// How many loops run, wait and are over; children are not counted.
    pub fn counts(&self) -> (usize, usize, usize) {
        let mut counts = (0, 0, 0);
        for brief in self.briefs.iter().filter(|brief| brief.parent.is_none()) {
            match status(brief) {
                Some(Status::Waiting { .. } | Status::Paused) => counts.1 += 1,
                Some(status) if status.is_live() => counts.0 += 1,
                _ => counts.2 += 1,
            }
        }
        counts
    }

    /// Rows of the history in all.
    pub fn total_rows(&self) -> u64 {
        self.detail.as_ref().map_or(0, |detail| detail.rows.total)
    }

    /// The row that is looked at.
    pub fn selected_row(&self) -> Option<u64> {
        let last = self.total_rows().checked_sub(1)?;
        Some(self.row.map_or(last, |row| row.min(last)))
    }

    /// The loop and the iteration whose output is looked at. A task loop has none of its own:
    /// that of a run in its history, or of the task that was begun last.
    pub fn speaker(&self) -> Option<(String, Option<u32>)> {
        let id = self.chosen.clone()?;
        let row = self.row.and_then(|row| self.detail.as_ref()?.rows.get(row));
        if !self.has_tasks() {
            return Some((id, row.map(|row| row.iteration)));
        }
        if let Some((row, (_, child))) = row.and_then(|row| Some((row, row.task.as_ref()?))) {
            return Some((child.clone(), Some(row.iteration)));
        }
        let children = self
            .briefs
            .iter()
            .filter(|b| b.parent.as_ref() == Some(&id));
        let newest = children
            .clone()
            .find(|child| is_live(child))
            .or_else(|| children.clone().next());
        newest.map(|child| (child.id.clone(), None))
    }

    /// Whether the newest output is shown below the history: while nothing else is chosen.
    pub fn is_live_below(&self) -> bool {
        self.row.is_none() && self.view().is_some_and(|view| view.life == Life::Alive)
    }

    /// What the screen needs from the disk.
    pub fn want(&self) -> Want {
        let place = match self.tab {
            Tab::Output => Some(self.place),
            Tab::History if self.is_live_below() => Some(LogPlace::Follow),
            _ => None,
        };
        let log = place.and_then(|place| Some((self.speaker()?, place)));
        Want {
            id: self.chosen.clone(),
            row: self.row,
            log: log.map(|((id, iteration), place)| LogWant {
                id,
                iteration,
                source: self.source,
                place,
            }),
        }
    }

    /// The output that was read.
    pub fn log(&self) -> Option<&Arc<LogView>> {
        self.detail.as_ref()?.log.as_ref()?.as_ref().ok()
    }

    /// Lines of output that were read, and the one that is the first on the screen; `None`
    /// where the end is followed.
    pub fn log_lines(&self) -> (&[LogLine], Option<usize>) {
        let Some(log) = self.log() else {
            return (&[], None);
        };
        let lines = &log.window.lines;
        let top = match self.place {
            LogPlace::At(at) => {
                let top = lines.partition_point(|line| line.offset < at);
                Some(top.min(lines.len().saturating_sub(1)))
            }
            LogPlace::Follow | LogPlace::Share(_) => None,
        };
        (lines, top)
    }

    /// Says something at the bottom.
    pub fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.message = Some(WatchMessage {
            tone,
            text: text.into(),
            at: Instant::now(),
        });
    }

    /// Whether something on the screen changes with the clock.
    pub fn ticks(&self) -> bool {
        let live = self.briefs.iter().any(is_live);
        live || self.message.is_some()
    }
}
