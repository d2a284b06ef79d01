//! Telling people who look elsewhere: commands and webhooks of `on_event`, the desktop. All of it is
//! done by a process of its own, which outlives the loop if need be; the loop pays for starting
//! it, and for nothing else.

mod desktop;
mod helper;
mod hook;
mod http;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use descartes_core::host::{Host, command_files};
use descartes_kernel::event::Record;
use descartes_kernel::notice::Notice;
use descartes_store::config::{HookTarget, NotifyWay, Settings};
use descartes_store::debug_log::variant;
use serde::{Deserialize, Serialize};
use tracing::{debug, warn};

pub use helper::run as helper;
use hook::Hook;
use http::Address;

use crate::env::Environment;
use crate::session::program::this_program;
use crate::view::live::Bell;

/// The hidden verb of the process that tells.
pub const VERB: &str = "__notify";
/// Where it writes down what could not be told, in the loop's folder.
const LOG: &str = "notify.log";

/// What is to be told to whom: a plain value for another process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct NoticeOrder {
    /// The event, as hooks get it.
    notice: serde_json::Value,
    /// Commands and addresses.
    hooks: Vec<String>,
    /// Whether the desktop is told.
    desktop: bool,
    /// How long one try may take.
    timeout_ms: u64,
    /// Where commands run.
    #[serde(with = "descartes_text::path_text::one")]
    dir: PathBuf,
    /// What could not be told.
    #[serde(with = "descartes_text::path_text::one")]
    log: PathBuf,
}

/// Whom to tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    hooks: Vec<String>,
    desktop: bool,
    timeout: Duration,
    /// Whether a terminal rings.
    pub bell: Bell,
}

impl Listeners {
    /// As the settings say.
    pub fn of(settings: &Settings, environment: &Environment) -> Self {
        let wants = |way| {
            settings
                .notify
                .value
                .iter()
                .flatten()
                .any(|one| *one == way)
        };
        let hooks = settings.on_event.get().unwrap_or_default();
        let timeout = settings.on_event_timeout.get();
        Self {
            hooks: hooks.into_iter().map(|HookTarget(hook)| hook).collect(),
            desktop: wants(NotifyWay::Desktop) && desktop::is_there(environment),
            timeout: timeout.map_or(Duration::from_secs(10), |limit| limit.0),
            bell: match wants(NotifyWay::Bell) {
                true => Bell::Rings,
                false => Bell::Silent,
            },
        }
    }

    /// What will not work, to be said when the loop begins.
    pub fn troubles(&self) -> Vec<String> {
        let problem = |hook: &String| match Hook::of(hook) {
            Hook::Webhook(url) => Address::of(url).err(),
            Hook::Command(_) => None,
        };
        let hooks = self.hooks.iter();
        let bad = hooks.filter_map(|hook| problem(hook).map(|why| (hook, why)));
        bad.map(|(hook, why)| format!("on_event: {hook} will not be notified: {why}"))
            .collect()
    }

    /// Hears of everything that a loop does, and tells what is worth it.
    pub fn attach(&self, host: &mut Host) {
        if self.hooks.is_empty() && !self.desktop {
            return;
        }
        let (to, about) = (self.clone(), About::of(host));
        let files = HookFiles::of(&self.hooks, &about.dir);
        host.listen(Box::new(move |record| {
            if let Some(notice) = Notice::of(record) {
                let rights = match files.are_as_they_were() {
                    true => Rights::OfPerson,
                    false => Rights::OfLoop,
                };
                tell(&to, &about, &notice, record, rights);
            }
            true
        }));
    }
}

/// Whether hooks may steer the loop that they tell of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    /// They are what a person trusted.
    OfPerson,
    /// A script that one of them runs has changed since the loop began: as little as an agent.
    OfLoop,
}

/// The scripts that hooks run, as they were when the loop began.
struct HookFiles {
    hooks: Vec<String>,
    dir: PathBuf,
    before: std::collections::BTreeMap<String, String>,
}

impl HookFiles {
    fn of(hooks: &[String], dir: &Path) -> Self {
        let commands = hooks.iter();
        let commands = commands.filter(|hook| matches!(Hook::of(hook), Hook::Command(_)));
        let hooks: Vec<String> = commands.cloned().collect();
        Self {
            before: scripts(&hooks, dir),
            hooks,
            dir: dir.to_owned(),
        }
    }

