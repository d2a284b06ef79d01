//! The state file is whole or an error, and a person's edit is seen.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_kernel::state::{IterationSummary, IterativeLoopState};
use descartes_store::Sync;
use descartes_store::layout::StateRoot;
use descartes_store::prompts::{prompt_hash, prompt_path, read_prompt, store_prompt};
use descartes_store::state_file::{Origin, StateFile, StateFileError, Touched, load};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

fn world() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir
        .path()
        .canonicalize()
        .unwrap()
        .join(".descartes/loop-state.json");
    (dir, path)
}

fn state() -> IterativeLoopState {
    let mut state = IterativeLoopState {
        version: "1.0".into(),
        loop_id: Some("0192".into()),
        iteration: 3,
        ..Default::default()
    };
    state.config.command = "claude".into();
    state.config.prompt = "say \"hi\",\n  \"journal\": {".into();
    state.config.max_cost_usd = Some(0.1 + 0.2);
    state.iteration_summaries = vec![IterationSummary {
        output_preview: "ü".into(),
        ..Default::default()
    }];
    state.extra.insert(
        "of_a_later_version".into(),
        serde_json::json!({"kept": [1, 2.5]}),
    );
    state
}

#[test]
fn what_is_saved_comes_back_with_its_mark() {
    let (_dir, path) = world();
    let mut file = StateFile::at(&path).unwrap();
    file.save(&state(), 41, Sync::Lazy).unwrap();
    let loaded = load(&path).unwrap();
    assert_eq!(loaded.state, state());
    assert_eq!(loaded.origin, Origin::Projected { seq: 41 });
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(fs::read(path.with_file_name(".gitignore")).unwrap(), b"*\n");
    let value: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(value["journal"]["seq"], 41);
    assert_eq!(value["of_a_later_version"]["kept"][1], 2.5);
    assert_eq!(value["config"]["command"], "claude");
    // Saved again with the mark still in it, it is the same file.
    let text = fs::read(&path).unwrap();
    let again = IterativeLoopState {
        journal: Some(serde_json::from_value(value["journal"].clone()).unwrap()),
        ..state()
    };
    file.save(&again, 41, Sync::Durable).unwrap();
    assert_eq!(fs::read(&path).unwrap(), text);
    let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(names, 2, "no temporary file stays");
}

#[test]
fn every_edit_of_any_byte_is_an_edit_or_an_error() {
    let (_dir, path) = world();
    StateFile::at(&path)
        .unwrap()
        .save(&state(), 41, Sync::Lazy)
        .unwrap();
    let text = fs::read(&path).unwrap();
    for index in 0..text.len() {
        let mut edited = text.clone();
        edited[index] = if edited[index] == b' ' {
            b'\t'
        } else {
            edited[index] ^ 1
        };
        fs::write(&path, &edited).unwrap();
        if let Ok(loaded) = load(&path) {
            assert!(
                !matches!(loaded.origin, Origin::Projected { .. }),
                "byte {index}"
            );
        }
    }
    let added = String::from_utf8(text)
        .unwrap()
        .replace("  }\n}\n", "  },\n  \"more\": 1\n}\n");
    fs::write(&path, added).unwrap();
    assert_eq!(load(&path).unwrap().origin, Origin::Edited { seq: 41 });
}

#[test]
fn cut_at_every_byte_it_is_an_error_that_names_the_place() {
    let (_dir, path) = world();
    StateFile::at(&path)
        .unwrap()
        .save(&state(), 41, Sync::Lazy)
        .unwrap();
    let text = fs::read(&path).unwrap();
    for cut in 0..text.len() - 1 {
        fs::write(&path, &text[..cut]).unwrap();
        let error = load(&path).unwrap_err();
        assert!(error.hint().is_some());
        match error {
            StateFileError::Damaged {
                byte, line, column, ..
            } => {
                assert!(
                    byte <= cut as u64 && byte + 1 >= cut as u64,
                    "cut {cut}, named {byte}"
                );
                assert!(line >= 1 && column >= 1);
            }
            other => unreachable!("{other}"),
        }
    }
    fs::write(&path, &text[..text.len() - 1]).unwrap();
    assert_eq!(load(&path).unwrap().state, state());
}

#[test]
fn the_error_says_file_byte_line_and_what() {
    let (dir, path) = world();
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, "{\n  \"iteration\": \"three\",\n  \"config\": {}\n}").unwrap();
    let error = load(&path).unwrap_err().to_string();
    let expected = "cannot be read at byte 23 (line 2, column 22): invalid type: string \"three\", expected u32";
    assert!(error.ends_with(expected), "{error}");
    assert!(error.contains("loop-state.json"));
    fs::write(&path, "").unwrap();
    assert!(
        load(&path)
            .unwrap_err()
            .to_string()
            .contains("the file is empty")
    );
    fs::write(&path, [0; 100]).unwrap();
    assert!(matches!(
        load(&path),
        Err(StateFileError::Damaged { byte: 0, .. })
    ));
    let missing = load(&dir.path().join("none.json")).unwrap_err();
    assert!(matches!(missing, StateFileError::Missing(_)));
}

