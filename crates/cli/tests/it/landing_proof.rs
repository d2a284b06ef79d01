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

/// What they hide would be removed from the tree, and what is hidden there would land.
#[test]
fn excludes_that_cannot_be_read_are_named_and_nothing_begins() {
    let world = tasks(1);
    let exclude = world.path(".git/info/exclude");
    std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    drop(std::fs::remove_file(&exclude));
    std::os::unix::fs::symlink("exclude", &exclude).unwrap();
    let done = with_agent(&world, "echo x > work", &["--verify", "true"]);
    done.assert_code(65);
    assert!(
        said(&done).contains("info/exclude cannot be read"),
        "{done}"
    );
}

/// Whether files were in conflict decides what lands.
#[test]
fn a_note_of_conflicts_that_cannot_be_read_is_not_taken_for_none() {
    let world = tasks(1);
    let head = world.git(["rev-parse", "HEAD"]);
    let script = "mkdir ../conflicts-1; echo x > work";
    let done = with_agent(&world, script, &["--verify", "true"]);
    assert_eq!(world.git(["rev-parse", "HEAD"]), head, "{done}");
    assert!(
        said(&done).contains("conflicts-1 is no file of ours"),
        "{done}"
    );
}

/// A cache may claim more bytes than any disk has.
#[test]
fn a_cache_with_holes_is_copied_with_its_holes() {
    let world = tasks(1);
    world.write(".gitignore", "node_modules/\n");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "files"]);
    let script = "mkdir node_modules; truncate -s 300G node_modules/big; echo 1 > node_modules/ok; echo y > work";
    let gate = "[ $(du -sk node_modules | cut -f1) -lt 1000 ] && test -e node_modules/ok";
    with_agent(&world, script, &["--verify", gate]).assert_code(0);
}

/// A folder of the slot takes the place of a link that a gate, or a setup, made where no agent works.
#[test]
fn a_link_in_the_place_of_a_cache_keeps_no_work_from_landing() {
    let world = tasks(1);
    world.write(".gitignore", "node_modules/\n");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "files"]);
    let script = "mkdir node_modules; echo 1 > node_modules/ok; echo y > work";
    let gate =
        "case $PWD in */merged) ln -sfn /nowhere node_modules;; esac; test -e node_modules/ok";
    with_agent(&world, script, &["--verify", gate]).assert_code(0);
    assert_eq!(world.git(["show", "HEAD:work"]), "y");
}

/// Where a person has a part of the tree checked out, new work may lie outside of it.
#[test]
fn gates_see_all_of_the_work_where_a_part_of_the_tree_is_checked_out() {
    for set in [
        &["--no-cone", "/README.md", "/.scud/"][..],
        &["--cone", ".scud"],
    ] {
        let world = tasks(1);
        world.write("big/file", "x");
        world.git(["add", "."]);
        world.git(["commit", "-qm", "files"]);
        world.git([&["sparse-checkout", "set"], set].concat());
        let script = "mkdir -p new; echo x > new/work";
        let gate = "test -e new/work && test ! -e big/file";
        with_agent(&world, script, &["--verify", gate]).assert_code(0);
        assert_eq!(world.git(["show", "HEAD:new/work"]), "x");
        assert!(!world.has("big/file"));
    }
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

/// Hooks and files that an agent puts where no agent works make nothing green.
#[test]
fn hooks_and_files_of_agents_do_not_make_gates_green() {
    let hooks = "H=$(git rev-parse --git-common-dir)/hooks/pre-commit; mkdir -p ${H%/*}
printf '#!/bin/sh\\ntouch need.ign\\n' > $H; chmod +x $H; touch need.ign; echo y > work";
    let husky = "mkdir -p .husky; printf '#!/bin/sh\\ntouch need.ign\\n' > .husky/pre-commit
chmod +x .husky/pre-commit; git config core.hooksPath .husky; touch need.ign";
    let beside = "touch need.ign ../merged/need.ign; echo y > work";
    for script in [hooks, husky, beside] {
        let world = tasks(1);
        world.write(".gitignore", "*.ign\n");
        world.git(["add", "."]);
        world.git(["commit", "-qm", "files"]);
        let head = world.git(["rev-parse", "HEAD"]);
        let flags = [
            "--verify",
            "test -e need.ign",
            "--max-iterations-per-task",
            "2",
        ];
        let done = with_agent(&world, script, &flags);
        done.assert_code(6);
        assert_eq!(world.git(["rev-parse", "HEAD"]), head, "{script}: {done}");
        assert!(said(&done).contains("red after the merge"), "{done}");
    }
}

/// The hooks of the loop's beginning run on what is merged, and what they make is proof of
/// nothing; what gates leave stays.
#[test]
fn hooks_of_the_beginning_run_and_gates_keep_their_caches() {
    for folder in [".git/hooks", ".husky", "tools/hooks"] {
        let world = tasks(2);
        world.write(".gitignore", "*.ign\n");
        world.write("tools/lib.sh", "");
        let text = format!(
            "#!/bin/sh\ntouch made.ign; W=alone; [ ! -e \"$(dirname \"$0\")/../lib.sh\" ] || W=lib\n\
             echo \"$W in $(basename \"$PWD\")\" >> {}/hooked\n",
            world.state().display()
        );
        let hook = world.write(format!("{folder}/pre-commit"), text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(hook, mode).unwrap();
        if folder != ".git/hooks" {
            world.git(["config", "core.hooksPath", folder]);
        }
        world.git(["add", "."]);
        world.git(["commit", "-qm", "files", "--no-verify"]);
        // Where it is merged, the gate counts its own runs in a file that git ignores.
        let gate = format!(
            "case $PWD in */merged) test ! -e made.ign && echo gate >> count.ign && cp count.ign {}/count;; esac",
            world.state().display()
        );
        let script = "echo x > work-$DESCARTES_TASK_ID";
        let flags = ["--verify", gate.as_str(), "--no-wave-barrier"];
        let done = with_agent(&world, script, &flags);
        done.assert_code(0);
        let hooked = std::fs::read_to_string(world.state().join("hooked")).unwrap();
        // What lies beside hooks in the user's tree is there as well.
        let wanted = match folder {
            "tools/hooks" => "lib in merged",
            _ => "alone in merged",
        };
        assert!(hooked.contains(wanted), "{folder}: {hooked}");
        let count = std::fs::read_to_string(world.state().join("count")).unwrap();
        assert!(count.starts_with("gate\ngate\n"), "{folder}: {done}");
    }
}
