//! Agents and gates in their sandbox: what they can write and see, and what is said about it. Everything
//! that is attacked lies in the world of the test.

use descartes_testkit::World;
use descartes_testkit::world::{Finished, bins};

use crate::common::{descartes, events, start};
use crate::task_common::{repository_on_disk, run};

/// Whether bwrap works here; says so plainly where it does not.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
pub fn has_bwrap() -> bool {
    let world = World::new();
    let told = descartes(&world, &["doctor"]).stdout();
    let works = told.contains("workspace and strict work here");
    if !works {
        eprintln!("NOT TESTED: bwrap does not work on this machine");
    }
    works
}

/// A repository in a home with keys, and an agent that is this shell script.
pub fn world(script: &str) -> World {
    let world = World::new();
    world.git_init();
    for (file, text) in [
        (".ssh/id_rsa", "a key\n"),
        (".netrc", "machine example"),
        (".codex/auth.json", "a login of another agent"),
        (".bashrc", "# mine\n"),
    ] {
        let path = world.home().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    world.write("check.sh", "test -e done.txt\n");
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "gate"]);
    world.program("agent", &format!("#!/bin/sh\n{script}\n"));
    world
}

/// Runs the agent of the world in a loop.
#[track_caller]
fn run_agent(world: &World, flags: &[&str]) -> Finished {
    let words = ["loop", "start", "--command", "agent", "--prompt", "go"];
    run(world, &[&words[..], flags].concat())
}

const CLAIMS: &str = "echo COMPLETE";

#[test]
fn an_agent_works_and_commits_in_its_tree_and_changes_nothing_else() {
    if !has_bwrap() {
        return;
    }
    let world = world(
        "touch done.txt; git add done.txt; git commit -qm work || exit 9
         echo stolen >> ~/.bashrc
         cat ~/.ssh/id_rsa ~/.netrc ~/.codex/auth.json
         echo 'exit 0' > check.sh
         mv .git moved; echo hook > .git/hooks/post-commit; git config core.fsmonitor evil
         echo x > \"$TMPDIR/seen\"; echo x > /tmp/sandbox-test-seen
         echo \"token: $GITHUB_TOKEN\"; echo COMPLETE",
    );
    let agent = run_agent_with_token(&world);
    agent.assert_code(0);
    let said = agent.stdout() + &agent.stderr();
    assert!(said.contains("sandbox: workspace (bwrap"), "{said}");
    for secret in ["a key", "machine example", "a login of another", "t0ken"] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
    let bashrc = std::fs::read_to_string(world.home().join(".bashrc")).unwrap();
    assert_eq!(bashrc, "# mine\n");
    assert_eq!(world.read("check.sh"), "test -e done.txt\n");
    assert!(!world.has(".git/hooks/post-commit") && !world.has("moved"));
    assert!(!world.read(".git/config").contains("fsmonitor"));
    assert!(!std::path::Path::new("/tmp/sandbox-test-seen").exists());
    assert_eq!(world.git(["log", "-1", "--format=%s"]), "work");
    assert_eq!(world.git(["status", "--porcelain"]), "", "no stub is left");
    let started = &events(&world, "sandbox_started")[0];
    assert_eq!(started["level"], "workspace");
    assert_eq!(started["env_dropped"][0], "GITHUB_TOKEN");
    let denied = events(&world, "sandbox_denied").to_vec();
    let text = serde_json::to_string(&denied).unwrap();
    let flag = format!("--sandbox-write {}", world.home().join(".bashrc").display());
    assert!(text.contains(&flag), "{text}");
    world.assert_no_survivors();
}

#[track_caller]
fn run_agent_with_token(world: &World) -> Finished {
    let words = ["loop", "start", "--command", "agent", "--prompt", "go"];
    let flags = ["--sandbox", "workspace", "--verify", "sh check.sh"];
    let mut command = world.descartes([&words[..], &flags[..]].concat());
    command.env("GITHUB_TOKEN", "t0ken");
    world.run(command)
}

