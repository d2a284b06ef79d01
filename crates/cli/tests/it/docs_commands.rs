//! Every command that stands in README.md and docs/ works as written, in the situation it is written for.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_testkit::process::send;
use descartes_testkit::pty::Size;
use descartes_testkit::world::Finished;
use descartes_testkit::{Pty, World, eventually};
use nix::sys::signal::Signal;

use crate::sandbox::has_bwrap;

const SOON: Duration = descartes_testkit::PATIENCE;
const LONG: Duration = descartes_testkit::PATIENCE;

/// Where a command is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Situation {
    /// A repository with a prompt file, a roadmap and a SCUD tag; agents are installed.
    Project,
    /// The same after `descartes init`.
    Initialised,
    /// The commands for Claude Code are installed, for the user and for the project.
    Installed,
    /// The project came with a config of its own that can start programs.
    Untrusted,
    /// The loop `auth` was done in its second iteration.
    Done,
    /// The loop `auth` is in its first iteration.
    Running,
    /// The host of the loop `auth` was killed in its first iteration.
    Interrupted,
    /// The loop `auth` ended at its limit of iterations; its gate would be green now.
    AtLimit,
    /// It ended at its budget.
    OverBudget,
    /// It ended at its limit, and somebody edited the state file.
    Edited,
    /// Its host was killed, and the project was copied; the command is typed in the copy.
    Copied,
    /// A task loop ended with a blocked task; its gate would be green now.
    Blocked,
    /// The same for a roadmap.
    RoadmapBlocked,
    /// Lists of other tools lie in the project.
    Lists,
    /// Trackers answer with issues.
    Trackers,
    /// A task loop ended with a task that somebody else marked.
    Marked,
    /// A task loop ended with work that could not land; nothing is in its way any more.
    Unlanded,
}

/// How a command is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typed {
    /// Runs to its end with this exit code.
    Ends(i32),
    /// Cannot be done on this machine: says so, with this exit code and this hint.
    Refused(i32, &'static str),
    /// Needs a terminal; this is typed there once this text is seen.
    Terminal(&'static str, &'static str),
    /// Only its name is said, in a sentence about it: its help is there.
    Named,
}

use Situation::*;
use Typed::{Ends, Named, Refused, Terminal};

/// The first entry whose words all begin the command holds; one that ends with `.` is the whole of it.
const RULES: &[(&str, Situation, Typed)] = &[
    ("query.", Project, Named),
    ("spec.", Project, Named),
    ("--version", Project, Ends(0)),
    ("demo", Project, Ends(0)),
    ("init", Project, Ends(0)),
    ("doctor", Initialised, Ends(0)),
    ("agents", Project, Ends(0)),
    ("sandbox", Initialised, Ends(0)),
    ("config", Initialised, Ends(0)),
    ("install claude", Project, Ends(0)),
    ("install", Project, Terminal("[y/N]", "y\r")),
    ("uninstall claude", Installed, Ends(0)),
    ("uninstall", Installed, Terminal("[y/N]", "y\r")),
    ("trust --yes", Untrusted, Ends(0)),
    ("trust --show", Untrusted, Ends(0)),
    ("trust --revoke", Untrusted, Ends(0)),
    ("trust", Untrusted, Terminal("[y/N]", "y\r")),
    ("query", Done, Ends(0)),
    ("report", Done, Ends(0)),
    // It serves until it is ended, on one port of the machine; `tests/web` runs it.
    ("serve", Project, Named),
    // A program starts it; `mcp.rs` is one.
    ("mcp", Project, Named),
    // It needs a server and a port of the machine; `engine.rs` runs it.
    ("engine", Project, Named),
    // They need an engine; `workers.rs` runs them.
    ("worker", Project, Named),
    ("loop start --scud-tag auth --workers", Project, Named),
    ("roadmap run ROADMAP.md --workers", Project, Named),
    ("loop workers", Project, Named),
    ("loop resume --workers", Project, Named),
    ("gui", Done, Ends(0)),
    ("watch", Done, Terminal("auth", "q")),
    ("loop watch", Done, Terminal("auth", "q")),
    ("clean", Done, Ends(0)),
    ("graph", Project, Ends(0)),
    ("spec T004", Lists, Ends(0)),
    ("spec", Project, Ends(0)),
    ("work land", Unlanded, Ends(0)),
    ("work", Unlanded, Ends(0)),
    ("roadmap check specs/003-export", Lists, Ends(0)),
    ("roadmap check --source", Trackers, Ends(0)),
    ("roadmap check", Project, Ends(0)),
    ("roadmap run specs/003-export", Lists, Ends(0)),
    ("roadmap run --source", Trackers, Ends(0)),
    ("roadmap run .beads", Trackers, Ends(0)),
    ("import", Lists, Ends(0)),
    (
        "roadmap run ROADMAP.md --retry-blocked",
        RoadmapBlocked,
        Ends(0),
    ),
    ("roadmap run", Initialised, Ends(0)),
    ("loop start --trust-config", Untrusted, Ends(0)),
    ("loop start", Initialised, Ends(0)),
    ("loop --command", Project, Ends(0)),
    ("loop resume --retry-blocked", Blocked, Ends(0)),
    ("loop resume --trust-marks", Marked, Ends(0)),
    ("loop resume --accept-edits", Edited, Ends(0)),
    ("loop resume --here", Copied, Ends(0)),
    ("loop resume auth --working-dir", Copied, Ends(0)),
    ("loop resume --max-iterations", AtLimit, Ends(0)),
    ("loop resume --max-cost", OverBudget, Ends(0)),
    ("loop resume", Interrupted, Ends(0)),
    ("loop pause", Running, Ends(0)),
    ("loop unpause", Running, Ends(0)),
    ("loop say", Running, Ends(0)),
    ("loop set", Running, Ends(0)),
    ("loop cancel", Running, Ends(0)),
    ("loop status", Running, Ends(0)),
    ("loop list", Running, Ends(0)),
    ("loop logs", Done, Ends(0)),
    ("loop history", Done, Ends(0)),
    ("loop diff", Done, Ends(0)),
    ("loop rewind", Done, Terminal("[y/N]", "y\r")),
];

