//! What each key does.

use descartes_agents::reader::Source;
use descartes_kernel::control::{Command, Grace};
use descartes_kernel::state::Pause;
use descartes_views::view::Status;

use super::app::{Act, App, Dialog, END, Focus, Places, Tab};
use super::detail::LogPlace;
use super::input::{Key, Mouse};
use super::list::{Show, status};
use super::pager::Paged;
use crate::style::Tone;

/// The longest note that can be typed.
const NOTE: usize = 4000;
/// Lines of one turn of the wheel.
const WHEEL: usize = 3;

/// Keys and what they do, for the help.
pub const HELP: &[(&str, &str)] = &[
    ("↑ ↓  j k", "move in the list or in the pane"),
    ("← →  h l", "go to the list, to the pane"),
    ("Tab  1-6", "next tab, or a tab by number"),
    ("PgUp PgDn", "a page up, down"),
    (
        "g m G",
        "to the beginning, the middle, the end (and follow it)",
    ),
    (
        "Enter",
        "the pane; in the history: output of that iteration",
    ),
    ("[ ]", "previous, next iteration; columns of the graph"),
    ("e", "standard error or standard output"),
    ("p", "pause or continue"),
    ("c", "cancel; asks first"),
    ("s", "send the agent a note with the next prompt"),
    ("r", "retry now, instead of waiting for the provider"),
    ("o  d", "open the log, the diff of the iteration in a pager"),
    ("/  a", "filter the list; hide what is over"),
    ("?  q", "this help; quit (loops keep running)"),
];

/// Takes a key; tells what has to be done outside.
pub fn key(app: &mut App, key: Key, places: &Places) -> Option<Act> {
    if let Key::Ctrl('c') = key {
        return Some(Act::Quit);
    }
    if let Key::Ctrl('z') = key {
        return Some(Act::Suspend);
    }
    app.message = None;
    match std::mem::replace(&mut app.dialog, Dialog::None) {
        Dialog::None => plain(app, key, places),
        Dialog::Help => None,
        Dialog::Cancel { id, name } => match key {
            Key::Char('y' | 'Y') => {
                let grace = Grace::Ask;
                app.say(Tone::Normal, format!("cancelling {name} …"));
                Some(Act::Send {
                    id,
                    command: Command::Cancel { grace },
                })
            }
            _ => {
                app.say(Tone::Normal, "not cancelled");
                None
            }
        },
        Dialog::Say { id, text } => say(app, id, text, key),
        Dialog::Filter => filter(app, key),
    }
}

/// A text that is typed: `Some` once it is whole.
fn typed(text: &mut String, key: &Key) -> Typed {
    match key {
        Key::Enter => return Typed::Done,
        Key::Esc => return Typed::Dropped,
        Key::Backspace => drop(text.pop()),
        Key::Ctrl('u') => text.clear(),
        Key::Ctrl('w') => {
            let kept = text.trim_end().rfind(' ').map_or(0, |space| space + 1);
            text.truncate(kept);
        }
        Key::Char(c) if text.len() < NOTE => text.push(*c),
        Key::Paste(paste) => {
            let flat = paste.split(['\r', '\n']).collect::<Vec<_>>().join(" ");
            let room = NOTE.saturating_sub(text.len());
            text.extend(flat.chars().filter(|c| !c.is_control()).take(room));
        }
        _ => {}
    }
    Typed::Open
}

enum Typed {
    Open,
    Done,
    Dropped,
}

fn say(app: &mut App, id: String, mut text: String, key: Key) -> Option<Act> {
    match typed(&mut text, &key) {
        Typed::Open => app.dialog = Dialog::Say { id, text },
        Typed::Dropped => app.say(Tone::Normal, "no note was sent"),
        Typed::Done if text.trim().is_empty() => app.say(Tone::Normal, "no note was sent"),
        Typed::Done => {
            let text = text.trim().to_owned();
            app.say(Tone::Normal, "sending the note …");
            return Some(Act::Send {
                id,
                command: Command::Say { text },
            });
        }
    }
    None
}

fn filter(app: &mut App, key: Key) -> Option<Act> {
    match typed(&mut app.filter, &key) {
        Typed::Open => app.dialog = Dialog::Filter,
        Typed::Done => {}
        Typed::Dropped => app.filter.clear(),
    }
    app.arrange();
    None
}