#[test]
fn a_file_written_by_hand_loads() {
    let (_dir, path) = world();
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(
        &path,
        r#"{"version":"1.0","iteration":2,"config":{"command":"c","prompt":"p"}}"#,
    )
    .unwrap();
    let loaded = load(&path).unwrap();
    assert_eq!(loaded.origin, Origin::ByHand);
    assert_eq!(
        (loaded.state.iteration, loaded.state.config.max_iterations),
        (2, Some(10))
    );
}

#[test]
fn a_newer_version_is_refused_whatever_it_looks_like() {
    let (_dir, path) = world();
    fs::create_dir(path.parent().unwrap()).unwrap();
    for text in [
        r#"{"version":"2.0","config":[]}"#,
        r#"{"config":{},"version":"10.1"}"#,
    ] {
        fs::write(&path, text).unwrap();
        assert!(
            matches!(load(&path), Err(StateFileError::Newer { .. })),
            "{text}"
        );
    }
    fs::write(&path, r#"{"version":"1.7","config":{},"shiny":1}"#).unwrap();
    assert_eq!(load(&path).unwrap().state.extra["shiny"], 1);
}

#[test]
fn what_others_do_to_it_is_seen() {
    let (_dir, path) = world();
    let mut file = StateFile::at(&path).unwrap();
    assert_eq!(file.touched(), Touched::No, "it is not there, as before");
    file.save(&state(), 1, Sync::Lazy).unwrap();
    assert_eq!(file.touched(), Touched::No);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"iteration\": 3", "\"iteration\": 33")).unwrap();
    assert_eq!(file.touched(), Touched::Edited);
    assert_eq!(file.load().unwrap().state.iteration, 33);
    assert_eq!(file.touched(), Touched::No);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    assert_eq!(file.touched(), Touched::Gone);
    file.save(&state(), 2, Sync::Lazy).unwrap();
    assert_eq!(load(&path).unwrap().origin, Origin::Projected { seq: 2 });
}

#[test]
fn a_link_is_not_read_and_what_it_leads_to_is_never_changed() {
    let (dir, path) = world();
    let target = dir.path().join("theirs.json");
    StateFile::at(&target)
        .unwrap()
        .save(&state(), 1, Sync::Lazy)
        .unwrap();
    let before = fs::read(&target).unwrap();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let tmp = path.with_extension("json.tmp");
    for planted in [&path, &tmp] {
        std::os::unix::fs::symlink(&target, planted).unwrap();
    }
    let mut file = StateFile::at(&path).unwrap();
    match file.load() {
        Err(StateFileError::Io(error)) => assert!(error.refusal().is_some(), "{error}"),
        other => panic!("{other:?}"),
    }
    // A save in the middle of a loop puts a file in the place of the link.
    file.save(&state(), 2, Sync::Lazy).unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
    assert_eq!(load(&path).unwrap().origin, Origin::Projected { seq: 2 });
    assert_eq!(fs::read(&target).unwrap(), before);
}

#[test]
fn what_is_no_file_is_an_error_at_once() {
    let (_dir, path) = world();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = StateFile::at(&path).unwrap().load().unwrap_err();
    assert!(error.to_string().contains("is a FIFO"), "{error}");
}

#[test]
fn set_aside_it_keeps_its_bytes_under_a_dated_name() {
    let (_dir, path) = world();
    let mut file = StateFile::at(&path).unwrap();
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let mut kept = Vec::new();
    for text in ["one", "two"] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let aside = file.set_aside(now).unwrap();
        assert_eq!(fs::read_to_string(&aside).unwrap(), text);
        kept.push(aside.file_name().unwrap().to_str().unwrap().to_owned());
    }
    assert_eq!(
        kept,
        [
            "loop-state.json.20260102T030405Z",
            "loop-state.json.20260102T030405Z-2"
        ]
    );
    assert!(!path.exists());
}

#[test]
fn a_prompt_is_stored_once_and_mended_where_torn() {
    let dir = TempDir::new().unwrap();
    let dir = StateRoot::at(dir.path()).loop_dir("one").unwrap();
    let hash = store_prompt(&dir, "do it", Sync::Lazy).unwrap();
    assert_eq!(hash, prompt_hash("do it"));
    assert_eq!(hash.len(), 64);
    assert_eq!(read_prompt(&dir, &hash).unwrap(), "do it");
    let path = prompt_path(&dir, &hash);
    let made = fs::metadata(&path).unwrap().modified().unwrap();
    store_prompt(&dir, "do it", Sync::Lazy).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), made);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    fs::write(&path, "").unwrap();
    store_prompt(&dir, "do it", Sync::Durable).unwrap();
    assert_eq!(read_prompt(&dir, &hash).unwrap(), "do it");
}

#[test]
fn many_may_store_the_same_prompt_at_once() {
    let dir = TempDir::new().unwrap();
    let dir = StateRoot::at(dir.path()).loop_dir("one").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..50 {
                    let text = format!("prompt {number}");
                    let hash = store_prompt(&dir, &text, Sync::Lazy).unwrap();
                    assert_eq!(read_prompt(&dir, &hash).unwrap(), text);
                }
            });
        }
    });
    assert_eq!(
        fs::read_dir(dir.prompts()).unwrap().count(),
        50,
        "no temporary file stays"
    );
}
