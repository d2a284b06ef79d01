//! What happens on the page of a loop.

use descartes_kernel::control::{Command, Grace};
use descartes_views::view::{Life, Status};

use crate::message::{Button, Effect, Followed, LogRequest, Message};
use crate::model::KnownLoop;
use crate::model::log::Follow;
use crate::model::table::CHUNK;
use crate::model::{Area, Chosen, Dialog, Model, Notice, Page, Tab};
use crate::view::{history, output};

/// Takes what happened.
pub fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    let Some(chosen) = &mut model.chosen else {
        return Vec::new();
    };
    match message {
        Message::Followed(id, news) if id == chosen.id => return followed(chosen, news),
        Message::History(id, from, read) if id == chosen.id => match read {
            Ok(part) => {
                chosen.table.trouble = None;
                chosen.table.take(from, part.rows);
            }
            Err(trouble) => {
                chosen.table.take(from, Vec::new());
                chosen.table.trouble = Some(trouble);
            }
        },
        Message::Log(request, read) if request.id == chosen.id => {
            return read_log(chosen.log.take(&request, read));
        }
        Message::Tab(tab) => chosen.tab = tab,
        Message::Row(iteration) => {
            chosen.table.chosen = Some(iteration);
            let total = chosen.total();
            chosen.table.show(iteration, total);
            let mut effects = rows(chosen);
            let read = chosen.log.open(Some(iteration), chosen.log.source);
            effects.push(Effect::ReadLog(read));
            return effects;
        }
        Message::Newest => return newest(chosen),
        Message::Stream(source) => {
            let read = chosen.log.open(chosen.log.iteration, source);
            return read_log(Some(read));
        }
        Message::Note(text) => chosen.note = text,
        Message::Sized(Area::History, size) => {
            chosen.table.list.fits = size.height / history::ROW;
            return rows(chosen);
        }
        Message::Sized(Area::Log, size) => {
            chosen.log.fits = size.height / output::LINE;
            if chosen.log.follow == Follow::Tail {
                chosen.log.by(i64::MAX / 2);
            }
        }
        Message::Sized(Area::Pictures, size) => chosen.width = size.width,
        Message::Wheel(Area::History, lines) => {
            let total = chosen.total();
            chosen.table.list.by(lines, total);
            return rows(chosen);
        }
        Message::Drag(Area::History, part) => {
            let total = chosen.total();
            chosen.table.list.to_part(part, total);
            return rows(chosen);
        }
        Message::Wheel(Area::Log, lines) => {
            return read_log(chosen.log.by(lines.round() as i64));
        }
        Message::Drag(Area::Log, part) => {
            return read_log(chosen.log.seek_part(part));
        }
        _ => {}
    }
    Vec::new()
}

/// Shows the newest output again, and stays with it.
pub fn newest(chosen: &mut Chosen) -> Vec<Effect> {
    chosen.table.chosen = None;
    read_log(Some(chosen.log.open(None, chosen.log.source)))
}

fn read_log(request: Option<LogRequest>) -> Vec<Effect> {
    request.into_iter().map(Effect::ReadLog).collect()
}

/// Asks for rows that are to be seen and are not there.
fn rows(chosen: &mut Chosen) -> Vec<Effect> {
    let Some(stands) = &chosen.stands else {
        return Vec::new();
    };
    if stands.state.tasks.is_some() {
        return Vec::new();
    }
    let total = stands.state.runs;
    let finished = total - u64::from(stands.state.run().is_some()).min(total);
    let wanted = chosen.table.missing(total, finished);
    let read = |from| Effect::ReadHistory {
        id: chosen.id.clone(),
        from,
        count: CHUNK,
    };
    wanted.into_iter().map(read).collect()
}

fn followed(chosen: &mut Chosen, news: Followed) -> Vec<Effect> {
    match news {
        Followed::Trouble(trouble) => {
            chosen.trouble = Some(trouble);
            Vec::new()
        }
        Followed::Output(_) => read_log(chosen.log.grown()),
        Followed::KnownLoop(stands) => stood(chosen, *stands),
    }
}

fn stood(chosen: &mut Chosen, stands: KnownLoop) -> Vec<Effect> {
    let first = chosen.stands.is_none();
    let runs_before = chosen.stands.as_ref().map_or(0, |old| old.state.runs);
    let total_before = chosen.total();
    chosen.trouble = None;
    if first && stands.state.tasks.is_some() && chosen.tab == Tab::Overview {
        chosen.tab = Tab::Waves;
    }
    if stands.state.tasks.is_none() {
        chosen.table.put(stands.story.rows().iter());
        if chosen.tab == Tab::Waves {
            chosen.tab = Tab::Overview;
        }
    }
    let new_run = stands.state.runs > runs_before;
    chosen.stands = Some(stands);
    // A person who looks at older rows keeps them where they are when a new one comes.
    let grown = chosen.total() - total_before.min(chosen.total());
    if !first && chosen.table.list.top > 0.0 {
        let total = chosen.total();
        chosen.table.list.by(grown as f32, total);
    }
    let mut effects = rows(chosen);
    if first || new_run {
        effects.extend(read_log(chosen.log.grown()));
    }
    effects
}