/// What is written for something of the reader's own.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("\"select …\"", "\"select name from loops\""),
    ("\"…\"", "\"use tabs\""),
    ("0192…", "auth"),
    (
        "--command …",
        "--command 'claude --permission-mode acceptEdits' --prompt go",
    ),
    ("loop start … --detach", "loop start --detach"),
    (" …", ""),
    (" [FLAGS]", ""),
    (" [TAG]", ""),
    (" [LOOP]", ""),
    (" [--project]", ""),
    (" TAG", " auth"),
    (" FILE", " ROADMAP.md"),
    (" TASK", " 1"),
    ("agents show NAME", "agents show claude"),
    (" NAME", " auth"),
    (" ID", " auth"),
    (" DIR", " ."),
    (" N", " 1"),
];

/// A command of a page, and the lines it stands in.
fn commands() -> BTreeMap<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> = std::fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    pages.push(root.join("README.md"));
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        for (line, command) in of_page(&text) {
            found
                .entry(plain(&command))
                .or_default()
                .push(format!("{name}:{line}"));
        }
    }
    found
}

/// Every command of a text with its line: in code blocks, and in the middle of a sentence.
fn of_page(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let block = line.strip_prefix("    ").or(line.strip_prefix("$ "));
        let (at, mut command) = match (open.take(), block) {
            (Some((at, begun)), Some(rest)) => (at, format!("{begun} {}", rest.trim())),
            (None, Some(rest))
                if rest.starts_with("descartes ") || rest.contains("| descartes ") =>
            {
                (number, rest.to_owned())
            }
            _ => {
                let spans = line.split('`').skip(1).step_by(2);
                let typed = spans.filter(|span| span.starts_with("descartes "));
                found.extend(typed.map(|span| (number, span.to_owned())));
                continue;
            }
        };
        if let Some(begun) = command.strip_suffix('\\') {
            open = Some((at, begun.trim().to_owned()));
            continue;
        }
        for remark in ["  #", "   ("] {
            if let Some((before, _)) = command.split_once(remark) {
                command = before.to_owned();
            }
        }
        found.push((at, command.trim().to_owned()));
    }
    found
}

