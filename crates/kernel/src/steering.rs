//! Who may steer a loop: people, and what they started outside of it; never the agent, the gates
//! or the git hooks of a loop. Decided from the line of processes that a command comes from.

use serde::{Deserialize, Serialize};

/// What a process on that line is to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A guard: everything below it is an agent, a gate or a hook of a loop.
    Guard {
        /// The loop, where the guard says so.
        loop_id: Option<String>,
    },
    /// The process that decides, where it hosts loops itself.
    ThisHost,
    /// A process that this host started for a trusted `on_event` command.
    Notifier,
    /// Any other.
    Other,
}

/// One process on the line from a command up to the first process of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub pid: u32,
    /// When it started, in clock ticks since boot: tells it from a later one of that number.
    pub start_time: u64,
    /// What it is to us.
    pub role: Role,
    /// The loop whose mark its environment carries.
    pub mark: Option<String>,
}

/// The line, nearest first, or why it cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lineage {
    /// Every process on it.
    Traced(Vec<Link>),
    /// The process is gone, or one on its line could not be read.
    Lost(String),
}

/// The innermost tree of a loop that a process is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enclosure {
    /// The loop, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_id: Option<String>,
    /// Its guard: number and start time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<(u32, u64)>,
}

/// Where a process stands to the loops of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In none of their trees.
    Outside,
    /// In the tree of a loop: its agent, a gate, a hook, or something that they started.
    Within(Enclosure),
    /// It cannot be told.
    Unknown(String),
}

/// Whether the loop that is to be steered has a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// It runs; where its own host was started, if that was within a loop.
    Running(Option<&'a Enclosure>),
    /// It does not run; where it was first started, if that was within a loop.
    Stopped(Option<&'a Enclosure>),
}

/// Why somebody may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAllowed {
    pub message: String,
    /// What to do instead.
    pub hint: String,
}

impl Lineage {
    /// Where the process at its beginning stands.
    pub fn standing(&self) -> Standing {
        let links = match self {
            Self::Traced(links) => links,
            Self::Lost(why) => return Standing::Unknown(why.clone()),
        };
        let mut mark = None;
        for (at, link) in links.iter().enumerate() {
            mark = mark.or_else(|| link.mark.clone());
            let below = at.checked_sub(1).and_then(|below| links.get(below));
            match &link.role {
                Role::Guard { loop_id } => {
                    return Standing::Within(Enclosure {
                        loop_id: loop_id.clone().or(mark),
                        guard: Some((link.pid, link.start_time)),
                    });
                }
                // What the host started itself and is no notifier: git and its hooks, or an orphan of
                // a guard that was killed. The host's own program may speak for itself.
                Role::ThisHost if below.is_some_and(|below| below.role != Role::Notifier) => {
                    return Standing::Within(Enclosure {
                        loop_id: mark,
                        guard: None,
                    });
                }
                Role::ThisHost | Role::Notifier | Role::Other => {}
            }
        }
        match mark {
            Some(loop_id) => Standing::Within(Enclosure {
                loop_id: Some(loop_id),
                guard: None,
            }),
            None => Standing::Outside,
        }
    }
}

/// Who is at the other end of a connection of the network, as far as this machine can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkPeer {
    /// Another machine, or another user of this one.
    Elsewhere,
    /// A process of this machine that has let go of its end: nobody can be asked any more.
    Gone,
    /// The processes that hold it.
    Held(Vec<Lineage>),
    /// Nobody who can be looked into holds it; these cannot be looked into.
    Hidden(Vec<Lineage>),
}

impl NetworkPeer {
    /// Where it stands: within a loop, as soon as one process that holds it, or may hold it, does.
    pub fn standing(&self) -> Standing {
        let unknown = |why: &str| Standing::Unknown(why.to_owned());
        let lines = match self {
            Self::Elsewhere => return Standing::Outside,
            Self::Gone => return unknown("its process has not waited for the answer"),
            Self::Hidden(lines) if lines.is_empty() => {
                return unknown("no process can be seen that holds the connection");
            }
            Self::Held(lines) | Self::Hidden(lines) => lines,
        };
        let mut worst = Standing::Outside;
        for line in lines {
            match (line.standing(), self) {
                (within @ Standing::Within(_), _) => return within,
                (lost @ Standing::Unknown(_), Self::Held(_)) => worst = lost,
                _ => {}
            }
        }
        worst
    }
}

