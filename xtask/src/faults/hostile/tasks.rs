//! Task loops that must not fail by themselves.

use std::time::Duration;

use super::super::cases::Case;
use super::world::{PROMISE, ensure, expect_code, repository, shell, start_tasks};
use crate::lab::{Lab, Trial, Trouble};

pub const CASES: &[(&str, Case)] = &[
    ("no wave barrier, several slots, quick agents", no_barrier),
    (
        "merge.ff, signatures and other settings of the user's git",
        git_settings,
    ),
    (
        "a blocked task is tried again once its cause is mended",
        retry_blocked,
    ),
    ("the user commits during every gate run", busy_user),
    ("the task file is gone for two seconds", vanished_file),
    ("task ids that no branch can have", odd_ids),
];

fn agent() -> String {
    format!("echo work > work-$DESCARTES_TASK_ID\necho '{PROMISE}'")
}

fn no_barrier(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 8);
    let flags = ["--no-wave-barrier", "--parallel", "4", "--verify", "true"];
    let ended = trial.run(start_tasks(&trial, &agent(), &flags))?;
    expect_code(&ended, 0)?;
    for task in 1..=8 {
        let name = format!("work-{task}");
        ensure(trial.path(&name).exists(), || {
            format!("{name} did not land; {ended}")
        })?;
    }
    Ok(())
}

const SETTINGS: [&str; 16] = [
    "merge.ff=false",
    "merge.ff=only",
    "merge.verifySignatures=true",
    "merge.conflictStyle=diff3",
    "commit.gpgSign=true",
    "commit.status=false",
    "diff.noprefix=true",
    "diff.external=false",
    "status.showUntrackedFiles=no",
    "core.quotePath=true",
    "rerere.enabled=true",
    "pull.rebase=true",
    "submodule.recurse=true",
    "color.ui=always",
    "core.fsmonitor=false",
    "advice.detachedHead=true",
];

fn git_settings(lab: &Lab) -> Result<(), Trouble> {
    for setting in SETTINGS {
        let trial = Trial::new(lab);
        repository(&trial, 2);
        let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
        // Signing is the user's wish for commits; a key that cannot sign is their trouble.
        if key == "commit.gpgSign" {
            trial.world.program("sign", "#!/bin/sh\ncat >/dev/null\nprintf '[GNUPG:] SIG_CREATED \\n' >&2\necho '-----BEGIN PGP SIGNATURE-----'\n");
            shell(&trial, "git config --global gpg.program sign")?;
        }
        shell(&trial, &format!("git config --global {key} {value}"))?;
        let ended = trial.run(start_tasks(&trial, &agent(), &["--verify", "true"]))?;
        ensure(
            ended.code() == Some(0) && trial.path("work-2").exists(),
            || format!("{setting}: {ended}"),
        )?;
    }
    Ok(())
}

fn retry_blocked(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 2);
    let gate = format!("test -e {}", trial.world.root().join("mended").display());
    let ended = trial.run(start_tasks(&trial, &agent(), &["--verify", &gate]))?;
    expect_code(&ended, 6)?;
    let text = format!("{}{}", ended.stdout(), ended.stderr());
    ensure(text.contains("--retry-blocked"), || {
        format!("the ending does not say how to try again; {ended}")
    })?;
    shell(&trial, "touch ../mended")?;
    let ended = trial.run(trial.descartes(&["loop", "resume", "--retry-blocked"]))?;
    expect_code(&ended, 0)?;
    ensure(
        trial.path("work-1").exists() && trial.path("work-2").exists(),
        || format!("not landed; {ended}"),
    )
}

fn busy_user(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 1);
    // The first six runs of the gate each meet a commit of the user's in the checkout.
    let gate = format!(
        "cd {} && n=$(cat ../runs 2>/dev/null || echo 0) && echo $((n+1)) > ../runs && \
         if [ $n -lt 6 ]; then echo $n >> user.txt; git add user.txt; git commit -q -m \"user $n\"; fi",
        trial.world.project().display()
    );
    let ended = trial.run(start_tasks(&trial, &agent(), &["--verify", &gate]))?;
    let landed = trial.path("work-1").exists();
    match (ended.code(), landed) {
        (Some(0), true) => Ok(()),
        (Some(6), false) => {
            let landed = trial.run(trial.descartes(&["work", "land"]))?;
            expect_code(&landed, 0)?;
            ensure(trial.path("work-1").exists(), || {
                format!("`work land` did not land; {landed}")
            })
        }
        _ => Err(format!("landed: {landed}; {ended}")),
    }
}

fn vanished_file(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 2);
    let tasks = trial.path(".scud/tasks/tasks.scg");
    let agent = format!(
        "touch {0}/up\nwhile [ ! -e {0}/go ]; do sleep 0.05; done\n{1}",
        trial.world.root().display(),
        agent()
    );
    let mut host = trial.spawn(start_tasks(&trial, &agent, &["--verify", "true"]))?;
    let up = trial.world.root().join("up");
    descartes_testkit::wait::poll(crate::lab::trial::LONG, &mut || up.exists().then_some(()))
        .ok_or("no agent started")?;
    let aside = tasks.with_extension("aside");
    let rename = |from: &std::path::Path, to: &std::path::Path| {
        std::fs::rename(from, to).map_err(|error| error.to_string())
    };
    rename(&tasks, &aside)?;
    // The fault is the passing of time itself.
    std::thread::sleep(Duration::from_secs(2));
    shell(&trial, "touch ../go")?;
    std::thread::sleep(Duration::from_secs(1));
    rename(&aside, &tasks)?;
    let code = host.code()?;
    let landed = trial.path("work-1").exists() && trial.path("work-2").exists();
    ensure(code == 0 && landed, || {
        format!("exit code {code}, landed: {landed}")
    })
}

fn odd_ids(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    let ids = ["yarn.lock", "v1..v2", "a.", "@"];
    let mut text = String::from("# Plan\n\n## Tasks\n\n");
    for id in ids {
        text.push_str(&format!("- [ ] **{id}**: do {id}\n"));
    }
    trial.world.write("ROADMAP.md", &text);
    shell(&trial, "git add . && git commit -qm roadmap")?;
    let checked = trial.run(trial.descartes(&["roadmap", "check", "ROADMAP.md"]))?;
    if checked.code() != Some(0) {
        // Refused before anything began, by name.
        return ensure(
            checked.stdout().contains("yarn.lock") || checked.stderr().contains("yarn.lock"),
            || format!("{checked}"),
        );
    }
    let agent = super::world::shell_agent(&trial, "echo work > \"work-$DESCARTES_TASK_ID\"");
    let ended =
        trial.run(trial.descartes(&["roadmap", "run", "ROADMAP.md", "--command", &agent]))?;
    expect_code(&ended, 0)
}
