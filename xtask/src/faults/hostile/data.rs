//! The user's data: nested repositories, branches, links, copies, ignored files.

use std::os::unix::fs::symlink;

use super::super::cases::Case;
use super::world::{PROMISE, ensure, expect_code, is_kept, repository, shell, start, start_tasks};
use crate::lab::{Lab, Trial, Trouble};

pub const CASES: &[(&str, Case)] = &[
    (
        "a task's agent makes a repository inside the tree",
        nested_repository,
    ),
    (
        "a task's agent commits inside a submodule",
        submodule_commit,
    ),
    ("a task's agent stashes its work", stash),
    (
        "a person's commit on the branch of a tag",
        commit_on_our_branch,
    ),
    (
        "a lock file that is a link, at the start and in mid-loop",
        linked_lock,
    ),
    ("`.descartes` or the state file is a link", linked_state),
    ("`rewind` and `resume` in a copied project", copied_project),
    ("`rewind` after the ignore rules changed", rewind_ignored),
];

const PRECIOUS: &str = "precious work of an agent 7f3a";

fn nested_repository(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 1);
    let agent = format!(
        "mkdir -p app && cd app && git init -q . && echo '{PRECIOUS}' > file\n\
         git add . && git commit -q -m inner\necho '{PROMISE}'"
    );
    let ended = trial.run(start_tasks(&trial, &agent, &["--verify", "test -e app/"]))?;
    let gitlink = shell(&trial, "git ls-tree -r HEAD | grep -c ^160000 || true")?;
    ensure(gitlink == "0", || {
        format!("a gitlink to nowhere landed; {ended}")
    })?;
    ensure(is_kept(&trial, PRECIOUS), || {
        format!("the nested work is gone; {ended}")
    })?;
    ensure(ended.code() != Some(0), || format!("called done; {ended}"))
}

fn submodule_commit(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 1);
    shell(
        &trial,
        "git init -q ../library && cd ../library && echo one > one && git add . && git commit -qm one && cd - >/dev/null\n\
         git -c protocol.file.allow=always submodule --quiet add ../library library && git commit -qm submodule",
    )?;
    let agent = format!(
        "git -c protocol.file.allow=always submodule --quiet update --init && cd library\n\
         echo '{PRECIOUS}' > two && git add . && git commit -q -m inner\necho '{PROMISE}'"
    );
    let ended = trial.run(start_tasks(
        &trial,
        &agent,
        &["--verify", "test -e library/"],
    ))?;
    ensure(ended.code() != Some(0), || format!("called done; {ended}"))?;
    let there = shell(
        &trial,
        "cd ../library && git cat-file -t $(git -C ../project rev-parse HEAD:library)",
    )?;
    ensure(there == "commit", || {
        format!("the gitlink points nowhere; {ended}")
    })?;
    ensure(is_kept(&trial, PRECIOUS), || {
        format!("the commit inside the submodule is gone; {ended}")
    })
}

fn stash(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 1);
    let agent = format!("echo '{PRECIOUS}' > file; git add file; git stash -q\necho '{PROMISE}'");
    let ended = trial.run(start_tasks(&trial, &agent, &["--verify", "true"]))?;
    ensure(is_kept(&trial, PRECIOUS), || {
        format!("the stash is gone; {ended}")
    })
}

fn commit_on_our_branch(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 1);
    // A branch of that name with a commit that only the person made.
    shell(
        &trial,
        &format!(
            "git checkout -q -b descartes/big && echo '{PRECIOUS}' > fix && git add . && git commit -qm fix && git checkout -q main"
        ),
    )?;
    let agent = format!("echo work > work; echo '{PROMISE}'");
    let ended = trial.run(start_tasks(
        &trial,
        &agent,
        &["--verify", "true", "--force"],
    ))?;
    let on_branch = shell(&trial, "git log --branches --format=%s")?;
    ensure(on_branch.lines().any(|line| line == "fix"), || {
        format!("the person's commit is on no branch: {on_branch}; {ended}")
    })
}