impl Standing {
    /// The tree that the process is in, if it is in one.
    pub fn enclosure(&self) -> Option<&Enclosure> {
        match self {
            Self::Within(enclosure) => Some(enclosure),
            Self::Outside | Self::Unknown(_) => None,
        }
    }

    /// Whether the process may change this loop.
    pub fn may_steer(&self, target: Target<'_>) -> Result<(), NotAllowed> {
        match self {
            Self::Outside => Ok(()),
            Self::Within(tree) if tree.started(target) => Ok(()),
            Self::Within(tree) => Err(NotAllowed {
                message: format!(
                    "refused: this command comes from inside {}; only a person may change a \
                     loop, its gates and its limits",
                    tree.describe()
                ),
                hint: "continue with your task and say in your output what you would change; a \
                    person has to type it in their own terminal"
                    .to_owned(),
            }),
            Self::Unknown(why) => Err(NotAllowed {
                message: format!("refused: cannot determine who sent this command: {why}"),
                hint: "type it in a terminal and wait for its answer".to_owned(),
            }),
        }
    }

    /// Whether the process may do what only a person decides (`what`: for example `descartes trust`).
    pub fn may_decide(&self, what: &str) -> Result<(), NotAllowed> {
        match self {
            Self::Outside => Ok(()),
            Self::Within(tree) => Err(NotAllowed {
                message: format!("refused: {what} from inside {}", tree.describe()),
                hint: "only a person may do this, in their own terminal".to_owned(),
            }),
            Self::Unknown(why) => Err(NotAllowed {
                message: format!("refused: {what}: cannot determine who is asking: {why}"),
                hint: "type it in a terminal".to_owned(),
            }),
        }
    }

    /// Whether the process may start a loop; `nested`: it said that it means a loop inside a loop.
    pub fn may_start(&self, nested: bool) -> Result<(), NotAllowed> {
        match self {
            Self::Within(tree) if !nested => Err(NotAllowed {
                message: format!(
                    "refused: this would start a loop inside {}",
                    tree.describe()
                ),
                hint: "to start a loop inside a loop on purpose, use --nested (or \
                     DESCARTES_NESTED=1) and a --state-file of its own; it ends with the \
                     iteration that started it"
                    .to_owned(),
            }),
            Self::Outside | Self::Within(_) | Self::Unknown(_) => Ok(()),
        }
    }
}

impl Enclosure {
    /// Whether the loop was started from this very tree.
    fn started(&self, target: Target<'_>) -> bool {
        match target {
            // Guards cannot be made up; the words of an environment can.
            Target::Running(Some(there)) if self.guard.is_some() || there.guard.is_some() => {
                self.guard == there.guard
            }
            // A later host of the same loop has another guard.
            Target::Running(Some(there)) | Target::Stopped(Some(there)) => {
                self.loop_id.is_some() && self.loop_id == there.loop_id
            }
            Target::Running(None) | Target::Stopped(None) => false,
        }
    }

    fn describe(&self) -> String {
        match &self.loop_id {
            Some(id) => format!("loop {id}"),
            None => "a loop".to_owned(),
        }
    }
}

/// Who sent a command, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    pub pid: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The program that started it, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The loop that it came from, where a loop steered one that it had started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
}