/// As it is printed (`descartes loop resume {flag}`), through a shell.
#[test]
fn what_a_denial_says_to_type_allows_it() {
    if !has_bwrap() {
        return;
    }
    let world = world(
        "cat ~/.ssh/id_rsa
         echo x > \"$HOME/shared/new/file\" || mkdir \"$HOME/shared/new\" || exit 1
         echo x > \"$HOME/shared/new/file\" && cat ~/.ssh/id_rsa && echo COMPLETE",
    );
    std::fs::create_dir(world.home().join("shared")).unwrap();
    let hidden = world.home().join(".ssh").display().to_string();
    let words = ["loop", "start", "--command", "agent", "--prompt", "go"];
    let flags = [
        "--sandbox",
        "workspace",
        "--max-failures",
        "1",
        "--verify",
        "true",
    ];
    let first = world.run(world.descartes([&words[..], &flags].concat()));
    assert_ne!(first.code(), Some(0), "{first}");
    let status = world.run(world.descartes(["loop", "status"])).stdout();
    let hints: Vec<&str> = status
        .lines()
        .filter_map(|line| line.split_once("to allow it: "))
        .map(|hint| hint.1)
        .collect();
    assert!(!hints.iter().any(|hint| hint.contains(".ssh")), "{status}");
    let write = hints
        .iter()
        .find(|hint| hint.contains("--sandbox-write"))
        .expect(&status);
    let mut typed = world.command("sh");
    typed
        .arg("-c")
        .arg(format!("{write} --sandbox-read {hidden}"))
        .current_dir(world.project());
    let bin = bins::descartes().parent().unwrap();
    let machine = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{machine}", bin.display(), world.bin().display());
    typed.env("PATH", path);
    world.run(typed).assert_code(0);
    assert!(world.home().join("shared/new/file").exists());
    let status = world.run(world.descartes(["loop", "status"])).stdout();
    assert!(status.contains("sandbox"), "{status}");
}

#[test]
fn paths_are_opened_and_closed_by_flags_and_settings() {
    if !has_bwrap() {
        return;
    }
    let world = world(
        "echo x > ../shared/file && cat ~/.ssh/id_rsa && cat README.md
         echo 'exit 0' > check.sh; echo COMPLETE",
    );
    std::fs::create_dir(world.root().join("shared")).unwrap();
    let ended = run_agent(
        &world,
        &[
            "--sandbox",
            "workspace",
            "--sandbox-write",
            "../shared",
            "--sandbox-write",
            "check.sh",
            "--sandbox-read",
            "~/.ssh",
            "--sandbox-hide",
            "README.md",
            "--verify",
            "sh check.sh",
        ],
    );
    ended.assert_code(0);
    let said = ended.stdout();
    assert!(said.contains("a key"), "{said}");
    assert!(!said.contains("a project"), "{said}");
    assert!(world.root().join("shared/file").exists());
    assert_eq!(world.read("check.sh"), "exit 0\n");
}

#[test]
fn a_gate_has_no_login_and_writes_nothing_outside_unless_it_is_let_out() {
    if !has_bwrap() {
        return;
    }
    let gate = "cat ~/.claude/login; echo x >> ~/.bashrc; test -e done.txt";
    for (flags, changed) in [(&[][..], false), (&["--gate-sandbox", "off"][..], true)] {
        let world = world("touch done.txt; echo COMPLETE");
        std::fs::create_dir(world.home().join(".claude")).unwrap();
        std::fs::write(world.home().join(".claude/login"), "claude's login").unwrap();
        let given = ["--sandbox", "workspace", "--verify", gate];
        let ended = run_agent(&world, &[&given[..], flags].concat());
        ended.assert_code(0);
        let bashrc = std::fs::read_to_string(world.home().join(".bashrc")).unwrap();
        assert_eq!(bashrc.contains('x'), changed, "{bashrc}");
        let log = std::fs::read_dir(crate::common::loop_dir(&world).join("runs/0001")).unwrap();
        let log = log.flatten().find(|file| file.file_name() == "gate-1.log");
        let log = log.map(|file| std::fs::read_to_string(file.path()).unwrap());
        let log = log.unwrap_or_default();
        assert_eq!(log.contains("claude's login"), changed, "{log}");
    }
}

