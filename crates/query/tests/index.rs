//! The index says what the journals say: incrementally, after a deletion, and to readers alone.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::{Decided, Durability, Event};
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::sched::{self, AttemptEnd, BlockReason, MarkEnd, Next};
use descartes_kernel::tasks::PlannedTask;
use descartes_plans::graph::TaskStatus;
use descartes_query::{Index, QueryError, SqlValue};
use descartes_store::catalog::{LoopMeta, register};
use descartes_store::journal::Journal;
use descartes_store::layout::StateRoot;
use jiff::Timestamp;
use tempfile::TempDir;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

struct World {
    _dir: TempDir,
    root: StateRoot,
}

impl World {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = StateRoot::at(dir.path().join("root"));
        Self { _dir: dir, root }
    }

    fn add(&self, id: &str) -> Journal {
        let meta = LoopMeta {
            id: id.into(),
            name: format!("loop {id}"),
            state_file: "/p/state.json".into(),
            working_dir: "/p".into(),
            started_at: at(0),
            extra: Default::default(),
        };
        let dir = register(&self.root, &meta).unwrap();
        let mut journal = Journal::create(&dir.journal()).unwrap();
        let config = IterativeLoopConfig {
            command: "agent".into(),
            ..Default::default()
        };
        let created = Event::LoopCreated {
            loop_id: id.into(),
            name: meta.name,
            config: Box::new(config),
            started_at: at(0),
            iterations: 0,
            summaries: Vec::new(),
            spent: None,
            ended: None,
        };
        append(&mut journal, 0, &created);
        journal
    }

    fn ask(&self, sql: &str) -> Vec<Vec<SqlValue>> {
        let (index, trouble) = Index::open(&self.root).unwrap();
        assert_eq!(trouble, Vec::<String>::new());
        index.ask(sql).unwrap().rows
    }

    fn number(&self, sql: &str) -> i64 {
        match self.ask(sql)[0][0] {
            SqlValue::Integer(number) => number,
            ref other => unreachable!("{other:?}"),
        }
    }
}

fn append(journal: &mut Journal, second: i64, event: &Event) {
    let event = Decided::for_test(event.clone());
    journal
        .append(at(second), &event, Durability::Process)
        .unwrap();
}

fn warning(n: i64) -> Event {
    Event::Warning {
        message: format!("warning {n}"),
        needs_person: false,
    }
}

fn finished() -> Event {
    Event::LoopFinished {
        reason: IterativeExitReason::MaxIterationsReached,
    }
}

#[test]
fn it_is_caught_up_and_the_same_when_made_anew() {
    let world = World::new();
    assert_eq!(world.number("select count(*) from loops"), 0);
    let mut journal = world.add("0192-a");
    append(&mut journal, 1, &warning(1));
    assert_eq!(world.number("select count(*) from events"), 2);
    append(&mut journal, 2, &warning(2));
    append(&mut journal, 3, &finished());
    world.add("0192-b");
    assert_eq!(world.number("select count(*) from events"), 5);
    let all = "select * from loops order by loop_id";
    let caught_up = world.ask(all);
    fs::remove_file(world.root.index()).unwrap();
    assert_eq!(world.ask(all), caught_up);
    let ended = world.ask("select exit_reason, exit_code, ended_at from loops where ended_at > ''");
    assert_eq!(
        ended,
        [[
            SqlValue::Text("max_iterations_reached".into()),
            SqlValue::Integer(2),
            SqlValue::Text(at(3).to_string())
        ]]
    );
}

#[test]
fn loops_that_are_gone_or_made_anew_do_not_linger() {
    let world = World::new();
    let mut journal = world.add("0192-a");
    append(&mut journal, 1, &warning(1));
    world.add("0192-b");
    assert_eq!(world.number("select count(*) from events"), 3);
    fs::remove_dir_all(world.root.loop_dir("0192-b").unwrap().path()).unwrap();
    assert_eq!(world.number("select count(*) from loops"), 1);
    fs::remove_dir_all(world.root.loop_dir("0192-a").unwrap().path()).unwrap();
    world.add("0192-a");
    assert_eq!(world.number("select count(*) from events"), 1);
}

#[test]
fn a_damaged_index_is_made_anew_and_a_damaged_journal_is_told() {
    let world = World::new();
    let mut journal = world.add("0192-a");
    for n in 0..100 {
        append(&mut journal, n, &warning(n));
    }
    assert_eq!(world.number("select count(*) from events"), 101);
    fs::write(
        world.root.index(),
        "this is no database at all, and longer than a header".repeat(20),
    )
    .unwrap();
    assert_eq!(world.number("select count(*) from events"), 101);

    let path = world.root.loop_dir("0192-a").unwrap().journal();
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let copy = path.with_extension("copy");
    fs::write(&copy, &bytes).unwrap();
    fs::rename(&copy, &path).unwrap();
    world.add("0192-b");
    let (index, trouble) = Index::open(&world.root).unwrap();
    assert_eq!(trouble.len(), 1, "{trouble:?}");
    let rows = index.ask("select loop_id from events").unwrap().rows;
    assert_eq!(rows, [[SqlValue::Text("0192-b".into())]]);
}