/// With real values in place of the reader's own.
fn plain(command: &str) -> String {
    let mut text = command.to_owned();
    for (word, value) in PLACEHOLDERS {
        // `N` is no beginning of `NAME`.
        let mut made = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(word) {
            let (before, after) = (&rest[..at], &rest[at + word.len()..]);
            let whole = !after.starts_with(|next: char| next.is_alphanumeric());
            made.push_str(before);
            made.push_str(if whole { value } else { word });
            rest = after;
        }
        made.push_str(rest);
        text = made;
    }
    text
}

/// The rule that holds for a command.
fn rule_of(command: &str) -> Option<usize> {
    let words = words_of(command);
    RULES
        .iter()
        .position(|(begin, ..)| match begin.strip_suffix('.') {
            Some(whole) => words == whole,
            None => {
                let rest = words.strip_prefix(begin);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            }
        })
}

#[test]
fn every_command_of_the_docs_is_tried_here() {
    let commands = commands();
    assert!(commands.len() > 50, "{}", commands.len());
    let mut wrong = Vec::new();
    let mut used = vec![false; RULES.len()];
    for (command, places) in &commands {
        match rule_of(command) {
            Some(rule) => used[rule] = true,
            None => wrong.push(format!("{places:?}: no rule for `{command}`")),
        }
    }
    let unused = RULES.iter().zip(&used).filter(|(_, used)| !**used);
    wrong.extend(unused.map(|((begin, ..), _)| format!("no page says `descartes {begin}`")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_for_a_project_work_as_written() {
    try_all(|situation| situation <= Untrusted);
}

#[test]
fn commands_for_a_loop_work_as_written() {
    try_all(|situation| matches!(situation, Done | Running));
}

#[test]
fn commands_that_go_on_work_as_written() {
    try_all(|situation| situation > Running);
}

/// Types every command of these situations, each in a world of its own.
fn try_all(of: impl Fn(Situation) -> bool) {
    let mut wrong = Vec::new();
    let has_bwrap = LazyCell::new(has_bwrap);
    for (command, places) in commands() {
        let rule = rule_of(&command).map(|rule| RULES[rule]);
        let Some((_, situation, mut typed)) = rule.filter(|rule| of(rule.1)) else {
            continue;
        };
        if command.contains("--sandbox strict") && typed == Ends(0) && !*has_bwrap {
            typed = Refused(65, "hint: install bubblewrap");
        }
        let world = situation.world();
        if let Err(what) = type_it(&world, situation, &command, typed) {
            wrong.push(format!("{places:?}, {situation:?}: `{command}`: {what}"));
        }
        world.end_all();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What follows `descartes`.
fn words_of(command: &str) -> &str {
    command
        .rsplit_once("descartes ")
        .map_or("", |(_, words)| words)
}

/// Types it in a shell, and says what was not as it should be.
fn type_it(world: &World, situation: Situation, command: &str, typed: Typed) -> Result<(), String> {
    // The window would be found beside the binary, and wants a screen.
    let alone = world.root().join("alone");
    let binary = match words_of(command).starts_with("gui") {
        true => {
            std::fs::create_dir_all(&alone).unwrap();
            std::fs::copy(descartes_testkit::descartes(), alone.join("descartes")).unwrap();
            alone.join("descartes").display().to_string()
        }
        false => descartes_testkit::descartes().display().to_string(),
    };
    let line = match command.split_once("descartes ") {
        Some((before, words)) => format!("{before}{binary} {words}"),
        None => command.to_owned(),
    };
    let help = if typed == Named { " --help" } else { "" };
    let mut shell = world.command("sh");
    shell.args(["-c", &format!("{line}{help}")]);
    if situation == Copied {
        shell.current_dir(world.root().join("copy"));
    }
    let ends = |shell, code| {
        let done = world.run_within(shell, LONG);
        match done.code() == Some(code) && !done.stderr().contains("error:") {
            true => Ok(()),
            false => Err(told(&done)),
        }
    };
    match typed {
        Ends(code) => ends(shell, code),
        Refused(code, hint) => {
            let done = world.run_within(shell, LONG);
            match done.code() == Some(code) && done.stderr().contains(hint) {
                true => Ok(()),
                false => Err(told(&done)),
            }
        }
        Named => ends(shell, 0),
        Terminal(seen, keys) => {
            shell.env("TERM", "xterm");
            let mut pty = Pty::spawn(&shell, Size::default());
            pty.wait_screen(SOON, |screen| screen.contains(seen));
            pty.send(keys);
            let status = pty.wait(SOON);
            match status.code() {
                Some(0) => Ok(()),
                _ => Err(format!("{status}\n{}", pty.screen())),
            }
        }
    }
}

fn told(done: &Finished) -> String {
    format!("{:?}\n{}{}", done.code(), done.stdout(), done.stderr())
}

const ROADMAP: &str = "# Roadmap: Work\n\n## Tasks\n- [ ] **one**: One\n";
const TASKS: &str = "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n\
    # id | title | status | complexity | priority\n1 | One | P | 1 | M\n2 | Two | P | 1 | M\n\n@edges\n2 -> 1\n";

/// An agent that writes a file and claims, and before that waits while `hold` is there.
fn agent(world: &World, name: &str, version: &str) {
    let hold = world.root().join("hold");
    let seen = world.root().join("seen");
    let text = crate::common::claude_result("did it\\n<promise>COMPLETE</promise>");
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in --version) echo '{version}'; exit 0;; esac\n\
        echo work >> \"work-${{DESCARTES_TASK_ID:-loop}}.txt\"\necho hello > hello.txt\necho x >> '{}'\n\
        while [ -e '{}' ]; do sleep 0.05; done\ncat <<'END'\n{text}\nEND\n",
        seen.display(),
        hold.display(),
    );
    world.program(name, &script);
}

impl Situation {
    /// A world in which it is so.
    pub fn world(self) -> World {
        let world = World::new();
        agent(&world, "claude", "2.1.34 (Claude Code)");
        agent(&world, "codex", "codex-cli 0.99.0");
        agent(&world, "gemini", "0.30.0");
        for quiet in ["cargo", "xdg-open"] {
            world.program(quiet, "#!/bin/sh\nexit 0\n");
        }
        let answer = concat!(env!("CARGO_PKG_VERSION"), " (window of descartes loops)");
        let window = format!("#!/bin/sh\necho 'descartes-gui {answer}'\n");
        world.program("descartes-gui", &window);
        world.write("PROMPT.md", "Write the file.\n");
        world.write("ROADMAP.md", ROADMAP);
        world.write(
            "Cargo.toml",
            "[package]\nname = \"x\"\nversion = \"0.1.0\"\n",
        );
        world.write(".scud/tasks/tasks.scg", TASKS);
        world.git_init();
        self.prepare(&world);
        world
    }

    fn prepare(self, world: &World) {
        let hold = world.root().join("hold");
        let mended = world.root().join("mended");
        let gate = format!("test -e '{}'", mended.display());
        let seen = || world.root().join("seen").exists();
        match self {
            Project => {}
            Initialised => {
                quiet(world, &["init"], 0);
            }
            Lists => {
                quiet(world, &["init"], 0);
                let tasks = "## Phase 1: Setup\n- [ ] T001 Read\n- [ ] T004 [P] Print\n";
                world.write("specs/003-export/tasks.md", tasks);
                world.write(
                    "PLAN.md",
                    "# Plan\n## Now\n- Parser: weeks are wrong\n- Printer\n",
                );
                world.git(["add", "."]);
                world.git(["commit", "--quiet", "--message", "lists"]);
            }
            Trackers => {
                let issue =
                    r#"echo '[{"number": 1, "id": "b-1", "title": "One", "blockedBy": {}}]'"#;
                for program in ["gh", "bd"] {
                    world.program(program, &format!("#!/bin/sh\n{issue}\n"));
                }
                world.write(".beads/metadata.json", "{}");
                quiet(world, &["init"], 0);
                let mut config = world.read(".descartes/config.toml");
                config.push_str("\n[source.board]\nlist = \"gh\"\ndone = \"true\"\n");
                world.write(".descartes/config.toml", config);
                world.git(["add", "."]);
                world.git(["commit", "--quiet", "--message", "trackers"]);
                quiet(world, &["trust", "--yes"], 0);
            }
            Installed => {
                quiet(world, &["install", "claude"], 0);
                quiet(world, &["install", "claude", "--project"], 0);
                for tool in ["codex", "gemini", "opencode"] {
                    quiet(world, &["install", tool, "--yes"], 0);
                }
            }
            Untrusted => {
                world.write(
                    ".descartes/config.toml",
                    "permissions = \"edit\"\ndefault_agent = \"claude\"\nverify = [\"true\"]\n",
                );
            }
            Done => {
                let once = world.root().join("once");
                let gate = format!(
                    "test -e '{0}' || {{ touch '{0}'; exit 1; }}",
                    once.display()
                );
                start(world, &["--verify", &gate], 0);
            }
            Running | Interrupted | Copied => {
                std::fs::write(&hold, "").unwrap();
                start(world, &["--detach"], 0);
                eventually("the agent", SOON, seen);
                if self != Running {
                    kill_host(world);
                    std::fs::remove_file(&hold).unwrap();
                }
                if self == Copied {
                    copy(world);
                }
            }
            AtLimit | Edited => {
                start(world, &["--verify", &gate, "--max-iterations", "1"], 2);
                std::fs::write(&mended, "").unwrap();
                if self == Edited {
                    let text = world.read(".descartes/loop-state.json");
                    let edited = text.replace("\"max_iterations\": 1,", "\"max_iterations\": 9,");
                    assert_ne!(text, edited);
                    world.write(".descartes/loop-state.json", edited);
                }
            }
            OverBudget => {
                start(world, &["--verify", &gate, "--max-cost", "0.2"], 3);
                std::fs::write(&mended, "").unwrap();
            }
            Blocked => {
                tasks(world, &["--verify", &gate], 6);
                std::fs::write(&mended, "").unwrap();
            }
            RoadmapBlocked => {
                let words = ["roadmap", "run", "ROADMAP.md", "--permissions", "edit"];
                quiet(world, &[&words[..], &["--verify", &gate]].concat(), 6);
                std::fs::write(&mended, "").unwrap();
            }
            Marked => {
                std::fs::write(&hold, "").unwrap();
                tasks(world, &["--verify", "true", "--detach"], 0);
                eventually("the agent", SOON, seen);
                let text = world.read(".scud/tasks/tasks.scg");
                world.write(".scud/tasks/tasks.scg", text.replace("Two | P", "Two | D"));
                std::fs::remove_file(&hold).unwrap();
                ended(world);
            }
            Unlanded => {
                std::fs::write(&hold, "").unwrap();
                tasks(world, &["--verify", "true", "--detach"], 0);
                eventually("the agent", SOON, seen);
                world.write("work-1.txt", "a file of the user");
                std::fs::remove_file(&hold).unwrap();
                ended(world);
                std::fs::remove_file(world.path("work-1.txt")).unwrap();
            }
        }
    }
}

/// Runs it to its end.
#[track_caller]
fn quiet(world: &World, words: &[&str], code: i32) {
    world
        .run_within(world.descartes(words), LONG)
        .assert_code(code);
}

/// The loop `auth`.
#[track_caller]
fn start(world: &World, flags: &[&str], code: i32) {
    let words = [
        "loop",
        "start",
        "--backend",
        "claude",
        "--permissions",
        "edit",
    ];
    let rest = ["--prompt", "go", "--name", "auth"];
    quiet(world, &[&words[..], &rest, flags].concat(), code);
}

/// The task loop of the tag `auth`.
#[track_caller]
pub fn tasks(world: &World, flags: &[&str], code: i32) {
    let words = [
        "loop",
        "start",
        "--scud-tag",
        "auth",
        "--permissions",
        "edit",
    ];
    quiet(world, &[&words[..], flags].concat(), code);
}

/// Waits for the end of what runs in the background.
pub fn ended(world: &World) {
    eventually("the end", LONG, || {
        let status = world.run(world.descartes(["loop", "status", "--json"]));
        status.stdout().contains("\"ended\"")
    });
}

/// The host alone; the guard ends the agent.
fn kill_host(world: &World) {
    let status = world.run(world.descartes(["loop", "status", "--json"]));
    let status: serde_json::Value = serde_json::from_str(&status.stdout()).unwrap();
    let pid = status["pid"].as_i64().unwrap();
    send(pid.try_into().unwrap(), Signal::SIGKILL);
    eventually("everything is gone", SOON, || world.processes().is_empty());
}

/// The project a second time, as it is.
fn copy(world: &World) {
    let mut copy = world.command("cp");
    copy.arg("-a")
        .arg(world.project())
        .arg(world.root().join("copy"));
    world.run(copy).assert_code(0);
}
