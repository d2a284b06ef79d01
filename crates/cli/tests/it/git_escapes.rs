//! What an agent can leave in a repository or a work tree for git to find, from the kernel's table of all that
//! git reads there: each row is tried, in every way that a loop works in a repository. Nothing of it is started
//! outside by git of ours, and nothing by the person's next git unless it was told. All lies in the world of
//! the test.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use descartes_kernel::sandbox::{GIT_TABLE, GitHold, GitPlace, GitRow};
use descartes_testkit::World;
use descartes_testkit::world::Finished;

use crate::sandbox::has_bwrap;
use crate::task_common::run;

/// What an agent does, and what is to be told of it.
struct Attempt {
    name: String,
    script: String,
    /// A part of what is told; `None` where there is nothing to tell.
    told: Option<String>,
    /// It keeps git of ours from committing, which is right, and would hide the others.
    stops_commits: bool,
}

impl Attempt {
    fn new(name: impl Into<String>, script: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            script: script.into(),
            told: None,
            stops_commits: false,
        }
    }

    fn told(self, what: impl Into<String>) -> Self {
        Self {
            told: Some(what.into()),
            ..self
        }
    }

    fn alone(self) -> Self {
        Self {
            stops_commits: true,
            ..self
        }
    }
}

/// Functions of the agent. `ev NAME` makes a program that writes its own `Seccomp:` to where only what is
/// outside can write; `nest FOLDER` makes a repository.
const FUNCTIONS: &str = r#"
TOP=$PWD; OWN=$(git rev-parse --absolute-git-dir); COMMON=$(cd "$(git rev-parse --git-common-dir)" && pwd)
ev() { mkdir -p "$TOP/ev"
  printf '#!/bin/sh\n{ grep Seccomp: /proc/self/status >> "%s/ran/%s"; } 2>/dev/null\n[ -t 0 ] || cat\n' "$ROOT" "$1" > "$TOP/ev/$1"
  chmod +x "$TOP/ev/$1"; echo "$TOP/ev/$1"; }
nest() { mkdir -p "$1"; cp -r "$TOP/template/." "$1"; }
git init -q template; echo '* filter=x diff=x merge=x' > template/.gitattributes; echo 1 > template/a
git -C template add -A; git -C template -c core.hooksPath=/dev/null commit -qm x
"#;

/// A value by which a setting would start `ev`.
fn planted_setting(row: &GitRow, name: &str) -> (String, String) {
    let key = match row.name {
        "includeIf.*.path" => "includeIf.onbranch:**.path".to_owned(),
        "sendemail.*" => "sendemail.smtpserver".to_owned(),
        other => other.replace('*', "x"),
    };
    let value = match row.name {
        "submodule.*.update" => format!("\"!$(ev {name})\""),
        "protocol.*.allow" | "protocol.allow" => "always".to_owned(),
        "include.path" | "includeIf.*.path" => format!("\"$(inc {name})\""),
        "core.hooksPath" => format!("\"$(hooks {name})\""),
        _ => format!("\"$(ev {name})\""),
    };
    (key, value)
}

const SETTINGS: &str = r#"
inc() { printf '[core]\n\tfsmonitor = %s\n' "$(ev "$1")" > "$TOP/ev/$1.inc"; echo "$TOP/ev/$1.inc"; }
hooks() { p=$(ev "$1"); mkdir -p "$TOP/ev/$1.d"; for h in pre-commit post-checkout reference-transaction post-index-change
  do cp "$p" "$TOP/ev/$1.d/$h"; done; echo "$TOP/ev/$1.d"; }
"#;

