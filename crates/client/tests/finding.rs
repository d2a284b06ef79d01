//! Which loop is meant, and how it stands.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{config, now, world};
use descartes_client::{ClientError, Query, Scope};
use descartes_kernel::config::ConfigChange;
use descartes_kernel::event::{Event, Verdict};
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::checkpoint;
use descartes_views::view::{Life, Status, status_block};
use proptest::prelude::*;

#[test]
fn a_loop_is_found_by_id_beginning_name_path_and_directory() {
    let world = world();
    world.made("0192aaaa-1");
    world.made_with("0193bbbb-1", "docs", "other.json", config());
    let found = |query: Query| world.loops().find(&query).unwrap().id().to_owned();
    let named = |name: &str| found(Query::Named(name.into()));
    assert_eq!(named("0192aaaa-1"), "0192aaaa-1");
    assert_eq!(named("0193"), "0193bbbb-1");
    assert_eq!(named("docs"), "0193bbbb-1");
    let other = world.project().join("other.json");
    assert_eq!(named(&other.to_string_lossy()), "0193bbbb-1");
    assert_eq!(found(Query::StateFile(other.clone())), "0193bbbb-1");
    assert_eq!(found(Query::Here(world.project())), "0192aaaa-1");
    // Gone or torn: the journal knows better.
    std::fs::write(&other, "{\"version\": \"1.").unwrap();
    assert_eq!(found(Query::StateFile(other.clone())), "0193bbbb-1");
    let look = world.find("docs").look().unwrap();
    assert!(look.notices[0].contains("from the journal"), "{look:?}");
    std::fs::remove_file(&other).unwrap();
    assert_eq!(found(Query::StateFile(other)), "0193bbbb-1");
    let ids = |scope: Scope| {
        let listed = world.loops().list(&scope).unwrap();
        listed
            .iter()
            .map(|found| found.id().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(Scope::All).len(), 2);
    assert_eq!(ids(Scope::Of(world.project())).len(), 2);
    assert!(ids(Scope::Of(world.path("state"))).is_empty());
}

#[test]
fn without_a_default_state_file_the_only_open_loop_of_the_directory_is_meant() {
    let world = world();
    let here = || world.loops().find(&Query::Here(world.project()));
    let first = world.made_with("0192aaaa-1", "plan", "roadmap-plan.json", config());
    assert_eq!(here().unwrap().id(), "0192aaaa-1");
    let second = world.made_with("0193bbbb-1", "docs", "other.json", config());
    let text = here().unwrap_err().to_string();
    assert!(
        text.contains("0192aaaa-1") && text.contains("0193bbbb-1"),
        "{text}"
    );
    let lock = first.lock();
    assert_eq!(here().unwrap().id(), "0192aaaa-1");
    drop((lock, first));
    std::fs::remove_dir_all(second.dir.path()).unwrap();
    assert_eq!(here().unwrap().id(), "0192aaaa-1");
    // The default one comes before all others.
    world.made("0194cccc-1");
    assert_eq!(here().unwrap().id(), "0194cccc-1");
}

#[test]
fn what_fits_nothing_or_too_much_is_refused_unless_one_of_them_runs() {
    let world = world();
    let fail = |query: Query| world.loops().find(&query).unwrap_err();
    for query in [
        Query::Named("auth".into()),
        Query::StateFile(world.path("none.json")),
        Query::Here(world.project()),
    ] {
        let error = fail(query);
        assert_eq!(error.exit_code(), 65, "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    let one = world.made("0192aaaa-1");
    world.made_with("0192aaaa-2", "auth", "two.json", config());
    for query in ["auth", "0192", "0192aaaa-"] {
        let error = fail(Query::Named(query.into()));
        let text = error.to_string();
        assert!(
            text.contains("0192aaaa-1") && text.contains("0192aaaa-2"),
            "{text}"
        );
        assert_eq!(error.exit_code(), 65);
    }
    let lock = one.lock();
    assert_eq!(world.find("auth").id(), "0192aaaa-1");
    drop(lock);
    let torn = world.project().join("torn.json");
    std::fs::write(&torn, "{\"version\"").unwrap();
    let error = fail(Query::StateFile(torn));
    assert_eq!(error.exit_code(), 65);
    assert!(error.to_string().contains("byte"), "{error}");
}

#[test]
fn a_state_file_alone_can_be_looked_at_and_nothing_more() {
    let world = world();
    let path = world.project().join("mine.json");
    let text = r#"{"version":"1.0","iteration":3,"config":{"command":"claude","prompt":"x"}}"#;
    std::fs::write(&path, text).unwrap();
    let found = world.loops().find(&Query::StateFile(path.clone())).unwrap();
    let look = found.look().unwrap();
    assert_eq!((look.state.iterations, look.life), (3, Life::Gone));
    assert_eq!(look.state.config.working_directory, Some(world.project()));
    assert!(!look.notices.is_empty());
    for error in [
        found
            .follow(descartes_client::Output::No)
            .map(drop)
            .unwrap_err(),
        found.log(None).map(drop).unwrap_err(),
        found.hold().map(drop).unwrap_err(),
        found
            .send(&descartes_kernel::control::Command::Pause)
            .map(drop)
            .unwrap_err(),
    ] {
        assert!(matches!(error, ClientError::NeverRan { .. }), "{error}");
        assert_eq!(error.exit_code(), 65);
    }
}

#[test]
fn running_is_said_only_while_somebody_has_it() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    made.start();
    let found = world.find("auth");
    let lock = made.lock();
    let look = found.look().unwrap();
    assert_eq!(Status::of(&look.state, look.life), Status::Running);
    assert_eq!(found.pid(), Some(std::process::id()));
    drop(lock);
    let look = found.look().unwrap();
    assert_eq!(Status::of(&look.state, look.life), Status::Interrupted);
    let block = status_block(&look.state, look.life, now());
    assert!(block.contains("Exit reason: Interrupted (resume with: descartes loop resume)"));
    assert_eq!(found.wait_until_gone(Duration::ZERO).unwrap(), Life::Gone);
}

#[test]
fn a_lock_given_back_is_told_at_once() {
    let world = world();
    let made = world.made("0192aaaa-1");
    let (found, lock) = (world.find("auth"), made.lock());
    assert_eq!(
        found.wait_until_gone(Duration::from_millis(1)).unwrap(),
        Life::Alive
    );
    let (ready, began) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || {
        ready.send(()).unwrap();
        found.wait_until_gone(Duration::from_secs(30)).unwrap();
        Instant::now()
    });
    began.recv().unwrap();
    let given = Instant::now();
    drop(lock);
    assert!(waiting.join().unwrap() - given < Duration::from_secs(15));
}

#[test]
fn an_edit_by_hand_and_a_file_of_another_loop_are_said() {
    let world = world();
    let made = world.made("0192aaaa-1");
    let path = made.file.path().to_owned();
    assert!(world.find("auth").look().unwrap().notices.is_empty());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace("\"max_iterations\": 20", "\"max_iterations\": 30"),
    )
    .unwrap();
    let notices = world.find("auth").look().unwrap().notices;
    assert!(notices[0].contains("edited by hand"), "{notices:?}");
    std::fs::write(&path, text.replace("0192aaaa-1", "0199ffff-1")).unwrap();
    let notices = world.find("auth").look().unwrap().notices;
    assert!(notices[0].contains("another loop"), "{notices:?}");
}