fn plain(app: &mut App, key: Key, places: &Places) -> Option<Act> {
    match key {
        Key::Char('q') => return Some(Act::Quit),
        Key::Char('?') => app.dialog = Dialog::Help,
        Key::Char('/') => app.dialog = Dialog::Filter,
        Key::Char('a') => {
            app.show = match app.show {
                Show::All => Show::Open,
                Show::Open => Show::All,
            };
            app.arrange();
        }
        Key::Esc => app.focus = Focus::List,
        Key::Left | Key::Char('h') => app.focus = Focus::List,
        Key::Right | Key::Char('l') => app.focus = Focus::Pane,
        Key::Enter => enter(app),
        Key::Tab => turn(app, 1),
        Key::BackTab => turn(app, app.tabs().len() - 1),
        Key::Char(digit @ '1'..='6') => {
            let wanted = app.tabs().get(digit as usize - '1' as usize);
            if let Some((tab, _)) = wanted {
                go(app, *tab);
            }
        }
        Key::Char('e') => {
            app.source = match app.source {
                Source::Stdout => Source::Stderr,
                Source::Stderr => Source::Stdout,
            };
            app.place = LogPlace::Follow;
            app.tab = Tab::Output;
        }
        Key::Char('[') => beside(app, Way::Back, 1),
        Key::Char(']') => beside(app, Way::On, 1),
        Key::Up | Key::Char('k') => moved(app, Way::Back, 1),
        Key::Down | Key::Char('j') => moved(app, Way::On, 1),
        Key::PageUp => moved(app, Way::Back, app.page.max(1)),
        Key::PageDown | Key::Char(' ') => moved(app, Way::On, app.page.max(1)),
        Key::Home | Key::Char('g') => jump(app, 0),
        Key::Char('m') => jump(app, 500),
        Key::End | Key::Char('G') => jump(app, 1000),
        Key::Char('p' | 'c' | 's' | 'r' | 'o' | 'd') => return act(app, &key),
        Key::Mouse(what, column, row) => mouse(app, what, (column, row), places),
        _ => {}
    }
    None
}

/// Keys that do something to the loop.
fn act(app: &mut App, key: &Key) -> Option<Act> {
    let Some(brief) = app.brief() else {
        app.say(Tone::Warn, "no loop is selected");
        return None;
    };
    let (id, name) = (brief.id.clone(), brief.name.clone());
    let over = matches!(status(brief), Some(Status::Ended { .. }));
    let held = app
        .view()
        .is_some_and(|view| view.state.requests.pause != Pause::No);
    let (speaker, iteration) = app.speaker().unwrap_or((id.clone(), None));
    match key {
        Key::Char('o') => return Some(Act::Page(Paged::Log(speaker, iteration))),
        Key::Char('d') => return Some(Act::Page(Paged::Diff(speaker, iteration))),
        _ if over => {
            app.say(Tone::Warn, format!("{name} is over"));
            return None;
        }
        Key::Char('c') => app.dialog = Dialog::Cancel { id, name },
        Key::Char('s') => {
            let text = String::new();
            app.dialog = Dialog::Say { id, text };
        }
        Key::Char('p') => {
            let (command, doing) = match held {
                true => (Command::Unpause, "continuing"),
                false => (Command::Pause, "pausing"),
            };
            app.say(Tone::Normal, format!("{doing}: {name} …"));
            return Some(Act::Send { id, command });
        }
        Key::Char('r') => {
            let command = Command::RetryNow;
            app.say(Tone::Normal, format!("trying again: {name} …"));
            return Some(Act::Send { id, command });
        }
        _ => {}
    }
    None
}

fn enter(app: &mut App) {
    if app.focus == Focus::Pane && app.tab == Tab::History {
        app.row = app.selected_row();
        // The newest one goes on being the newest.
        if app.row.map(|row| row + 1) == Some(app.total_rows()) {
            app.row = None;
        }
        go(app, Tab::Output);
    }
    app.focus = Focus::Pane;
}

fn go(app: &mut App, tab: Tab) {
    if app.tab != tab {
        app.tab = tab;
        app.scroll = 0;
        app.place = LogPlace::Follow;
    }
}

fn turn(app: &mut App, by: usize) {
    let tabs = app.tabs();
    let now = tabs.iter().position(|(tab, _)| *tab == app.tab);
    go(app, tabs[(now.unwrap_or(0) + by) % tabs.len()].0);
    app.focus = Focus::Pane;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Back,
    On,
}

impl Way {
    fn from(self, place: usize, by: usize) -> usize {
        match self {
            Self::Back => place.saturating_sub(by),
            Self::On => place.saturating_add(by),
        }
    }
}

/// To another iteration, or another column of the graph.
fn beside(app: &mut App, way: Way, by: usize) {
    if app.tab == Tab::Tasks {
        app.column = way.from(app.column, by);
        return;
    }
    select(app, way, by);
    app.scroll = 0;
    app.place = LogPlace::Follow;
}

