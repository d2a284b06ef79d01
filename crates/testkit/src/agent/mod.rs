//! The scripted agent: one small program that plays every agent a test or a benchmark needs.
//!
//! What it does is told by a script, never by its prompt, so that it does not matter how a tool
//! wraps the prompt. The script is the value of `SCRIPTED_AGENT`, or the file that
//! `SCRIPTED_AGENT_FILE` names. Without one it does nothing and exits 0.
//!
//! # The language
//!
//! One verb a line; `;;` also ends a line. Empty lines and lines that begin with `#` are passed
//! over. FILE and other single arguments are words, which `"…"` may hold together; TEXT is the
//! rest of the line. `${PID}`, `${ITERATION}` and `${NAME}` for any environment variable are
//! replaced in both. Durations are `250us`, `10ms`, `1.5s`, `2m`, `1h`; sizes `100`, `64K`, `5MB`.
//!
//! ## Sections
//!
//! Lines before the first section run always. A section begins with a line that starts with `@`
//! and runs when the iteration is in its range; the rest of that line may hold its first verb.
//!
//! | header | runs |
//! |---|---|
//! | `@2`, `@2-4`, `@3-` | in iteration 2, 2 to 4, from 3 on |
//! | `@*` | when no numbered section does |
//! | `@all` | always |
//!
//! The iteration is counted in the file that `SCRIPTED_AGENT_COUNTER` names, where that is set
//! (every start of the agent adds one); else it is `DESCARTES_ITERATION`; else 1.
//!
//! ```text
//! stamp /tmp/stamps
//! @1 print I have begun
//!    write notes.txt first
//! @2 err it does not compile
//!    exit 1
//! @* promise
//! ```
//!
//! ## Speaking
//!
//! | verb | does |
//! |---|---|
//! | `print TEXT`, `err TEXT` | a line on standard output, on standard error |
//! | `printf TEXT`, `errf TEXT` | no line end; `\n \r \t \0 \e \\ \xff` are bytes |
//! | `promise [TEXT]` | `<promise>TEXT</promise>` on a line; `COMPLETE` if none is given |
//! | `flush-split each\|3,7,… [pause DUR] TEXT` | escapes as `printf`, written in pieces cut at every byte or at these offsets, a pause (1 ms) between |
//! | `drip COUNT DUR` | that many lines `mark MILLISECONDS` (since 1970), one every DUR |
//! | `flood SIZE [lines\|oneline\|binary] [stderr]` | that many bytes, as [`flood::Pattern`] makes them, as fast as the pipe takes them |
//! | `echo-prompt [arg\|stdin\|env\|file]` | the prompt as it came: last argument, standard input, `PROMPT`, or the file the last argument names |
//! | `stream FILE [first N] [pause DUR]` | the lines of a recorded stream |
//! | `stream-limit AGENT DUR` | what `claude`, `codex`, `gemini` or `opencode` prints when the provider's limit ends that long from now, and the exit code it then has |
//! | `tty-check` | `stdin=… stdout=… stderr=… controlling=…`, each `tty` or `none` |
//! | `close-stdout`, `close-stderr` | closes it; later output goes nowhere |
//!
//! ## Working
//!
//! | verb | does |
//! |---|---|
//! | `write FILE TEXT`, `append FILE TEXT` | a line in a file, its folder made if need be |
//! | `touch FILE`, `mkdir DIR`, `delete FILE` | |
//! | `rm PATH` | removes a file or a whole folder, if it is there |
//! | `read-stdin-to FILE`, `save-prompt FILE [SOURCE]` | standard input; the prompt, source as for `echo-prompt` |
//! | `git-commit MSG`, `git-clean` | `git add -A` and commit; `git clean -fdx` |
//! | `sh COMMAND` | a shell command, its output ours; a failure ends the script with its code |
//! | `sleep DUR`, `cpu DUR`, `hang` | waits, burns a core, waits for ever (an hour) |
//! | `wait-file FILE [DUR]` | until it exists; fails after DUR (10 min) |
//! | `repeat N VERB …`, `if-file FILE VERB …`, `unless-file FILE VERB …` | another verb, N times or under a condition |
//!
//! ## Ending
//!
//! | verb | does |
//! |---|---|
//! | `exit N` | |
//! | `die SIGNAL` | ends itself by a signal: `TERM`, `KILL`, `SEGV`, … |
//! | `ignore SIGNAL` | from now on |
//! | `on-signal SIGNAL FILE [after DUR] exit N\|stay` | appends the signal's name to FILE (`-`: nowhere), waits, exits or goes on |
//!
//! ## Children
//!
//! `spawn-child KIND [pipe|null] FILE` starts processes that live on (ten minutes at most), appends the
//! id of each to FILE, and returns once all have done so. With `pipe`, which is the default, they
//! hold our standard output and error open.
//!
//! | kind | is |
//! |---|---|
//! | `plain` | a child |
//! | `grandchild` | a child and a child of that |
//! | `double-fork` | an orphan: its parent has exited |
//! | `setsid` | a child in a session of its own |
//! | `setsid-double-fork` | a daemon: an orphan in a session of its own |
//! | `nohup` | a child that ignores SIGHUP |
//! | `ignore-term` | a child that ignores SIGTERM, SIGINT and SIGHUP |
//! | `fork-bomb=N` | a tree of N processes that grows while it is being killed |
//!
//! ## Telling on others
//!
//! | verb | does |
//! |---|---|
//! | `stamp FILE` | appends [`crate::stamp`] lines: the start, taken first thing in `main`, and the end, taken right before the exit |
//! | `dump-env FILE`, `dump-argv FILE` | one entry a line |
//! | `dump-fds FILE` | `NUMBER TARGET` of every open descriptor |
//! | `dump-ids FILE` | `pid=… ppid=… pgid=… sid=…` |
//!
//! Asked for `--version` it answers, and plays nothing.
//!
//! A script that cannot be carried out ends with exit code 70 and the reason on standard error.

