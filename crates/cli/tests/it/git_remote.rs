//! `--git-remote`: work that travels by a repository, with the real descartes-fleet and a real nats-server.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use descartes_testkit::World;
use descartes_testkit::wait::{eventually, eventually_some};
use serde_json::Value;

use crate::coordinator::{assert_once, kill_host, said};
use crate::task_common::{graph, scud_project};
use crate::workers::{LONG, Machines, waits_for};

/// A bare repository with a branch and a tag of its own, beside the project.
fn shared_repository(world: &World) -> PathBuf {
    let shared = world.root().join("shared.git");
    let path = shared.to_str().unwrap();
    world.git(["init", "--quiet", "--bare", path]);
    let refs = ["HEAD:refs/heads/theirs", "HEAD:refs/tags/v1"];
    world.git([&["push", "--quiet", path][..], &refs].concat());
    shared
}

fn refs(world: &World, shared: &Path) -> String {
    world.git(["ls-remote", shared.to_str().unwrap()])
}

/// A program that git runs in the shared repository.
fn hook(shared: &Path, name: &str, text: &str) {
    let file = shared.join("hooks").join(name);
    std::fs::create_dir_all(shared.join("hooks")).unwrap();
    std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Starts the tasks in the background; `agent` is what is run for each.
fn start(machines: &Machines, address: &str, remote: &str, agent: &str) {
    let url = format!("nats://{address}");
    let words = ["loop", "start", "--scud-tag", "auth", "--workers", &url];
    let more = ["--git-remote", remote, "--verify", "ls", "--detach"];
    let words = [&words[..], &more, &["--command", agent]].concat();
    machines.typed(&words).assert_code(0);
}

fn status(machines: &Machines) -> Value {
    let status = machines.typed(&["loop", "status", "--json"]);
    serde_json::from_str(&status.stdout()).unwrap_or_default()
}

/// Waits until all is done; gives the journal.
fn completed(machines: &Machines) -> String {
    let id = eventually_some("all is done", LONG, || {
        let status = status(machines);
        let id = status["loop_id"].as_str()?.to_owned();
        (status["completed"] == true).then_some(id)
    });
    let files = machines.world.git(["ls-tree", "--name-only", "HEAD"]);
    for task in 1..=3 {
        assert!(files.contains(&format!("work-{task}.txt")), "{files}");
    }
    let journal = machines.world.state().join("loops").join(id);
    std::fs::read_to_string(journal.join("journal.jsonl")).unwrap()
}

/// Bytes that were ever stored in the engine of bundles.
fn stored_in_engine(machines: &Machines) -> u64 {
    let mut folders = vec![machines.world.state().join("engine")];
    let mut found = None;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = path.path();
            let is_store = path.ends_with("streams/GIT/msgs");
            match path.is_dir() {
                true if is_store => found = Some(path),
                true => folders.push(path),
                false => {}
            }
        }
    }
    let blocks = std::fs::read_dir(found.expect("the store of bundles")).unwrap();
    let blocks = blocks.flatten().filter(|block| {
        let path = block.path();
        path.extension().is_some_and(|end| end == "blk")
    });
    blocks.map(|block| block.metadata().unwrap().len()).sum()
}

