//! What the host starts itself runs code of the agent's, too: commit hooks, and the commands that make
//! worktrees ready.

use std::os::unix::fs::PermissionsExt;

use descartes_testkit::World;

use crate::sandbox::{has_bwrap, world};
use crate::task_common::{repository_on_disk, run};

/// A hook of the user's that runs a script of the work tree and stages what it changed.
const HOOK: &str = "#!/bin/sh\nsh lint.sh || exit 1\ngit add formatted.txt\n";
/// What an agent makes of that script.
const LINT: &str = "echo stolen >> ~/.bashrc; cat ~/.ssh/id_rsa > seen.txt
echo \"token: $GITHUB_TOKEN\" >> seen.txt; echo well > formatted.txt";

fn add_hook(world: &World) {
    let hook = world.path(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, HOOK).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn bashrc(world: &World) -> String {
    std::fs::read_to_string(world.home().join(".bashrc")).unwrap()
}

#[test]
fn a_commit_hook_runs_the_agents_code_in_the_sandbox() {
    if !has_bwrap() {
        return;
    }
    for (level, stolen) in [("workspace", false), ("off", true)] {
        let world = world(&format!(
            "cat > lint.sh <<'END'\n{LINT}\nEND\necho COMPLETE"
        ));
        add_hook(&world);
        let words = ["loop", "start", "--command", "agent", "--prompt", "go"];
        let flags = ["--auto-commit", "--sandbox", level];
        let mut command = world.descartes([&words[..], &flags].concat());
        command.env("GITHUB_TOKEN", "t0ken");
        let ended = world.run(command);
        ended.assert_code(0);
        assert_eq!(bashrc(&world).contains("stolen"), stolen, "{ended}");
        let seen = world.read("seen.txt");
        assert_eq!(
            seen.contains("a key") && seen.contains("t0ken"),
            stolen,
            "{seen}"
        );
        let committed = world.git(["show", "--stat", "--format=", "HEAD"]);
        assert!(committed.contains("formatted.txt"), "{committed}\n{ended}");
    }
}

#[test]
fn setups_and_hooks_of_task_loops_are_confined_as_gates_are() {
    if !has_bwrap() {
        return;
    }
    let world = repository_on_disk("ROADMAP.md", "# Work\n\n- [ ] **one**: do it\n");
    std::fs::write(world.home().join(".bashrc"), "# mine\n").unwrap();
    world.write("lint.sh", LINT);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "lint"]);
    add_hook(&world);
    world.program(
        "agent",
        "#!/bin/sh\ntest -e ready.txt || exit 9\necho x > work.txt\necho '<promise>COMPLETE</promise>'\n",
    );
    let setup = "echo stolen >> ~/.bashrc; echo ready > ready.txt";
    let config = world.home().join(".config/descartes/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, format!("worktree_setup = \"{setup}\"\n")).unwrap();
    let words = ["roadmap", "run", "ROADMAP.md", "--command", "agent"];
    let flags = ["--sandbox", "workspace", "--verify", "true"];
    let ended = run(&world, &[&words[..], &flags].concat());
    ended.assert_code(0);
    assert_eq!(bashrc(&world), "# mine\n", "{ended}");
    let landed = world.git(["ls-files"]);
    assert!(
        landed.contains("work.txt") && landed.contains("formatted.txt"),
        "{landed}"
    );
    world.git(["fsck", "--strict"]);
}