/// All attempts at a row.
fn attempts(number: usize, row: &GitRow) -> Vec<Attempt> {
    let name = format!("r{number}");
    let ev = format!("$(ev {name})");
    let one = |script: String| Attempt::new(format!("{:?} {}", row.place, row.name), script);
    match (row.place, row.name) {
        (GitPlace::Setting, _) => {
            let (key, value) = planted_setting(row, &name);
            let set = format!("nest n/{name}; touch n/{name}/a; git config -f n/{name}/.git/config '{key}' {value}");
            match row.hold {
                GitHold::Looked => {
                    let attempt = one(format!("{set}; git add n/{name}; date > n/{name}/a"));
                    vec![attempt.told(format!("n/{name}/.git/config"))]
                }
                // Where nothing is told, nothing may run, wherever the person stands.
                _ if row.name == "core.worktree" => vec![one(set).alone()],
                _ => vec![one(set)],
            }
        }
        (GitPlace::Common, "config") => vec![
            one(format!("git config core.fsmonitor \"{ev}\"")),
            Attempt::new("config by rename", format!("printf '[core]\\n\\tfsmonitor = %s\\n' \"{ev}\" > \"$COMMON/c\"; mv -f \"$COMMON/c\" \"$COMMON/config\"")),
            Attempt::new("config by unlink", "rm -f \"$COMMON/config\"; cp ev/r0 \"$COMMON/config\""),
            Attempt::new("the folder of git replaced", "mv .git gone && git init -q"),
        ],
        (_, "config.worktree") => vec![one(format!(
            "for d in \"$OWN\" \"$COMMON\"; do git config -f \"$d/config.worktree\" core.fsmonitor \"{ev}\"; done"
        ))],
        (GitPlace::Common, "hooks") => ["pre-commit", "post-commit", "reference-transaction", "post-checkout", "post-index-change"]
            .iter()
            .map(|hook| Attempt::new(format!("the hook {hook}"), format!("cp \"{ev}\" \"$COMMON/hooks/{hook}\"")))
            .collect(),
        (GitPlace::Common, "info") => ["attributes", "exclude", "grafts", "sparse-checkout"]
            .iter()
            .map(|file| Attempt::new(format!("info/{file}"), format!("echo '* filter=t' > \"$COMMON/info/{file}\"")))
            .collect(),
        (GitPlace::Common, "commondir") => {
            let evil = format!("cp -r \"$COMMON\" evil-{name}; rm -f evil-{name}/commondir; git config -f evil-{name}/config core.fsmonitor \"{ev}\"; mkdir -p evil-{name}/hooks; cp \"{ev}\" evil-{name}/hooks/reference-transaction; git config -f evil-{name}/config --unset core.hooksPath; rm -f evil-{name}/index evil-{name}/HEAD");
            let lead = format!("echo \"$TOP/evil-{name}\" > \"$COMMON/commondir\"");
            vec![
                one(format!("{evil}; {lead}")),
                Attempt::new("commondir by rename", format!("echo \"$TOP/evil-{name}\" > \"$COMMON/c2\"; mv -f \"$COMMON/c2\" \"$COMMON/commondir\"; rm -f \"$COMMON/c2\"")),
                Attempt::new("commondir by a link", format!("echo \"$TOP/evil-{name}\" > c3; ln -sfn \"$TOP/c3\" \"$COMMON/commondir\"")),
                Attempt::new("commondir after an unlink", format!("rm -f \"$COMMON/commondir\"; {lead}")),
            ]
        }
        (GitPlace::Common, "modules") => vec![one(format!(
            "for c in \"$COMMON\"/modules/*/config; do git config -f \"$c\" core.fsmonitor \"{ev}\"; done"
        ))],
        (GitPlace::Common, "worktrees/*") => vec![
            one(format!("for w in \"$COMMON\"/worktrees/*; do git config -f \"$w/config.worktree\" core.fsmonitor \"{ev}\"; echo \"$TOP/evil\" > \"$w/commondir\"; done")),
            Attempt::new("a work tree of its own making", format!("mkdir -p \"$COMMON/worktrees/{name}\" w/{name}; cd \"$COMMON/worktrees/{name}\" && echo ../.. > commondir && echo \"$TOP/w/{name}/.git\" > gitdir && cp \"$OWN/HEAD\" HEAD && git config -f config.worktree core.fsmonitor \"{ev}\"; echo \"gitdir: $COMMON/worktrees/{name}\" > \"$TOP/w/{name}/.git\"")),
        ],
        (GitPlace::Own, "gitdir" | "commondir") => vec![one(format!("[ \"$OWN\" = \"$COMMON\" ] || echo \"$TOP/evil\" > \"$OWN/{}\"", row.name))],
        (GitPlace::Own, "rebase-merge/git-rebase-todo") => vec![
            one(format!("mkdir -p \"$OWN/rebase-merge\"; echo \"exec {ev}\" > \"$OWN/rebase-merge/git-rebase-todo\"")).told("git-rebase-todo").alone(),
        ],
        (GitPlace::Common, "objects/info/alternates") => vec![one(format!(
            "git init -q --bare alt-{name}; git config -f alt-{name}/config core.fsmonitor \"{ev}\"; git config -f alt-{name}/config core.alternateRefsCommand \"{ev}\"; echo \"$TOP/alt-{name}/objects\" >> \"$COMMON/objects/info/alternates\""
        )).told(format!("alt-{name}/config"))],
        (GitPlace::Common, "objects/info/http-alternates") => vec![one(format!("echo \"{ev}\" > \"$COMMON/objects/info/http-alternates\""))],
        (GitPlace::Common, "remotes/*") => vec![one(format!("mkdir -p \"$COMMON/remotes\"; echo \"URL: ext::{ev}\" > \"$COMMON/remotes/x\"; echo \"URL: ext::{ev}\" > \"$COMMON/remotes/origin\""))],
        (GitPlace::Common, "branches/*") => vec![one(format!("mkdir -p \"$COMMON/branches\"; echo \"ext::{ev}\" > \"$COMMON/branches/origin\""))],
        (GitPlace::Common, "packed-refs") => vec![one(format!("echo \"$(git rev-parse HEAD) refs/heads/{name}\" >> \"$COMMON/packed-refs\""))],
        (GitPlace::Common, "refs/*") => vec![one(format!("git update-ref refs/heads/{name} HEAD"))],
        (GitPlace::Common, "refs/replace/*") => vec![one("b=$(echo evil | git hash-object -w --stdin); git replace \"$(git rev-parse HEAD:a.t)\" \"$b\"".to_owned())],
        (GitPlace::Common, "shallow") => vec![one("git rev-parse HEAD > \"$COMMON/shallow\"".to_owned())],
        (GitPlace::Common, "logs/*") => vec![one(format!("echo \"{ev}\" >> \"$COMMON/logs/refs/heads/x\""))],
        (GitPlace::Common, "rr-cache/*" | "lfs/*") => {
            let folder = row.name.trim_end_matches("/*");
            vec![one(format!("mkdir -p \"$COMMON/{folder}/x\"; cp \"{ev}\" \"$COMMON/{folder}/x/postimage\""))]
        }
        (GitPlace::Common, "gc.pid") => vec![one("echo '1 x' > \"$COMMON/gc.pid\"".to_owned())],
        (GitPlace::Own, "HEAD") => vec![one(format!("git branch {name}; git symbolic-ref HEAD refs/heads/{name}")).alone()],
        (GitPlace::Own, "index") => vec![
            one(format!("git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),i/{name}; nest i/{name}; git config -f i/{name}/.git/config core.fsmonitor \"{ev}\"")).told(format!("i/{name}/.git/config")),
            Attempt::new("assume unchanged", "git update-index --assume-unchanged a.t; date > a.t"),
        ],
        (GitPlace::Own, "FETCH_HEAD" | "COMMIT_EDITMSG") => vec![one(format!("echo \"{ev}\" > \"$OWN/{}\"", row.name))],
        (GitPlace::Own, "MERGE_HEAD") => vec![one("git rev-parse HEAD > \"$OWN/MERGE_HEAD\"".to_owned()).alone()],
        (GitPlace::Tree, ".git") => vec![
            one(format!("nest d/{name}; for h in pre-commit post-checkout post-index-change; do cp \"{ev}\" d/{name}/.git/hooks/$h || {{ mkdir -p d/{name}/.git/hooks; cp \"{ev}\" d/{name}/.git/hooks/$h; }}; done; git add d/{name}")).told(format!("d/{name}/.git/hooks")),
            Attempt::new("a nested filter", format!("nest d/{name}f; git config -f d/{name}f/.git/config filter.x.clean \"{ev}\"; git add d/{name}f; date > d/{name}f/a")).told(format!("d/{name}f/.git/config")),
            Attempt::new("a .git file that leads to a folder", format!("nest d/{name}g; mv d/{name}g/.git d/{name}g.git; echo \"gitdir: ../{name}g.git\" > d/{name}g/.git; git config -f d/{name}g.git/config core.fsmonitor \"{ev}\"; git add d/{name}g")).told(format!("d/{name}g.git/config")),
            Attempt::new("a nested repository with a commondir", format!("nest d/{name}c; nest d/{name}e; git config -f d/{name}e/.git/config core.fsmonitor \"{ev}\"; echo \"$TOP/d/{name}e/.git\" > d/{name}c/.git/commondir; git add d/{name}c")).told(format!("d/{name}e/.git/config")),
            Attempt::new("a nested repository below a nested one", format!("nest d/{name}n/below; nest d/{name}n; git config -f d/{name}n/below/.git/config core.fsmonitor \"{ev}\"; git -C d/{name}n add below; git add d/{name}n")).told(format!("d/{name}n/below/.git/config")),
            Attempt::new("a nested repository that is ignored", format!("echo ig/ >> .gitignore; nest ig/{name}; git config -f ig/{name}/.git/config core.fsmonitor \"{ev}\"; git add -f ig/{name}")).told(format!("ig/{name}/.git/config")),
            Attempt::new("settings of a nested work tree", format!("nest d/{name}w; git config -f d/{name}w/.git/config extensions.worktreeConfig true; git config -f d/{name}w/.git/config.worktree core.fsmonitor \"{ev}\"; git add d/{name}w")).told(format!("d/{name}w/.git/config.worktree")),
            Attempt::new("the .git of the work tree", "[ -d .git ] || { rm -f .git; git init -q; }; mv .git dotgit && git init -q"),
        ],
        (GitPlace::Tree, "HEAD+objects+refs") => vec![
            one(format!("git init -q --bare b/{name}; git config -f b/{name}/config core.fsmonitor \"{ev}\"")).told(format!("b/{name}/config")),
            Attempt::new("a folder of the project made a bare repository", format!("git init -q --bare q; cp -r q/. src/; rm -rf q; git config -f src/config core.bare false; git config -f src/config core.worktree \"$TOP/src\"; git config -f src/config core.fsmonitor \"{ev}\"")).told("src/config"),
        ],
        (GitPlace::Tree, "a file that is included") => vec![
            one(format!("printf '[core]\\n\\tfsmonitor = %s\\n[gpg]\\n\\tprogram = %s\\n[commit]\\n\\tgpgsign = true\\n[filter \"t\"]\\n\\tclean = %s\\n' \"{ev}\" \"{ev}\" \"{ev}\" > new.gitconfig")).told("new.gitconfig"),
            Attempt::new("an included file that was there", format!("printf '[core]\\n\\tfsmonitor = %s\\n' \"{ev}\" > team.gitconfig; printf '[core]\\n\\tfsmonitor = %s\\n' \"{ev}\" > t2; mv -f t2 team.gitconfig")),
        ],
        (GitPlace::Tree, "a folder of hooks") => vec![
            one(format!("mkdir -p .githooks; for h in pre-commit post-checkout reference-transaction post-index-change; do cp \"{ev}\" .githooks/$h; done")).told(".githooks"),
        ],
        (GitPlace::Tree, "a program of a setting") => vec![
            one(format!("cp \"{ev}\" tools/new.sh")).told("tools/new.sh"),
            Attempt::new("a filter that was there", format!("cp -f \"{ev}\" tools/clean.sh; cp \"{ev}\" x; mv -f x tools/clean.sh; date > b.t; date > a.t")),
            Attempt::new("what a filter reads", format!("cp -f \"{ev}\" tools/helper.sh; date > c.t; git update-index --really-refresh")).told("(of the filter)"),
            Attempt::new("an alias that was there", format!("cp -f \"{ev}\" tools/alias.sh")),
        ],
        (GitPlace::Tree, ".gitattributes") => vec![one("echo '*.s filter=lfs diff=x merge=y' >> .gitattributes; date > x.s".to_owned())],
        (GitPlace::Tree, ".gitmodules") => vec![one(format!("printf '[submodule \"x\"]\\n\\tpath = m\\n\\turl = ./m\\n\\tupdate = !%s\\n\\tfetchRecurseSubmodules = true\\n\\tignore = none\\n' \"{ev}\" >> .gitmodules; nest m; git add m .gitmodules"))
        .alone()],
        (GitPlace::Tree, ".gitignore" | ".mailmap") => vec![one(format!("echo \"{ev}\" >> {}", row.name))],
        (GitPlace::Tree, ".lfsconfig") => vec![one(format!("printf '[lfs]\\n\\turl = x\\n[lfs \"customtransfer.x\"]\\n\\tpath = %s\\n' \"{ev}\" > .lfsconfig"))],
        other => unreachable!("no attempt at {other:?}"),
    }
}

