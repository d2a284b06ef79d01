//! A journal that lost its end, or all of it: the state file still knows, and nothing begins at zero.

use descartes_testkit::World;
use descartes_testkit::world::Finished;

use crate::common::{descartes, loop_dir, start, state};

/// A loop that stopped at its limit after two iterations.
fn stopped() -> World {
    let world = World::in_memory();
    let script = "@1-2 print hm\n@3- promise";
    start(&world, script, &["-m", "2", "--max-duration", "1h"]).assert_code(2);
    world
}

#[track_caller]
fn resume(world: &World, flags: &[&str]) -> Finished {
    descartes(world, &[&["loop", "resume"], flags].concat())
}

/// The journal, cut after so many lines and bytes.
fn cut(world: &World, lines: usize, bytes: usize) -> Vec<u8> {
    let path = loop_dir(world).join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    let end = std::iter::once(0).chain(ends).nth(lines).unwrap();
    let left = text.as_bytes()[..end + bytes].to_vec();
    std::fs::write(&path, &left).unwrap();
    left
}

/// Types what a hint says.
fn type_hint(world: &World, said: &str, more: &str) -> Finished {
    let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
    let (_, typed) = hint.unwrap().split_once(": ").unwrap();
    let (moves, resumes) = typed.split_once(", then `").unwrap();
    let words = shell_words::split(moves).unwrap();
    assert_eq!((&*words[0], words.len()), ("mv", 3), "{said}");
    std::fs::rename(&words[1], &words[2]).unwrap();
    let resumes = shell_words::split(resumes.trim_end_matches('`')).unwrap();
    assert_eq!(resumes[0], "descartes", "{said}");
    let mut words: Vec<&str> = resumes[1..].iter().map(String::as_str).collect();
    words.extend(more.split(' '));
    descartes(world, &words)
}

#[test]
fn a_journal_without_its_end_is_continued_from_the_state_file_as_the_hint_says() {
    for (lines, bytes) in [(0, 0), (0, 300), (2, 0)] {
        let world = stopped();
        let left = cut(&world, lines, bytes);
        let before = world.read(".descartes/loop-state.json");
        let status = descartes(&world, &["loop", "status"]);
        status.assert_code(0);
        let told = status.stdout() + &status.stderr();
        assert!(told.contains("the state file records 2"), "{status}");
        let list = descartes(&world, &["loop", "list"]);
        assert!(list.stdout().contains("2/2"), "{list}");
        assert!(list.stdout().contains("Journal incomplete"), "{list}");
        // Nothing that writes forgets it.
        for verb in [
            &["set", "--max-duration", "30m"][..],
            &["cancel"],
            &["resume"],
        ] {
            let refused = descartes(&world, &[&["loop"], verb].concat());
            refused.assert_code(65);
            let said = refused.stderr();
            assert!(said.contains("the state file records 2"), "{refused}");
            assert!(!said.contains("--force"), "{refused}");
        }
        assert_eq!(world.read(".descartes/loop-state.json"), before);
        let journal = std::fs::read(loop_dir(&world).join("journal.jsonl"));
        assert_eq!(journal.unwrap(), left, "{lines} {bytes}");
        let said = resume(&world, &["--max-iterations", "3"]).stderr();
        type_hint(&world, &said, "--max-iterations 3").assert_code(0);
        assert_eq!(state(&world)["iteration"], 3, "{lines} {bytes}");
    }
}

#[test]
fn repair_of_a_journal_without_a_line_goes_on_from_the_state_file() {
    for bytes in [0, 300] {
        let world = stopped();
        cut(&world, 0, bytes);
        let done = resume(&world, &["--max-iterations", "3", "--repair"]);
        done.assert_code(0);
        let said = done.stderr();
        assert!(said.contains("journal.jsonl.damaged"), "{done}");
        assert!(said.contains("continuing from the state file"), "{done}");
        assert_eq!(state(&world)["iteration"], 3);
    }
}

#[test]
fn a_folder_in_the_place_of_the_journal_is_told_with_what_to_type() {
    let world = stopped();
    let path = loop_dir(&world).join("journal.jsonl");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    for verb in ["resume", "status"] {
        let refused = descartes(&world, &["loop", verb]);
        refused.assert_code(65);
        let said = refused.stderr();
        assert!(said.contains("is a folder"), "{refused}");
        let moves = format!("mv {0} {0}.old", path.display());
        assert!(said.contains(&moves), "{refused}");
    }
    std::fs::rename(&path, path.with_extension("jsonl.old")).unwrap();
    resume(&world, &["--max-iterations", "3"]).assert_code(0);
    assert_eq!(state(&world)["iteration"], 3);
}

#[test]
fn a_limit_that_was_tightened_holds_after_a_repair() {
    let world = stopped();
    descartes(&world, &["loop", "set", "--max-duration", "30m"]).assert_code(0);
    let path = loop_dir(&world).join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let damaged = text.replace("\"kind\":\"config_changed\"", "\"kind\":\"config_chanhed\"");
    assert_ne!(damaged, text);
    std::fs::write(&path, damaged).unwrap();
    let done = resume(&world, &["--max-iterations", "3", "--repair"]);
    done.assert_code(0);
    assert!(done.stderr().contains("still records: applied"), "{done}");
    assert_eq!(state(&world)["config"]["max_duration_secs"], 1800, "{done}");
}
