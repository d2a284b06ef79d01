//! Whatever happens to a work tree, the quick way gives what the slow way gives.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use descartes_core::worktree::{Tree, TreeOptions, Watching};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::world::{World, git_tree, snap};

#[derive(Clone, Debug)]
enum Step {
    Write(usize, u8),
    Remove(usize),
    Rename(usize, usize),
    Folder(usize),
    Link(usize, u8),
    Executable(usize),
    Ignore(usize, usize),
    Attributes(usize),
    Commit,
    Snapshot,
    Late,
}

/// Few names, so that steps meet.
const PATHS: [&str; 10] = [
    "a", "b", "d/a", "d/b", "d/e/a", "d/e/f/b", "g/a.log", "g/h", "g", "d/e",
];
const RULES: [&str; 6] = ["", "*.log\n", "d/e\n", "g/\n!g/h\n", "/a\n", "b\n"];

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    prop_oneof![
        6 => (path(), any::<u8>()).prop_map(|(path, byte)| Step::Write(path, byte % 4)),
        2 => path().prop_map(Step::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => path().prop_map(Step::Folder),
        1 => (path(), any::<u8>()).prop_map(|(path, to)| Step::Link(path, to % 2)),
        1 => path().prop_map(Step::Executable),
        1 => (0..3usize, 0..RULES.len()).prop_map(|(place, rules)| Step::Ignore(place, rules)),
        1 => (0..3usize).prop_map(Step::Attributes),
        1 => Just(Step::Commit),
        4 => Just(Step::Snapshot),
        1 => Just(Step::Late),
    ]
}

/// Does it; what cannot be done is not done.
fn perform(world: &World, step: &Step) {
    let at = |n: usize| world.dir().join(PATHS[n]);
    let make_room = |n: usize| fs::create_dir_all(at(n).parent().unwrap());
    let _ = match step {
        Step::Write(path, byte) => make_room(*path).and_then(|()| fs::write(at(*path), [*byte])),
        Step::Remove(path) => fs::remove_file(at(*path)).or_else(|_| fs::remove_dir_all(at(*path))),
        Step::Rename(from, to) => make_room(*to).and_then(|()| fs::rename(at(*from), at(*to))),
        Step::Folder(path) => fs::create_dir_all(at(*path)),
        Step::Link(path, to) => make_room(*path).and_then(|()| symlink(to.to_string(), at(*path))),
        Step::Executable(path) => match fs::metadata(at(*path)) {
            Ok(meta) if meta.is_file() => {
                let mode = meta.permissions().mode() ^ 0o111;
                fs::set_permissions(at(*path), fs::Permissions::from_mode(mode))
            }
            _ => Ok(()),
        },
        Step::Ignore(place, rules) => {
            let folder = world.dir().join(["", "d", "g"][*place]);
            fs::write(folder.join(".gitignore"), RULES[*rules])
        }
        Step::Attributes(place) => {
            let folder = world.dir().join(["", "d", "g"][*place]);
            fs::write(folder.join(".gitattributes"), "* text=auto\n")
        }
        Step::Commit => {
            world.git(&["add", "-A"]);
            world.try_git(&world.dir(), &["commit", "-q", "-m", "x"], &[]);
            Ok(())
        }
        Step::Snapshot | Step::Late => Ok(()),
    };
}

fn play(steps: &[Step], world: &World, tree: &mut Tree, check: &mut dyn FnMut(&mut Tree)) {
    let mut late = 0;
    for step in steps {
        perform(world, step);
        match step {
            Step::Snapshot => {
                check(tree);
                late = 0;
            }
            // A third in a row would be the last that is tried.
            Step::Late if late < 2 => {
                tree.snapshot(std::time::Duration::from_micros(300));
                late += 1;
            }
            _ => {}
        }
    }
    check(tree);
}

fn watching() -> impl Strategy<Value = Watching> {
    prop_oneof![Just(Watching::WherePossible), Just(Watching::Never)]
}

/// The same few cases every time; `PROPTEST_CASES=1000` for a long run over new ones.
fn config() -> ProptestConfig {
    let wished = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok());
    let rng_seed = wished.map_or(RngSeed::Fixed(1), |_| RngSeed::Random);
    let cases = wished.unwrap_or(12);
    ProptestConfig {
        cases,
        rng_seed,
        failure_persistence: None,
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn in_git(steps in prop::collection::vec(step(), 1..40), watching in watching()) {
        let world = World::repository();
        let mut tree = world.tree_at(&world.dir(), watching);
        play(&steps, &world, &mut tree, &mut |tree| {
            let (truth, listed) = world.truth_listed();
            let taken = snap(tree);
            let mine = git_tree(&taken);
            assert_eq!(mine, truth, "{}\n---\n{listed}", world.listed(mine));
        });
    }

    #[test]
    fn in_a_plain_folder(steps in prop::collection::vec(step(), 1..60), watching in watching()) {
        let world = World::plain();
        let mut tree = world.tree_at(&world.dir(), watching);
        let steps: Vec<Step> = steps.into_iter().filter(|s| !matches!(s, Step::Commit)).collect();
        play(&steps, &world, &mut tree, &mut |tree| {
            let objects = tempfile::tempdir().unwrap();
            let options = TreeOptions { git: world.settings(), ..TreeOptions::default() };
            let mut fresh = Tree::open_with(&world.dir(), objects.path(), options);
            let truth = snap(&mut fresh).tree;
            assert_eq!(snap(tree).tree, truth);
        });
    }
}
