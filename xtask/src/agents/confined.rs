//! The CLIs in a sandbox: a tool call, a commit and a gate, in a repository and in a slot of a task loop, in
//! `workspace` and in `strict`; and a folder of theirs that cannot be written is told at once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use descartes_testkit::World;
use descartes_testkit::real_clis::{Options, RealCli};
use serde_json::json;

use super::stage::{Build, STARTUP_TIMEOUT, Stage, must};
use super::table::{Table, seconds};
use crate::lab::Form;

/// Those whose needs were measured.
pub const KNOWN: [RealCli; 4] = [
    RealCli::Claude,
    RealCli::Codex,
    RealCli::Gemini,
    RealCli::OpenCode,
];

/// A folder that a CLI must write is told of within this time.
const BAR: Duration = Duration::from_secs(1);

const ROADMAP: &str = "# Work\n\n## Tasks\n\n- [ ] **one**: do it\n";

/// What the model orders: work, a commit, and the proof that git made it.
const ORDER: &str = "printf 'two\\n' > work.txt; { git add -A && git commit -qm 'work of the agent' \
     && git log -1 --format=%s; } > told.txt 2>&1";

/// Runs all of it.
pub fn run(stage: &Build<'_>, form: Form, table: &mut Table) -> Result<(), String> {
    for level in ["workspace", "strict"] {
        for place in [Place::Repository, Place::Slot] {
            let case = format!("{level}, {}", place.name());
            let mut stage = stage(&format!("{level}-{}", place.name()));
            let seen = once(&mut stage, level, place);
            table.add(stage.cli.name(), &case, seen);
        }
    }
    let mut stage = stage("locked");
    let seen = locked_folder(&mut stage);
    let told = seen
        .as_ref()
        .map(|time| seconds(*time))
        .map_err(Clone::clone);
    let time = seen.unwrap_or_default();
    let late = form.judge(time <= BAR, || seconds(time));
    table.judged(stage.cli.name(), "its folder read-only", told, late);
    Ok(())
}

/// Whether bwrap works on this machine; says so where it does not.
pub fn works(binary: &Path) -> bool {
    let world = World::new();
    let mut command = world.command(binary);
    command.arg("doctor");
    let told = world.run(command).stdout();
    let works = told.contains("workspace and strict work here");
    if !works {
        println!("  skipped: bwrap does not work on this machine");
    }
    works
}

/// Where the agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Repository,
    Slot,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Repository => "repository",
            Self::Slot => "slot",
        }
    }
}

fn once(stage: &mut Stage<'_>, level: &str, place: Place) -> Result<String, String> {
    stage.world.git_init();
    // gemini keeps its shell from the user's own settings of git.
    stage.world.git(["config", "user.name", "Test Person"]);
    stage
        .world
        .git(["config", "user.email", "person@example.com"]);
    stage.world.write("ROADMAP.md", ROADMAP);
    stage.world.git(["add", "."]);
    stage.world.git(["commit", "--quiet", "--message", "tasks"]);
    script(stage)?;
    let program = stage.program()?;
    let flags = ["--sandbox", level, "--verify", "grep two work.txt"];
    let mut command = match place {
        Place::Repository => {
            stage.start_confined(&["loop", "start", "--prompt", "go"], &program)?
        }
        Place::Slot => stage.start_confined(&["roadmap", "run", "ROADMAP.md"], &program)?,
    };
    command.args(flags);
    let began = Instant::now();
    let ended = stage.world.watch(command, STARTUP_TIMEOUT);
    let ended = ended.map_err(|so_far| format!("did not end\n{so_far}"))?;
    let judged = judge(stage, level, place, ended.code());
    judged.map_err(|wrong| format!("{wrong}\n{ended}"))?;
    Ok(seconds(began.elapsed()))
}

fn script(stage: &mut Stage<'_>) -> Result<(), String> {
    let cli = stage.cli;
    let turns = json!([
        {"text": "I work.", "tool": {"shell": ORDER}},
        cli.ends("So it is.\n\n<promise>COMPLETE</promise>"),
    ]);
    stage.script(turns, &Options::default())
}

fn judge(stage: &Stage<'_>, level: &str, place: Place, code: Option<i32>) -> Result<(), String> {
    must(code == Some(0), || format!("exit code {code:?}"))?;
    let started = stage.records("sandbox_started");
    let right = |record: &serde_json::Value| {
        record["level"] == level && record["mechanism"] == "bwrap" && record["gates"] == level
    };
    must(!started.is_empty() && started.iter().all(right), || {
        format!("sandbox {started:?}")
    })?;
    let told = match place {
        Place::Repository => fs::read_to_string(stage.world.path("told.txt")).unwrap_or_default(),
        // What was landed.
        Place::Slot => git(stage, &["show", "HEAD:told.txt"]),
    };
    must(told == "work of the agent\n", || {
        format!("git said {told:?}")
    })?;
    let work = git(stage, &["show", "HEAD:work.txt"]);
    must(work == "two\n", || format!("committed: {work:?}"))?;
    let status = stage.world.git(["status", "--porcelain"]);
    let left = status.lines().filter(|line| !line.ends_with("told.txt"));
    let left: Vec<&str> = left.collect();
    must(left.is_empty(), || format!("left behind: {left:?}"))
}

fn git(stage: &Stage<'_>, words: &[&str]) -> String {
    let mut command = stage.world.command("git");
    command.args(words);
    stage.world.run(command).stdout()
}

/// The folder that a CLI writes in its home directory.
fn folder_of(cli: RealCli) -> &'static str {
    match cli {
        RealCli::Claude => ".claude",
        RealCli::Codex => ".codex",
        RealCli::Gemini => ".gemini",
        _ => ".local/share/opencode",
    }
}

fn locked_folder(stage: &mut Stage<'_>) -> Result<Duration, String> {
    stage.world.git_init();
    script(stage)?;
    let folder = stage.world.home().join(folder_of(stage.cli));
    let mode = |mode: u32| {
        let set = fs::set_permissions(&folder, fs::Permissions::from_mode(mode));
        set.map_err(|error| format!("{}: {error}", folder.display()))
    };
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    mode(0o555)?;
    let program = stage.program()?;
    let mut command = stage.start_confined(&["loop", "start", "--prompt", "go"], &program)?;
    command.args(["--sandbox", "workspace"]);
    let began = Instant::now();
    let ended = stage.world.watch(command, STARTUP_TIMEOUT);
    let took = began.elapsed();
    mode(0o755)?;
    let ended = ended.map_err(|so_far| format!("did not end\n{so_far}"))?;
    let said = ended.stderr();
    let names = said.contains(&*folder.to_string_lossy()) && said.contains("hint: ");
    must(names && ended.code() == Some(65), || {
        format!("it was not told\n{ended}")
    })?;
    must(stage.requests() == 0, || "the agent was started".to_owned())?;
    Ok(took)
}
