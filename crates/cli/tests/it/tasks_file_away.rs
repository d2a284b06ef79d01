//! A task file that is away for a while: editors and other tools move it, replace it, or are in the
//! middle of writing it. Nothing is lost, and the loop goes on when it is back.

use std::path::Path;
use std::time::Duration;

use descartes_testkit::world::Finished;
use descartes_testkit::{World, eventually};

use crate::common::loops;
use crate::task_common::{graph, repository, said, scud_project, statuses};

const WAITED: &str = "the task file cannot be used at the moment";

/// Runs a loop whose agent puts the task file away at its first task; it is put back once the loop
/// has said that it misses it.
fn run_without(world: &World, file: &Path, words: &[&str]) -> Finished {
    let away = world.root().join("put-away");
    let script = format!(
        "#!/bin/sh\nif [ ! -e {away}.once ]; then touch {away}.once; mv {file} {away}; fi\n\
         echo x > work-$DESCARTES_TASK_ID\necho '<promise>COMPLETE</promise>'\n",
        away = away.display(),
        file = file.display(),
    );
    let agent = world.program("moving-agent", &script);
    let agent = agent.display().to_string();
    let mut command = world.descartes(words);
    command.args(["--command", &agent]);
    std::thread::scope(|scope| {
        let loop_run = scope.spawn(|| world.run_within(command, Duration::from_secs(180)));
        let misses = || {
            loops(world).iter().any(|folder| {
                let journal = std::fs::read_to_string(folder.join("journal.jsonl"));
                journal.is_ok_and(|journal| journal.contains(WAITED))
            })
        };
        eventually(
            "the loop misses its task file",
            Duration::from_secs(120),
            misses,
        );
        std::fs::rename(&away, file).unwrap();
        loop_run.join().unwrap()
    })
}

#[test]
fn a_scud_file_that_is_away_is_waited_for_and_green_work_lands() {
    let world = scud_project(graph("1 | One | P | 1 | H\n2 | Two | P | 1 | M", ""));
    let file = world.project().join(".scud/tasks/tasks.scg");
    let words = ["loop", "start", "--scud-tag", "auth", "--verify", "true"];
    let ended = run_without(&world, &file, &words);
    ended.assert_code(0);
    assert_eq!(said(&ended).matches(WAITED).count(), 1, "{}", said(&ended));
    assert_eq!(statuses(&world), "DD");
    assert!(world.has("work-1") && world.has("work-2"));
}

#[test]
fn a_roadmap_that_is_away_is_waited_for_and_its_boxes_are_ticked() {
    let world = repository(
        "ROADMAP.md",
        "# Roadmap\n\n## Tasks\n- [ ] **a**: First\n- [ ] **b**: Second\n",
    );
    let file = world.project().join("ROADMAP.md");
    let ended = run_without(&world, &file, &["roadmap", "run", "ROADMAP.md"]);
    ended.assert_code(0);
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 2);
}

#[test]
fn a_file_that_is_half_written_takes_no_task_away() {
    let world = repository(
        "ROADMAP.md",
        "# Roadmap\n\n## Tasks\n- [ ] **a**: First\n- [ ] **b**: Second\n- [ ] **c**: Third\n",
    );
    let script = format!(
        "#!/bin/sh\nFILE={file}\n\
         if [ $DESCARTES_TASK_ID = a ]; then cp $FILE {whole}; head -n 4 {whole} > $FILE; sleep 0.3\n\
         cat {whole} > $FILE; fi\necho x > work-$DESCARTES_TASK_ID\n",
        file = world.project().join("ROADMAP.md").display(),
        whole = world.root().join("whole").display(),
    );
    let agent = world
        .program("writing-agent", &script)
        .display()
        .to_string();
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    let ended = crate::task_common::run(&world, &words);
    ended.assert_code(0);
    assert!(world.has("work-b") && world.has("work-c"));
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 3);
}