#[test]
fn strict_has_no_network_but_the_providers_and_gates_have_a_loopback_of_their_own() {
    if !has_bwrap() {
        return;
    }
    // Interfaces besides `lo`, and what can be reached by its number.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let look = format!(
        "tail -n +3 /proc/net/dev | grep -cv lo: ; (: < /dev/tcp/127.0.0.1/{port}) && echo open"
    );
    let gate = format!("bash -c '{look}' | tee gate.txt");
    let world = world(&format!(
        "bash -c '{look}' > agent.txt 2>&1; ls ~ > home.txt; touch done.txt; {CLAIMS}"
    ));
    let strict = ["--sandbox", "strict", "--verify", &gate];
    run_agent(&world, &strict).assert_code(0);
    assert!(world.read("agent.txt").starts_with("0\n"));
    assert!(!world.read("agent.txt").contains("open"));
    assert_eq!(world.read("home.txt"), "", "the home directory is hidden");
    assert_eq!(world.read("gate.txt"), "0\n");
    let with = [&strict[..], &["--gate-network", "on", "--force"]].concat();
    run_agent(&world, &with).assert_code(0);
    assert!(world.read("gate.txt").contains("open"));
}

#[test]
fn a_program_in_the_home_itself_runs_in_strict_and_shows_nothing_beside_it() {
    if !has_bwrap() {
        return;
    }
    let world = world("");
    let home = world.home();
    std::fs::write(home.join("notes.txt"), "mine").unwrap();
    // A project in the home, with the program in a folder above it; and a project elsewhere.
    let inside = home.join("work/project");
    std::fs::create_dir_all(&inside).unwrap();
    for (folder, dir) in [(home.join("work"), inside), (home, world.project())] {
        let program = folder.join("look.sh");
        std::fs::write(&program, "#!/bin/sh\ncat ~/notes.txt\necho ran").unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, executable).unwrap();
        let mut command = world.descartes(["sandbox", "--sandbox", "strict", "--"]);
        command.arg(&program).current_dir(&dir);
        let ended = world.run(command);
        assert_eq!(ended.stdout().trim(), "ran", "{}: {ended}", dir.display());
    }
}

#[test]
fn any_command_can_be_tried_and_the_sandbox_is_explained() {
    if !has_bwrap() {
        return;
    }
    let world = world(CLAIMS);
    let tried = |words: &[&str]| run(&world, words);
    let flags = [
        "sandbox",
        "--sandbox",
        "workspace",
        "--backend",
        "generic",
        "--verify",
        "sh check.sh",
        "--sandbox-write",
        "check.sh",
        "--sandbox-read",
        "../home/.ssh",
        "--sandbox-hide",
        "README.md",
        "--gate-sandbox",
        "on",
        "--gate-network",
        "off",
        "--gate",
        "--working-dir",
        ".",
        "--",
        "sh",
        "-c",
        "cat ../home/.ssh/id_rsa README.md; exit 7",
    ];
    let ended = tried(&flags);
    ended.assert_code(7);
    assert_eq!(ended.stdout(), "a key\n");
    let explained = tried(&[
        "sandbox",
        "explain",
        "--sandbox",
        "workspace",
        "--backend",
        "claude",
        "--verify",
        "sh check.sh",
        "--sandbox-write",
        "README.md",
        "--sandbox-read",
        "../home/.ssh",
        "--sandbox-hide",
        "../home/.bashrc",
        "--gate-sandbox",
        "on",
        "--gate-network",
        "off",
        "--gate",
        "--working-dir",
        ".",
        "--json",
    ]);
    explained.assert_code(0);
    let told: serde_json::Value = serde_json::from_str(&explained.stdout()).unwrap();
    let access = |path: std::path::PathBuf| {
        let rules = told["rules"].as_array().unwrap().iter();
        let path = path.display().to_string();
        let mut found = rules.filter(|rule| rule["path"] == *path);
        found
            .next()
            .map(|rule| rule["access"].as_str().unwrap().to_owned())
    };
    let told_access = |path| access(path).unwrap_or_default();
    assert_eq!(told_access(world.path("check.sh")), "read-only");
    assert_eq!(told_access(world.project()), "writable");
    assert_eq!(told_access(world.home().join(".bashrc")), "hidden");
    assert_eq!(told["network"], "a loopback of its own and nothing else");
    let plain = tried(&["sandbox", "explain"]).stdout();
    assert!(plain.contains("(the work tree)"), "{plain}");
}