/// How a loop works in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    AutoCommit,
    InPlace,
    Tasks,
    /// With repositories inside, which no task can deliver.
    TasksNested,
    Linked,
    Submodule,
}

const WAYS: [Way; 7] = [
    Way::Plain,
    Way::AutoCommit,
    Way::InPlace,
    Way::Tasks,
    Way::TasksNested,
    Way::Linked,
    Way::Submodule,
];

/// What a person's repository has, for what an agent could make of it.
const BEFORE: &str = r#"
git config include.path "$PWD/new.gitconfig"; git config --add include.path "$PWD/team.gitconfig"
git config core.hooksPath .githooks; git config filter.t.clean ./tools/clean.sh; git config filter.u.clean ./tools/new.sh
git config alias.st '!./tools/alias.sh'
mkdir -p tools src
printf '#!/bin/sh\n[ -x tools/helper.sh ] && tools/helper.sh || cat\n' > tools/clean.sh; printf '#!/bin/sh\n' > tools/alias.sh
printf '#!/bin/sh\ncat\n' > tools/helper.sh
chmod +x tools/*.sh; echo '*.t filter=t' > .gitattributes; echo a > a.t; echo 1 > src/main; echo '[user]' > team.gitconfig
printf '# Work\n\n- [ ] **one**: do it\n' > ROADMAP.md
git add -A; git commit -qm before; git clone -q --bare . "$ROOT/origin.git"; git remote add origin "$ROOT/origin.git"
"#;

fn sh(world: &World, dir: &std::path::Path, script: &str) -> Finished {
    let mut command = world.command("sh");
    command.args(["-c", script]).current_dir(dir);
    command.env("ROOT", world.root());
    world.run(command)
}

/// Those that ran outside, with their own words.
fn ran(world: &World) -> BTreeSet<String> {
    let entries = std::fs::read_dir(world.root().join("ran")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// What no agent may change, by its content.
fn locked(world: &World, project: &std::path::Path) -> String {
    let find = "find .git/config .git/hooks .git/info .git/modules/*/config .git/modules/*/hooks .git/commondir \
        .git/modules/*/commondir .gitmodules team.gitconfig tools/clean.sh tools/alias.sh -type f \
        ! -name .gitmodules -exec sha256sum {} + | sort -k2";
    sh(world, project, find).stdout()
}

