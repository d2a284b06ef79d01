//! Whatever an agent does in its worktree, and wherever its host dies: nothing that is found there
//! alone is lost, nobody else's branch or file is changed, and the next task gets a clean tree.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::world::Finished;
use descartes_testkit::{World, eventually};

use crate::landing::{tasks, with_agent};
use crate::task_common::{graph, run, said, scud_project, statuses};

const SOON: Duration = descartes_testkit::PATIENCE;

const AS_AGENT: &str = "git() { command git -c user.name=a -c user.email=a@b \
    -c protocol.file.allow=always \"$@\"; }\n";

/// A script in which `$STATE` is the state folder and `$PROJECT` the user's checkout.
fn script(world: &World, text: &str) -> String {
    let (state, project) = (world.state(), world.project());
    let (state, project) = (state.display(), project.display());
    format!("STATE='{state}'\nPROJECT='{project}'\n{AS_AGENT}{text}")
}

#[track_caller]
fn agent(world: &World, text: &str, flags: &[&str]) -> Finished {
    with_agent(world, &script(world, text), flags)
}

/// Kills the host while its first agent works, once that has made the file `ready` in the state
/// folder; gives what a resume in `dir` says. The agent runs `first`, and `second` after that.
#[track_caller]
fn killed(world: &World, first: &str, second: &str) {
    let text = format!(
        "if [ ! -e $STATE/second ]; then touch $STATE/second\n{first}\ntouch $STATE/ready; sleep 1000\n\
         else\n{second}\nfi\necho '<promise>COMPLETE</promise>'\n"
    );
    let path = world.state().join("agent.sh");
    std::fs::create_dir_all(world.state()).unwrap();
    std::fs::write(&path, script(world, &text)).unwrap();
    let command = format!("sh {}", path.display());
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &command];
    let gate = ["--verify", "test -e README.md"];
    let mut host = world.descartes([&words[..], &gate].concat());
    host.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut host = host.spawn().unwrap();
    eventually("the agent works", SOON, || {
        world.state().join("ready").exists()
    });
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("its agent is gone", SOON, || world.processes().is_empty());
}

/// Content of files on a branch that is kept.
fn kept_branches(world: &World) -> Vec<String> {
    let refs = ["for-each-ref", "--format=%(refname:short)"];
    let listed = world.git([&refs[..], &["refs/heads/descartes-kept"]].concat());
    listed.lines().map(str::to_owned).collect()
}

fn show(world: &World, spec: &str) -> String {
    world.git(["show", spec])
}

#[test]
fn what_a_dead_hosts_agent_left_off_its_branch_is_kept_and_said() {
    for leave in ["git checkout -q --detach", "git checkout -q -b feature"] {
        let world = tasks(1);
        let first = format!(
            "{leave}; echo c > committed; git add committed; git commit -qm elsewhere
echo changed >> README.md; echo u > untracked"
        );
        killed(&world, &first, "echo fin > fin");
        let done = run(&world, &["loop", "resume"]);
        done.assert_code(0);
        let kept = kept_branches(&world);
        assert_eq!(kept.len(), 1, "{leave}: {done}");
        assert!(said(&done).contains(&kept[0]), "{leave}: {done}");
        assert_eq!(show(&world, &format!("{}:committed", kept[0])), "c");
        assert_eq!(show(&world, &format!("{}:untracked", kept[0])), "u");
        let readme = show(&world, &format!("{}:README.md", kept[0]));
        assert!(readme.ends_with("changed"), "{leave}: {readme}");
        assert!(world.has("fin") && !world.has("untracked"), "{leave}");
        if leave.ends_with("feature") {
            // Where the agent left it, and no commit of ours on top.
            let names = world.git(["ls-tree", "--name-only", "feature"]);
            assert!(!names.contains("untracked"), "{names}");
        }
    }
}

