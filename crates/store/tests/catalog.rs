//! Loops are found by what a person remembers of them, and old ones make room.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_kernel::event::{Decided, Durability, Event};
use descartes_kernel::outcome::IterativeExitReason;
use descartes_store::catalog::{
    CleanError, CleanScope, FindError, LoopMeta, LoopStanding, SafetyCopies, find, list,
    plan_clean, register, remove, remove_lock,
};
use descartes_store::host::this_host;
use descartes_store::journal::Journal;
use descartes_store::layout::StateRoot;
use descartes_store::lock::{Holder, StateLock};
use descartes_store::logs::LogFile;
use jiff::{Timestamp, ToSpan};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

struct World {
    dir: TempDir,
    root: StateRoot,
}

impl World {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = StateRoot::at(dir.path().join("root"));
        Self { dir, root }
    }

    fn state_file(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn add(&self, id: &str, name: &str, second: i64, events: &[Event]) -> LoopMeta {
        let meta = LoopMeta {
            id: id.into(),
            name: name.into(),
            state_file: self.state_file("state.json"),
            working_dir: "/project".into(),
            started_at: at(second),
            extra: Default::default(),
        };
        let dir = register(&self.root, &meta).unwrap();
        let mut journal = Journal::create(&dir.journal()).unwrap();
        for event in events {
            journal
                .append(
                    at(second),
                    &Decided::for_test(event.clone()),
                    Durability::Process,
                )
                .unwrap();
        }
        LogFile::new(dir.run(1).stdout(), None).write(&[b'x'; 50_000]);
        meta
    }

    fn standing(&self, id: &str) -> LoopStanding {
        find(&self.root, id).unwrap().standing().unwrap()
    }
}

fn finished() -> Event {
    Event::LoopFinished {
        reason: IterativeExitReason::MaxIterationsReached,
    }
}

fn warning() -> Event {
    Event::Warning {
        message: "hm".into(),
        needs_person: false,
    }
}

#[test]
fn loops_are_listed_newest_first_and_rubbish_is_passed_over() {
    let world = World::new();
    assert_eq!(list(&world.root).unwrap(), []);
    for (id, second) in [("a1", 1), ("c3", 3), ("b2", 2)] {
        world.add(id, "name", second, &[]);
    }
    fs::create_dir_all(world.root.loops().join("empty")).unwrap();
    fs::write(world.root.loops().join("file"), "").unwrap();
    fs::create_dir_all(world.root.loops().join("torn")).unwrap();
    fs::write(world.root.loops().join("torn/meta.json"), "{").unwrap();
    let ids: Vec<_> = list(&world.root)
        .unwrap()
        .into_iter()
        .map(|entry| entry.meta.id)
        .collect();
    assert_eq!(ids, ["c3", "b2", "a1"]);
}

#[test]
fn a_loop_is_found_by_id_prefix_name_and_state_file() {
    let world = World::new();
    let first = world.add("0192aa", "auth", 1, &[]);
    let second = world.add("0192ab", "auth", 2, &[]);
    let third = world.add("0192ab77", "docs", 3, &[]);
    let found = |query: &str| find(&world.root, query).map(|entry| entry.meta);
    assert_eq!(found("0192aa").unwrap(), first);
    assert_eq!(
        found("0192ab").unwrap(),
        second,
        "a whole id wins over a beginning"
    );
    assert_eq!(found("0192ab7").unwrap(), third);
    assert_eq!(found("docs").unwrap(), third);
    let state_file = world.state_file("state.json");
    assert_eq!(
        found(state_file.to_str().unwrap()).unwrap(),
        third,
        "the newest is meant"
    );
    match found("auth").unwrap_err() {
        FindError::Ambiguous { candidates, .. } => assert_eq!(candidates, [second, first]),
        other => unreachable!("{other}"),
    }
    let words = found("0192").unwrap_err().to_string();
    assert!(
        words.starts_with("\"0192\" matches 3 loops:\n  0192ab77  docs  started 2023"),
        "{words}"
    );
    assert_eq!(words.lines().count(), 4);
    for none in ["nothing", "", "../..", "/no/such/file"] {
        assert!(matches!(found(none), Err(FindError::None(_))), "{none:?}");
    }
}