struct Tried {
    attempts: Vec<(usize, Attempt)>,
    wrong: Vec<String>,
}

fn all_attempts() -> Vec<(usize, Attempt)> {
    let rows = GIT_TABLE.iter().enumerate();
    let all = rows.flat_map(|(number, row)| {
        let found = attempts(number, row);
        assert!(!found.is_empty(), "{row:?}");
        found.into_iter().map(move |attempt| (number, attempt))
    });
    all.collect()
}

/// One loop with all attempts; then the person comes.
fn try_all(way: Way, level: &str) -> Tried {
    let world = World::new();
    world.git_init();
    std::fs::create_dir_all(world.root().join("ran")).unwrap();
    let project = world.project();
    sh(&world, &project, BEFORE).assert_code(0);
    let dir = match way {
        Way::Linked => {
            sh(&world, &project, "git worktree add -q ../linked").assert_code(0);
            world.root().join("linked")
        }
        Way::Submodule => {
            let add = "git -c protocol.file.allow=always submodule add -q \"$ROOT/origin.git\" sub && cp .git/config keep \
                && git commit -qm sub && cd sub && git config core.hooksPath .githooks \
                && git config include.path \"$PWD/new.gitconfig\" && git config filter.t.clean ./tools/clean.sh \
                && git config filter.u.clean ./tools/new.sh";
            sh(&world, &project, add).assert_code(0);
            project.join("sub")
        }
        _ => project.clone(),
    };
    let commits = matches!(
        way,
        Way::AutoCommit | Way::InPlace | Way::Linked | Way::Tasks
    );
    let mut attempts = all_attempts();
    attempts.retain(|(_, attempt)| !(commits && attempt.stops_commits));
    if way == Way::Tasks {
        let is_repository = |script: &str| {
            ["nest", "init", "160000", "cp -r"]
                .iter()
                .any(|word| script.contains(word))
        };
        attempts.retain(|(_, attempt)| !is_repository(&attempt.script));
    }
    let mut script = format!(
        "#!/bin/sh\nROOT='{}'\n{FUNCTIONS}{SETTINGS}",
        world.root().display()
    );
    for (_, attempt) in &attempts {
        writeln!(script, "( {} ) >/dev/null 2>&1", attempt.script).unwrap();
    }
    script.push_str("cd \"$TOP\"; rm -rf template; git add n >/dev/null 2>&1; date > work.txt\necho '<promise>COMPLETE</promise>'\n");
    world.program("agent", &script);
    let base = ["--command", "agent", "--sandbox", level, "--verify", "true"];
    let words: Vec<&str> = match way {
        Way::InPlace => vec!["roadmap", "run", "ROADMAP.md", "--in-place"],
        Way::Tasks | Way::TasksNested => vec!["roadmap", "run", "ROADMAP.md"],
        Way::Plain | Way::Submodule => vec!["loop", "start", "--prompt", "go", "-m", "1"],
        Way::AutoCommit | Way::Linked => vec![
            "loop",
            "start",
            "--prompt",
            "go",
            "-m",
            "1",
            "--auto-commit",
            "--tag-green",
            "--branch",
        ],
    };
    let mut command = world.descartes([&words[..], &base].concat());
    command.current_dir(&dir);
    let before = locked(&world, &project);
    let ended = world.run_within(command, std::time::Duration::from_secs(120));
    let mut wrong = Vec::new();
    let after = locked(&world, &project);
    if after != before {
        wrong.push(format!("what is locked was changed: {before}{after}"));
    }
    let newest = sh(&world, &dir, "git log -1 --format=%s").stdout();
    if commits && newest.trim() == "before" {
        wrong.push(format!("nothing was committed: {ended}"));
    }
    let code = if way == Way::TasksNested { 6 } else { 0 };
    if ended.code() != Some(code) {
        wrong.push(format!("the loop ended with {:?}: {ended}", ended.code()));
    }
    for name in ran(&world) {
        wrong.push(format!("run outside by us: {name}"));
    }
    let mut status = world.descartes(["loop", "status"]);
    status.current_dir(&dir);
    let told = ended.stdout() + &ended.stderr() + &world.run(status).stdout();
    for (_, attempt) in &attempts {
        // Nothing of this work reaches the person.
        let Some(what) = attempt.told.as_ref().filter(|_| way != Way::TasksNested) else {
            continue;
        };
        if !what.starts_with('(') && !told.contains(what.as_str()) {
            wrong.push(format!("not told: {}: {what}", attempt.name));
        }
    }
    let mut before = ran(&world);
    let places = match dir == project {
        true => vec![project.clone(), project.join("src")],
        false => vec![dir.clone(), project.clone()],
    };
    for (n, place) in places.iter().enumerate() {
        for words in [
            "git status".to_owned(),
            "git add -A".to_owned(),
            "git commit -qm person".to_owned(),
            "git fetch".to_owned(),
            "git gc -q".to_owned(),
            format!("git worktree add -q \"$ROOT/added-{n}\""),
        ] {
            sh(&world, place, &words);
            let now = ran(&world);
            for name in now.difference(&before) {
                let number = name.trim_start_matches('r').parse::<usize>().unwrap();
                let mut of_it = attempts.iter().filter(|(row, _)| *row == number);
                if of_it.all(|(_, attempt)| attempt.told.is_none()) {
                    wrong.push(format!(
                        "{words}: {} ran outside, and nobody was told",
                        GIT_TABLE[number].name
                    ));
                }
            }
            before = now;
        }
    }
    Tried { attempts, wrong }
}