fn select(app: &mut App, way: Way, by: usize) {
    let Some(now) = app.selected_row() else {
        return;
    };
    let next = way.from(usize::try_from(now).unwrap_or(usize::MAX), by) as u64;
    // At the end, whatever comes next is looked at.
    app.row = Some(next).filter(|next| *next + 1 < app.total_rows());
}

fn moved(app: &mut App, way: Way, by: usize) {
    match (app.focus, app.tab) {
        (Focus::List, _) => {
            let now = app.place_in_list().unwrap_or(0);
            let last = app.entries.len().saturating_sub(1);
            let next = app.entries.get(way.from(now, by).min(last));
            let id = next.map(|entry| entry.brief.id.clone());
            app.choose(id);
        }
        (Focus::Pane, Tab::History | Tab::Plots) => select(app, way, by),
        (Focus::Pane, Tab::Output) => scroll_log(app, way, by),
        (Focus::Pane, _) => {
            // From where the screen stands, however far beyond it an earlier key went.
            let now = app.scroll.min(app.last_scroll);
            app.scroll = way.from(now, by).min(app.last_scroll);
        }
    }
}

/// Moves the first line on the screen. At the end, the end is followed.
fn scroll_log(app: &mut App, way: Way, by: usize) {
    let page = app.page;
    let (lines, top) = app.log_lines();
    let at_end = app
        .log()
        .is_some_and(|log| log.window.end >= log.window.size);
    let now = top.unwrap_or_else(|| lines.len().saturating_sub(page));
    if top.is_none() && way == Way::On {
        return;
    }
    let mut next = way.from(now, by);
    // Lines that were said at once share a place: the next place is one further on.
    let offset = |index: usize| lines.get(index).map(|line| line.offset);
    while way == Way::On && offset(next).is_some() && offset(next) == offset(now) {
        next += 1;
    }
    let place = match offset(next) {
        Some(_) if way == Way::On && at_end && next + page >= lines.len() => LogPlace::Follow,
        Some(offset) => LogPlace::At(offset),
        None if at_end => LogPlace::Follow,
        None => LogPlace::At(app.log().map_or(0, |log| log.window.end)),
    };
    app.place = place;
}

/// To a place in thousandths.
fn jump(app: &mut App, share: u16) {
    match (app.focus, app.tab) {
        (Focus::List, _) => {
            let last = app.entries.len().saturating_sub(1);
            let entry = app.entries.get(last * usize::from(share) / 1000);
            let id = entry.map(|entry| entry.brief.id.clone());
            app.choose(id);
        }
        (Focus::Pane, Tab::History | Tab::Plots) => {
            let last = app.total_rows().saturating_sub(1);
            let row = last * u64::from(share) / 1000;
            app.row = Some(row).filter(|row| *row < last);
        }
        (Focus::Pane, Tab::Output) => {
            app.place = match share {
                0 => LogPlace::At(0),
                1000 => LogPlace::Follow,
                share => LogPlace::Share(share),
            };
        }
        (Focus::Pane, _) => {
            app.scroll = match share {
                1000 => END,
                share => app.last_scroll * usize::from(share) / 1000,
            };
        }
    }
}

fn mouse(app: &mut App, what: Mouse, (column, row): (u16, u16), places: &Places) {
    let on_list = column < places.list;
    match what {
        Mouse::WheelUp | Mouse::WheelDown => {
            let way = match what {
                Mouse::WheelUp => Way::Back,
                _ => Way::On,
            };
            let (under, by) = match on_list {
                true => (Focus::List, 1),
                false => (Focus::Pane, WHEEL),
            };
            let focus = std::mem::replace(&mut app.focus, under);
            moved(app, way, by);
            app.focus = focus;
        }
        Mouse::Press if on_list => {
            app.focus = Focus::List;
            let line = row.checked_sub(places.first.0).map(usize::from);
            let entry = line.and_then(|line| app.entries.get(places.first.1 + line));
            if let Some(id) = entry.map(|entry| entry.brief.id.clone()) {
                app.choose(Some(id));
            }
        }
        Mouse::Press => {
            app.focus = Focus::Pane;
            let hit = |(_, from, to): &&(Tab, u16, u16)| (*from..*to).contains(&column);
            if row == places.tabs.0 {
                if let Some((tab, _, _)) = places.tabs.1.iter().find(hit) {
                    go(app, *tab);
                }
            } else if let Some((first, place)) = places.rows
                && row >= first
            {
                let wanted = place + u64::from(row - first);
                let total = app.total_rows();
                if wanted < total {
                    app.row = Some(wanted).filter(|wanted| *wanted + 1 < total);
                }
            }
        }
    }
}