#[test]
fn a_long_history_is_not_read_to_see_how_a_loop_stands() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    for _ in 0..2500 {
        made.start_without_folder();
        made.end(common::facts());
        made.finish();
        if let Some(event) = checkpoint(&made.state) {
            made.append(event);
        }
    }
    let found = world.find("auth");
    let begun = Instant::now();
    let quick = found.state().unwrap();
    let quick_time = begun.elapsed();
    let begun = Instant::now();
    let full = found.state_by_full_fold().unwrap();
    let full_time = begun.elapsed();
    assert_eq!(quick, full);
    assert_eq!(full.iterations, 2500);
    assert!(
        quick_time * 3 < full_time,
        "{quick_time:?} against {full_time:?}"
    );
    // With everything before the last checkpoint unreadable, the answer is the same.
    let journal = made.dir.journal();
    let mut bytes = std::fs::read(&journal).unwrap();
    let half = bytes.len() / 2;
    bytes[..half].fill(b'x');
    std::fs::write(&journal, bytes).unwrap();
    assert_eq!(found.state().unwrap(), quick);
    assert!(found.state_by_full_fold().is_err());
}

#[test]
#[ignore = "a measure: run it alone, with --release"]
fn a_hundred_thousand_iterations() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    let mut facts = common::facts();
    facts.preview = "All tests pass now, going on with the next item. ".repeat(10);
    for _ in 0..100_000 {
        made.start_without_folder();
        made.end(facts.clone());
        made.finish();
        if let Some(event) = checkpoint(&made.state) {
            made.append(event);
        }
    }
    made.save();
    let found = world.find("auth");
    println!("{} MB", made.journal.bytes() / 1_000_000);
    for what in ["cold", "warm"] {
        let begun = Instant::now();
        found.look().unwrap();
        println!("look, {what}: {:?}", begun.elapsed());
    }
    for iteration in [1, 50_000, 99_999] {
        let begun = Instant::now();
        assert_eq!(found.log(Some(iteration)).unwrap().iteration, iteration);
        println!("log of iteration {iteration}: {:?}", begun.elapsed());
    }
    let begun = Instant::now();
    let mut rows = 0;
    let from = descartes_client::From::Last(100);
    let count = |_| {
        rows += 1;
        std::ops::ControlFlow::Continue(())
    };
    found.history(from, count).unwrap();
    println!("the last {rows} rows: {:?}", begun.elapsed());
    let begun = Instant::now();
    found.state_by_full_fold().unwrap();
    println!("full fold: {:?}", begun.elapsed());
}