#[test]
fn a_rebase_that_a_dead_host_cut_short_is_kept_and_does_not_reach_the_next_attempt() {
    let world = tasks(1);
    let first = "for i in 1 2 3; do echo $i > c$i; git add -A; git commit -qm c$i; done
echo aside >> README.md
GIT_SEQUENCE_EDITOR=\"sed -i '2s/pick/edit/'\" git -c rebase.autoStash=true rebase -q -i HEAD~3
echo edited > c2; echo new > n";
    let second = "git status > $STATE/seen; echo fin > fin";
    killed(&world, first, second);
    let done = run(&world, &["loop", "resume"]);
    done.assert_code(0);
    let seen = std::fs::read_to_string(world.state().join("seen")).unwrap();
    assert!(!seen.contains("rebase"), "{seen}");
    let kept = kept_branches(&world);
    let holds = |name: &str, content: &str| {
        kept.iter().any(|branch| {
            let mut git = world.command("git");
            git.args(["show", &format!("{branch}:{name}")]);
            world.run(git).stdout().contains(content)
        })
    };
    assert!(holds("c2", "edited") && holds("n", "new"), "{done}");
    assert!(holds("README.md", "aside"), "{done}");
    // The branch itself was not moved by what was under way.
    assert!(world.has("c3") && !world.has("n"), "{done}");
}

#[test]
fn unproven_work_goes_onto_no_branch_of_the_users() {
    for checkout in [
        "git checkout -q develop",
        "git checkout -q --ignore-other-worktrees main",
        "git checkout -q --orphan fresh",
    ] {
        let world = tasks(1);
        world.git(["branch", "develop"]);
        let (main, develop) = (
            world.git(["rev-parse", "main"]),
            world.git(["rev-parse", "develop"]),
        );
        let text = format!("{checkout}; echo red > bad");
        let flags = [
            "--verify",
            "test ! -e bad",
            "--max-iterations-per-task",
            "1",
        ];
        let done = agent(&world, &text, &flags);
        done.assert_code(6);
        assert_eq!(world.git(["rev-parse", "main"]), main, "{checkout}: {done}");
        assert_eq!(
            world.git(["rev-parse", "develop"]),
            develop,
            "{checkout}: {done}"
        );
        let status = world.git(["status", "--porcelain"]);
        assert!(!status.contains("bad"), "{checkout}: {status}");
        let all = world.git(["log", "--all", "--format=%H", "--", "bad"]);
        assert!(!all.is_empty(), "{checkout}: {done}");
    }
}

const COMMITS_APP: &str = "mkdir -p app; cd app; git init -q .; echo content > f; git add f
git commit -qm inner; cd ..; git add app 2>/dev/null; git commit -qm 'add app'";

#[test]
fn a_link_to_a_repository_never_lands_and_the_advice_given_brings_its_files() {
    let world = tasks(1);
    let text = format!("if [ -d app/.git ]; then rm -rf app/.git; else\n{COMMITS_APP}\nfi");
    let done = agent(&world, &text, &["--verify", "test -e app/"]);
    done.assert_code(0);
    assert_eq!(show(&world, "HEAD:app/f"), "content", "{done}");
    // Without the repository the link alone is nothing either.
    let world = tasks(1);
    let text = format!("{COMMITS_APP}\nrm -rf app; mkdir app; echo x > other");
    let done = agent(&world, &text, &["--verify", "test -e README.md"]);
    done.assert_code(0);
    let tree = world.git(["ls-tree", "-r", "HEAD"]);
    assert!(!tree.contains("160000"), "{tree}");
    assert!(world.has("other"), "{done}");
}

#[test]
fn a_repository_that_an_agent_had_git_ignore_keeps_its_worktree() {
    let world = tasks(1);
    let text = "mkdir -p app; cd app; git init -q .; echo content > f; git add f
git commit -qm inner; cd ..; echo app/ >> .gitignore";
    let done = agent(&world, text, &["--verify", "test -e README.md"]);
    assert!(said(&done).contains("the repository app"), "{done}");
    let work = run(&world, &["work"]).stdout();
    assert!(work.contains("the repository app"), "{work}");
}