#[test]
fn work_travels_by_a_repository_and_nothing_is_left_there() {
    let Some(mut machines) = Machines::new("--git-remote") else {
        return;
    };
    let address = machines.start_engine();
    let shared = shared_repository(&machines.world);
    let before = refs(&machines.world, &shared);
    machines.worker("w1", &[]);
    let world = &machines.world;
    // Whatever an agent configures in its worktree is not what commits are handed over with.
    let evil = world.root().join("evil");
    world.program(
        "evil-git",
        &format!("#!/bin/sh\ntouch {}\n", evil.display()),
    );
    let (go, path) = (world.root().join("go"), shared.display());
    world.program(
        "worker-agent",
        &format!(
            "#!/bin/sh\nmkdir -p .hooks; cp \"$(command -v evil-git)\" .hooks/pre-push; \
             git config core.hooksPath \"$PWD/.hooks\"; git config core.sshCommand evil-git; \
             git config core.fsmonitor evil-git; git config push.gpgSign true; \
             git config url.ext::evil-git.insteadOf file://{path}; \
             git config protocol.ext.allow always\n\
             while ! [ -e {} ]; do sleep 0.1; done; \
             echo done > work-$DESCARTES_TASK_ID.txt; rm -r .hooks; echo COMPLETE\n",
            go.display()
        ),
    );
    start(
        &machines,
        &address,
        &format!("file://{path}"),
        "worker-agent",
    );
    machines.running_child("1");
    let during = refs(&machines.world, &shared);
    let base = during.lines().find(|line| line.ends_with("/base"));
    let head = machines.world.git(["rev-parse", "HEAD"]);
    let base = base.unwrap_or_else(|| panic!("{during}"));
    assert!(base.starts_with(&head), "{during}");
    assert!(base.contains("\trefs/descartes/"), "{during}");
    std::fs::write(&go, "").unwrap();
    let journal = completed(&machines);
    assert!(journal.contains("\"worker\":\"w1\""), "{journal}");
    assert!(!evil.exists(), "what the agent configured was run");
    eventually("its refs are gone", LONG, || {
        refs(&machines.world, &shared) == before
    });
    assert_eq!(stored_in_engine(&machines), 0);
}

#[test]
fn a_repository_that_refuses_and_goes_away_costs_no_attempt() {
    let Some(mut machines) = Machines::new("--git-remote that goes away") else {
        return;
    };
    let address = machines.start_engine();
    let shared = shared_repository(&machines.world);
    let before = refs(&machines.world, &shared);
    let root = machines.world.root().to_owned();
    let at = |name: &str| root.join(name).display().to_string();
    // The first result is refused once; taken, it is out of reach before the coordinator can fetch it.
    let each = |then: &str| {
        format!("while read old new ref; do case $ref in */result) {then};; esac; done; exit 0")
    };
    let refuse = format!("[ -e {0} ] || {{ touch {0}; exit 1; }}", at("refused"));
    hook(&shared, "pre-receive", &each(&refuse));
    let leave = format!(
        "[ -e {0} ] || {{ touch {0}; mv {1} {2}; }}",
        at("left"),
        at("shared.git"),
        at("away.git")
    );
    hook(&shared, "post-receive", &each(&leave));
    machines.worker("w1", &[]);
    let agent = machines.world.agent(&waits_for(&root.join("go")));
    start(&machines, &address, shared.to_str().unwrap(), &agent);
    let id = machines.running_child("1")["parent"].clone();
    let id = id.as_str().unwrap();
    std::fs::write(root.join("go"), "").unwrap();
    let journal = machines.world.state().join("loops").join(id);
    eventually("it is told that it is tried again", LONG, || {
        let journal = std::fs::read_to_string(journal.join("journal.jsonl")).unwrap();
        journal.contains("; it is tried again")
    });
    assert!(root.join("refused").exists() && !shared.exists());
    std::fs::rename(root.join("away.git"), &shared).unwrap();
    let journal = completed(&machines);
    for kind in ["attempt_started", "task_run"] {
        let records = journal.matches(&format!("\"kind\":\"{kind}\"")).count();
        assert_eq!(records, 3, "{kind}: {journal}");
    }
    eventually("its refs are gone", LONG, || {
        refs(&machines.world, &shared) == before
    });
}

