//! The task file is edited while its tasks run: lines of running tasks go, come back, go while their
//! work is merged. No slot ever has two agents, and nothing lands that nobody asked for.

use descartes_testkit::World;
use descartes_testkit::world::Finished;

use crate::task_common::{repository, run, said};

const ROADMAP: &str = "# Roadmap\n\n## Tasks\n- [ ] **a**: First\n- [ ] **b**: Second\n\
    - [ ] **c**: Third\n";

/// What every agent does at first: it notes that it is at work in this slot, and that another is.
const ENTER: &str = r#"
SLOT="$ROOT/in-$(basename "$PWD")"
mkdir "$SLOT" || echo "$DESCARTES_TASK_ID met another agent in $SLOT" >> "$ROOT/clashes"
leave() { rmdir "$SLOT"; exit 0; }
work() { echo x > "work-$DESCARTES_TASK_ID"; echo '<promise>COMPLETE</promise>'; leave; }
without_a() { sed -i '/\*\*a\*\*/d' "$ROADMAP"; }
with_a() { printf -- '- [ ] **a**: First\n' >> "$ROADMAP"; }
"#;

/// Runs the roadmap, two at a time, with a shell script for an agent.
fn edited(world: &World, script: &str, gate: &str) -> Finished {
    let root = world.root().display();
    let script = format!(
        "ROOT={root}\nROADMAP={}\n{ENTER}\n{script}\n",
        world.path("ROADMAP.md").display()
    );
    let agent = world.root().join("agent.sh");
    std::fs::write(&agent, script).unwrap();
    let agent = format!("sh {}", agent.display());
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    let flags = ["--parallel", "2", "--verify", gate, "--timeout", "100s"];
    run(world, &[&words[..], &flags].concat())
}

#[track_caller]
fn assert_apart(world: &World) {
    let clashes = std::fs::read_to_string(world.root().join("clashes"));
    assert_eq!(clashes.unwrap_or_default(), "", "a slot has one agent");
}

#[test]
fn the_slot_of_a_task_whose_line_goes_is_free_when_its_agent_has_ended() {
    let world = repository("ROADMAP.md", ROADMAP);
    // The first does not let itself be ended, and goes on writing; the second holds the other slot.
    let script = r#"
late() { for n in 1 2 3 4 5 6 7 8 9 10; do echo late >> late; sleep 0.2; done; touch "$ROOT/over"; leave; }
case $DESCARTES_TASK_ID in
a) trap late TERM; without_a; while :; do sleep 0.1; done ;;
b) until [ -e "$ROOT/over" ]; do sleep 0.1; done ;;
esac
work
"#;
    let ended = edited(&world, script, "true");
    ended.assert_code(6);
    assert_apart(&world);
    assert!(world.has("work-b") && world.has("work-c"), "{ended}");
    assert!(!world.has("late"), "what nobody proved does not land");
    let told = said(&ended);
    assert!(told.contains("removed from the file"), "{told}");
}

#[test]
fn a_task_that_comes_back_is_started_again_when_its_first_agent_has_ended() {
    let world = repository("ROADMAP.md", ROADMAP);
    let script = r#"
late() { with_a; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.25; done; echo green > late; rmdir "$ROOT/a"; work; }
if [ "$DESCARTES_TASK_ID" = a ]; then
    mkdir "$ROOT/a" || echo "a runs twice" >> "$ROOT/clashes"
    [ -e "$ROOT/first" ] || { touch "$ROOT/first"; trap late TERM; without_a; while :; do sleep 0.1; done; }
    rmdir "$ROOT/a"
    touch "$ROOT/second"
fi
work
"#;
    let ended = edited(&world, script, "true");
    ended.assert_code(0);
    assert_apart(&world);
    assert!(world.root().join("second").exists(), "it ran again");
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 3);
}

#[test]
fn the_box_of_an_equal_under_another_heading_is_not_ticked() {
    let list = "# Work\n\n## A\n\n- [ ] write tests\n\n## B\n\n- [ ] write tests\n";
    let world = repository("TODO.md", list);
    // The agent at A's takes its line away, and does its work all the same.
    let script = format!(
        "[ -e {0}/first ] && exit 7\ntouch {0}/first\nsed -i '5d' {1}\nsleep 3\n\
         echo x > work\necho '<promise>COMPLETE</promise>'\n",
        world.root().display(),
        world.path("TODO.md").display()
    );
    let agent = world.root().join("agent.sh");
    std::fs::write(&agent, script).unwrap();
    let agent = format!("sh {}", agent.display());
    let words = ["roadmap", "run", "TODO.md", "--command", &agent];
    let ended = run(&world, &[&words[..], &["--verify", "true"]].concat());
    ended.assert_code(6);
    let left = world.read("TODO.md");
    assert!(left.contains("## B\n\n- [ ] write tests"), "{left}");
    assert!(said(&ended).contains("1: removed from the file"), "{ended}");
}

#[test]
fn a_task_whose_line_goes_while_its_work_is_merged_does_not_land() {
    let world = repository("ROADMAP.md", ROADMAP);
    // Outside of slots gates run on merged work: there the first takes the line away, and waits.
    let gate = format!(
        "case $PWD in */slot-*) ;; *) test ! -e work-a || {{ sed -i '/[*]a[*]/d' {}; sleep 60; }} ;; esac",
        world.path("ROADMAP.md").display()
    );
    let script = "[ $DESCARTES_TASK_ID = a ] || sleep 1\nwork";
    let ended = edited(&world, script, &gate);
    ended.assert_code(6);
    assert_apart(&world);
    assert!(world.has("work-b") && world.has("work-c"), "{ended}");
    assert!(!world.has("work-a"), "{ended}");
    assert!(said(&ended).contains("removed from the file"), "{ended}");
}
