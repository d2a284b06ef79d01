//! Trust is kept outside of the project, for this user alone, and for nothing but what was seen.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_kernel::trust::{Powers, Standing};
use descartes_store::config::{
    ConfigError, ConfigPlaces, IterationLimit, KEYS, Layers, Trust, Use, powers_of_text,
};
use descartes_store::layout::{EnvPaths, StateRoot};
use descartes_store::trust::{Subject, TrustBook, TrustError};
use jiff::Timestamp;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn powers(value: &str) -> Powers {
    [("verify".to_owned(), value.to_owned())].into()
}

fn book(state: &Path, project: &Path) -> TrustBook {
    fs::create_dir_all(project).unwrap();
    TrustBook::of(&StateRoot::at(state), &EnvPaths::default(), project).unwrap()
}

fn record(state: &Path) -> PathBuf {
    let mut files = fs::read_dir(state.join("trust")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    file
}

#[test]
fn trust_holds_for_these_keys_of_this_project_alone() {
    let dir = TempDir::new().unwrap();
    let state = dir.path().join("state");
    let (here, there) = (dir.path().join("here"), dir.path().join("there"));
    let mine = book(&state, &here);
    let standing = |book: &TrustBook, keys: &Powers| book.standing(Subject::Config, keys);
    assert_eq!(standing(&mine, &powers("a")), Standing::New);
    mine.keep(Subject::Config, &powers("a"), Timestamp::UNIX_EPOCH)
        .unwrap();
    assert_eq!(standing(&mine, &powers("a")), Standing::Trusted);
    assert_eq!(standing(&mine, &powers("b")), Standing::Changed);
    assert_eq!(standing(&mine, &Powers::new()), Standing::Nothing);
    let other = mine.standing(Subject::ScudGates, &powers("a"));
    assert_eq!(other, Standing::New, "another file of the same project");
    assert_eq!(standing(&book(&state, &there), &powers("a")), Standing::New);
    // A record that is carried to another project's name says nothing about that project.
    let file = record(&state);
    let foreign = book(&state, &there);
    foreign
        .keep(Subject::ScudGates, &powers("x"), Timestamp::UNIX_EPOCH)
        .unwrap();
    let name = fs::read_dir(state.join("trust"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| *path != file)
        .unwrap();
    fs::copy(&file, &name).unwrap();
    assert_eq!(standing(&foreign, &powers("a")), Standing::Changed);
    // A link to the project is the project.
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&here, &link).unwrap();
    assert_eq!(
        standing(&book(&state, &link), &powers("a")),
        Standing::Trusted
    );
    assert!(mine.revoke().unwrap());
    assert!(!mine.revoke().unwrap());
    assert_eq!(standing(&mine, &powers("a")), Standing::New);
}

#[test]
fn a_record_that_others_could_have_written_is_none() {
    let dir = TempDir::new().unwrap();
    let state = dir.path().join("state");
    let mine = book(&state, &dir.path().join("project"));
    let keep = || {
        mine.keep(Subject::Config, &powers("a"), Timestamp::UNIX_EPOCH)
            .unwrap();
    };
    let standing = || mine.standing(Subject::Config, &powers("a"));
    keep();
    let file = record(&state);
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let folder = fs::metadata(state.join("trust")).unwrap();
    assert_eq!(folder.mode() & 0o777, 0o700);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
    assert_eq!(standing(), Standing::New);
    fs::remove_file(&file).unwrap();
    keep();
    let moved = dir.path().join("moved.json");
    fs::rename(&file, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &file).unwrap();
    assert_eq!(standing(), Standing::New, "a link");
    fs::remove_file(&file).unwrap();
    fs::write(&file, "{").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(standing(), Standing::New, "a torn one");
    keep();
    assert_eq!(standing(), Standing::Trusted);
}

#[test]
fn nothing_is_kept_in_the_project_itself() {
    let dir = TempDir::new().unwrap();
    let project = dir.path().join("project");
    let mine = book(&project.join(".descartes"), &project);
    let kept = mine.keep(Subject::Config, &powers("a"), Timestamp::UNIX_EPOCH);
    assert!(matches!(kept, Err(TrustError::Inside(_))), "{kept:?}");
    assert_eq!(mine.standing(Subject::Config, &powers("a")), Standing::New);
    // The home folder as a project: there is no other place, and it is the user's own.
    let paths = EnvPaths {
        home: Some(project.clone()),
        ..EnvPaths::default()
    };
    let root = StateRoot::at(project.join(".local/state/descartes"));
    let home = TrustBook::of(&root, &paths, &project).unwrap();
    home.keep(Subject::Config, &powers("a"), Timestamp::UNIX_EPOCH)
        .unwrap();
    assert_eq!(
        home.standing(Subject::Config, &powers("a")),
        Standing::Trusted
    );
}

/// A key that is new must be sorted in here too: `Never` is a decision.
#[test]
fn every_key_is_known_to_need_trust_or_not() {
    let with = |wanted: Trust| -> Vec<&str> {
        let keys = KEYS.iter().filter(|key| key.trust == wanted);
        let mut names: Vec<&str> = keys.map(|key| key.name).collect();
        names.sort_unstable();
        names
    };
    let always = [
        "agents",
        "backend",
        "default_agent",
        "fallback",
        "gate_caches",
        "gate_network",
        "gate_sandbox",
        "git_remote",
        "on_event",
        "pass_env",
        "permissions",
        "sandbox",
        "sandbox_caches",
        "sandbox_read",
        "sandbox_write",
        "source",
        "verify",
        "workers",
        "worktree_setup",
    ];
    assert_eq!(with(Trust::Always), always);
    let outside = ["prompt_file", "spec_file", "spec_template", "worktree_copy"];
    assert_eq!(with(Trust::OutsideProject), outside);
    assert_eq!(with(Trust::AsFlag), ["model"]);
    let never = [
        "abort_promise",
        "auto_commit",
        "auto_commit_waves",
        "branch",
        "branch_template",
        "commit_template",
        "completion_promise",
        "fresh_context",
        "idle_timeout",
        "in_place",
        "kill_grace",
        "max_cost",
        "max_duration",
        "max_failures",
        "max_iterations",
        "max_iterations_per_task",
        "max_log",
        "max_logs",
        "max_snapshots",
        "max_spec_tokens",
        "max_tokens",
        "max_total_iterations",
        "merge_batch",
        "no_promise",
        "notify",
        "on_event_timeout",
        "parallel",
        "prices",
        "promise_grace",
        "promise_hint",
        "promise_match",
        "prompt_mode",
        "require_xml_format",
        "sandbox_hide",
        "stall_after",
        "tag_green",
        "timeout",
        "verify_timeout",
        "wave_barrier",
    ];
    assert_eq!(
        with(Trust::Never),
        never,
        "can the new key start a program, or widen what one may do?"
    );
}

#[test]
fn what_is_not_trusted_is_left_away_and_the_layers_below_show() {
    let dir = TempDir::new().unwrap();
    let project = dir.path().join("project");
    fs::create_dir_all(project.join(".descartes")).unwrap();
    let file = project.join(".descartes/config.toml");
    let text = "max_iterations = 3\nverify = 'evil'\n[agents.x]\ncommand = 'evil'\n";
    fs::write(&file, text).unwrap();
    let user = dir.path().join("user.toml");
    fs::write(&user, "verify = 'good'\n").unwrap();
    let places = ConfigPlaces {
        user_file: Some(user),
        project_file: Some(file.clone()),
        environment: Default::default(),
    };
    let layers = Layers::load_judged(&places, |_| Use::OnlyHarmless).unwrap();
    let settings = &layers.settings;
    assert_eq!(settings.verify.value.as_deref().unwrap(), ["good"]);
    assert!(settings.agents.is_empty());
    let limit = IterationLimit(Some(3));
    assert_eq!(settings.max_iterations.value, Some(limit));
    assert_eq!(layers.powers().len(), 2, "{:?}", layers.powers());
    assert_eq!(&powers_of_text(text, &file).unwrap(), layers.powers());
    let mut asked = false;
    fs::write(&file, "max_iterations = 3\n").unwrap();
    let judge = |_: &Powers| {
        asked = true;
        Use::OnlyHarmless
    };
    Layers::load_judged(&places, judge).unwrap();
    assert!(!asked, "nothing to judge");
}

#[test]
fn a_file_full_of_unknown_keys_is_read_at_once_and_told_in_a_few_lines() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("config.toml");
    let places = ConfigPlaces {
        project_file: Some(file.clone()),
        ..Default::default()
    };
    let lines = |count: usize| -> String { (0..count).map(|n| format!("k{n}=1\n")).collect() };
    let many = lines(100_000);
    assert!(many.len() < 1024 * 1024);
    fs::write(&file, many).unwrap();
    let begun = Instant::now();
    let unknown = Layers::load(&places).unwrap().unknown();
    assert_eq!(unknown.len(), 6, "{unknown:?}");
    assert_eq!(unknown[5], "and 99995 more unknown keys");
    fs::write(&file, lines(300_000)).unwrap();
    let error = Layers::load(&places).unwrap_err();
    assert!(matches!(error, ConfigError::TooLarge { .. }), "{error}");
    let words = error.to_string();
    assert!(
        words.contains("config.toml") && words.contains("too large"),
        "{words}"
    );
    // It was over a minute where each line was counted anew.
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_pipe_in_place_of_a_config_file_is_an_error_at_once() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("config.toml");
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let places = ConfigPlaces {
        project_file: Some(file),
        ..Default::default()
    };
    let error = Layers::load(&places).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}