#[test]
fn what_a_blocked_task_had_git_ignore_does_not_land_with_the_next() {
    let world = tasks(2);
    let text = "if [ $DESCARTES_TASK_ID = 1 ]; then echo gen/ >> .gitignore; mkdir gen; echo junk > gen/f; touch bad
else ls > $STATE/seen; echo x > work; fi";
    let flags = [
        "--verify",
        "test ! -e bad",
        "--max-iterations-per-task",
        "1",
    ];
    let done = agent(&world, text, &flags);
    done.assert_code(6);
    assert_eq!(statuses(&world), "BD", "{done}");
    let seen = std::fs::read_to_string(world.state().join("seen")).unwrap();
    assert!(!seen.contains("gen"), "{seen}");
    assert!(world.has("work") && !world.has("gen"), "{done}");
}

/// A bare repository with a clone beside it, both below the world's root; the path of the first.
fn remote(world: &World, name: &str, fill: &[&[&str]]) -> PathBuf {
    let bare = world.root().join(format!("{name}.git"));
    let clone = world.root().join(format!("{name}-clone"));
    let git = |dir: &Path, words: &[&str]| {
        let mut git = world.command("git");
        git.current_dir(dir)
            .args(["-c", "protocol.file.allow=always"])
            .args(words);
        world.run(git).assert_code(0);
    };
    git(
        world.root(),
        &["init", "-q", "--bare", bare.to_str().unwrap()],
    );
    git(world.root(), &["init", "-q", clone.to_str().unwrap()]);
    for words in fill {
        git(&clone, words);
    }
    git(&clone, &["commit", "-q", "--allow-empty", "-m", name]);
    git(&clone, &["push", "-q", bare.to_str().unwrap(), "HEAD:main"]);
    bare
}

fn with_submodule(world: &World, url: &Path) {
    let file = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    world.git([&file[..], &["add", url.to_str().unwrap(), "sub"]].concat());
    world.git(["commit", "-qm", "submodule"]);
}

#[test]
fn a_commit_in_a_submodule_of_a_submodule_that_nobody_can_reach_does_not_land() {
    let world = tasks(1);
    let inner = remote(&world, "inner", &[]);
    let add = [
        "submodule",
        "--quiet",
        "add",
        inner.to_str().unwrap(),
        "inner",
    ];
    let outer = remote(&world, "outer", &[&add]);
    with_submodule(&world, &outer);
    let before = world.git(["rev-parse", "HEAD:sub"]);
    let text = "git submodule --quiet update --init --recursive
cd sub/inner; echo x > p; git add p; git commit -qm inside
cd ..; git add inner; git commit -qm outside; git push -q origin HEAD:main; cd ..";
    let flags = [
        "--verify",
        "test -e sub/inner/p",
        "--max-iterations-per-task",
        "2",
    ];
    let done = agent(&world, text, &flags);
    done.assert_code(6);
    assert!(said(&done).contains("sub/inner"), "{done}");
    assert_eq!(world.git(["rev-parse", "HEAD:sub"]), before);
    let work = run(&world, &["work"]).stdout();
    assert!(work.contains("inside the submodule sub/inner"), "{work}");
}

#[test]
fn a_commit_in_a_submodule_that_only_a_tag_holds_is_kept() {
    let world = tasks(1);
    let sub = remote(&world, "inner", &[]);
    with_submodule(&world, &sub);
    let text = "git submodule --quiet update --init
cd sub; echo x > p; git add p; git commit -qm inside; git tag v1; cd ..
git submodule --quiet update; echo x > work";
    let flags = ["--verify", "test -e work", "--max-iterations-per-task", "1"];
    let done = agent(&world, text, &flags);
    done.assert_code(6);
    let work = run(&world, &["work"]).stdout();
    assert!(work.contains("work inside the submodule sub"), "{work}");
}

