//! A window without a display, over loops that are made of records.
use std::collections::VecDeque;

use descartes_client::logs::{LogLine, LogWindow};
use descartes_client::{Brief, LoopBrief};
use descartes_gui::font;
use descartes_gui::message::{Effect, Followed, Message};
use descartes_gui::model::KnownLoop;
use descartes_gui::model::Model;
use descartes_gui::theme::Mode;
use descartes_gui::update::update;
use descartes_gui::view::view;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::*;
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::{apply, begin};
use descartes_views::view::{Life, Status, Story, TaskLanes};
use iced::{Settings, Size};
use iced_test::Simulator;
use jiff::{SignedDuration, Timestamp};

pub const SIZE: Size = Size::new(1180.0, 780.0);

pub fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

pub fn config() -> IterativeLoopConfig {
    IterativeLoopConfig {
        command: "claude".into(),
        args: vec!["-p".into()],
        prompt: "Make the parser pass its tests".into(),
        completion_promise: Some("COMPLETE".into()),
        verify: vec!["cargo test".into()],
        max_iterations: Some(20),
        working_directory: Some("/home/ada/parser".into()),
        ..Default::default()
    }
}

/// A journal that a test writes; every record comes a minute after the one before.
pub struct Tale {
    pub records: Vec<Record>,
    pub state: LoopState,
    pub life: Life,
}

impl Tale {
    pub fn new(name: &str, config: IterativeLoopConfig) -> Self {
        let at = now() - SignedDuration::from_mins(30);
        let first = Record {
            v: FORMAT,
            seq: 1,
            at,
            event: Event::LoopCreated {
                loop_id: name.into(),
                name: name.into(),
                config: Box::new(config),
                started_at: at,
                iterations: 0,
                summaries: vec![],
                spent: None,
                ended: None,
            },
        };
        Self {
            state: begin(&first).unwrap(),
            records: vec![first],
            life: Life::Alive,
        }
    }

    pub fn add(&mut self, event: Event) -> &mut Self {
        let last = self.records.last().unwrap();
        let record = Record {
            v: FORMAT,
            seq: last.seq + 1,
            at: last.at + SignedDuration::from_mins(1),
            event,
        };
        apply(&mut self.state, &record).unwrap();
        self.records.push(record);
        self
    }

    pub fn start(&mut self) -> &mut Self {
        let (run, iteration) = (self.state.runs + 1, self.state.iterations + 1);
        self.add(Event::RunStarted {
            run,
            iteration,
            agent: 0,
            guard_pid: None,
            prompt: "h".into(),
            prompt_bytes: 1,
            before: TreeFacts::default(),
            notes: vec![],
        })
    }

    pub fn agent_ended(&mut self, preview: &str) -> &mut Self {
        let (run, iteration) = (self.state.runs, self.state.iterations + 1);
        let facts = RunFacts {
            ended_by: EndedBy::Exit,
            exit: Some(ExitStatus::Code(0)),
            duration_ms: 61_000,
            stdout_bytes: 10,
            stderr_bytes: 0,
            preview: preview.into(),
            claim: None,
            abort: None,
            near_miss: None,
            error: None,
            limit: None,
            did_nothing: false,
            tokens: Some(Tokens {
                input: Some(10_000),
                output: Some(2_300),
                ..Tokens::default()
            }),
            cost: Some(Cost {
                micros: 140_000,
                estimated: false,
            }),
            leftovers: 0,
            survivors: vec![],
            log_dropped: 0,
            trouble: 0,
            denied: vec![],
            tree_after: None,
        };
        self.add(Event::AgentEnded {
            run,
            iteration,
            facts: Box::new(facts),
        })
    }

    pub fn gate(&mut self, code: i32) -> &mut Self {
        let iteration = self.state.iterations + 1;
        self.add(Event::GateFinished {
            iteration,
            facts: Box::new(GateFacts {
                gate: 0,
                command: "cargo test".into(),
                end: GateEnd::Exit(ExitStatus::Code(code)),
                duration_ms: 4_000,
                tail: String::new(),
                tree_before: None,
                tree_after: None,
            }),
        })
    }

    pub fn finish(&mut self, verdict: Verdict) -> &mut Self {
        let (run, iteration) = (self.state.runs, self.state.iterations + 1);
        self.add(Event::IterationFinished {
            iteration,
            run,
            verdict,
            progress: Progress::None,
            after: TreeFacts::default(),
            files: Some(2),
            commit: None,
            spent_ms: 65_000,
        })
    }

    /// As the window is told.
    pub fn stands(&self) -> KnownLoop {
        let mut story = Story::new(100);
        let mut lanes = TaskLanes::default();
        for record in &self.records {
            story.push(record);
            lanes.push(record);
        }
        KnownLoop {
            lanes,
            state: self.state.clone(),
            life: self.life,
            story,
        }
    }

