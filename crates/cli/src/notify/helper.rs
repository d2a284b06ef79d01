//! The process that tells: every hook at once, each with tries of its own.

use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use descartes_store::safe_open::{self, Options};
use jiff::Timestamp;
use serde_json::Value;

use super::hook::Hook;
use super::{NoticeOrder, desktop};

/// Before the second try and before the third, which is the last.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Reads an order from standard input and carries it out.
pub fn run() -> i32 {
    let mut text = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut text);
    let order = read
        .ok()
        .and_then(|_| serde_json::from_slice::<NoticeOrder>(&text).ok());
    let Some(order) = order else {
        return 1;
    };
    thread::scope(|scope| {
        for hook in &order.hooks {
            let tried = thread::Builder::new().spawn_scoped(scope, || try_hook(hook, &order));
            if tried.is_err() {
                // No thread can be had: one after the other, then.
                try_hook(hook, &order);
            }
        }
        if order.desktop
            && let Err(why) = desktop::show(&order.notice)
        {
            note(&order.log, &format!("the desktop: {why}"));
        }
    });
    0
}

fn try_hook(hook: &str, order: &NoticeOrder) {
    let body = format!("{}\n", order.notice);
    let timeout = Duration::from_millis(order.timeout_ms);
    let tell = || Hook::of(hook).tell(&body, &variables(&order.notice), &order.dir, timeout);
    let mut pauses = PAUSES.iter();
    let mut tries = 1;
    while let Err(why) = tell() {
        let Some(pause) = pauses.next() else {
            note(&order.log, &format!("{hook}: {why} (tried {tries} times)"));
            return;
        };
        thread::sleep(*pause);
        tries += 1;
    }
}

/// The event for commands that would rather not read JSON. None of these names marks a process
/// as part of a loop.
fn variables(notice: &Value) -> Vec<(&'static str, String)> {
    let text = |key: &str| match &notice[key] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    vec![
        ("DESCARTES_EVENT", text("event")),
        ("DESCARTES_EVENT_LOOP", text("loop_id")),
        ("DESCARTES_EVENT_NAME", text("name")),
        ("DESCARTES_EVENT_MESSAGE", text("message")),
        ("DESCARTES_EVENT_EXIT_CODE", text("exit_code")),
        ("DESCARTES_EVENT_DIR", text("working_dir")),
        ("DESCARTES_EVENT_JSON", notice.to_string()),
    ]
}

/// Writes down what could not be told.
fn note(log: &Path, words: &str) {
    let file = safe_open::open(Options::new().append().create(), log);
    if let Ok(mut file) = file {
        // In one piece: several of these may write at once, and somebody may be reading.
        let words = descartes_text::display::one_line(words);
        let line = format!("{} {words}\n", Timestamp::now());
        drop(file.write_all(line.as_bytes()));
    }
}
