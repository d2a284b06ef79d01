//! The verbs that work in the tree, wait, or tell on others.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::arguments::{Arguments, duration};
use super::child::{self, Kind, Pipe};
use super::files::{append, at, open_append, remove, write};
use super::prompt::Source;
use super::{Trouble, dump, signals};

const AN_HOUR: Duration = Duration::from_secs(3600);

pub(super) fn work(verb: &str, mut arguments: Arguments<'_>) -> Result<(), Trouble> {
    match verb {
        "write" => write(&arguments.path()?, format!("{}\n", arguments.text())),
        "append" => append(&arguments.path()?, &format!("{}\n", arguments.text())),
        "touch" => open_append(&arguments.path()?).map(drop),
        "mkdir" => at(&arguments.path()?, |path| std::fs::create_dir_all(path)),
        "delete" => at(&arguments.path()?, |path| std::fs::remove_file(path)),
        "rm" => remove(&arguments.path()?),
        "read-stdin-to" => write(&arguments.path()?, Source::Stdin.read()?),
        "save-prompt" => write(
            &arguments.path()?,
            Source::from_name(arguments.take("").ok().as_deref())?.read()?,
        ),
        "git-commit" => git(&["add", "-A"])
            .and_then(|()| git(&["commit", "--quiet", "--message", &arguments.text()])),
        "git-clean" => git(&["clean", "--quiet", "-fdx"]),
        "sleep" => arguments.duration().map(std::thread::sleep),
        "hang" => {
            std::thread::sleep(AN_HOUR);
            Ok(())
        }
        "cpu" => arguments.duration().map(burn),
        "wait-file" => wait_file(arguments),
        "ignore" => signals::ignore(signals::by_name(&arguments.word("a signal")?)?),
        "spawn-child" => spawn_child(arguments),
        "dump-env" => write(&arguments.path()?, dump::environment()),
        "dump-argv" => write(&arguments.path()?, dump::arguments()),
        "dump-fds" => write(&arguments.path()?, dump::descriptors()),
        "dump-ids" => write(&arguments.path()?, dump::ids()),
        _ => Err(Trouble::Script(format!("no verb is called {verb:?}"))),
    }
}

fn spawn_child(mut arguments: Arguments<'_>) -> Result<(), Trouble> {
    let kind = Kind::from_name(&arguments.take("a kind of child")?)?;
    let (pipe, file) = match arguments.take("a file")?.as_str() {
        "pipe" => (Pipe::Held, arguments.path()?),
        "null" => (Pipe::LetGo, arguments.path()?),
        file => (Pipe::Held, PathBuf::from(file)),
    };
    child::spawn(kind, pipe, &file)
}

fn wait_file(mut arguments: Arguments<'_>) -> Result<(), Trouble> {
    let path = arguments.path()?;
    let within = match arguments.take("") {
        Ok(text) => duration(&text)?,
        Err(_) => Duration::from_secs(600),
    };
    let found = crate::wait::poll(within, &mut || path.exists().then_some(()));
    found.ok_or_else(|| Trouble::Script(format!("no such file after {within:?}")))
}

fn burn(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn git(arguments: &[&str]) -> Result<(), Trouble> {
    let status = signals::command("git")?.args(arguments).status();
    let status = status.map_err(|error| Trouble::system("git", error))?;
    let failed = || Trouble::Script(format!("git {}: {status}", arguments.join(" ")));
    status.success().then_some(()).ok_or_else(failed)
}