#[test]
fn standing_is_the_lock_and_then_the_last_word_of_the_journal() {
    let world = World::new();
    world.add("over", "n", 1, &[warning(), finished()]);
    world.add(
        "talk",
        "n",
        1,
        &[finished(), warning(), Event::CommandEffective { id: 1 }],
    );
    world.add(
        "again",
        "n",
        1,
        &[finished(), Event::LoopReopened, warning()],
    );
    world.add("new", "n", 1, &[]);
    let over = LoopStanding::Finished(IterativeExitReason::MaxIterationsReached);
    assert_eq!(world.standing("over"), over);
    assert_eq!(world.standing("talk"), over);
    assert_eq!(world.standing("again"), LoopStanding::Interrupted);
    assert_eq!(world.standing("new"), LoopStanding::Interrupted);
    let holder = Holder {
        loop_id: "over".into(),
        since: at(5),
        host: this_host("1"),
    };
    let lock = StateLock::acquire(&world.root, &world.state_file("s.json"), &holder).unwrap();
    match world.standing("over") {
        LoopStanding::Running(held) => assert_eq!(held.holder, Some(holder)),
        other => unreachable!("{other:?}"),
    }
    drop(lock);
    assert_eq!(world.standing("over"), over);
}

#[test]
fn locks_that_nobody_holds_go_with_their_state_files() {
    let world = World::new();
    let hold = |name: &str| {
        let holder = Holder {
            loop_id: name.replace('.', "-"),
            since: at(5),
            host: this_host("1"),
        };
        StateLock::acquire(&world.root, &world.state_file(name), &holder).unwrap()
    };
    world.add("kept", "n", 1, &[finished()]);
    fs::write(world.state_file("state.json"), "{}").unwrap();
    let live = hold("live.json");
    drop((hold("state.json"), hold("gone.json"), hold("taken.json")));
    let lock = |name: &str| world.root.lock_for(&world.state_file(name));
    let plan = plan_clean(
        &world.root,
        world.dir.path(),
        at(0),
        CleanScope::Logs,
        SafetyCopies::Keep,
        &BTreeSet::new(),
    )
    .unwrap();
    let mut idle = [lock("gone.json"), lock("taken.json")];
    idle.sort();
    assert_eq!(plan.locks, idle);
    let taken = hold("taken.json");
    for path in &plan.locks {
        remove_lock(path).unwrap();
    }
    assert!(!lock("gone.json").exists());
    assert!(lock("taken.json").exists() && lock("live.json").exists());
    assert!(lock("state.json").exists());
    drop((live, taken, hold("gone.json")));
}

#[test]
fn locks_in_projects_go_when_nobody_holds_them_and_they_are_old_or_alone() {
    let world = World::new();
    let folder = world.dir.path().canonicalize().unwrap().join(".descartes");
    fs::create_dir(&folder).unwrap();
    let hold = |name: &str| {
        let holder = Holder {
            loop_id: name.to_owned(),
            since: at(5),
            host: this_host("1"),
        };
        let file = folder.join(format!("{name}.json"));
        StateLock::acquire(&world.root, &file, &holder).unwrap()
    };
    let lock = |name: &str| folder.join(format!("{name}.json.lock"));
    let mut meta = world.add("left", "n", 1, &[finished()]);
    meta.state_file = folder.join("left.json");
    register(&world.root, &meta).unwrap();
    for file in ["left.json", "live.json"] {
        fs::write(folder.join(file), "{}").unwrap();
    }
    fs::write(folder.join("theirs.lock"), "not ours").unwrap();
    let _live = hold("live");
    drop((hold("left"), hold("gone")));
    let beside = |before: Timestamp| {
        let plan = plan_clean(
            &world.root,
            world.dir.path(),
            before,
            CleanScope::Logs,
            SafetyCopies::Keep,
            &BTreeSet::new(),
        )
        .unwrap();
        let locks = plan.locks.into_iter();
        let locks: Vec<PathBuf> = locks.filter(|lock| lock.starts_with(&folder)).collect();
        locks
    };
    assert_eq!(beside(at(0)), [lock("gone")]);
    assert_eq!(
        beside(Timestamp::now() + 1.hour()),
        [lock("gone"), lock("left")]
    );
    for path in [lock("gone"), lock("left"), lock("live")] {
        remove_lock(&path).unwrap();
    }
    assert!(!lock("gone").exists() && !lock("left").exists());
    assert!(lock("live").exists() && folder.join("theirs.lock").exists());
    drop(hold("left"));
}

