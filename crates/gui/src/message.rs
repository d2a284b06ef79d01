//! What can happen in the window, and what is then to be done outside of it.

use std::path::PathBuf;

use descartes_agents::reader::Source;
use descartes_client::Brief;
use descartes_client::logs::{LogPosition, LogWindow};
use descartes_kernel::control::Command;
use descartes_views::view::HistoryRow;
use iced::Size;
use iced::keyboard::{Key, Modifiers};
use iced::widget::text_editor;
use jiff::Timestamp;

use crate::model::form::{Field, Permissions};
use crate::model::{Agent, Area, KnownLoop, Page, Tab};

#[derive(Clone, Debug)]
pub enum Message {
    /// Time goes by.
    Tick(Timestamp),
    /// How all loops stand.
    Fleet(Result<Vec<Brief>, String>),
    /// LoopUpdate of the chosen loop.
    Followed(String, Followed),
    /// Rows of its history, from this run on.
    History(String, u64, Result<HistoryPart, String>),
    /// A piece of its output.
    Log(LogRequest, Result<LogWindow, String>),
    /// What became of a command.
    Sent(String, Result<String, String>),
    /// The agents of this machine.
    Agents(Result<Vec<Agent>, String>),
    /// What became of a loop that was to be started: its id, or which field is wrong.
    Started(Result<String, Refused>),
    /// A loop in the list was clicked.
    Choose(String),
    /// A tab was clicked.
    Tab(Tab),
    /// A row of the history was clicked.
    Row(u32),
    /// The newest output is wanted again.
    Newest,
    /// The other stream is wanted.
    Stream(Source),
    /// An area is as large as this now.
    Sized(Area, Size),
    /// A wheel was turned over an area, by so many lines.
    Wheel(Area, f32),
    /// The handle of a scroll bar was moved: the part of the whole that is above.
    Drag(Area, f32),
    /// A button was pressed.
    Press(Button),
    /// The note changed.
    Note(String),
    /// A field of the form changed.
    Field(Field, String),
    /// The prompt of the form was edited.
    Prompt(text_editor::Action),
    /// The gates of the form were edited.
    Gates(text_editor::Action),
    /// What the agent may do was chosen.
    Permissions(Permissions),
    /// A key was pressed that no field wanted.
    Key(Key, Modifiers),
    /// The window was asked to close.
    Close,
}

/// Buttons, each with a key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Button {
    NewLoop,
    /// Leave the form.
    Back,
    /// Start what the form says.
    Start,
    /// Hold before the next iteration.
    Pause,
    Unpause,
    /// Take a loop up that is not running and not done.
    Resume,
    /// Ask whether to end it.
    Cancel,
    /// End it.
    ReallyCancel,
    /// Do not.
    KeepRunning,
    /// The output, large.
    ViewLogs,
    /// The folder of the logs.
    OpenFolder,
    /// Send the note.
    Say,
    /// Try again now.
    RetryNow,
    /// Light or dark.
    Theme,
    Help,
    /// Take the error line away.
    Dismiss,
}

/// LoopUpdate of a loop.
#[derive(Clone, Debug)]
pub enum Followed {
    /// How it stands, and what happened of late.
    KnownLoop(Box<KnownLoop>),
    /// A run printed something.
    Output(u64),
    /// It cannot be followed now.
    Trouble(String),
}

/// Rows of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryPart {
    /// Rows, oldest first.
    pub rows: Vec<HistoryRow>,
}

/// Which piece of which output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRequest {
    pub id: String,
    /// The iteration; `None` is the newest.
    pub iteration: Option<u32>,
    pub source: Source,
    pub place: LogPosition,
    /// The byte that is to stand at the top, and lines above it; `None`: the end.
    pub anchor: Option<(u64, i64)>,
}

/// Why a loop was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The field that is wrong, where one is.
    pub field: Option<Field>,
    pub message: String,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Read rows of a history: so many from this run on.
    ReadHistory {
        id: String,
        /// The first run.
        from: u64,
        count: u64,
    },
    /// Read a piece of output.
    ReadLog(LogRequest),
    /// Send a command.
    Send {
        /// To this loop.
        id: String,
        command: Command,
    },
    /// Look which agents are installed.
    FindAgents,
    /// Start a loop: the words behind `descartes`, and the folder.
    Start { words: Vec<String>, folder: PathBuf },
    /// Take a loop up again: its id, the words behind `descartes`, and the folder.
    Resume {
        id: String,
        words: Vec<String>,
        folder: PathBuf,
    },
    /// Show the folder of a loop in the file manager.
    OpenFolder(String),
    /// Put the cursor into a field.
    Focus(&'static str),
    /// Put the cursor into the next field.
    FocusNext,
    /// Put the cursor into the field before.
    FocusPrevious,
    /// Scroll a page by so many points.
    Scroll(Page, f32),
    /// Take the cursor out of all fields.
    Blur,
    /// Close the window.
    Exit,
}