    fn are_as_they_were(&self) -> bool {
        scripts(&self.hooks, &self.dir) == self.before
    }
}

/// Fingerprints of the files that hooks name, save those that they write.
fn scripts(hooks: &[String], dir: &Path) -> std::collections::BTreeMap<String, String> {
    let is_written = |name: &str| {
        let mut places = hooks
            .iter()
            .flat_map(|hook| hook.match_indices(name).map(move |(at, _)| &hook[..at]));
        places.any(|before| {
            before
                .trim_end_matches([' ', '"', '\'', '/', '.'])
                .ends_with('>')
        })
    };
    let mut files = command_files(hooks, dir);
    files.retain(|name, _| !is_written(name));
    files
}

/// What is told of the loop with every notice.
struct About {
    loop_id: String,
    name: String,
    dir: PathBuf,
    state_file: PathBuf,
    log: PathBuf,
}

impl About {
    fn of(host: &Host) -> Self {
        let state = host.state();
        let dir = state.config.working_directory.clone().unwrap_or_default();
        Self {
            loop_id: host.loop_id().to_owned(),
            name: host.name().to_owned(),
            dir,
            state_file: host.state_file().to_owned(),
            log: host.dir().path().join(LOG),
        }
    }

    fn order(&self, to: &Listeners, notice: &Notice, record: &Record) -> NoticeOrder {
        let mut value = serde_json::to_value(notice).unwrap_or_default();
        shorten_all(&mut value);
        if let Some(map) = value.as_object_mut() {
            map.insert("loop_id".to_owned(), self.loop_id.clone().into());
            map.insert("name".to_owned(), self.name.clone().into());
            map.insert("seq".to_owned(), record.seq.into());
            let text = |path: &Path| path.display().to_string();
            map.insert("working_dir".to_owned(), text(&self.dir).into());
            map.insert("state_file".to_owned(), text(&self.state_file).into());
        }
        NoticeOrder {
            notice: value,
            hooks: to.hooks.clone(),
            desktop: to.desktop,
            timeout_ms: to.timeout.as_millis().try_into().unwrap_or(u64::MAX),
            dir: self.dir.clone(),
            log: self.log.clone(),
        }
    }
}

/// Every text in it, however deep.
fn shorten_all(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = short(text),
        Value::Array(list) => list.iter_mut().for_each(shorten_all),
        Value::Object(map) => map.values_mut().for_each(shorten_all),
        _ => {}
    }
}

/// The agent's words, without what looks like a secret, and not too many of them.
fn short(text: &str) -> String {
    const MOST: usize = 500;
    let flat = descartes_text::display::one_line(text);
    match flat.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &flat[..end]),
        None => flat,
    }
}

/// Starts the process that tells, and does not wait for it. What cannot be told must not
/// trouble the loop.
fn tell(to: &Listeners, about: &About, notice: &Notice, record: &Record, rights: Rights) {
    let Ok(order) = serde_json::to_vec(&about.order(to, notice, record)) else {
        return;
    };
    let mut helper = Command::new(this_program());
    if rights == Rights::OfLoop {
        // Whatever it starts is then known as something of the loop.
        helper.env(descartes_proc::MARK, &about.loop_id);
    }
    let child = helper
        .arg(VERB)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Out of reach of Ctrl-C, and in our session: it is no orphan of a guard's.
        .process_group(0)
        .spawn();
    if let Err(error) = &child {
        warn!(seq = record.seq, %error, "notification not sent");
    }
    if let Ok(mut child) = child {
        debug!(seq = record.seq, pid = child.id(), notice = %variant(notice), "notification");
        // What a person trusts as `on_event` may steer, although the host started it.
        let trusted = (rights == Rights::OfPerson).then(|| descartes_proc::trust_child(child.id()));
        // An order is smaller than a pipe: this never waits.
        if let Some(mut stdin) = child.stdin.take() {
            drop(stdin.write_all(&order));
        }
        // A loop that goes on buries it; one that ends leaves that to the system.
        drop(
            std::thread::Builder::new()
                .name("notified".to_owned())
                .spawn(move || {
                    drop(child.wait());
                    drop(trusted);
                }),
        );
    }
}