#[test]
fn what_would_open_too_much_or_is_not_there_is_refused() {
    let world = world(CLAIMS);
    for (flags, words, code) in [
        (&["--sandbox-write", "/"][..], "home directory", 64),
        (&["--sandbox-write", "~"], "home directory", 64),
        (&["--sandbox-write", "../state"], "journals", 64),
        (&["--sandbox-write", "nowhere"], "no such file", 64),
        (&["--sandbox-write", ".git/hooks"], "git starts", 64),
        (&["--sandbox-read", "nowhere"], "no such file", 64),
        (&["--sandbox-hide", "."], "works in there", 64),
    ] {
        let given = [&["--sandbox", "workspace"][..], flags].concat();
        let ended = run_agent(&world, &given);
        ended.assert_code(code);
        assert!(
            ended.stderr().contains(words),
            "{flags:?}: {}",
            ended.stderr()
        );
        assert!(ended.stderr().contains("hint: "), "{}", ended.stderr());
    }
    assert!(
        !world.has(".descartes/loop-state.json"),
        "nothing was begun"
    );
    let at_home = ["--sandbox", "workspace", "--working-dir", "../home"];
    let ended = run_agent(&world, &at_home);
    ended.assert_code(64);
    assert!(ended.stderr().contains("holds your home directory"));
}

#[test]
fn without_bwrap_landlock_holds_what_it_can_and_that_is_said() {
    let world = world(
        "touch done.txt; cat ~/.ssh/id_rsa; echo stolen >> ~/.bashrc; echo \"got $?\"; echo COMPLETE",
    );
    // The machine's programs without bwrap.
    for program in ["sh", "cat", "touch", "git", "env", "test"] {
        let places = ["/usr/bin", "/bin", "/usr/local/bin"];
        let mut places = places.iter().map(|folder| format!("{folder}/{program}"));
        if let Some(place) = places.find(|place| std::path::Path::new(place).exists()) {
            let link = world.bin().join(program);
            std::os::unix::fs::symlink(place, link).unwrap();
        }
    }
    let start = |flags: &[&str]| {
        let words = ["loop", "start", "--command", "agent", "--prompt", "go"];
        let mut command = world.descartes([&words[..], flags].concat());
        command.env("PATH", world.bin());
        world.run(command)
    };
    if descartes_proc::landlock_abi().is_none() {
        eprintln!("NOT TESTED: this kernel has no Landlock");
        start(&["--sandbox", "workspace"]).assert_code(65);
        return;
    }
    let ended = start(&["--sandbox", "workspace", "--verify", "sh check.sh"]);
    ended.assert_code(0);
    let said = ended.stdout() + &ended.stderr();
    assert!(said.contains("workspace, weaker (Landlock ABI"), "{said}");
    assert!(said.contains("bwrap is not installed"), "{said}");
    assert!(!said.contains("a key") && said.contains("got 2"), "{said}");
    let bashrc = std::fs::read_to_string(world.home().join(".bashrc")).unwrap();
    assert_eq!(bashrc, "# mine\n");
    let strict = start(&["--sandbox", "strict", "--force"]);
    strict.assert_code(65);
    assert!(strict.stderr().contains("bwrap is not installed"));
    assert!(strict.stderr().contains("install bubblewrap"));
}

#[test]
fn cancel_and_kill_leave_nothing_behind_and_the_agent_has_its_grace() {
    if !has_bwrap() {
        return;
    }
    let world = world(
        "trap 'echo asked > asked.txt; exit 0' TERM
         (setsid sleep 600 &) ; echo ready > ready.txt; while :; do sleep 0.1; done",
    );
    let words = ["loop", "start", "--command", "agent", "--prompt", "go"];
    let flags = ["--sandbox", "workspace", "--detach"];
    run(&world, &[&words[..], &flags[..]].concat()).assert_code(0);
    let within = std::time::Duration::from_secs(60);
    descartes_testkit::wait::eventually("the agent works", within, || world.has("ready.txt"));
    run(&world, &["loop", "cancel"]).assert_code(0);
    assert_eq!(world.read("asked.txt"), "asked\n");
    world.assert_no_survivors();
}

/// Task loops: each slot is confined by itself, its work lands, and the gates on the merged tree are
/// confined, too.
const ROADMAP: &str = "# Work\n\n## Tasks\n\n- [ ] **one**: do it\n- [ ] **two**: do it\n";