    pub fn brief(&self) -> Brief {
        Brief {
            id: self.state.loop_id.clone(),
            name: self.state.name.clone(),
            parent: None,
            task: None,
            worker: None,
            folder: "/home/ada/parser".into(),
            started_at: self.state.started_at,
            standing: Ok(LoopBrief {
                status: Status::of(&self.state, self.life),
                iterations: self.state.iterations,
                limit: self.state.config.max_iterations,
                tasks: self.state.tasks.as_ref().map(|tasks| tasks.count()),
                spent: self.state.spent,
            }),
        }
    }
}

/// A loop in its third iteration.
pub fn at_work() -> Tale {
    let mut tale = Tale::new("parser", config());
    for words in [
        "Wrote the tokenizer and its tests",
        "Fixed two of three red tests",
    ] {
        tale.start()
            .agent_ended(words)
            .gate(101)
            .finish(Verdict::Worked);
    }
    tale.start();
    tale
}

/// The window, driven as a person would.
pub struct Window {
    pub model: Model,
    /// What was to be done outside.
    pub effects: VecDeque<Effect>,
}

impl Window {
    pub fn new(mode: Mode) -> Self {
        Self {
            model: Model::new(now(), mode, "/home/ada/parser".into()),
            effects: VecDeque::new(),
        }
    }

    /// A window that shows this loop.
    pub fn showing(tale: &Tale, mode: Mode) -> Self {
        let mut window = Self::new(mode);
        window.tell(Message::Fleet(Ok(vec![tale.brief()])));
        window.stands(tale);
        window
    }

    pub fn stands(&mut self, tale: &Tale) {
        let news = Followed::KnownLoop(Box::new(tale.stands()));
        self.tell(Message::Followed(tale.state.loop_id.clone(), news));
    }

    pub fn tell(&mut self, message: Message) {
        let effects = update(&mut self.model, message);
        self.effects.extend(effects);
    }

    /// Answers the last wish for output with these lines.
    pub fn printed(&mut self, lines: &[&str]) {
        let place = self
            .effects
            .iter()
            .rposition(|effect| matches!(effect, Effect::ReadLog(_)));
        let Some(Effect::ReadLog(request)) = self.effects.remove(place.unwrap()) else {
            panic!("no output was asked for");
        };
        let line = |(n, text): (usize, &&str)| LogLine {
            offset: n as u64 * 10,
            text: (*text).to_owned(),
        };
        let size = lines.len() as u64 * 10;
        let window = LogWindow {
            begin: 0,
            end: size,
            size,
            lines: lines.iter().enumerate().map(line).collect(),
        };
        self.tell(Message::Log(request, Ok(window)));
    }

    /// What is on the screen, and what a person does with it; sizes are told first, as the
    /// first frame does.
    pub fn screen<T>(&mut self, act: impl FnOnce(&mut Simulator<'_, Message>) -> T) -> T {
        let settings = Settings {
            fonts: font::ALL.map(Into::into).to_vec(),
            default_font: font::SANS,
            ..Settings::default()
        };
        for _ in 0..2 {
            let mut first = Simulator::with_size(settings.clone(), SIZE, view(&self.model));
            let redraw = iced::Event::Window(iced::window::Event::RedrawRequested(
                std::time::Instant::now(),
            ));
            let _ = first.simulate([redraw]);
            let told: Vec<Message> = first.into_messages().collect();
            told.into_iter().for_each(|message| self.tell(message));
        }
        let mut screen = Simulator::with_size(settings, SIZE, view(&self.model));
        let done = act(&mut screen);
        let messages: Vec<Message> = screen.into_messages().collect();
        messages.into_iter().for_each(|message| self.tell(message));
        done
    }

    #[track_caller]
    pub fn click(&mut self, text: &str) {
        let found = self.screen(|screen| screen.click(text).map(drop));
        assert!(found.is_ok(), "no `{text}` to click");
    }

    pub fn sees(&mut self, text: &str) -> bool {
        self.screen(|screen| screen.find(text).is_ok())
    }

    #[track_caller]
    pub fn assert_sees(&mut self, text: &str) {
        assert!(self.sees(text), "`{text}` is not on the screen");
    }

    /// The same picture as the one that is kept. A missing one is no match: it is made only
    /// where `UPDATE_SNAPSHOTS` is set.
    #[track_caller]
    pub fn assert_looks_like(&mut self, name: &str) {
        let theme = descartes_gui::theme::theme(self.model.mode);
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/");
        let kept = format!("{folder}{name}-tiny-skia.png");
        let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
        if update {
            let _ = std::fs::remove_file(&kept);
        }
        assert!(
            update || std::path::Path::new(&kept).is_file(),
            "{kept} is missing; make it with UPDATE_SNAPSHOTS=1 and look at it"
        );
        let same = self.screen(|screen| {
            let snapshot = screen.snapshot(&theme).unwrap();
            snapshot
                .matches_image(format!("{folder}{name}.png"))
                .unwrap()
        });
        assert!(same, "it does not look like {kept}");
    }
}
