//! A task file that is away for a while: editors and other tools move it, replace it, or are in the
//! middle of writing it. Nothing is lost, and the loop goes on when it is back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_testkit::world::Finished;
use descartes_testkit::{World, eventually};

use crate::common::{descartes, loops};
use crate::task_common::{graph, repository, said, scud_project, statuses};

const WAITED: &str = "the task file cannot be used at the moment";

/// Runs a loop whose agent puts the task file away at its first task; it is put back once the loop
/// has said that it misses it.
fn run_without(world: &World, file: &Path, words: &[&str]) -> Finished {
    run_breaking(world, file, "mv $FILE $AWAY", words)
}

/// An agent that keeps the task file in `$AWAY` at its first task, and does this to it.
fn breaking_agent(world: &World, file: &Path, breaking: &str) -> String {
    let script = format!(
        "#!/bin/sh\nFILE={file}\nAWAY={away}\n\
         if [ ! -e $AWAY.once ]; then touch $AWAY.once; cp $FILE $AWAY; {breaking}; fi\n\
         echo x > work-$DESCARTES_TASK_ID\necho '<promise>COMPLETE</promise>'\n",
        away = away(world).display(),
        file = file.display(),
    );
    let agent = world.program("breaking-agent", &script);
    agent.display().to_string()
}

fn away(world: &World) -> PathBuf {
    world.root().join("put-away")
}

/// Runs a loop with such an agent; the file is put back once the loop has said that it misses it.
fn run_breaking(world: &World, file: &Path, breaking: &str, words: &[&str]) -> Finished {
    let agent = breaking_agent(world, file, breaking);
    let words = [words, &["--command", &agent]].concat();
    run_until_missed(world, &words, || {
        std::fs::rename(away(world), file).unwrap()
    })
}

/// Runs a loop, and does something once it has said that it misses its task file.
fn run_until_missed(world: &World, words: &[&str], then: impl Fn()) -> Finished {
    let command = world.descartes(words);
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
        then();
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

const LIST: &str = "# To do\n\n- [ ] First\n- [ ] Second\n- [ ] Third\n";

#[test]
fn a_list_that_another_tool_empties_for_a_moment_loses_no_task() {
    for breaking in [
        ": > $FILE",
        "printf '# To do' > $FILE",
        "printf '# To do\\n\\n- [ ] Something else\\n' > $FILE",
    ] {
        let world = repository("TODO.md", LIST);
        let file = world.project().join("TODO.md");
        let ended = run_breaking(&world, &file, breaking, &["roadmap", "run", "TODO.md"]);
        ended.assert_code(0);
        assert_eq!(
            world.read("TODO.md"),
            LIST.replace("[ ]", "[x]"),
            "{breaking}"
        );
        let works = ["1", "2", "3"].map(|task| world.has(format!("work-{task}")));
        assert_eq!(works, [true; 3], "{breaking}");
    }
}

#[test]
fn a_list_that_stays_empty_ends_no_loop_as_done() {
    let world = repository("TODO.md", LIST);
    let file = world.project().join("TODO.md");
    let agent = breaking_agent(&world, &file, ": > $FILE");
    let words = ["roadmap", "run", "TODO.md", "--command", &agent];
    let ended = run_until_missed(&world, &words, || {
        descartes(&world, &["loop", "cancel"]).assert_code(0);
    });
    ended.assert_code(130);
    assert!(!world.has("work-2") && !world.has("work-3"));
    assert_eq!(world.read("TODO.md"), "");
}