#[test]
fn tasks_are_worked_on_in_slots_that_write_nothing_of_the_users() {
    if !has_bwrap() {
        return;
    }
    for (verb, flags) in [
        (&["roadmap", "run", "ROADMAP.md"][..], &[][..]),
        (
            &["loop", "start", "--scud-tag", "auth"],
            &["--parallel", "2"],
        ),
    ] {
        let world = repository_on_disk("ROADMAP.md", ROADMAP);
        world.write(
            ".scud/tasks/tasks.scg",
            crate::task_common::graph("1 | one | P | 1 | M\n2 | two | P | 1 | M", ""),
        );
        world.git(["add", "."]);
        world.git(["commit", "--quiet", "--message", "tasks"]);
        let project = world.project();
        world.program(
            "agent",
            &format!(
                "#!/bin/sh
                 rm -rf {0}/.git/objects/??
                 echo \"$DESCARTES_TASK_ID\" > \"work-$DESCARTES_TASK_ID\"
                 git add -A; git commit -qm \"task $DESCARTES_TASK_ID\" || exit 9
                 echo x > {0}/stolen; echo x > {0}/.git/hooks/post-merge
                 git branch -f main HEAD~1; git update-ref -d refs/heads/main
                 git config core.fsmonitor evil
                 cat ~/.ssh/id_rsa; echo '<promise>COMPLETE</promise>'\n",
                project.display()
            ),
        );
        std::fs::create_dir(world.home().join(".ssh")).unwrap();
        std::fs::write(world.home().join(".ssh/id_rsa"), "a key").unwrap();
        std::fs::create_dir(world.root().join("shared")).unwrap();
        let gate = "echo x >> ~/.bashrc; true";
        let sandbox = [
            "--command",
            "agent",
            "--sandbox",
            "workspace",
            "--sandbox-write",
            "../shared",
            "--sandbox-read",
            "../home/.gitconfig",
            "--sandbox-hide",
            "README.md",
            "--gate-sandbox",
            "on",
            "--gate-network",
            "on",
            "--verify",
            gate,
        ];
        let ended = run(&world, &[verb, &sandbox, flags].concat());
        let said = ended.stdout() + &ended.stderr();
        ended.assert_code(0);
        let landed = world.git(["ls-files"]);
        let names: Vec<&str> = landed
            .lines()
            .filter(|name| name.starts_with("work-"))
            .collect();
        assert_eq!(names.len(), 2, "{said}");
        assert!(
            !world.has("stolen") && !world.has(".git/hooks/post-merge"),
            "{said}"
        );
        assert!(!world.home().join(".bashrc").exists(), "{said}");
        assert!(!said.contains("a key"), "{said}");
        world.git(["fsck", "--strict"]);
    }
}

/// Old loops and configs know nothing of it.
#[test]
fn a_loop_without_a_sandbox_says_nothing_of_one_in_its_files() {
    let world = World::new();
    start(&world, "promise", &[]).assert_code(0);
    assert_eq!(
        events(&world, "sandbox_started"),
        [] as [serde_json::Value; 0]
    );
    assert!(
        !world
            .read(".descartes/loop-state.json")
            .contains("\"sandbox\":")
    );
}

/// The loop of a task is not what a person looks at.
#[test]
fn a_task_loop_tells_what_its_tasks_were_denied() {
    if !has_bwrap() {
        return;
    }
    let world = world("echo x > \"$HOME/shared/file\" && echo work > new.txt && echo COMPLETE");
    std::fs::create_dir(world.home().join("shared")).unwrap();
    world.write("TODO.md", "- [ ] 1. One\n");
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "list"]);
    let words = [
        "roadmap",
        "run",
        "TODO.md",
        "--command",
        "agent",
        "--verify",
        "true",
    ];
    let flags = ["--sandbox", "workspace", "--max-iterations", "1"];
    let first = run(&world, &[&words[..], &flags].concat());
    first.assert_code(2);
    let said = first.stdout() + &first.stderr();
    let denied = "task 1: the sandbox seems to have denied";
    assert!(said.contains(denied), "{said}");
    let status = descartes(&world, &["loop", "status"]).stdout();
    let shared = world.home().join("shared").display().to_string();
    let hint = format!("descartes loop resume --sandbox-write {shared}");
    assert!(status.contains(&hint), "{status}");
    let words = ["loop", "resume", "--sandbox-write", &shared];
    let flags = ["--max-iterations", "3"];
    let second = run(&world, &[&words[..], &flags].concat());
    second.assert_code(0);
    assert_eq!(world.read("new.txt"), "work\n", "{second}");
    let said = second.stdout() + &second.stderr();
    assert!(!said.contains("seems to have denied"), "{said}");
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(!status.contains("seems to have denied"), "{status}");
}