#[test]
fn nothing_can_be_changed_by_a_question() {
    let world = World::new();
    world.add("0192-a");
    let (index, _) = Index::open(&world.root).unwrap();
    for sql in [
        "delete from loops",
        "drop table loops",
        "update loops set name = 'x'",
        "create table mine (a)",
        "insert into waves values ('a', 1, null, null)",
        "vacuum into '/tmp/descartes-never.db'",
        "attach '/tmp/descartes-never.db' as mine",
        "pragma query_only = off",
        "begin",
        "",
        "select 1; delete from loops",
    ] {
        assert!(index.ask(sql).is_err(), "{sql}");
    }
    assert!(index.ask("pragma user_version = 7").is_err());
    assert_eq!(index.ask("select name from loops").unwrap().rows.len(), 1);
    assert!(!std::path::Path::new("/tmp/descartes-never.db").exists());
    match index.ask("select nam from loops").unwrap_err() {
        QueryError::Sql { message, offset } => {
            assert!(message.contains("nam"), "{message}");
            assert_eq!(offset, Some(7));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_at_once_wait_for_each_other() {
    let world = World::new();
    let mut journal = world.add("0192-a");
    for n in 0..500 {
        append(&mut journal, n, &warning(n));
    }
    let root = world.root.clone();
    let others: Vec<_> = (0..4)
        .map(|_| {
            let root = root.clone();
            std::thread::spawn(move || {
                let (index, _) = Index::open(&root).unwrap();
                index.ask("select count(*) from events").unwrap().rows
            })
        })
        .collect();
    for other in others {
        assert_eq!(other.join().unwrap(), [[SqlValue::Integer(501)]]);
    }
}

#[test]
fn a_task_has_the_status_that_every_view_tells() {
    let world = World::new();
    let mut journal = world.add("0192-a");
    let mut second = 0;
    let mut told = |event: &Event| {
        second += 1;
        append(&mut journal, second, event);
        world.ask("select status, attempts, reason from tasks")
    };
    let task = PlannedTask {
        id: "1".into(),
        title: "First".into(),
        wave: 1,
        complexity: 0,
        after: Vec::new(),
        commands: None,
        under: None,
        after_blocks: Vec::new(),
    };
    told(&Event::TasksPlanned {
        tag: "auth".into(),
        tasks: vec![task],
        held: Vec::new(),
        blocks: Vec::new(),
    });
    let text = |text: &str| SqlValue::Text(text.to_owned());
    let started = |attempt| sched::Event::AttemptStarted {
        task: "1".into(),
        slot: 0,
        attempt,
    };
    let message = "no way".to_owned();
    let reason = BlockReason::Agent {
        message: message.clone(),
    };
    let words = reason.describe();
    // What happens to the task; its status and its attempts from then on, and why it is blocked.
    let table = [
        (started(1), ("in-progress", 1), SqlValue::Null),
        (
            sched::Event::ClaimRefused {
                task: "1".into(),
                found: TaskStatus::Pending,
            },
            ("pending", 0),
            SqlValue::Null,
        ),
        (started(1), ("in-progress", 1), SqlValue::Null),
        (
            sched::Event::AttemptEnded {
                task: "1".into(),
                end: AttemptEnd::BlockedByAgent { message },
                next: Next::Block { reason },
            },
            ("blocked", 1),
            text(&words),
        ),
        (
            sched::Event::Retried {
                tasks: vec!["1".into()],
            },
            ("pending", 1),
            SqlValue::Null,
        ),
        (
            sched::Event::StatusSeen {
                task: "1".into(),
                status: TaskStatus::Done,
                seen: sched::Seen::Mark,
            },
            ("done", 1),
            SqlValue::Null,
        ),
        (
            sched::Event::MarkChecked {
                task: "1".into(),
                end: MarkEnd::Red { tail: "red".into() },
                set_back: true,
            },
            ("pending", 1),
            SqlValue::Null,
        ),
    ];
    for (event, (status, attempts), why) in table {
        let row = vec![text(status), SqlValue::Integer(attempts), why];
        let event = Box::new(event);
        assert_eq!(told(&Event::Tasks { event }), [row]);
    }
    let open = "select count(*) from attempts where ended_at is null";
    assert_eq!(world.number(open), 0, "no attempt is left open");
}
