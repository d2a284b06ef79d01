//! One state file, one loop.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_store::host::this_host;
use descartes_store::layout::StateRoot;
use descartes_store::lock::{
    Holder, LockError, StateLock, holder_of, holder_of_loop, is_held_from_elsewhere,
};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn holder(loop_id: &str) -> Holder {
    Holder {
        loop_id: loop_id.to_owned(),
        since: jiff::Timestamp::from_second(1_700_000_000).unwrap(),
        host: this_host("1.2.3"),
    }
}

struct World {
    dir: TempDir,
    root: StateRoot,
    state_file: PathBuf,
}

fn world() -> World {
    let dir = TempDir::new().unwrap();
    let root = StateRoot::at(dir.path().join("root"));
    let state_file = dir.path().join("project/.descartes/loop-state.json");
    fs::create_dir(dir.path().join("project")).unwrap();
    World {
        dir,
        root,
        state_file,
    }
}

fn held_by(result: Result<StateLock, LockError>) -> Holder {
    match result {
        Err(LockError::Held(held)) => held.holder.unwrap(),
        other => unreachable!("{other:?}"),
    }
}

/// Whoever only looks has a shared lock for an instant, and may stand still in it.
#[test]
fn one_who_looks_for_long_refuses_no_start() {
    let World {
        root,
        state_file,
        dir: _dir,
    } = world();
    drop(StateLock::acquire(&root, &state_file, &holder("first")).unwrap());
    let looks = fs::File::open(root.lock_for(&state_file)).unwrap();
    looks.lock_shared().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(500));
            drop(looks);
        });
        StateLock::acquire(&root, &state_file, &holder("second")).unwrap();
    });
}

#[test]
fn a_held_state_file_is_refused_with_its_holder_and_free_again_after_it() {
    let World {
        root,
        state_file,
        dir,
    } = world();
    assert_eq!(holder_of(&root, &state_file).unwrap(), None);
    let made = dir.path().join("project/.descartes");
    assert!(!made.exists(), "asking makes nothing");
    let lock = StateLock::acquire(&root, &state_file, &holder("first")).unwrap();
    assert_eq!(
        held_by(StateLock::acquire(&root, &state_file, &holder("second"))),
        holder("first")
    );
    assert_eq!(
        holder_of(&root, &state_file).unwrap().unwrap().holder,
        Some(holder("first"))
    );
    assert!(
        holder_of_loop(&root.loop_dir("first").unwrap())
            .unwrap()
            .is_some()
    );
    assert!(
        holder_of_loop(&root.loop_dir("second").unwrap())
            .unwrap()
            .is_none()
    );
    drop(lock);
    assert_eq!(holder_of(&root, &state_file).unwrap(), None);
    StateLock::acquire(&root, &state_file, &holder("second")).unwrap();
    assert!(
        dir.path()
            .join("project/.descartes/loop-state.json.lock")
            .exists()
    );
    assert_eq!(
        fs::read(dir.path().join("project/.descartes/.gitignore")).unwrap(),
        b"*\n"
    );
}

#[test]
fn a_state_file_behind_a_linked_folder_is_the_same_file() {
    let World {
        root,
        state_file,
        dir,
    } = world();
    let project = state_file.ancestors().nth(2).unwrap();
    let link = dir.path().join("linked");
    std::os::unix::fs::symlink(project, &link).unwrap();
    let through = link.join(state_file.strip_prefix(project).unwrap());
    let lock = StateLock::acquire(&root, &through, &holder("first")).unwrap();
    assert_eq!(
        lock.state_file(),
        dir.path()
            .canonicalize()
            .unwrap()
            .join(state_file.strip_prefix(dir.path()).unwrap())
    );
    assert_eq!(
        held_by(StateLock::acquire(&root, &state_file, &holder("second"))),
        holder("first")
    );
}