mod arguments;
mod child;
mod dump;
mod files;
pub mod flood;
mod limit;
mod output;
mod prompt;
mod script;
mod signals;
mod speak;
mod stamps;
mod text;
mod verbs;
mod work;

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use nix::sys::resource::{Resource, setrlimit};

pub use script::{Script, ScriptError};

/// The exit code of a script that cannot be carried out.
pub const BROKEN_SCRIPT: u8 = 70;

/// What it answers to `--version`, as the agent that it is taken for does.
const VERSION: &[u8] = b"2.1.0 (Claude Code)\n";

/// Why a script could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// A verb or argument that the language does not know.
    #[error("{0}")]
    Script(String),
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system answered.
        source: io::Error,
    },
    /// Nobody reads our output any more.
    #[error("nobody reads the output")]
    PipeClosed,
}

impl Trouble {
    fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            // What a shell reports for a program that SIGPIPE ended.
            Self::PipeClosed => 141,
            _ => BROKEN_SCRIPT,
        }
    }
}

/// Runs the agent; `started` is the stamp taken first thing in `main`.
pub fn main(started: u64) -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let outcome = match arguments.next().as_deref().and_then(|word| word.to_str()) {
        Some("--child") => child::main(arguments),
        Some("--exec") => signals::exec(arguments),
        Some("--on-terminal") => on_terminal(arguments),
        // Tools that look for an agent ask so; it is no start.
        Some("--version") => output::Out::Stdout.write(VERSION).map(|()| 0),
        _ => play(started),
    };
    ExitCode::from(outcome.unwrap_or_else(|trouble| {
        let _ = output::Out::Stderr.write(format!("scripted agent: {trouble}\n").as_bytes());
        trouble.exit_code()
    }))
}

fn play(started: u64) -> Result<u8, Trouble> {
    // A script may well die of SIGSEGV; core files have no place in the work tree.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let iteration = iteration()?;
    let script = Script::parse(&source()?).map_err(|error| Trouble::Script(error.to_string()))?;
    verbs::Player::new(started, iteration).play(&script)
}

fn source() -> Result<String, Trouble> {
    if let Ok(inline) = env::var("SCRIPTED_AGENT") {
        return Ok(inline);
    }
    let Some(file) = env::var_os("SCRIPTED_AGENT_FILE") else {
        return Ok(String::new());
    };
    std::fs::read_to_string(&file)
        .map_err(|error| Trouble::system(PathBuf::from(file).display().to_string(), error))
}

fn iteration() -> Result<u64, Trouble> {
    if let Some(file) = env::var_os("SCRIPTED_AGENT_COUNTER") {
        return count(&PathBuf::from(file));
    }
    let told = env::var("DESCARTES_ITERATION")
        .ok()
        .and_then(|value| value.parse().ok());
    Ok(told.unwrap_or(1))
}

/// One byte for each start: where our own byte ended up is our number, even if two of us start at
/// the same time.
fn count(file: &std::path::Path) -> Result<u64, Trouble> {
    use std::io::{Seek, Write};
    let what = || format!("counter {}", file.display());
    let mut options = std::fs::OpenOptions::new();
    let mut counter = options
        .create(true)
        .append(true)
        .open(file)
        .map_err(|error| Trouble::system(what(), error))?;
    counter
        .write_all(b".")
        .map_err(|error| Trouble::system(what(), error))?;
    counter
        .stream_position()
        .map_err(|error| Trouble::system(what(), error))
}

/// Becomes leader of a session, takes the terminal as its own, and turns into the program.
fn on_terminal(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, Trouble> {
    use std::os::unix::process::CommandExt;
    let missing = || Trouble::Script("--on-terminal wants a terminal and a program".into());
    let terminal = arguments.next().ok_or_else(missing)?;
    let program = arguments.next().ok_or_else(missing)?;
    nix::unistd::setsid().map_err(|error| Trouble::system("setsid", error))?;
    // The first terminal that a session leader opens becomes its controlling terminal.
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&terminal);
    let tty = opened.map_err(|error| Trouble::system("open the terminal", error))?;
    let taken = nix::unistd::dup2_stdin(&tty)
        .and_then(|()| nix::unistd::dup2_stdout(&tty))
        .and_then(|()| nix::unistd::dup2_stderr(&tty));
    taken.map_err(|error| Trouble::system("take the terminal", error))?;
    drop(tty);
    let error = std::process::Command::new(&program).args(arguments).exec();
    Err(Trouble::system(
        PathBuf::from(program).display().to_string(),
        error,
    ))
}

/// This program, to be started again in one of its hidden roles.
fn own_program() -> Result<std::process::Command, Trouble> {
    let own = env::current_exe().map_err(|error| Trouble::system("our own path", error))?;
    Ok(std::process::Command::new(own))
}
