//! `descartes demo`: a whole loop in a few seconds, with an agent that is built in.

pub mod agent;
mod files;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use descartes_core::host::OnExistingState;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_text::units::Secs;

use crate::args::setup::DemoArgs;
use crate::commands::agents::installed::program;
use crate::error::{CliError, at};
use crate::printer::Printer;
use crate::session::foreground::{self, Format};
use crate::session::order::{Job, Order};
use crate::session::program::this_program;
use crate::settings::command_context::CommandContext;
use crate::style::Tone;

pub fn run(args: DemoArgs, ctx: &CommandContext, printer: &Printer) -> Result<i32, CliError> {
    let dir = folder(&ctx.paths.temp_dir)?;
    for (name, text) in files::ALL {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(at("write", &path))?;
    }
    // With git, `loop diff` and `loop rewind` can be tried as well; without, the demo still runs.
    let git = Command::new("git")
        .args(["init", "--quiet"])
        .current_dir(&dir)
        .stderr(Stdio::null())
        .status();
    drop(git);
    let format = if args.json {
        Format::Json
    } else {
        Format::Story
    };
    if format == Format::Story {
        printer.line(&opening(printer));
    }
    let inside = CommandContext {
        here: dir.clone(),
        ..ctx.clone()
    };
    let code = foreground::run(order(&dir, args), format, &inside, printer)?;
    if format == Format::Story {
        printer.line(&closing(&dir, printer));
        if program("descartes", ctx).is_none() {
            printer.hint(&format!(
                "`descartes` is not on your PATH: type {} instead, or add it to your PATH",
                this_program().display()
            ));
        }
    }
    Ok(code)
}

/// A folder of its own, which stays: people look into it afterwards.
fn folder(temp: &Path) -> Result<PathBuf, CliError> {
    let mut last = None;
    for number in 1..1000 {
        let dir = temp.join(format!("descartes-demo-{number}"));
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                last = Some((dir, error))
            }
            Err(error) => return Err(at("make", &dir)(error)),
        }
    }
    let (dir, error) =
        last.unwrap_or_else(|| (temp.to_owned(), std::io::Error::other("no name left")));
    Err(at("make", &dir)(error))
}

fn order(dir: &Path, args: DemoArgs) -> Order {
    let pace = if args.fast {
        agent::FAST
    } else {
        agent::PLEASANT
    };
    let config = IterativeLoopConfig {
        command: this_program().display().to_string(),
        args: vec![agent::VERB.to_owned(), pace.to_owned()],
        prompt_file: Some(dir.join(files::PROMPT)),
        completion_promise: Some("COMPLETE".to_owned()),
        verify: vec![format!("sh {}", files::GATE)],
        max_iterations: Some(5),
        max_duration_secs: Some(Secs::new(120)),
        working_directory: Some(dir.to_owned()),
        ..IterativeLoopConfig::default()
    };
    Order {
        from: None,
        environment: std::collections::BTreeMap::new(),
        dir: dir.to_owned(),
        job: Job::Start {
            config: Box::new(config),
            name: dir
                .file_name()
                .map(|name| name.to_string_lossy().into_owned()),
            existing: OnExistingState::ArchiveIfOver,
        },
    }
}

fn opening(printer: &Printer) -> String {
    let strong = |text: &str| printer.out.text(Tone::Strong, text);
    format!(
        "{}\n\
         An agent is asked to write a script that prints Roman numerals.\n\
         It is quick to claim that it is done; the gate, `sh {}`, decides.\n",
        strong("A loop, from claim to proof."),
        files::GATE
    )
}

fn closing(dir: &Path, printer: &Printer) -> String {
    let strong = |text: &str| printer.out.text(Tone::Strong, text);
    format!(
        "\n{}\n  cd {}\n  descartes loop history\n  descartes loop logs 1\n  descartes loop diff 2\n\n{}\n  \
         descartes init\n  descartes loop start --command claude --permissions edit --prompt '…' --verify '…'",
        strong("Everything is kept. Look around:"),
        shell_words::quote(&dir.display().to_string()),
        strong("Then, in your own project:")
    )
}
