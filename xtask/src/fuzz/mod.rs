//! `cargo xtask fuzz`: every parser, fed with what nobody meant to write.
//!
//! Blind mutation of a committed corpus, with words from that corpus as a dictionary. It is not
//! guided by coverage (the stable toolchain has none to give), so it goes for properties that
//! break easily: no panic, the same result for any split of the bytes, edits that change one cell.
//! What fails is made small and kept in `fuzz/regressions`, which every test run feeds again.

mod change;
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use change::Changer;
use targets::{TARGETS, Target};

use crate::lab::chance::Chance;
use crate::shell::{Step, root};

/// Larger inputs say little more and cost a lot.
const LARGEST: usize = 64 * 1024;

const USAGE: &str = "cargo xtask fuzz [--seconds N] [--seed N] [TARGET…]";

struct Wish {
    each: Duration,
    seed: u64,
    targets: Vec<&'static Target>,
}

/// `fuzz [--seconds N] [--seed N] [TARGET…]`.
pub fn run(rest: &[String]) -> Step {
    let wish = wish(rest)?;
    println!("seed {}, {:?} for each target", wish.seed, wish.each);
    // A panic is a finding, told below; its trace would only bury it.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut found = Vec::new();
    for target in &wish.targets {
        match fuzz(target, wish.each, wish.seed) {
            Ok(tried) => println!("  {:<10} {tried} inputs, nothing broke", target.name),
            Err(trouble) => {
                println!("  {:<10} {trouble}", target.name);
                found.push(target.name);
            }
        }
    }
    std::panic::set_hook(hook);
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("something broke: {}", found.join(", ")))
    }
}

fn wish(rest: &[String]) -> Result<Wish, String> {
    let mut wish = Wish {
        each: Duration::from_secs(10),
        seed: descartes_testkit::stamp::now_ns() % 1_000_000,
        targets: Vec::new(),
    };
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().and_then(|value| value.parse::<u64>().ok());
            value.ok_or_else(|| format!("{word} takes a number\nusage: {USAGE}"))
        };
        match word.as_str() {
            "--seconds" => wish.each = Duration::from_secs(number()?),
            "--seed" => wish.seed = number()?,
            name => match TARGETS.iter().find(|target| target.name == name) {
                Some(target) => wish.targets.push(target),
                None => return Err(format!("no target `{name}`; {}\nusage: {USAGE}", known())),
            },
        }
    }
    if wish.targets.is_empty() {
        wish.targets = TARGETS.iter().collect();
    }
    Ok(wish)
}

fn known() -> String {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    format!("there are: {}", names.join(", "))
}

fn fuzz(target: &Target, time: Duration, seed: u64) -> Result<u64, String> {
    let seeds = seeds(target)?;
    for (path, bytes) in &seeds {
        check(target, bytes).map_err(|why| format!("{}: {why}", path.display()))?;
    }
    let corpus: Vec<Vec<u8>> = seeds.into_iter().map(|(_, bytes)| bytes).collect();
    let mut changer = Changer::new(Chance::new(seed), &corpus);
    let end = Instant::now() + time;
    let mut tried = corpus.len() as u64;
    while Instant::now() < end {
        let input = changer.next(LARGEST);
        if let Err(why) = check(target, &input) {
            let small = smaller(target, input);
            let kept = keep(target, &small)?;
            return Err(format!("{why}\n             kept as {}", kept.display()));
        }
        tried += 1;
    }
    Ok(tried)
}

fn check(target: &Target, input: &[u8]) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| (target.check)(input))) {
        Ok(result) => result,
        Err(panic) => {
            let words = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(format!("panic: {}", words.unwrap_or_default()))
        }
    }
}

/// Leaves out ever smaller pieces as long as it still fails.
fn smaller(target: &Target, mut input: Vec<u8>) -> Vec<u8> {
    let end = Instant::now() + Duration::from_secs(20);
    let mut piece = input.len() / 2;
    while piece > 0 && Instant::now() < end {
        let mut at = 0;
        while at < input.len() {
            let mut less = input.clone();
            less.drain(at..(at + piece).min(less.len()));
            if check(target, &less).is_err() {
                input = less;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    input
}

fn regressions(target: &Target) -> PathBuf {
    root().join("fuzz/regressions").join(target.name)
}

fn keep(target: &Target, input: &[u8]) -> Result<PathBuf, String> {
    let folder = regressions(target);
    let said = |error: std::io::Error| error.to_string();
    fs::create_dir_all(&folder).map_err(said)?;
    let number = fs::read_dir(&folder).map_err(said)?.count() + 1;
    let path = folder.join(format!("{number:03}"));
    fs::write(&path, input).map_err(said)?;
    Ok(path)
}

/// The committed corpus of a target, and what once broke it.
fn seeds(target: &Target) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let mut seeds = Vec::new();
    for place in target.seeds {
        read_all(&root().join(place.folder), place.begins, &mut seeds)?;
    }
    if seeds.is_empty() {
        return Err("its corpus is empty".to_owned());
    }
    let folder = regressions(target);
    if folder.is_dir() {
        read_all(&folder, "", &mut seeds)?;
    }
    Ok(seeds)
}

fn read_all(folder: &Path, begins: &str, into: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(said)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && name.starts_with(begins) {
            let mut bytes = fs::read(&path).map_err(said)?;
            bytes.truncate(LARGEST);
            into.push((path, bytes));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_once_broke_a_parser_and_the_corpus_hold() {
        for target in TARGETS {
            for (path, bytes) in seeds(target).unwrap() {
                check(target, &bytes).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            }
        }
    }

    #[test]
    fn a_failing_input_is_made_small() {
        let target = Target {
            name: "none",
            seeds: &[],
            check: |bytes| match bytes.contains(&b'!') {
                true => Err("!".to_owned()),
                false => Ok(()),
            },
        };
        let input = b"a long text with one ! in the middle of it".to_vec();
        assert_eq!(smaller(&target, input), b"!");
    }
}
