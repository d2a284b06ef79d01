//! A working directory that an agent moves or deletes is never made anew, and proves nothing.

use descartes_testkit::World;
use descartes_testkit::world::Finished;

use crate::common::descartes;
use crate::task_common::said;

const GATE: &str = "! grep -rq TODO --include=*.txt .";

fn run(world: &World, deed: &str) -> Finished {
    world.write("todo.txt", "TODO\n");
    let script = format!("#!/bin/sh\n{deed}\necho '<promise>COMPLETE</promise>'\n");
    let agent = world.program("agent.sh", &script);
    let mut command = world.descartes(["loop", "start", "-p", "go", "-m", "4", "--verify", GATE]);
    command.arg("--command").arg(agent);
    world.run(command)
}

#[test]
fn a_working_directory_that_was_moved_away_ends_the_loop_and_stays_away() {
    for git in [false, true] {
        let world = World::in_memory();
        if git {
            world.git_init();
        }
        let ended = run(&world, "mv \"$PWD\" \"$PWD-renamed\"");
        ended.assert_code(1);
        let told = said(&ended);
        assert!(told.contains("was moved to"), "{told}");
        assert!(!told.contains("git is not installed"), "{told}");
        assert!(!world.project().exists(), "{told}");
        let renamed = world.root().join("project-renamed");
        std::fs::rename(&renamed, world.project()).unwrap();
        let status = descartes(&world, &["loop", "status"]).stdout();
        assert!(status.contains("was moved to"), "{status}");
        // Back, and mended by the person, it goes on.
        world.program(
            "agent.sh",
            "#!/bin/sh\necho '<promise>COMPLETE</promise>'\n",
        );
        world.write("todo.txt", "done\n");
        descartes(&world, &["loop", "resume"]).assert_code(0);
    }
}

#[test]
fn a_deleted_working_directory_is_not_proven_by_its_emptiness() {
    let world = World::in_memory();
    let ended = run(&world, "rm -rf \"$PWD\"");
    ended.assert_code(1);
    assert!(said(&ended).contains("was deleted"), "{ended}");
    assert!(!world.project().exists());
    std::fs::create_dir(world.project()).unwrap();
}

#[test]
fn another_directory_of_the_same_name_proves_nothing() {
    let world = World::in_memory();
    let ended = run(&world, "d=$PWD; mv \"$d\" \"$d-renamed\"; mkdir \"$d\"");
    ended.assert_code(1);
    assert!(said(&ended).contains("another one has its name"), "{ended}");
    let left = std::fs::read_dir(world.project()).unwrap().count();
    assert_eq!(left, 0, "nothing was written into it");
}