fn linked_lock(lab: &Lab) -> Result<(), Trouble> {
    for planted_by_agent in [false, true] {
        let trial = Trial::new(lab);
        let target = trial.world.home().join("keys");
        std::fs::write(&target, PRECIOUS).map_err(|error| error.to_string())?;
        let lock = trial.path(".descartes/loop-state.json.lock");
        let plant = format!(
            "rm -f {0}; ln -s {1} {0}; rm -f {2}.tmp; ln -s {1} {2}.tmp",
            lock.display(),
            target.display(),
            trial.state_file().display()
        );
        let agent = match planted_by_agent {
            true => format!("{plant}\necho working"),
            false => "echo working".to_owned(),
        };
        if !planted_by_agent {
            trial.world.write(".descartes/.keep", "");
            symlink(&target, &lock).map_err(|error| error.to_string())?;
        }
        let ended = trial.run(start(&trial, &agent, &["--max-iterations", "3"]))?;
        let text = std::fs::read_to_string(&target).unwrap_or_default();
        ensure(text == PRECIOUS, || {
            format!("the link's target was overwritten; {ended}")
        })?;
    }
    Ok(())
}

fn linked_state(lab: &Lab) -> Result<(), Trouble> {
    for folder in [true, false] {
        let trial = Trial::new(lab);
        let elsewhere = trial.world.home().join("elsewhere");
        std::fs::create_dir(&elsewhere).map_err(|error| error.to_string())?;
        let target = elsewhere.join("loop-state.json");
        std::fs::write(&target, PRECIOUS).map_err(|error| error.to_string())?;
        if folder {
            symlink(&elsewhere, trial.path(".descartes")).map_err(|error| error.to_string())?;
        } else {
            trial.world.write(".descartes/.keep", "");
            symlink(&target, trial.state_file()).map_err(|error| error.to_string())?;
        }
        let flags = ["--max-iterations", "1", "--force"];
        let ended = trial.run(start(&trial, "echo working", &flags))?;
        let text = std::fs::read_to_string(&target).unwrap_or_default();
        ensure(text == PRECIOUS, || {
            format!("what the link points to changed; {ended}")
        })?;
    }
    Ok(())
}

fn copied_project(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    let agent = "n=$DESCARTES_ITERATION; echo $n > count; pwd >> ../ran-in";
    let ended = trial.run(start(&trial, agent, &["--max-iterations", "2"]))?;
    expect_code(&ended, 2)?;
    shell(&trial, "cp -a . ../copy && echo mine > later")?;
    for words in [
        &["loop", "rewind", "1", "--yes"][..],
        &["loop", "resume", "--max-iterations", "3"],
    ] {
        let mut command = trial.descartes(words);
        command.current_dir(trial.world.root().join("copy"));
        let ended = trial.run(command)?;
        let count = trial.world.read("count");
        ensure(count.trim() == "2" && trial.path("later").exists(), || {
            format!(
                "`{}` in the copy changed the original; {ended}",
                words.join(" ")
            )
        })?;
        let ran = trial.world.read("../ran-in");
        ensure(ran.lines().count() == 2, || {
            format!(
                "`{}` in the copy ran the agent in the original; {ended}",
                words.join(" ")
            )
        })?;
    }
    Ok(())
}

fn rewind_ignored(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    trial.world.write(".gitignore", "secret.env\n");
    trial.world.write("secret.env", PRECIOUS);
    let agent =
        "echo $DESCARTES_ITERATION > count; [ $DESCARTES_ITERATION = 1 ] || rm -f .gitignore";
    let ended = trial.run(start(&trial, agent, &["--max-iterations", "2"]))?;
    expect_code(&ended, 2)?;
    let rewound = trial.run(trial.descartes(&["loop", "rewind", "1", "--yes"]))?;
    expect_code(&rewound, 0)?;
    ensure(trial.world.read("count").trim() == "1", || {
        format!("not rewound; {rewound}")
    })?;
    ensure(trial.path("secret.env").exists(), || {
        format!("the ignored file is gone; {rewound}")
    })?;
    Ok(())
}
