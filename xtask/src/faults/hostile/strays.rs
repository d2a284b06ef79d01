//! Orphans of dead loops, and programs that the agent made git run.

use std::time::{Duration, Instant};

use descartes_testkit::{process, wait};
use nix::sys::signal::Signal;

use super::super::cases::Case;
use super::world::{ensure, shell, start};
use crate::lab::trial::{LONG, gone_ms};
use crate::lab::{Lab, Trial, Trouble};

/// All must be gone so soon after the end.
const GONE: Duration = Duration::from_secs(2);

pub const CASES: &[(&str, Case)] = &[
    (
        "`start --force` over a loop whose host and guard were killed",
        start_over_dead,
    ),
    ("programs in git's filters, at measuring", filter_programs),
    (
        "programs in git's hooks and settings, at commits",
        commit_programs,
    ),
];

fn start_over_dead(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let agent = "[ -e second ] && exit 0; touch up; exec sleep 9999";
    let mut host = trial.spawn(start(&trial, agent, &["--max-iterations", "1"]))?;
    trial.wait_for("up")?;
    let guard = host.guard()?;
    let mut find = || {
        let mut all = trial.world.processes();
        all.retain(|one| one.command == "sleep 9999");
        (!all.is_empty()).then_some(all)
    };
    let agents = wait::poll(LONG, &mut find).ok_or("no agent was seen")?;
    process::send(guard, Signal::SIGKILL);
    host.signal(Signal::SIGKILL);
    host.code()?;
    trial.world.write("second", "");
    let ended = trial.run(start(&trial, agent, &["--max-iterations", "1", "--force"]))?;
    gone_ms(&agents, Instant::now(), lab.form.deadline(GONE))
        .map_err(|trouble| format!("{trouble}; {ended}"))?;
    Ok(())
}

/// Whatever a program of the agent's started is gone when the loop is over.
fn no_survivor(trial: &Trial<'_>, flags: &[&str], prepare: &str) -> Result<(), Trouble> {
    trial.world.git_init();
    trial.world.program(
        "stray",
        "#!/bin/sh\nsetsid sleep 7777 </dev/null >/dev/null 2>&1 &\n[ \"$1\" != cat ] || cat\n",
    );
    shell(trial, "echo one > file; git add .; git commit -qm file")?;
    let agent = format!("{prepare}\necho $DESCARTES_ITERATION >> file");
    let flags = [&["--max-iterations", "3"], flags].concat();
    let ended = trial.run(start(trial, &agent, &flags))?;
    let since = Instant::now();
    let strays = |trial: &Trial<'_>| -> Vec<_> {
        trial
            .world
            .processes()
            .into_iter()
            .filter(|one| one.command.contains("7777"))
            .collect()
    };
    gone_ms(&strays(trial), since, trial.lab.form.deadline(GONE))
        .map_err(|trouble| format!("{trouble}; {ended}"))?;
    ensure(ended.code() == Some(2), || format!("{ended}"))
}

fn filter_programs(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let prepare = "git config filter.x.clean 'stray cat'; git config filter.x.smudge 'stray cat'\n\
         git config core.fsmonitor stray; echo '* filter=x' > .gitattributes";
    no_survivor(&trial, &[], prepare)
}

fn commit_programs(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let prepare = "git config core.fsmonitor stray\n\
         for hook in pre-commit post-commit commit-msg prepare-commit-msg post-index-change reference-transaction; do\n\
         printf '#!/bin/sh\\nstray\\n' > .git/hooks/$hook; chmod +x .git/hooks/$hook; done";
    no_survivor(&trial, &["--auto-commit"], prepare)
}
