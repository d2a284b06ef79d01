//! The folders of agents: the one that runs has its own, nobody has another's.

use std::path::{Path, PathBuf};

use descartes_agents::agent::SandboxNeeds;

use super::rules::{Access, Priority, RuleReason};
use super::{Make, Planning, RunPurpose};
use crate::sandbox::places::home_path;

/// What an agent needs, as paths of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentPlaces {
    /// The profile's name.
    pub name: String,
    /// Folders of its own.
    pub write: Vec<PathBuf>,
    /// What is read-only in them.
    pub lock: Vec<(PathBuf, EntryKind)>,
    /// Files that have to be there, and their text.
    pub seed: Vec<(PathBuf, String)>,
    /// Hosts of its provider.
    pub hosts: Vec<String>,
}

/// What is made where something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Folder,
    File,
}

impl AgentPlaces {
    /// The places of an agent, for this home directory and environment.
    pub fn of(
        name: &str,
        needs: &SandboxNeeds,
        home: Option<&Path>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let moved = needs.dir_env.as_deref().and_then(variable);
        let moved = moved.filter(|dir| dir.starts_with('/')).map(PathBuf::from);
        let first = needs.write.first();
        let base = moved.or_else(|| home_path(first?, home));
        let rest = needs.write.iter().skip(1);
        let rest = rest.filter_map(|place| home_path(place, home));
        let lock = needs.lock.iter().filter_map(|entry| {
            let kind = match entry.ends_with('/') {
                true => EntryKind::Folder,
                false => EntryKind::File,
            };
            let path = match entry.starts_with("~/") {
                true => home_path(entry, home)?,
                false => base.as_ref()?.join(entry.trim_end_matches('/')),
            };
            Some((path, kind))
        });
        let seed = needs.seed.iter();
        let seed = seed.filter_map(|(path, text)| Some((home_path(path, home)?, text.clone())));
        Self {
            name: name.to_owned(),
            lock: lock.collect(),
            seed: seed.collect(),
            hosts: hosts_of(needs, variable),
            write: base.iter().cloned().chain(rest).collect(),
        }
    }
}

/// Hosts of the provider: those of the profile, and those that the environment names instead.
pub fn hosts_of(needs: &SandboxNeeds, variable: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let named = needs.host_env.iter().filter_map(|name| variable(name));
    let named = named.filter_map(|address| host_of(&address));
    needs.hosts.iter().cloned().chain(named).collect()
}

/// Hosts of providers that the text of a settings file names: `base_url = "https://…"`, `"baseURL": "https://…"`.
pub fn named_hosts(text: &str) -> Vec<String> {
    let address = |rest: &str| {
        let rest = rest.trim_start_matches([' ', '=', ':', '"', '\'']);
        let end = rest.find(|c: char| c.is_whitespace() || "\"',".contains(c));
        host_of(&rest[..end.unwrap_or(rest.len())])
    };
    let marks = ["base_url", "baseURL", "baseUrl"];
    let found = marks.iter().flat_map(|mark| text.split(mark).skip(1));
    found.filter_map(address).collect()
}

/// Host and, where it is not the usual one, port of an address.
fn host_of(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.rsplit('@').next().filter(|host| !host.is_empty())?;
    let plain = scheme.eq_ignore_ascii_case("http") && !host.contains(':');
    Some(match plain {
        true => format!("{host}:80"),
        false => host.to_owned(),
    })
}

impl Planning<'_> {
    pub(super) fn agents(&mut self, purpose: RunPurpose) {
        let facts = self.facts;
        for other in &facts.other_agents {
            self.hide_agent(other);
        }
        match (&facts.agent, purpose) {
            (Some(agent), RunPurpose::Agent) => self.own_agent(agent),
            (Some(agent), RunPurpose::Gate) => self.hide_agent(agent),
            (None, _) => {}
        }
    }

    fn hide_agent(&mut self, agent: &AgentPlaces) {
        // Settings of its own elsewhere may hold keys, too.
        let locked = agent.lock.iter().map(|(place, _)| place);
        let below = |place: &&PathBuf| agent.write.iter().any(|own| place.starts_with(own));
        for place in agent
            .write
            .iter()
            .chain(locked.filter(|place| !below(place)))
        {
            let why = RuleReason::login_of(&agent.name);
            self.set_if_there(place, Access::Hidden, why, Priority::Secret);
        }
    }

    fn own_agent(&mut self, agent: &AgentPlaces) {
        for place in &agent.write {
            let found = self.look_or_make(Make::Folder(place.clone()));
            let why = RuleReason::login_of(&agent.name);
            self.set(&found, Access::Writable, why, Priority::Writable);
        }
        for (place, kind) in &agent.lock {
            let below = |folder: &PathBuf| place.starts_with(folder);
            let make = match kind {
                EntryKind::Folder => Make::Folder(place.clone()),
                EntryKind::File => Make::File(place.clone(), empty_text(place).to_owned()),
            };
            let found = match agent.write.iter().any(below) {
                true => Some(self.look_or_make(make)),
                // Elsewhere it matters only where something makes it writable.
                false => self.look(place),
            };
            if let Some(found) = found {
                let why = "settings that start programs in your next session";
                self.set(&found, Access::ReadOnly, why, Priority::Lock);
            }
        }
        for (file, text) in &agent.seed {
            self.look_or_make(Make::File(file.clone(), text.clone()));
        }
    }
}

/// What a settings file holds that says nothing.
fn empty_text(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => "{}\n",
        _ => "",
    }
}