#[test]
fn no_setting_leads_to_another_folder_than_the_worktree() {
    // The user's own, by the worktree's settings, by the shared ones, by the file `.git`.
    for lead in [
        "git config extensions.worktreeConfig true; git config --worktree core.worktree $PROJECT",
        "git config core.worktree $STATE/other",
        "echo \"gitdir: $PROJECT/.git\" > .git",
        "rm .git; ln -s $PROJECT/.git .git",
    ] {
        let world = tasks(1);
        std::fs::create_dir_all(world.state().join("other")).unwrap();
        world.write("mine", "not committed");
        let head = world.git(["rev-parse", "HEAD"]);
        let text = format!("echo x > work; {lead}");
        // Red at first: what is red goes nowhere.
        let flags = ["--verify", "test -e ok", "--max-iterations-per-task", "1"];
        let done = agent(&world, &text, &flags);
        done.assert_code(6);
        drop(world.watch(unset(&world), SOON));
        assert_eq!(world.git(["rev-parse", "HEAD"]), head, "{lead}: {done}");
        let branch = world.git(["branch", "--show-current"]);
        assert_eq!(branch, "main", "{lead}: {done}");
        let tree = world.git(["ls-tree", "-r", "--name-only", "descartes/auth/1"]);
        assert!(tree.contains("work") && !tree.contains("mine"), "{tree}");
        // And green.
        let world = tasks(1);
        std::fs::create_dir_all(world.state().join("other")).unwrap();
        world.write("mine", "not committed");
        let done = agent(&world, &text, &["--verify", "test -e README.md"]);
        done.assert_code(0);
        assert!(world.has("work"), "{lead}: {done}");
        drop(world.watch(unset(&world), SOON));
        let tree = world.git(["ls-tree", "-r", "--name-only", "main"]);
        assert!(tree.contains("work") && !tree.contains("mine"), "{tree}");
        let other = std::fs::read_dir(world.state().join("other")).unwrap();
        assert_eq!(other.count(), 0, "{lead}");
    }
}

/// Takes the agent's setting back.
fn unset(world: &World) -> std::process::Command {
    let mut git = world.command("git");
    git.args(["config", "--unset", "core.worktree"]);
    git
}

#[test]
fn worktree_copy_writes_through_no_link() {
    let world = scud_project(graph(
        "1 | One | P | 1 | H\n2 | Two | P | 1 | M",
        "\n@edges\n2 -> 1\n",
    ));
    world.write(".gitignore", "conf/local.env\n");
    world.write("conf/keep", "k");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "conf"]);
    world.write("conf/local.env", "the user's");
    world.configure("worktree_copy = [\"conf/local.env\"]\n");
    let outside = world.state().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("local.env"), "theirs").unwrap();
    let text = "if [ $DESCARTES_TASK_ID = 1 ]; then rm -rf conf; ln -s $STATE/outside conf; fi
echo x > work-$DESCARTES_TASK_ID";
    let flags = [
        "--verify",
        "test -e README.md",
        "--max-iterations-per-task",
        "1",
    ];
    let done = agent(&world, text, &flags);
    let theirs = std::fs::read_to_string(outside.join("local.env")).unwrap();
    assert_eq!(theirs, "theirs", "{done}");
    assert!(said(&done).contains("is a symbolic link there"), "{done}");
}

