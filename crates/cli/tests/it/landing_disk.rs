//! A landing that fails in the middle, as on a full disk, leaves a person's checkout as it was.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use descartes_testkit::World;

use crate::landing::{tasks, with_agent};
use crate::landing_statuses::git_that;
use crate::task_common::{run, said};

/// What the real git says where a disk is full, beyond which file it was.
const FULL: &str = "error: No space left on device";
const SCRIPT: &str =
    "echo new > base; echo new > lost; rm gone; mkdir -p new/dir; echo x > new/dir/file
ln -s base link; head -c 300000 /dev/zero > large; head -c 300000 /dev/zero > changed
echo new > \"$(printf 'odd\\n\\377')\"; echo new > '\"quoted'
rm -r a-*; for n in a-file a-link; do mkdir $n; echo new > $n/x; done; echo new > a-folder";
/// A name that is no text and has two lines.
const ODD: &[u8] = b"odd\n\xff";

/// A person's checkout with changes of their own.
fn project() -> World {
    let world = tasks(1);
    for name in ["base", "lost", "gone", "kept", "changed"] {
        world.write(name, "old\n");
    }
    std::fs::write(world.project().join(OsStr::from_bytes(ODD)), "old\n").unwrap();
    // A file and a link become folders, and a folder a file.
    world.write("a-file", "old\n");
    world.write("a-folder/x", "old\n");
    world.write("a-folder/y", "old\n");
    std::fs::create_dir(world.root().join("elsewhere")).unwrap();
    std::fs::write(world.root().join("elsewhere/x"), "theirs\n").unwrap();
    symlink("../elsewhere", world.path("a-link")).unwrap();
    world.git(["add", "."]);
    world.git(["commit", "-qm", "files"]);
    world.write("kept", "mine\n");
    world.write("mine", "mine\n");
    std::fs::remove_file(world.path("lost")).unwrap();
    world
}

/// While there is a file `full`, the fast-forward of the user's checkout may write no file of more
/// than 100 KiB; and git does this besides.
fn on_a_small_disk(world: &World, says: &str, besides: &str) {
    let full = world.state().join("full");
    std::fs::create_dir_all(world.state()).unwrap();
    std::fs::write(&full, "").unwrap();
    git_that(
        world,
        &format!(
            "if [ -e {} ]; then case \"$PWD: $* \" in
*/project:*' --ff-only '*) trap '' XFSZ; (ulimit -f 200; $real \"$@\"); code=$?; echo '{says}' >&2; exit $code;;
{besides}
esac; fi",
            full.display()
        ),
    );
}

fn status(world: &World) -> String {
    world.git([
        "status",
        "--porcelain",
        "--untracked-files=all",
        "--",
        ".",
        ":!.scud",
    ])
}

fn odd(world: &World) -> String {
    std::fs::read_to_string(world.project().join(OsStr::from_bytes(ODD))).unwrap()
}

#[track_caller]
fn assert_landed(world: &World, why: &str) {
    assert_eq!(status(world).trim(), "M kept\n?? mine", "{why}");
    for (name, text) in [
        ("base", "new\n"),
        ("lost", "new\n"),
        ("new/dir/file", "x\n"),
        ("link", "new\n"),
        ("kept", "mine\n"),
        ("mine", "mine\n"),
        ("\"quoted", "new\n"),
        ("a-file/x", "new\n"),
        ("a-link/x", "new\n"),
        ("a-folder", "new\n"),
        ("../elsewhere/x", "theirs\n"),
    ] {
        assert_eq!(world.read(name), text, "{name}: {why}");
    }
    assert_eq!(odd(world), "new\n", "{why}");
    let sizes = ["large", "changed"].map(|name| world.read(name).len());
    assert_eq!(sizes, [300_000; 2], "{why}");
    assert!(!world.has("gone"), "{why}");
    let log = world.git(["log", "-1", "--format=%s"]);
    assert_eq!(log, "chore(auth): mark task 1 done", "{why}");
}