/// Something that happens to a loop.
#[derive(Clone, Debug)]
enum Step {
    Iterate(u8),
    Limited,
    StartOnly,
    Command(u8),
    Wait,
    Checkpoint,
    End,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4u8).prop_map(Step::Iterate),
        1 => Just(Step::Limited),
        1 => Just(Step::StartOnly),
        2 => (0..5u8).prop_map(Step::Command),
        1 => Just(Step::Wait),
        3 => Just(Step::Checkpoint),
        1 => Just(Step::End),
    ]
}

fn happen(made: &mut common::Made, step: &Step) {
    use descartes_kernel::control::Command;
    use descartes_kernel::event::{WaitEnd, WaitReason};
    use descartes_kernel::state::Phase;
    let ready = matches!(made.state.phase, Phase::Ready { .. });
    let over = matches!(made.state.phase, Phase::Finished { .. });
    match step {
        Step::Iterate(how) if ready => {
            made.start();
            made.end(common::facts());
            made.judge(match how {
                0 => Verdict::Failed("exit code 1".into()),
                1 => Verdict::Refused,
                2 => Verdict::Blocked("no".into()),
                _ => Verdict::Worked,
            });
        }
        Step::Limited if ready => made.limited(),
        Step::StartOnly if ready => drop(made.start()),
        Step::StartOnly if !over => {
            let run = made.state.run().unwrap().clone();
            made.append(Event::IterationInterrupted {
                iteration: run.iteration,
                run: run.run,
                spent_ms: 5,
                tokens: None,
                cost: None,
            });
        }
        Step::Command(which) => {
            let command = match which {
                0 => Command::Pause,
                1 => Command::Unpause,
                2 => Command::Say { text: "n".into() },
                3 => Command::Set {
                    change: Box::new(ConfigChange {
                        max_iterations: Some(None),
                        ..ConfigChange::default()
                    }),
                },
                _ => Command::RetryNow,
            };
            let agents = descartes_kernel::step::Agents {
                count: 1,
                stall_default: 0,
            };
            let input = descartes_kernel::step::Input::Command {
                command,
                from: None,
            };
            for event in descartes_kernel::step::react(&made.state, &input, agents, now()) {
                made.append(event);
            }
        }
        Step::Wait if ready => {
            made.append(Event::WaitStarted {
                until: now(),
                reason: WaitReason::Failures(2),
            });
            if made.state.iterations.is_multiple_of(2) {
                made.append(Event::WaitEnded {
                    by: WaitEnd::Elapsed,
                });
            }
        }
        Step::Checkpoint => {
            let state: Box<LoopState> = Box::new(made.state.clone());
            made.append(Event::Checkpoint { state });
        }
        Step::End if over => made.append(Event::LoopReopened),
        Step::End => {
            let reason = IterativeExitReason::UserCancelled;
            made.append(Event::LoopFinished { reason });
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Whatever happens to a loop and wherever its checkpoints stand: the quick look, the full
    /// fold and the loop's own state are the same.
    #[test]
    fn the_quick_look_is_the_full_fold(steps in prop::collection::vec(step(), 1..40)) {
        let world = world();
        let mut made = world.made("0192aaaa-1");
        let found = world.find("auth");
        for step in &steps {
            happen(&mut made, step);
            let quick = found.state().unwrap();
            prop_assert_eq!(&quick, &found.state_by_full_fold().unwrap());
            prop_assert_eq!(&quick, &made.state);
        }
    }
}