#[test]
fn an_agents_sparse_checkout_does_not_reach_the_next_task() {
    let world = tasks(2);
    for name in ["a/f", "b/f"] {
        world.write(name, "x");
    }
    world.git(["add", "."]);
    world.git(["commit", "-qm", "folders"]);
    let text = "if [ $DESCARTES_TASK_ID = 1 ]; then echo x > a/w; git sparse-checkout set a; mkdir -p c; echo x > c/w
else ls a b c > $STATE/seen 2>&1; echo y > b/w; fi";
    let flags = ["--verify", "test -e a/f", "--max-iterations-per-task", "1"];
    let done = agent(&world, text, &flags);
    done.assert_code(0);
    let seen = std::fs::read_to_string(world.state().join("seen")).unwrap();
    assert!(seen.contains("b:\nf"), "{seen}");
    assert!(world.has("b/w") && world.has("a/w"), "{done}");
    assert!(world.has("b/f") && world.has("c/w"), "{done}");
}

#[test]
fn a_worktree_that_an_agent_moved_comes_back() {
    let world = tasks(2);
    let text = "echo x > work-$DESCARTES_TASK_ID
if [ $DESCARTES_TASK_ID = 1 ]; then git worktree move \"$PWD\" $STATE/moved; fi";
    let flags = [
        "--verify",
        "test -e README.md",
        "--max-iterations-per-task",
        "1",
    ];
    let done = agent(&world, text, &flags);
    done.assert_code(6);
    assert!(world.has("work-2"), "{done}");
    assert!(!world.state().join("moved").exists(), "{done}");
    assert_eq!(show(&world, "descartes/auth/1:work-1"), "x", "{done}");
}

#[test]
fn a_person_may_look_at_the_branch_of_a_task_in_a_worktree_of_their_own() {
    let world = tasks(1);
    let text = "echo x > work; [ -e $STATE/ok ] && rm -f bad || touch bad";
    let flags = [
        "--verify",
        "test ! -e bad",
        "--max-iterations-per-task",
        "1",
    ];
    agent(&world, text, &flags).assert_code(6);
    let look = world.root().join("look");
    world.git([
        "worktree",
        "add",
        "-q",
        look.to_str().unwrap(),
        "descartes/auth/1",
    ]);
    std::fs::write(look.join("wip"), "mine").unwrap();
    std::fs::write(world.state().join("ok"), "").unwrap();
    let done = run(&world, &["loop", "resume", "--retry-blocked"]);
    done.assert_code(0);
    assert!(said(&done).contains(look.to_str().unwrap()), "{done}");
    assert!(world.has("work") && !world.has("bad"), "{done}");
    let mut git = world.command("git");
    git.current_dir(&look).args(["status", "--porcelain"]);
    assert_eq!(world.run(git).stdout(), "?? wip\n", "{done}");
    assert!(look.join("bad").exists());
}

#[track_caller]
fn run_in(world: &World, dir: &Path, words: &[&str]) -> Finished {
    let mut command = world.descartes(words);
    command.current_dir(dir);
    world.run_within(command, Duration::from_secs(180))
}

#[test]
fn work_in_worktrees_comes_along_when_the_project_is_moved() {
    let world = tasks(1);
    killed(&world, "echo wip > wip", "ls > $STATE/seen; echo fin > fin");
    let moved = world.root().join("moved");
    std::fs::rename(world.project(), &moved).unwrap();
    let done = run_in(&world, &moved, &["loop", "resume", "--here"]);
    done.assert_code(0);
    for name in ["wip", "fin"] {
        assert!(moved.join(name).exists(), "{name}: {done}");
    }
}

#[test]
fn a_copied_project_leaves_the_worktrees_of_the_original_alone() {
    let world = tasks(1);
    killed(&world, "echo wip > wip", "echo fin > fin");
    let copied = world.root().join("copied");
    let mut copy = world.command("cp");
    copy.arg("-a").arg(world.project()).arg(&copied);
    world.run(copy).assert_code(0);
    let done = run_in(&world, &copied, &["loop", "resume", "--here"]);
    done.assert_code(0);
    assert!(copied.join("fin").exists(), "{done}");
    let listed = world.git(["worktree", "list", "--porcelain"]);
    let tree = listed
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "))
        .map(Path::new)
        .find(|tree| tree.join("wip").exists());
    assert!(tree.is_some(), "{listed}");
    let mut git = world.command("git");
    git.current_dir(tree.unwrap())
        .args(["status", "--porcelain"]);
    assert!(world.run(git).assert_code(0).stdout().contains("?? wip"));
}