#[test]
fn a_landing_that_fails_halfway_leaves_the_checkout_as_it_was_and_lands_later() {
    for (says, flags, code, words) in [
        (FULL, &[][..], 1, "the disk is full"),
        (FULL, &["--no-wave-barrier"], 1, "the disk is full"),
        ("", &[], 6, "unable to write file"),
    ] {
        let world = project();
        let before = status(&world);
        let head = world.git(["rev-parse", "HEAD"]);
        on_a_small_disk(&world, says, "");
        let flags = [&["--verify", "true"], flags].concat();
        let done = with_agent(&world, SCRIPT, &flags);
        done.assert_code(code);
        let told = said(&done);
        assert!(told.contains(words), "{done}");
        assert!(!told.contains("local changes"), "{done}");
        assert_eq!(status(&world), before, "{done}");
        assert_eq!(world.git(["rev-parse", "HEAD"]), head);
        assert_eq!(world.git(["diff", "--cached", "--name-only"]), "", "{done}");
        assert!(!world.has("new") && !world.has("lost"), "{done}");
        assert_eq!(
            (world.read("changed"), odd(&world)),
            ("old\n".into(), "old\n".into())
        );
        assert_eq!(world.read("a-folder/y"), "old\n");
        assert!(world.path("a-link").is_symlink(), "{done}");
        // Still full: the same once more, and nothing is lost.
        run(&world, &["work", "land"]).assert_code(code);
        assert_eq!(status(&world), before);
        std::fs::remove_file(world.state().join("full")).unwrap();
        let landed = run(&world, &["work", "land"]);
        landed.assert_code(0);
        assert_landed(&world, &landed.to_string());
    }
}

#[test]
fn what_a_full_disk_left_in_the_checkout_is_told_from_a_persons_files() {
    for command in [&["work", "land"][..], &["loop", "resume"]] {
        let world = project();
        // Putting back fails as well.
        on_a_small_disk(
            &world,
            FULL,
            "*/project:*' checkout-index '*) echo 'error: unable to write: No space left on device' >&2; exit 1;;
*/project:*' update-ref --stdin '*) refs=$(cat); case \"$refs\" in *=ready*) echo 'fatal: No space left on device' >&2; exit 1;; esac
printf '%s\\n' \"$refs\" | $real \"$@\"; exit $?;;",
        );
        let done = with_agent(&world, SCRIPT, &["--verify", "true"]);
        done.assert_code(1);
        assert!(said(&done).contains("the disk is full"), "{done}");
        assert_eq!(world.read("base"), "new\n", "{done}");
        run(&world, command).assert_code(1);
        std::fs::remove_file(world.state().join("full")).unwrap();
        let landed = run(&world, command);
        landed.assert_code(0);
        assert!(!said(&landed).contains("local changes"), "{landed}");
        assert_landed(&world, &landed.to_string());
    }
}

/// The fast-forward is killed when it comes to the file `m`: what is deleted is gone, files before `m`
/// are written, and others are not.
#[test]
fn a_killed_landing_that_turns_files_into_folders_is_finished() {
    let world = project();
    let kills = format!(
        "#!/bin/sh\ncat > {1}/m\nif [ \"$PWD\" = {0} ] && [ ! -e {1}/killed ]; then touch {1}/killed\n\
         printf 'ne' > {0}/a-file/x; echo mine > {0}/a-link/mine; rm -f {0}/.git/index.lock; kill -9 $PPID; fi\ncat {1}/m\n",
        world.project().display(),
        world.state().display()
    );
    let kills = world.program("smudge", &kills);
    world.write(".gitattributes", "m filter=kills\n");
    world.git(["config", "filter.kills.smudge", kills.to_str().unwrap()]);
    for (name, to) in [("b-link", "old"), ("z-link", "old")] {
        symlink(to, world.path(name)).unwrap();
    }
    world.write("b-folder/x", "old\n");
    world.write("z-folder/x", "old\n");
    world.write("z-file", "old\n");
    world.git(["add", ".gitattributes", "b-*", "z-*"]);
    world.git(["commit", "-qm", "more files"]);
    let script = format!(
        "{SCRIPT}\necho new > m; rm -r b-* z-*; for n in b z; do ln -s new $n-link; done
ln -s ../elsewhere b-folder; echo new > z-folder; mkdir z-file; echo new > z-file/x"
    );
    let done = with_agent(&world, &script, &["--verify", "true"]);
    done.assert_code(6);
    assert!(world.state().join("killed").exists(), "{done}");
    // What a person put there in between is in the way, and stays.
    run(&world, &["work", "land"]).assert_code(6);
    assert_eq!(world.read("a-link/mine"), "mine\n", "{done}");
    std::fs::remove_file(world.path("a-link/mine")).unwrap();
    let landed = run(&world, &["work", "land"]);
    landed.assert_code(0);
    assert_landed(&world, &landed.to_string());
    for (name, to) in [
        ("b-link", "new"),
        ("z-link", "new"),
        ("b-folder", "../elsewhere"),
    ] {
        assert_eq!(
            std::fs::read_link(world.path(name)).unwrap(),
            OsStr::new(to),
            "{landed}"
        );
    }
    for name in ["z-folder", "z-file/x"] {
        assert_eq!(world.read(name), "new\n", "{landed}");
    }
}