#[test]
fn cleaning_takes_old_logs_and_leaves_history_live_loops_and_those_to_resume() {
    let world = World::new();
    world.add("old", "n", 1, &[finished()]);
    world.add("stopped", "n", 1, &[warning()]);
    world.add("live", "n", 1, &[finished()]);
    fs::create_dir_all(world.root.loops().join("begun")).unwrap();
    let holder = Holder {
        loop_id: "live".into(),
        since: at(5),
        host: this_host("1"),
    };
    let lock = StateLock::acquire(&world.root, &world.state_file("s.json"), &holder).unwrap();
    let soon = Timestamp::now() + 1.hour();
    let nothing = plan_clean(
        &world.root,
        world.dir.path(),
        Timestamp::now() - 1.hour(),
        CleanScope::Logs,
        SafetyCopies::Keep,
        &BTreeSet::new(),
    )
    .unwrap();
    assert_eq!(nothing, Default::default());
    let plan = plan_clean(
        &world.root,
        world.dir.path(),
        soon,
        CleanScope::Logs,
        SafetyCopies::Keep,
        &BTreeSet::new(),
    )
    .unwrap();
    assert_eq!(
        plan.interrupted
            .iter()
            .map(|meta| &meta.id[..])
            .collect::<Vec<_>>(),
        ["stopped"]
    );
    assert_eq!(plan.items.len(), 2);
    assert_eq!(plan.items[0].meta.as_ref().unwrap().id, "old");
    assert!(plan.items[0].bytes >= 50_000);
    assert_eq!(plan.items[1].meta, None);
    for item in &plan.items {
        remove(item).unwrap();
    }
    let old = find(&world.root, "old").unwrap();
    assert!(old.dir.journal().exists() && !old.dir.runs().exists());
    assert!(!world.root.loops().join("begun").exists());
    let again = plan_clean(
        &world.root,
        world.dir.path(),
        soon,
        CleanScope::Logs,
        SafetyCopies::Keep,
        &BTreeSet::new(),
    )
    .unwrap();
    assert_eq!(again.items, []);
    drop(lock);
    let whole = plan_clean(
        &world.root,
        world.dir.path(),
        soon,
        CleanScope::Whole,
        SafetyCopies::Keep,
        &BTreeSet::new(),
    )
    .unwrap();
    let live = whole
        .items
        .iter()
        .find(|i| i.meta.as_ref().unwrap().id == "live")
        .unwrap();
    let lock = StateLock::acquire(&world.root, &world.state_file("s.json"), &holder).unwrap();
    assert!(
        matches!(remove(live), Err(CleanError::InUse(_))),
        "taken up again meanwhile"
    );
    drop(lock);
    for item in &whole.items {
        remove(item).unwrap();
    }
    let left: Vec<_> = list(&world.root)
        .unwrap()
        .into_iter()
        .map(|entry| entry.meta.id)
        .collect();
    assert_eq!(left, ["stopped"]);
}