/// A button of the page.
pub fn press(model: &mut Model, button: Button) -> Vec<Effect> {
    let Some(chosen) = model.chosen.as_mut().filter(|_| model.page == Page::Loop) else {
        return Vec::new();
    };
    match button {
        Button::Pause if can_pause(chosen) => send(chosen, "Pausing …", Command::Pause),
        Button::Unpause if chosen.is_paused() => send(chosen, "Unpausing …", Command::Unpause),
        Button::Cancel if can_cancel(chosen) => {
            model.dialog = Some(Dialog::Cancel);
            // The button that ends nothing comes first.
            vec![Effect::FocusNext]
        }
        Button::ReallyCancel if model.dialog == Some(Dialog::Cancel) => {
            model.dialog = None;
            let grace = Grace::Ask;
            send(chosen, "Cancelling …", Command::Cancel { grace })
        }
        Button::Resume => resume(chosen),
        Button::RetryNow if is_waiting(chosen) => send(chosen, "Retrying …", Command::RetryNow),
        Button::Say => {
            let text = chosen.note.trim().to_owned();
            if text.is_empty() {
                return vec![Effect::Focus("note")];
            }
            send(chosen, "Sending …", Command::Say { text })
        }
        Button::ViewLogs => {
            chosen.tab = Tab::Output;
            Vec::new()
        }
        Button::OpenFolder => vec![Effect::OpenFolder(chosen.id.clone())],
        _ => Vec::new(),
    }
}

/// Takes a loop up again in the background, as a person would in a terminal.
fn resume(chosen: &mut Chosen) -> Vec<Effect> {
    let (Some(flags), Some(stands)) = (chosen.resume_flags(), &chosen.stands) else {
        return Vec::new();
    };
    if chosen.sending.is_some() {
        return Vec::new();
    }
    let words = ["loop", "resume", &chosen.id, "--detach", "--json"];
    let words = words.into_iter().chain(flags.split_whitespace());
    let folder = stands.state.config.working_directory.clone();
    let effect = Effect::Resume {
        id: chosen.id.clone(),
        words: words.map(str::to_owned).collect(),
        folder: folder.unwrap_or_default(),
    };
    chosen.sending = Some("Resuming …");
    vec![effect]
}

fn send(chosen: &mut Chosen, doing: &'static str, command: Command) -> Vec<Effect> {
    if chosen.sending.is_some() {
        return Vec::new();
    }
    chosen.sending = Some(doing);
    let id = chosen.id.clone();
    vec![Effect::Send { id, command }]
}

/// What became of a command.
pub fn sent(model: &mut Model, id: &str, answer: Result<String, String>) -> Vec<Effect> {
    let chosen = model.chosen.as_mut().filter(|chosen| chosen.id == id);
    if let Some(chosen) = chosen
        && chosen.sending.take() == Some("Sending …")
        && answer.is_ok()
    {
        chosen.note.clear();
    }
    let here = model.chosen.as_ref().is_some_and(|chosen| chosen.id == id);
    let brief = model.fleet.iter().find(|brief| brief.id == id);
    let name = brief.map_or(id, |brief| &*brief.name);
    let named = |text: String| match here {
        true => text,
        // Another loop is looked at by now.
        false => format!("{name}: {text}"),
    };
    let notice = match answer {
        Ok(done) => Notice::Done(named(done)),
        Err(error) => Notice::Error(named(error)),
    };
    model.tell(notice, here.then(|| id.to_owned()));
    Vec::new()
}

/// Whether it can be held.
pub fn can_pause(chosen: &Chosen) -> bool {
    let alive = chosen
        .stands
        .as_ref()
        .is_some_and(|stands| stands.life == Life::Alive);
    alive && !chosen.is_over() && !chosen.is_paused()
}

/// Whether it can be ended.
pub fn can_cancel(chosen: &Chosen) -> bool {
    chosen.stands.is_some() && !chosen.is_over()
}

/// Whether it waits.
pub fn is_waiting(chosen: &Chosen) -> bool {
    let status = chosen.head().map(|head| head.status);
    matches!(status, Some(Status::Waiting { .. }))
}