/// The agent works in this folder: it may plant anything in the place of a lock.
#[test]
fn a_planted_lock_is_refused_and_what_it_leads_to_is_untouched() {
    let World {
        root,
        state_file,
        dir,
    } = world();
    let lock = state_file.with_extension("json.lock");
    let target = dir.path().join("precious");
    fs::write(&target, "keys").unwrap();
    fs::create_dir_all(state_file.parent().unwrap()).unwrap();
    let plant_link = || std::os::unix::fs::symlink(&target, &lock).unwrap();
    let plant_name = || fs::hard_link(&target, &lock).unwrap();
    let plant_fifo = || nix::unistd::mkfifo(&lock, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let plant_folder = || fs::create_dir(&lock).unwrap();
    let plants: [&dyn Fn(); 4] = [&plant_link, &plant_name, &plant_fifo, &plant_folder];
    for plant in plants {
        plant();
        match StateLock::acquire(&root, &state_file, &holder("first")) {
            Err(LockError::Io(error)) => assert!(error.refusal().is_some(), "{error}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "keys");
        fs::remove_file(&lock)
            .or_else(|_| fs::remove_dir(&lock))
            .unwrap();
    }
    // In the middle of a loop, too.
    let mut held = StateLock::acquire(&root, &state_file, &holder("first")).unwrap();
    fs::remove_file(&lock).unwrap();
    plant_link();
    assert!(matches!(held.keep(), Err(LockError::Io(error)) if error.refusal().is_some()));
    assert_eq!(fs::read_to_string(&target).unwrap(), "keys");
    let second = StateLock::acquire(&root, &state_file, &holder("second"));
    assert!(second.is_err());
}

#[test]
fn deleting_the_project_folder_lets_nobody_in() {
    let World {
        root,
        state_file,
        dir: _dir,
    } = world();
    let mut lock = StateLock::acquire(&root, &state_file, &holder("first")).unwrap();
    fs::remove_dir_all(state_file.parent().unwrap()).unwrap();
    assert_eq!(
        held_by(StateLock::acquire(&root, &state_file, &holder("second"))),
        holder("first")
    );
    assert!(holder_of(&root, &state_file).unwrap().is_some());
    fs::remove_dir_all(state_file.parent().unwrap()).unwrap();
    lock.keep().unwrap();
    let elsewhere = StateRoot::at(root.path().join("other"));
    assert_eq!(
        held_by(StateLock::acquire(
            &elsewhere,
            &state_file,
            &holder("second")
        )),
        holder("first"),
        "made anew, it holds for other state roots too"
    );
}

#[test]
fn a_copied_state_file_does_not_give_a_journal_two_writers() {
    let World {
        root,
        state_file,
        dir: _dir,
    } = world();
    let _lock = StateLock::acquire(&root, &state_file, &holder("same")).unwrap();
    let copy = state_file.with_file_name("copy.json");
    assert_eq!(
        held_by(StateLock::acquire(&root, &copy, &holder("same"))),
        holder("same")
    );
    StateLock::acquire(&root, &copy, &holder("another")).unwrap();
}

#[test]
fn an_id_that_is_a_path_is_refused() {
    let World {
        root,
        state_file,
        dir: _dir,
    } = world();
    let result = StateLock::acquire(&root, &state_file, &holder("../../etc"));
    assert!(matches!(result, Err(LockError::BadId(_))));
}

/// Not a test by itself: the other process of the tests below.
#[test]
fn other_process() {
    let Ok(task) = std::env::var("STORE_TEST_LOCK") else {
        return;
    };
    let mut parts = task.split('|');
    let mut next = || parts.next().unwrap().to_owned();
    let (root, state_file, id) = (StateRoot::at(next()), PathBuf::from(next()), next());
    let mut go = [0];
    std::io::stdin().read_exact(&mut go).unwrap();
    match StateLock::acquire(&root, &state_file, &holder(&id)) {
        Ok(_lock) => {
            println!("\ngot it");
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        Err(error) => println!("\nrefused: {error}"),
    }
}

fn start(root: &StateRoot, state_file: &Path, id: &str) -> std::process::Child {
    let task = format!("{}|{}|{id}", root.path().display(), state_file.display());
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "other_process",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("STORE_TEST_LOCK", task)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn answer(child: &mut std::process::Child) -> String {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    lines
        .map_while(Result::ok)
        .find(|l| l.starts_with("got") || l.starts_with("refused"))
        .unwrap()
}

#[test]
fn of_processes_that_race_one_wins_and_death_gives_the_lock_back() {
    let World {
        root,
        state_file,
        dir: _dir,
    } = world();
    for round in 0..5 {
        let mut racers: Vec<_> = (0..4)
            .map(|n| start(&root, &state_file, &format!("r{round}-{n}")))
            .collect();
        for racer in &mut racers {
            racer.stdin.as_mut().unwrap().write_all(b"g").unwrap();
        }
        let answers: Vec<_> = racers.iter_mut().map(answer).collect();
        let winners = answers.iter().filter(|answer| *answer == "got it").count();
        assert_eq!(winners, 1, "{answers:?}");
        for racer in &mut racers {
            racer.kill().unwrap();
            racer.wait().unwrap();
        }
        assert_eq!(
            holder_of(&root, &state_file).unwrap(),
            None,
            "SIGKILL frees it"
        );
    }
}

#[test]
fn those_who_only_look_never_refuse_a_start() {
    let World {
        root,
        state_file,
        dir: _dir,
    } = world();
    drop(StateLock::acquire(&root, &state_file, &holder("before")).unwrap());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    holder_of(&root, &state_file).unwrap();
                }
            });
        }
        let failed = (0..200)
            .filter(|n| StateLock::acquire(&root, &state_file, &holder(&format!("n{n}"))).is_err())
            .count();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(failed, 0);
    });
}

#[test]
fn a_process_that_inherits_the_lock_holds_it() {
    let World {
        root,
        state_file,
        dir: _dir,
    } = world();
    let lock = StateLock::acquire(&root, &state_file, &holder("first")).unwrap();
    use std::os::fd::AsFd;
    let handed_on = lock.as_fd().try_clone_to_owned().unwrap();
    let mut guard = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::from(handed_on))
        .spawn()
        .unwrap();
    drop(lock);
    assert_eq!(
        held_by(StateLock::acquire(&root, &state_file, &holder("second"))),
        holder("first")
    );
    drop(guard.stdin.take());
    guard.wait().unwrap();
    StateLock::acquire(&root, &state_file, &holder("second")).unwrap();
}

#[test]
fn locks_that_cannot_be_read_may_be_of_another_pid_namespace() {
    let World {
        root,
        state_file,
        dir: _dir,
    } = world();
    assert!(!is_held_from_elsewhere(&root), "there are none");
    let lock = StateLock::acquire(&root, &state_file, &holder("first")).unwrap();
    assert!(!is_held_from_elsewhere(&root), "it is held from here");
    drop(lock);
    assert!(!is_held_from_elsewhere(&root), "nobody holds it");
    fs::remove_dir_all(root.locks()).unwrap();
    fs::write(root.locks(), "").unwrap();
    assert!(is_held_from_elsewhere(&root), "who can tell?");
}
