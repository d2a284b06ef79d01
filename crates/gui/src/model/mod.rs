//! All that the window knows.

pub mod form;
mod known;
pub mod log;
pub mod table;

use descartes_client::Brief;
use descartes_kernel::config::ConfigChange;
use descartes_kernel::state::Pause;
use descartes_kernel::step::flags_past_limits;
use descartes_views::view::{Head, Status};
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use self::known::{Agent, KnownLoop};
use crate::theme::Mode;
use form::Form;
use log::LogView;
use table::{List, Table};

#[derive(Debug)]
pub struct Model {
    /// The time it is.
    pub now: Timestamp,
    /// How a person tells it.
    pub zone: TimeZone,
    /// Light or dark.
    pub mode: Mode,
    /// Every loop, in the order of the list.
    pub fleet: Vec<Brief>,
    /// Whether they have been looked at.
    pub listed: bool,
    /// How far the list is scrolled.
    pub list: List,
    /// The loop that is shown.
    pub chosen: Option<Chosen>,
    /// What fills the right side.
    pub page: Page,
    /// What stands above everything.
    pub dialog: Option<Dialog>,
    /// The error line.
    pub notice: Option<Notice>,
    /// The loop that it is about, where it is about one.
    pub notice_of: Option<String>,
    /// The agents that are installed.
    pub agents: Agents,
    pub form: Form,
    /// The folder that the window was started in.
    pub here: String,
}

impl Model {
    /// A window that knows nothing yet.
    pub fn new(now: Timestamp, mode: Mode, here: String) -> Self {
        Self {
            now,
            zone: TimeZone::UTC,
            mode,
            fleet: Vec::new(),
            listed: false,
            list: List::default(),
            chosen: None,
            page: Page::Loop,
            dialog: None,
            notice: None,
            notice_of: None,
            agents: Agents::Unknown,
            form: Form::new(&here),
            here,
        }
    }

    /// Shows a line about the window itself, or about a loop.
    pub fn tell(&mut self, notice: Notice, of: Option<String>) {
        self.notice = Some(notice);
        self.notice_of = of;
    }

    /// The chosen loop, once it is known how it stands.
    pub fn stands(&self) -> Option<&KnownLoop> {
        self.chosen.as_ref()?.stands.as_ref()
    }
}

/// What fills the right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The chosen loop.
    Loop,
    NewLoop,
}

impl Page {
    /// The name of what is scrolled on it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Loop => "page of the loop",
            Self::NewLoop => "form",
        }
    }
}

/// What stands above everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialog {
    /// Shall it really be ended?
    Cancel,
    Help,
}

/// A line that can be taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something went wrong.
    Error(String),
    /// Something was done.
    Done(String),
}

/// Parts of a loop's page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    #[default]
    /// History and output.
    Overview,
    /// The output alone.
    Output,
    /// Waves and tasks.
    Waves,
    /// Timeline, graph, lanes.
    Pictures,
}

/// What can be scrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// The list of loops.
    List,
    History,
    Log,
    Pictures,
}

/// What is known of the agents of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agents {
    /// Not looked for.
    Unknown,
    /// Being looked for.
    Looking,
    Known(Vec<Agent>),
}

/// The loop that is shown.
#[derive(Debug, Default)]
pub struct Chosen {
    pub id: String,
    /// How it stands, once that is known.
    pub stands: Option<KnownLoop>,
    /// Why it cannot be followed.
    pub trouble: Option<String>,
    /// The part of the page.
    pub tab: Tab,
    pub table: Table,
    pub log: LogView,
    /// The note that is being written.
    pub note: String,
    /// What was sent and not answered yet.
    pub sending: Option<&'static str>,
    /// Width of the pictures.
    pub width: f32,
}

impl Chosen {
    /// Rows of the history in all.
    pub fn total(&self) -> usize {
        let Some(stands) = &self.stands else {
            return 0;
        };
        match stands.state.tasks {
            Some(_) => stands.story.rows().len(),
            None => usize::try_from(stands.state.runs).unwrap_or(usize::MAX),
        }
    }

    /// A loop of which nothing is known yet.
    pub fn new(id: String) -> Self {
        Self {
            log: LogView::of(&id),
            id,
            ..Self::default()
        }
    }

    /// What stands at the top.
    pub fn head(&self) -> Option<Head> {
        let stands = self.stands.as_ref()?;
        Some(Head::of(&stands.state, stands.life))
    }

    /// Whether a person holds it, or it is asked to be held.
    pub fn is_paused(&self) -> bool {
        let stands = self.stands.as_ref();
        stands.is_some_and(|stands| stands.state.requests.pause != Pause::No)
    }

    /// The flags with which it can be taken up again; `None` where it runs, or is done.
    pub fn resume_flags(&self) -> Option<String> {
        let stands = self.stands.as_ref()?;
        match Head::of(&stands.state, stands.life).status {
            Status::Interrupted => Some(String::new()),
            Status::Ended { reason } if !reason.is_success() => {
                let nothing = ConfigChange::default();
                Some(flags_past_limits(&stands.state, &nothing, &reason))
            }
            _ => None,
        }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        let status = self.head().map(|head| head.status);
        matches!(status, Some(Status::Ended { .. }))
    }
}
