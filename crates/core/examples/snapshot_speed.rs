//! What a snapshot costs in a repository of 5,000 files, beside `git status` and in a plain folder.
//!
//! `cargo run --release -p descartes-core --example snapshot_speed [FILES]`

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for developers"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use descartes_core::worktree::{Git, Tree, TreeOptions};

const BUDGET: Duration = Duration::from_secs(60);
const ROUNDS: usize = 40;

fn main() {
    let files: usize = std::env::args()
        .nth(1)
        .map_or(5_000, |n| n.parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    println!("{files} files, median and worst of {ROUNDS}\n");
    for attributes in ["no .gitattributes", "with .gitattributes"] {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path(), files);
        if attributes.starts_with("with") {
            fs::write(dir.path().join(".gitattributes"), "*.png binary\n").unwrap();
        }
        repository(dir.path(), home.path());
        println!("git, {attributes}");
        in_git(dir.path(), home.path());
    }
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), files);
    println!("plain folder");
    let mut tree = open(dir.path(), home.path(), "plain");
    once("  first", &mut || snapshot(&mut tree));
    changes(dir.path(), &mut tree);
    drop(tree);
    let mut tree = open(dir.path(), home.path(), "plain");
    once("  first after a restart", &mut || snapshot(&mut tree));
}

fn in_git(dir: &Path, home: &Path) {
    row("  git --version (a process)", &mut |_| {
        git(dir, home, &["--version"])
    });
    row("  git status", &mut |_| {
        git(dir, home, &["status", "--porcelain"])
    });
    row("  git add -A + write-tree", &mut |i| {
        fs::write(dir.join("src/m0/d0/f0.txt"), format!("{i}")).unwrap();
        git(dir, home, &["add", "-A"]) + git(dir, home, &["write-tree"])
    });
    let mut tree = open(dir, home, dir.file_name().unwrap().to_str().unwrap());
    once("  first", &mut || snapshot(&mut tree));
    changes(dir, &mut tree);
    row("  HEAD moved", &mut |_| {
        git(dir, home, &["commit", "-q", "--allow-empty", "-m", "x"]);
        snapshot(&mut tree)
    });
}

fn changes(dir: &Path, tree: &mut Tree) {
    row("  unchanged", &mut |_| snapshot(tree));
    row("  one file changed", &mut |i| {
        fs::write(dir.join("src/m1/d11/f3.txt"), format!("round {i}\n")).unwrap();
        snapshot(tree)
    });
    row("  ten files changed", &mut |i| {
        for d in 0..10 {
            fs::write(
                dir.join(format!("src/m1/d1{d}/f4.txt")),
                format!("round {i}\n"),
            )
            .unwrap();
        }
        snapshot(tree)
    });
    row("  one new file", &mut |i| {
        fs::write(dir.join(format!("src/m1/d12/new{i}.txt")), "new\n").unwrap();
        snapshot(tree)
    });
    // Moving a folder makes the watch useless: every file is looked at.
    row("  unchanged, by walk", &mut |i| {
        let (a, b) = (dir.join("src/m1/moved-a"), dir.join("src/m1/moved-b"));
        if i == 0 {
            fs::create_dir(&a).unwrap();
            snapshot(tree);
        }
        let (from, to) = if i % 2 == 0 { (&a, &b) } else { (&b, &a) };
        fs::rename(from, to).unwrap();
        snapshot(tree)
    });
}

fn open(dir: &Path, home: &Path, name: &str) -> Tree {
    let git = Git::default()
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let options = TreeOptions {
        git,
        ..TreeOptions::default()
    };
    Tree::open_with(dir, &home.join(name), options)
}

fn snapshot(tree: &mut Tree) -> Duration {
    let taken = tree.snapshot(BUDGET);
    assert!(
        !taken.tree.to_string().starts_with("unknown"),
        "{}",
        taken.tree
    );
    taken.took
}

fn once(name: &str, measure: &mut dyn FnMut() -> Duration) {
    println!("{name:30} {:8.2} ms", measure().as_secs_f64() * 1e3);
}

fn row(name: &str, measure: &mut dyn FnMut(usize) -> Duration) {
    let mut times: Vec<Duration> = (0..ROUNDS).map(&mut *measure).collect();
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{name:30} {:8.2} ms {:8.2} ms",
        ms(times[ROUNDS / 2]),
        ms(times[ROUNDS - 1])
    );
}

fn git(dir: &Path, home: &Path, args: &[&str]) -> Duration {
    let begun = Instant::now();
    let status = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(args)
        .current_dir(dir)
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    begun.elapsed()
}

fn repository(dir: &Path, home: &Path) {
    git(dir, home, &["init", "-q"]);
    git(dir, home, &["add", "-A"]);
    git(dir, home, &["commit", "-q", "-m", "start"]);
}

fn fill(dir: &Path, files: usize) {
    for n in 0..files {
        let (d, f) = (n / 20, n % 20);
        let folder = dir.join(format!("src/m{}/d{d}", d / 10));
        if f == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        fs::write(
            folder.join(format!("f{f}.txt")),
            format!("{d} {f}\n").repeat(30),
        )
        .unwrap();
    }
}
