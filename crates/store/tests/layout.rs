//! Everything has its place, and finding it makes nothing.

use descartes_kernel::event::HostFacts;
use descartes_store::host::{HostInfo, Life, life_of, start_time, this_host};
use descartes_store::layout::{EnvPaths, StateRoot, canonical, ensure_project_folder, socket_path};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn env(pairs: &[(&str, &Path)]) -> EnvPaths {
    EnvPaths::from_lookup(|name| {
        let found = pairs.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.as_os_str().to_owned())
    })
}

#[test]
fn the_state_root_is_the_first_place_that_is_named_and_writable() {
    let dir = TempDir::new().unwrap();
    let (home, xdg, own) = (
        dir.path().join("home"),
        dir.path().join("xdg"),
        dir.path().join("own"),
    );
    let project = dir.path().join("project");
    let root =
        |pairs: &[(&str, &Path)]| StateRoot::resolve(&env(pairs), &project).path().to_owned();
    let all: &[(&str, &Path)] = &[
        ("DESCARTES_STATE_DIR", &own),
        ("XDG_STATE_HOME", &xdg),
        ("HOME", &home),
    ];
    assert_eq!(root(all), own);
    assert_eq!(root(&all[1..]), xdg.join("descartes"));
    assert_eq!(root(&all[2..]), home.join(".local/state/descartes"));
    assert_eq!(root(&[]), project.join(".descartes"));
    assert_eq!(
        root(&[("XDG_STATE_HOME", Path::new("")), all[2]]),
        home.join(".local/state/descartes")
    );
    assert_eq!(
        root(&[("XDG_STATE_HOME", Path::new("relative")), all[2]]),
        home.join(".local/state/descartes")
    );
    let nowhere = Path::new("/proc/1/nowhere");
    assert_eq!(
        root(&[("HOME", nowhere)]),
        project.join(".descartes"),
        "cannot be written"
    );
    assert_eq!(
        root(&[("DESCARTES_STATE_DIR", Path::new("rel"))]),
        project.join("rel")
    );
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "asking makes nothing"
    );
}

#[test]
fn the_folder_of_a_loop_is_as_documented() {
    let root = StateRoot::at("/s");
    let dir = root.loop_dir("0192-ab").unwrap();
    assert_eq!(dir.journal(), Path::new("/s/loops/0192-ab/journal.jsonl"));
    assert_eq!(dir.host(), Path::new("/s/loops/0192-ab/host.json"));
    assert_eq!(
        dir.run(7).stdout(),
        Path::new("/s/loops/0192-ab/runs/0007/stdout.log")
    );
    assert_eq!(
        dir.run(12345).gate(1),
        Path::new("/s/loops/0192-ab/runs/12345/gate-1.log")
    );
    for bad in ["", ".", "..", "a/b", "a\0", &"x".repeat(65)] {
        assert!(root.loop_dir(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn the_project_folder_keeps_itself_out_of_commits_and_a_persons_rules_in() {
    let dir = TempDir::new().unwrap();
    let folder = ensure_project_folder(dir.path()).unwrap();
    assert_eq!(fs::read(folder.join(".gitignore")).unwrap(), b"*\n");
    assert_eq!(
        fs::metadata(&folder).unwrap().permissions().mode() & 0o777,
        0o700
    );
    fs::write(folder.join(".gitignore"), "*\n!config.toml\n").unwrap();
    ensure_project_folder(dir.path()).unwrap();
    assert_eq!(
        fs::read(folder.join(".gitignore")).unwrap(),
        b"*\n!config.toml\n"
    );
}

#[test]
fn a_path_is_resolved_before_it_is_there() {
    let dir = TempDir::new().unwrap();
    let base = dir.path().canonicalize().unwrap();
    fs::create_dir(base.join("real")).unwrap();
    symlink("real", base.join("link")).unwrap();
    symlink("link/later.json", base.join("dangling")).unwrap();
    symlink("round", base.join("round")).unwrap();
    let real = |path: &str| canonical(&base.join(path)).unwrap();
    assert_eq!(real("link/a/b.json"), base.join("real/a/b.json"));
    assert_eq!(real("dangling"), base.join("real/later.json"));
    assert!(canonical(&base.join("round")).is_err());
}

#[test]
fn sockets_have_short_paths_in_private_folders() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    fs::create_dir(&run).unwrap();
    let temp = dir.path().join("tmp");
    let with = |runtime: &Path| {
        socket_path(
            &env(&[("XDG_RUNTIME_DIR", runtime), ("TMPDIR", &temp)]),
            "id",
        )
    };
    let socket = with(&run).unwrap();
    assert_eq!(socket.parent().unwrap(), run.join("descartes"));
    assert_eq!(
        socket.file_name().unwrap().len(),
        "0123456789abcdef.sock".len()
    );
    let mode = fs::metadata(run.join("descartes"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let ours = temp.join(format!("descartes-{}", nix::unistd::Uid::effective()));
    assert_eq!(
        with(&dir.path().join("missing")).unwrap().parent().unwrap(),
        ours
    );
    let long: PathBuf = run.join("x".repeat(100));
    fs::create_dir(&long).unwrap();
    assert_eq!(
        with(&long).unwrap().parent().unwrap(),
        ours,
        "too long for a socket"
    );
    fs::set_permissions(run.join("descartes"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        with(&run).unwrap().parent().unwrap(),
        ours,
        "others could look in"
    );
    fs::remove_dir(&ours).unwrap();
    symlink(&run, &ours).unwrap();
    let elsewhere = with(&long).unwrap();
    assert!(
        elsewhere.starts_with("/tmp"),
        "a link is a trap: {}",
        elsewhere.display()
    );
}

#[test]
fn a_host_is_known_by_more_than_its_number() {
    let me = this_host("1.0.0");
    assert_eq!(me.pid, std::process::id());
    assert_eq!(life_of(&me), Life::Alive);
    let reused = HostFacts {
        start_time: me.start_time + 1,
        ..me.clone()
    };
    assert_eq!(life_of(&reused), Life::Dead);
    let earlier_boot = HostFacts {
        boot_id: Some("before".into()),
        ..me.clone()
    };
    assert_eq!(life_of(&earlier_boot), Life::Dead);
    let container = HostFacts {
        pid_ns: Some(1),
        ..me.clone()
    };
    assert_eq!(life_of(&container), Life::Elsewhere);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    assert_eq!(start_time(pid), None);
}

#[test]
fn host_json_comes_back_as_it_was_written() {
    let dir = TempDir::new().unwrap();
    let loop_dir = StateRoot::at(dir.path()).loop_dir("one").unwrap();
    assert_eq!(HostInfo::read(&loop_dir), None);
    fs::create_dir_all(loop_dir.path()).unwrap();
    let info = HostInfo {
        facts: this_host("1.0.0"),
        socket: Some("/run/x.sock".into()),
    };
    info.write(&loop_dir).unwrap();
    assert_eq!(HostInfo::read(&loop_dir), Some(info));
    fs::write(loop_dir.host(), "{").unwrap();
    assert_eq!(HostInfo::read(&loop_dir), None);
}