impl Sender {
    /// For a person: `descartes (pid 4711) from bash on pts/3, user ann`.
    pub fn describe(&self) -> String {
        let mut out = match self.program.is_empty() {
            true => format!("process {}", self.pid),
            false => format!("{} (pid {})", self.program, self.pid),
        };
        if let Some(by) = &self.started_by {
            out.push_str(&format!(" from {by}"));
        }
        match &self.terminal {
            Some(terminal) => out.push_str(&format!(" on {terminal}")),
            None => out.push_str(" without a terminal"),
        }
        if let Some(user) = &self.user {
            out.push_str(&format!(", user {user}"));
        }
        if let Some(within) = &self.within {
            out.push_str(&format!(", inside loop {within}"));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(pid: u32) -> Link {
        Link {
            pid,
            start_time: u64::from(pid) * 10,
            role: Role::Other,
            mark: None,
        }
    }

    fn guard(pid: u32, loop_id: &str) -> Link {
        let loop_id = Some(loop_id.to_owned());
        Link {
            role: Role::Guard { loop_id },
            ..other(pid)
        }
    }

    fn role(pid: u32, role: Role) -> Link {
        Link { role, ..other(pid) }
    }

    fn marked(pid: u32, loop_id: &str) -> Link {
        Link {
            mark: Some(loop_id.to_owned()),
            ..other(pid)
        }
    }

    fn of(loop_id: &str, guard: u32) -> Enclosure {
        Enclosure {
            loop_id: Some(loop_id.to_owned()),
            guard: (guard != 0).then(|| (guard, u64::from(guard) * 10)),
        }
    }

    #[test]
    fn where_a_command_comes_from() {
        let within = |loop_id: &str, guard: u32| Standing::Within(of(loop_id, guard));
        for (what, line, expected) in [
            (
                "a person's shell",
                vec![other(9), other(5), other(1)],
                Standing::Outside,
            ),
            (
                "the agent",
                vec![other(9), marked(8, "A"), guard(7, "A"), other(1)],
                within("A", 7),
            ),
            (
                "a daemon of the agent, environment emptied",
                vec![other(9), guard(7, "A"), role(6, Role::ThisHost), other(1)],
                within("A", 7),
            ),
            (
                "the agent, lying about its loop",
                vec![marked(9, "B"), guard(7, "A"), other(1)],
                within("A", 7),
            ),
            (
                "the mark alone, guard and host killed",
                vec![marked(9, "A"), other(1)],
                within("A", 0),
            ),
            (
                "an orphan of a guard that was killed",
                vec![marked(9, "A"), role(6, Role::ThisHost), other(1)],
                within("A", 0),
            ),
            (
                "a hook of a git that the host runs itself",
                vec![other(9), other(8), role(6, Role::ThisHost), other(1)],
                Standing::Within(Enclosure::default()),
            ),
            (
                "an on_event command",
                vec![
                    other(9),
                    role(8, Role::Notifier),
                    role(6, Role::ThisHost),
                    other(1),
                ],
                Standing::Outside,
            ),
            (
                "an on_event command of a loop within a loop",
                vec![
                    other(9),
                    role(8, Role::Notifier),
                    role(6, Role::ThisHost),
                    guard(4, "A"),
                ],
                within("A", 4),
            ),
            (
                "the program that hosts the loop",
                vec![role(6, Role::ThisHost), other(1)],
                Standing::Outside,
            ),
            (
                "the agent of a loop within a loop",
                vec![marked(9, "B"), guard(8, "B"), marked(7, "A"), guard(6, "A")],
                within("B", 8),
            ),
        ] {
            assert_eq!(Lineage::Traced(line).standing(), expected, "{what}");
        }
        let lost = Lineage::Lost("it is gone".to_owned()).standing();
        assert_eq!(lost, Standing::Unknown("it is gone".to_owned()));
    }

    #[test]
    fn a_connection_stands_where_the_worst_of_its_holders_does() {
        let person = || Lineage::Traced(vec![other(9), other(1)]);
        let agent = || Lineage::Traced(vec![other(8), guard(7, "A")]);
        let lost = || Lineage::Lost("it is gone".to_owned());
        let unknown = |why: &str| Standing::Unknown(why.to_owned());
        for (what, peer, expected) in [
            ("another machine", NetworkPeer::Elsewhere, Standing::Outside),
            (
                "a process that did not wait",
                NetworkPeer::Gone,
                unknown("its process has not waited for the answer"),
            ),
            (
                "a person's curl",
                NetworkPeer::Held(vec![person()]),
                Standing::Outside,
            ),
            (
                "an agent that shares its socket with others",
                NetworkPeer::Held(vec![person(), lost(), agent()]),
                Standing::Within(of("A", 7)),
            ),
            (
                "a process that ended while it was looked at",
                NetworkPeer::Held(vec![lost(), person()]),
                unknown("it is gone"),
            ),
            (
                "an SSH tunnel, which cannot be looked into",
                NetworkPeer::Hidden(vec![person(), lost()]),
                Standing::Outside,
            ),
            (
                "an agent's process that cannot be looked into",
                NetworkPeer::Hidden(vec![person(), agent()]),
                Standing::Within(of("A", 7)),
            ),
            (
                "a socket on its way between two processes",
                NetworkPeer::Hidden(Vec::new()),
                unknown("no process can be seen that holds the connection"),
            ),
        ] {
            assert_eq!(peer.standing(), expected, "{what}");
        }
    }

    #[test]
    fn who_may_steer_what() {
        let (a, b) = (of("A", 7), of("B", 8));
        let in_a = Standing::Within(a.clone());
        let by_mark = Standing::Within(of("A", 0));
        for (what, standing, target, allowed) in [
            (
                "a person, a running loop",
                Standing::Outside,
                Target::Running(None),
                true,
            ),
            (
                "a person, a loop within a loop",
                Standing::Outside,
                Target::Running(Some(&a)),
                true,
            ),
            (
                "a person, a stopped loop",
                Standing::Outside,
                Target::Stopped(None),
                true,
            ),
            (
                "an agent, its own loop or any of a person's",
                in_a.clone(),
                Target::Running(None),
                false,
            ),
            (
                "an agent, a stopped one",
                in_a.clone(),
                Target::Stopped(None),
                false,
            ),
            (
                "an agent, one that it started",
                in_a.clone(),
                Target::Running(Some(&a)),
                true,
            ),
            (
                "an agent, one that it started, stopped",
                in_a.clone(),
                Target::Stopped(Some(&a)),
                true,
            ),
            (
                "an agent, one that another agent started",
                in_a.clone(),
                Target::Running(Some(&b)),
                false,
            ),
            (
                "an agent, the same, stopped",
                in_a,
                Target::Stopped(Some(&b)),
                false,
            ),
            (
                "a liar's mark, a running loop",
                by_mark.clone(),
                Target::Running(Some(&a)),
                false,
            ),
            (
                "a mark alone, a loop started so",
                by_mark.clone(),
                Target::Running(Some(&of("A", 0))),
                true,
            ),
            (
                "a mark alone, a person's loop",
                by_mark,
                Target::Running(None),
                false,
            ),
            (
                "nobody knows who",
                Standing::Unknown("gone".into()),
                Target::Running(None),
                false,
            ),
            (
                "nobody knows who, within",
                Standing::Unknown("gone".into()),
                Target::Running(Some(&a)),
                false,
            ),
        ] {
            assert_eq!(standing.may_steer(target).is_ok(), allowed, "{what}");
        }
        let unknown_loop = Standing::Within(Enclosure::default());
        let none = Enclosure::default();
        assert!(
            unknown_loop
                .may_steer(Target::Stopped(Some(&none)))
                .is_err()
        );
        assert!(
            unknown_loop
                .may_steer(Target::Running(Some(&none)))
                .is_err()
        );
    }

    #[test]
    fn a_loop_inside_a_loop_must_be_meant() {
        let within = Standing::Within(of("A", 7));
        assert!(Standing::Outside.may_start(false).is_ok());
        assert!(
            within
                .may_start(false)
                .unwrap_err()
                .hint
                .contains("--nested")
        );
        assert!(within.may_start(true).is_ok());
        let refused = within.may_decide("`descartes trust`").unwrap_err();
        assert_eq!(
            refused.message,
            "refused: `descartes trust` from inside loop A"
        );
        assert!(Standing::Outside.may_decide("`descartes trust`").is_ok());
    }

    #[test]
    fn a_sender_is_told_in_words() {
        let sender = Sender {
            pid: 4711,
            program: "descartes".into(),
            started_by: Some("bash".into()),
            terminal: Some("pts/3".into()),
            user: Some("ann".into()),
            within: None,
        };
        let words = "descartes (pid 4711) from bash on pts/3, user ann";
        assert_eq!(sender.describe(), words);
        let bare = Sender {
            pid: 7,
            ..Sender::default()
        };
        assert_eq!(bare.describe(), "process 7 without a terminal");
    }
}