#[test]
fn a_coordinator_that_dies_takes_up_what_travels_by_a_repository() {
    let Some(mut machines) = Machines::new("--git-remote and a dead coordinator") else {
        return;
    };
    let address = machines.start_engine();
    let shared = shared_repository(&machines.world);
    let before = refs(&machines.world, &shared);
    let root = machines.world.root().to_owned();
    let go = |task: &str| std::fs::write(root.join(format!("go-{task}")), "").unwrap();
    // For a while nothing can be deleted, as if the host had been killed before it did that.
    let keeps = root.join("keeps");
    std::fs::write(&keeps, "").unwrap();
    let refuse = format!(
        "while read old new ref; do case $ref,$new in */probe/*) ;; *,0000*) [ ! -e {} ] || exit 1;; \
         esac; done",
        keeps.display()
    );
    hook(&shared, "pre-receive", &refuse);
    machines.worker("w1", &[]);
    let agent = machines
        .world
        .agent(&waits_for(&root.join("go-${DESCARTES_TASK_ID}")));
    start(&machines, &address, shared.to_str().unwrap(), &agent);
    let parent = machines.running_child("1")["parent"].clone();
    let parent = parent.as_str().unwrap();
    kill_host(&machines, parent);
    go("1");
    go("2");
    eventually("it is pushed while nobody is there", LONG, || {
        refs(&machines.world, &shared).contains("/result")
    });
    eventually("it is handed in", LONG, || {
        said(&machines, "1", ": handed in") == 1
    });
    let resume = || {
        machines
            .typed(&["loop", "resume", "--detach"])
            .assert_code(0);
    };
    resume();
    machines.running_child("3");
    assert!(refs(&machines.world, &shared).contains("/result"));
    kill_host(&machines, parent);
    std::fs::remove_file(&keeps).unwrap();
    go("3");
    resume();
    completed(&machines);
    for task in ["1", "2", "3"] {
        assert_once(&machines, parent, task);
        let file = format!("work-{task}.txt");
        let log = ["log", "--format=%h", "--diff-filter=A", "--", &file];
        assert_eq!(machines.world.git(log).lines().count(), 1, "{file}");
    }
    eventually("all refs are gone", LONG, || {
        refs(&machines.world, &shared) == before
    });
}

#[test]
fn a_repository_that_takes_nothing_is_refused_before_anything_is_begun() {
    let Some(machines) = Machines::new("--git-remote that takes nothing") else {
        return;
    };
    let url = format!("nats://{}", machines.start_engine());
    let world = &machines.world;
    let shared = shared_repository(world);
    let agent = world.agent("promise");
    let words = ["loop", "start", "--scud-tag", "auth", "--workers", &url];
    let refused = |remote: &str, why: &str| {
        let more = ["--git-remote", remote, "--command", &agent];
        let refused = machines.typed(&[&words[..], &more].concat());
        refused.assert_code(65);
        let told = refused.stderr();
        assert!(told.contains(why), "{told}");
        let hint = format!(
            "git push {remote} HEAD:refs/descartes/try && git push {remote} :refs/descartes/try"
        );
        assert!(told.contains(remote) && told.contains(&hint), "{told}");
        assert!(!world.state().join("loops").exists());
        assert!(!world.has(".descartes/loop-state.json"));
    };
    let nowhere = world.root().join("nowhere.git");
    refused(nowhere.to_str().unwrap(), "nowhere.git");
    hook(&shared, "pre-receive", "echo not for you >&2; exit 1");
    refused(shared.to_str().unwrap(), "not for you");
}

#[test]
fn what_a_repository_for_workers_needs_is_said() {
    let world = scud_project(graph("1 | One | P | 1 | H", ""));
    world.write("ROADMAP.md", "# Roadmap: R\n## Tasks\n- [ ] **a**: One\n");
    let agent = world.agent("promise");
    let scud = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let roadmap = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    let workers = ["--workers", "nats://127.0.0.1:4222"];
    for verb in [&scud[..], &roadmap] {
        let with = |more: &[&str]| {
            let typed = world.run(world.descartes([verb, more].concat()));
            typed.assert_code(64);
            typed.stderr()
        };
        let alone = with(&["--git-remote", "git@example.com:app.git"]);
        assert!(alone.contains("add --workers URL"), "{alone}");
        let secret = "https://anna:hunter2@example.com/app.git";
        let secret = with(&[&workers[..], &["--git-remote", secret]].concat());
        assert!(!secret.contains("hunter2"), "{secret}");
        let hint = "--git-remote https://example.com/app.git";
        assert!(secret.contains(hint), "{secret}");
        let name = with(&[&workers[..], &["--git-remote", "origin"]].concat());
        assert!(name.contains("`origin` is not the address"), "{name}");
    }
    // In a config for all loops it is no fault of one that has no workers.
    world.configure("git_remote = \"git@example.com:app.git\"\n");
    let alone = [&scud[..], &["--verify", "true"]].concat();
    world
        .run_within(world.descartes(alone), LONG)
        .assert_code(0);
}