#[test]
fn branches_of_the_users_that_leave_ours_no_room_are_named_with_what_to_type() {
    let world = tasks(1);
    world.git(["branch", "descartes"]);
    let done = agent(&world, "echo x > work", &["--verify", "true"]);
    done.assert_code(65);
    assert!(done.stderr().contains("git branch -m descartes"), "{done}");
    world.git(["branch", "-m", "descartes", "mine"]);
    agent(&world, "echo x > work", &["--verify", "true"]).assert_code(0);
    // Kept commits find another name.
    let world = tasks(1);
    world.git(["branch", "descartes-kept"]);
    let first = "git checkout -q --detach; echo u > untracked";
    killed(&world, first, "echo fin > fin");
    let done = run(&world, &["loop", "resume"]);
    done.assert_code(0);
    let work = run(&world, &["work"]).stdout();
    assert!(work.contains("descartes-kept-2/auth/"), "{work}{done}");
}

#[test]
fn a_project_with_any_path_is_worked_on() {
    use std::os::unix::ffi::OsStrExt;
    for name in [&b"p\xff"[..], b"p\nq"] {
        let world = tasks(1);
        let odd = world.root().join(std::ffi::OsStr::from_bytes(name));
        std::fs::rename(world.project(), &odd).unwrap();
        std::fs::create_dir(world.project()).unwrap();
        let path = world.state().join("agent.sh");
        std::fs::write(&path, "echo x > work; echo '<promise>COMPLETE</promise>'").unwrap();
        let command = format!("sh {}", path.display());
        let words = ["loop", "start", "--scud-tag", "auth", "--command", &command];
        let done = run_in(&world, &odd, &[&words[..], &["--verify", "true"]].concat());
        done.assert_code(0);
        assert!(odd.join("work").exists(), "{done}");
    }
}

#[test]
fn names_of_any_bytes_are_carried_or_sent_back_as_others_are() {
    let world = tasks(1);
    let text = "n=$(printf 'n\\377'); t=$(printf 't\\377')
if [ -e \"$n/.git\" ]; then rm -rf \"$n/.git\"; else
echo a > \"$t\"; git add -A; git commit -qm t; echo b > \"$t\"; git update-index --assume-unchanged \"$t\"
mkdir \"$n\"; cd \"$n\"; git init -q .; echo content > f; git add f; git commit -qm inner; cd ..; git add \"$n\"; fi";
    let done = agent(&world, text, &["--verify", "test -e README.md"]);
    done.assert_code(0);
    assert!(said(&done).contains("a separate git repository"), "{done}");
    let tree = world.git(["ls-tree", "-r", "HEAD"]);
    assert!(
        tree.contains("n\\377/f") && !tree.contains("160000"),
        "{tree}"
    );
    let mut show = world.command("sh");
    show.args(["-c", "git show HEAD:\"$(printf 't\\377')\""]);
    assert_eq!(world.run(show).stdout(), "b\n", "{done}");
}

#[test]
fn links_that_an_agent_plants_beside_its_worktree_are_not_written_through() {
    let world = tasks(2);
    let victim = world.root().join("victim");
    std::fs::write(&victim, "theirs").unwrap();
    let text = format!(
        "for n in task at-work git-folder config sparse setup; do ln -sf {} ../slot-0.$n; done; echo x > work-$DESCARTES_TASK_ID",
        victim.display()
    );
    let done = agent(&world, &text, &["--verify", "test -e README.md"]);
    assert_eq!(
        std::fs::read_to_string(&victim).unwrap(),
        "theirs",
        "{done}"
    );
    done.assert_code(0);
}