fn check(level: &str) {
    if !has_bwrap() {
        return;
    }
    let tried = std::thread::scope(|scope| {
        let threads = WAYS.map(|way| (way, scope.spawn(move || try_all(way, level))));
        threads.map(|(way, thread)| (way, thread.join().unwrap()))
    });
    let mut wrong = String::new();
    for (way, tried) in tried {
        for words in tried.wrong {
            writeln!(wrong, "{way:?} in {level}: {words}").unwrap();
        }
        assert!(
            way == Way::Tasks || tried.attempts.len() >= 100,
            "{way:?}: {}",
            tried.attempts.len()
        );
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn nothing_that_an_agent_leaves_for_git_runs_outside_of_workspace_unseen() {
    check("workspace");
}

#[test]
fn nothing_that_an_agent_leaves_for_git_runs_outside_of_strict_unseen() {
    check("strict");
}

/// The attempts are worth something: without a sandbox each way of starting a program that git of the person's
/// goes through does start it.
#[test]
fn without_a_sandbox_the_attempts_get_through() {
    let world = World::new();
    world.git_init();
    std::fs::create_dir_all(world.root().join("ran")).unwrap();
    sh(&world, &world.project(), BEFORE).assert_code(0);
    // The attempts of a row that are made, of all.
    let wanted = [
        ("config", 0..1),
        ("hooks", 0..5),
        ("core.fsmonitor", 0..1),
        ("filter.*.clean", 0..1),
        ("filter.*.process", 0..1),
        ("include.path", 0..1),
        ("includeIf.*.path", 0..1),
        (".git", 0..7),
        ("HEAD+objects+refs", 0..2),
        ("a program of a setting", 0..4),
        ("commondir", 0..1),
    ];
    let mut missing = Vec::new();
    for (name, made) in wanted {
        let number = GIT_TABLE.iter().position(|row| row.name == name).unwrap();
        let all = attempts(number, &GIT_TABLE[number]);
        let copy = world.root().join(format!("copy-{number}"));
        let mut script = format!("cp -r . \"{0}\"; cd \"{0}\" || exit 1\n", copy.display());
        script.push_str("[ \"$NAME\" = hooks ] && git config --unset core.hooksPath\n");
        script.push_str(FUNCTIONS);
        script.push_str(SETTINGS);
        for attempt in &all[made] {
            writeln!(script, "( {} ) >/dev/null 2>&1", attempt.script).unwrap();
        }
        script.push_str("git status; (cd src && git status); git add -A; git commit -qm x; git commit -qm y --allow-empty; true");
        let script = format!("NAME={}\n{script}", shell_words::quote(name));
        sh(&world, &world.project(), &script);
        if !ran(&world).contains(&format!("r{number}")) {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// A program that signs as gpg does, and tells where it ran.
const SIGNER: &str = r#"#!/bin/sh
grep Seccomp: /proc/self/status >> "$ROOT/ran/signer" 2>/dev/null
cat > /dev/null; echo '[GNUPG:] SIG_CREATED D 1 8 00 0 0' >&2
printf -- '-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n'
"#;

#[test]
fn commits_of_a_sandboxed_loop_are_signed_by_the_persons_program_alone() {
    if !has_bwrap() {
        return;
    }
    for (signer, is_signed) in [("bin", true), ("tree", false), ("included", false)] {
        let world = World::new();
        world.git_init();
        std::fs::create_dir_all(world.root().join("ran")).unwrap();
        world.program(
            "signer",
            &SIGNER.replace("$ROOT", &world.root().display().to_string()),
        );
        world.write("a", "1");
        let program = match signer {
            "bin" => world.bin().join("signer"),
            _ => {
                let copy = world.project().join("signer");
                std::fs::copy(world.bin().join("signer"), &copy).unwrap();
                copy
            }
        };
        world.git(["add", "."]);
        world.git(["commit", "--quiet", "--message", "before"]);
        world.git(["config", "commit.gpgSign", "true"]);
        let set = ["gpg.program", program.to_str().unwrap()];
        match signer {
            "included" => {
                world.write(
                    "team.gitconfig",
                    format!(
                        "[gpg]\n\tprogram = {}\n",
                        world.bin().join("signer").display()
                    ),
                );
                world.git(["config", "include.path", "../team.gitconfig"])
            }
            _ => world.git(["config", set[0], set[1]]),
        };
        world.program("agent", "#!/bin/sh\ndate > work.txt\necho COMPLETE\n");
        let words = [
            "loop",
            "start",
            "--command",
            "agent",
            "--prompt",
            "go",
            "--auto-commit",
        ];
        let ended = run(&world, &[&words[..], &["--sandbox", "workspace"]].concat());
        ended.assert_code(0);
        let head = world.git(["cat-file", "commit", "HEAD"]);
        assert_eq!(
            head.contains("BEGIN PGP SIGNATURE"),
            is_signed,
            "{signer}: {ended}"
        );
        assert_eq!(
            head.contains("loop: iteration 1"),
            is_signed,
            "{signer}: {ended}"
        );
        assert_eq!(ran(&world).contains("signer"), is_signed, "{signer}");
        if !is_signed {
            let said = ended.stdout() + &ended.stderr();
            assert!(
                said.contains("which the agent can write: no commit is signed by it"),
                "{ended}"
            );
        }
    }
}

#[test]
fn a_loop_does_not_start_where_git_is_led_elsewhere_and_leaves_nothing_of_its_own() {
    if !has_bwrap() {
        return;
    }
    let world = World::new();
    world.git_init();
    world.write("a", "1");
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "before"]);
    world.program(
        "agent",
        "#!/bin/sh\ndate > work.txt\ngit status >&2\necho COMPLETE\n",
    );
    let words = ["loop", "start", "--command", "agent", "--prompt", "go"];
    let flags = ["--sandbox", "workspace", "--force"];
    let all = [&words[..], &flags].concat();
    run(&world, &all).assert_code(0);
    assert!(
        !world.has(".git/commondir"),
        "it is there for the run alone"
    );
    world.write(".git/commondir", "../evil\n");
    let ended = run(&world, &all);
    ended.assert_code(65);
    let said = ended.stderr();
    assert!(said.contains("leads git to another folder"), "{said}");
    // What is to be typed works.
    let hint = said.lines().find_map(|line| line.split_once("remove it: "));
    sh(&world, &world.project(), hint.unwrap().1).assert_code(0);
    run(&world, &all).assert_code(0);
    // What a host that was killed leaves is nobody's harm.
    world.write(".git/commondir", ".\n");
    let common = world.git(["rev-parse", "--git-common-dir"]);
    let real = |path: &str| world.project().join(path).canonicalize().unwrap();
    assert_eq!(real(common.trim()), real(".git"));
    assert_eq!(world.git(["status", "--porcelain"]), "?? work.txt");
    run(&world, &all).assert_code(0);
    assert!(!world.has(".git/commondir"));
}

#[test]
fn a_pipe_where_git_keeps_a_file_is_told_and_not_waited_for() {
    if !has_bwrap() {
        return;
    }
    let world = World::new();
    world.git_init();
    let agent = "#!/bin/sh\nmkdir a b\nmkfifo a/.git\ngit init -q b\nrm b/.git/config\nmkfifo b/.git/config\necho COMPLETE\n";
    world.program("agent", agent);
    let words = "loop start --command agent --prompt go --sandbox workspace";
    let ended = run(&world, &words.split(' ').collect::<Vec<_>>());
    ended.assert_code(0);
    let said = ended.stdout() + &ended.stderr();
    assert!(
        said.contains("b/.git/config") && said.contains("rm -r -- b/.git/config"),
        "{ended}"
    );
}
