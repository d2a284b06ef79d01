//! `descartes demo`: a whole loop in a few seconds, with an agent that is built in.

pub mod agent;
mod files;

use std::path::Path;
use std::process::{Command, Stdio};

use descartes_core::host::OnExistingState;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_text::units::Secs;

use crate::args::setup::DemoArgs;
use crate::commands::agents::installed::program;
use crate::commands::new_folder;
use crate::error::{CliError, at};
use crate::printer::Printer;
use crate::session::foreground::{self, Format};
use crate::session::order::{Job, Order};
use crate::session::program::this_program;
use crate::settings::command_context::CommandContext;
use crate::style::Tone;

pub fn run(args: DemoArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let dir = new_folder(&ctx.paths.temp_dir, "descartes-demo")?;
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
    let format = Format::of_story(args.json);
    if format == Format::Story {
        ctx.printer.line(&opening(&ctx.printer));
    }
    let inside = CommandContext {
        here: dir.clone(),
        ..ctx.clone()
    };
    let code = foreground::run(order(&dir, args), format, &inside)?;
    if format == Format::Story {
        ctx.printer.line(&closing(&dir, &ctx.printer));
        if program("descartes", ctx).is_none() {
            ctx.printer.hint(&format!(
                "`descartes` is not on your PATH: type {} instead, or add it to your PATH",
                this_program().display()
            ));
        }
    }
    Ok(code)
}

fn order(dir: &Path, args: DemoArgs) -> Order {
    let pace = match args.fast {
        true => agent::FAST,
        false => agent::PLEASANT,
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
    let name = dir.file_name();
    let job = Job::Start {
        config: Box::new(config),
        name: name.map(|name| name.to_string_lossy().into_owned()),
        existing: OnExistingState::ArchiveIfOver,
    };
    Order::new(job, dir.to_owned(), Default::default())
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
         descartes init\n  (write the task in PROMPT.md)\n  descartes loop start --command claude",
        strong("Everything is kept. Look around:"),
        shell_words::quote(&dir.display().to_string()),
        strong("Then, in your own project:")
    )
}
