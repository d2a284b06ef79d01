//! A scripted world.

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::control::Command;
use descartes_kernel::event::*;
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::state::LoopState;
use descartes_kernel::step::{Action, Agents, ClosingFacts, Input, before_start, plan, react};
use descartes_kernel::transition::{apply, begin, fold};
use jiff::Timestamp;

/// A command, from nobody in particular.
pub fn from_person(command: Command) -> Input {
    let from = None;
    Input::Command { command, from }
}

pub fn facts() -> RunFacts {
    RunFacts {
        ended_by: EndedBy::Exit,
        exit: Some(ExitStatus::Code(0)),
        duration_ms: 1000,
        stdout_bytes: 10,
        stderr_bytes: 0,
        preview: "hello".into(),
        claim: None,
        abort: None,
        near_miss: None,
        error: None,
        limit: None,
        did_nothing: false,
        tokens: None,
        cost: None,
        leftovers: 0,
        survivors: vec![],
        log_dropped: 0,
        trouble: 0,
        denied: vec![],
        tree_after: None,
    }
}

pub fn claims() -> RunFacts {
    RunFacts {
        claim: Some("COMPLETE".into()),
        ..facts()
    }
}

pub fn fails() -> RunFacts {
    RunFacts {
        exit: Some(ExitStatus::Code(1)),
        ..facts()
    }
}

pub fn limited(until: Option<&str>) -> RunFacts {
    let until = until.map(|t| t.parse().unwrap());
    RunFacts {
        limit: Some(ReportedLimit {
            kind: LimitKind::Usage,
            until,
            words: "limit".into(),
        }),
        ..fails()
    }
}

/// What a scripted world answers for one run.
pub struct Turn {
    pub facts: RunFacts,
    pub gates: Vec<i32>,
    pub moved: bool,
}

pub fn turn(facts: RunFacts) -> Turn {
    Turn {
        facts,
        gates: vec![],
        moved: true,
    }
}

pub struct Sim {
    pub state: LoopState,
    pub journal: Vec<Record>,
    pub agents: Agents,
    pub now: Timestamp,
    pub tree: u32,
    pub started: Vec<(u32, u32)>,
    pub waits: Vec<i64>,
}

pub fn config() -> IterativeLoopConfig {
    IterativeLoopConfig {
        command: "agent".into(),
        prompt: "do".into(),
        completion_promise: Some("COMPLETE".into()),
        max_iterations: Some(20),
        ..Default::default()
    }
}

impl Sim {
    pub fn new(config: IterativeLoopConfig) -> Self {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let first = Record {
            v: FORMAT,
            seq: 0,
            at: now,
            event: Event::LoopCreated {
                loop_id: "id".into(),
                name: "n".into(),
                config: Box::new(config),
                started_at: now,
                iterations: 0,
                summaries: vec![],
                spent: None,
                ended: None,
            },
        };
        let state = begin(&first).unwrap();
        let agents = Agents {
            count: 1,
            stall_default: 0,
        };
        let (started, waits) = (vec![], vec![]);
        Self {
            state,
            journal: vec![first],
            agents,
            now,
            tree: 0,
            started,
            waits,
        }
    }

    pub fn append(&mut self, event: Event) {
        let record = Record {
            v: FORMAT,
            seq: self.state.seq + 1,
            at: self.now,
            event,
        };
        apply(&mut self.state, &record).unwrap();
        self.journal.push(record);
        // Recovery must always arrive where the live loop is.
        assert_eq!(fold(&self.journal).unwrap().unwrap(), self.state);
    }

    pub fn input(&mut self, input: &Input) {
        for event in react(&self.state, input, self.agents, self.now) {
            self.append(event.into());
        }
    }

    pub fn facts_of_tree(&self) -> TreeFacts {
        TreeFacts {
            tree: Some(self.tree.to_string()),
            ..TreeFacts::default()
        }
    }

    pub fn start(&mut self, run: u64, iteration: u32, agent: u32) {
        self.started.push((iteration, agent));
        if let Some(event) = before_start(&self.state, self.agents) {
            self.append(event.into());
        }
        let notes: Vec<u64> = self.state.next_prompt.notes.iter().map(|n| n.id).collect();
        let before = self.facts_of_tree();
        self.append(Event::RunStarted {
            run,
            iteration,
            agent,
            guard_pid: None,
            prompt: "hash".into(),
            prompt_bytes: 2,
            before,
            notes,
        });
    }

    /// Runs until the loop is over, holds or leaves.
    pub fn run(&mut self, mut script: impl FnMut(u64) -> Turn) -> Action {
        let mut gates = vec![];
        for _ in 0..10_000 {
            match plan(&self.state, self.agents, self.now) {
                Action::Start {
                    run,
                    iteration,
                    agent,
                } => self.start(run, iteration, agent),
                Action::Watch => {
                    let turn = script(self.state.runs);
                    self.tree += u32::from(turn.moved);
                    gates = turn.gates;
                    gates.reverse();
                    self.input(&Input::RunEnded(Box::new(turn.facts)));
                }
                Action::Gate { index, command } => {
                    let code = gates.pop().unwrap_or(0);
                    self.input(&Input::GateEnded(Box::new(gate(index, &command, code))));
                }
                Action::Close => {
                    let after = self.facts_of_tree();
                    self.input(&Input::Closed(ClosingFacts {
                        after,
                        ..Default::default()
                    }));
                }
                Action::Wait(until) => {
                    self.waits.push(until.as_second() - self.now.as_second());
                    self.now = until;
                    self.input(&Input::WaitElapsed);
                }
                Action::Finish(reason) => self.append(Event::LoopFinished { reason }),
                Action::Hold => {
                    self.input(&Input::Held);
                    return Action::Hold;
                }
                other => return other,
            }
        }
        panic!("the loop does not end");
    }

    pub fn end(&mut self, script: impl FnMut(u64) -> Turn) -> Reason {
        assert_eq!(self.run(script), Action::Over);
        self.state.exit_reason()
    }
}

pub fn gate(gate: u32, command: &str, code: i32) -> GateFacts {
    GateFacts {
        gate,
        command: command.into(),
        end: GateEnd::Exit(ExitStatus::Code(code)),
        duration_ms: 10,
        tail: "tail".into(),
        tree_before: None,
        tree_after: None,
    }
}
