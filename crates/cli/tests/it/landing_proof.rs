//! What lands has been proven where no agent works.

use crate::landing::{tasks, with_agent};
use crate::task_common::said;

/// Each makes the gate green in its own worktree by something that no commit holds.
#[test]
fn tricks_that_no_commit_holds_do_not_land() {
    let exclude = "echo need.txt >> $(git rev-parse --git-common-dir)/info/exclude
echo x > need.txt; echo y > work";
    let filter = "git config filter.odd.clean 'echo no'; git config filter.odd.smudge 'echo yes'
echo 'flag filter=odd' >> $(git rev-parse --git-common-dir)/info/attributes
echo yes > flag; echo y > work";
    let table = [
        (
            "echo x > need.ign; echo y > work",
            "test -e need.ign",
            "need.ign",
        ),
        (exclude, "test -e need.txt", "need.txt"),
        (filter, "grep -q yes flag", ""),
    ];
    for (script, gate, named) in table {
        let world = tasks(1);
        world.write(".gitignore", "*.ign\n");
        world.write("flag", "no\n");
        world.git(["add", "."]);
        world.git(["commit", "-qm", "files"]);
        let head = world.git(["rev-parse", "HEAD"]);
        let done = with_agent(
            &world,
            script,
            &["--verify", gate, "--max-iterations-per-task", "2"],
        );
        done.assert_code(6);
        assert_eq!(world.git(["rev-parse", "HEAD"]), head, "{script}: {done}");
        let words = said(&done);
        assert!(words.contains("red after the merge"), "{words}");
        assert!(words.contains(named), "{words}");
    }
}

/// Marks that keep git from looking at a file do not keep its change out of the commit.
#[test]
fn marks_in_the_index_hide_nothing() {
    for mark in ["--assume-unchanged", "--skip-worktree"] {
        let world = tasks(1);
        world.write("flag", "no\n");
        world.git(["add", "."]);
        world.git(["commit", "-qm", "files"]);
        let script = format!("git update-index {mark} flag; echo yes > flag; echo y > work");
        with_agent(&world, &script, &["--verify", "grep -q yes flag"]).assert_code(0);
        assert_eq!(world.git(["show", "HEAD:flag"]), "yes", "{mark}");
    }
}

#[test]
fn caches_of_the_slot_are_taken_where_the_gates_are_red_without_them_and_named() {
    let world = tasks(1);
    world.write(".gitignore", "node_modules/\n");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "files"]);
    let script = "mkdir -p node_modules/dep; echo x > node_modules/dep/index; echo y > work";
    let done = with_agent(
        &world,
        script,
        &["--json", "--verify", "test -e node_modules/dep/index"],
    );
    done.assert_code(0);
    let proof = done.stdout();
    let proof = proof
        .lines()
        .find(|line| line.contains("\"tree_proven\""))
        .unwrap_or_default();
    assert!(
        proof.contains("\"caches\":[\"node_modules\"]") && proof.contains("\"integration\""),
        "{done}"
    );
}

#[test]
fn gates_run_once_on_a_tree_that_lands_and_copied_files_and_setup_are_there() {
    let world = tasks(1);
    world.write(".gitignore", ".env\ndeps\n");
    let config = world.home().join(".config/descartes");
    std::fs::create_dir_all(&config).unwrap();
    let text = "worktree_copy = [\".env\"]\nworktree_setup = \"touch deps\"\n";
    std::fs::write(config.join("config.toml"), text).unwrap();
    world.write(".env", "secret");
    world.git(["add", ".gitignore"]);
    world.git(["commit", "-qm", "files"]);
    let gate = "test -e .env && test -e deps && echo $(basename $PWD) >> ../gates";
    let done = with_agent(&world, "echo x > work", &["--verify", gate]);
    done.assert_code(0);
    // The folder of worktrees holds nothing else when all is over, so it was left.
    let folder = world.state().join("worktrees");
    let folder = std::fs::read_dir(folder).unwrap().flatten().next().unwrap();
    let gates = std::fs::read_to_string(folder.path().join("gates")).unwrap();
    assert_eq!(gates, "slot-0\nmerged\n", "{done}");
}
