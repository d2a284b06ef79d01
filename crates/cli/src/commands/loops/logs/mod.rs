//! `descartes loop logs`.

mod follow;
mod human;
mod json;
mod lines;
mod raw;
mod tasks;

use std::io::{self, Read, Write};

use descartes_agents::reader::Source;
use descartes_client::logs::RunLog;
use descartes_client::{ClientError, LoopHandle};
use descartes_store::logs::GapMarks;

use self::human::Human;
use self::json::JsonOutput;
use self::raw::Raw;
use super::which::{find_iteration, has_no_iterations};
use crate::args::loops::LogsArgs;
use crate::error::{CliError, at};
use crate::printer::Printer;
use crate::settings::command_context::CommandContext;

const CHUNK: usize = 256 << 10;

/// Shows the output of runs. An error means that nobody reads any more.
trait ShowOutput {
    /// It is the loop of this task that speaks, and others may speak beside it: only whole lines
    /// are shown.
    fn task(&mut self, task: &str);
    /// Another run begins.
    fn begin(&mut self, log: &RunLog) -> io::Result<()>;
    /// Some of its output.
    fn output(&mut self, source: Source, bytes: &[u8]) -> io::Result<()>;
    /// Everything that there was is told; from here on it comes as it is printed.
    fn caught_up(&mut self) -> io::Result<()>;
    /// Its output has ended.
    fn end(&mut self) -> io::Result<()>;
}

pub fn run(args: &LogsArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let (found, iteration) = find_iteration(&args.of, ctx)?;
    let of_tasks = found.state()?.config.tasks.is_some();
    if of_tasks && iteration.is_some() {
        return Err(has_no_iterations(&found, "then: descartes loop logs ID"));
    }
    let mut show = shown_as(args, &ctx.printer);
    let shown = match (args.follow, of_tasks) {
        (true, true) => tasks::follow(&found, args, &ctx.printer),
        (true, false) => follow::run(&found, iteration, (args, &ctx.printer), show),
        (false, true) => newest(
            &tasks::newest(&found, &ctx.printer)?,
            None,
            args,
            show.as_mut(),
        ),
        (false, false) => newest(&found, iteration, args, show.as_mut()),
    };
    match shown {
        Ok(()) | Err(StopShowing::NobodyReads(_)) => Ok(0),
        Err(StopShowing::Error(error)) => Err(error),
        Err(StopShowing::Loop(error)) => Err(error.into()),
    }
}

fn shown_as(args: &LogsArgs, printer: &Printer) -> Box<dyn ShowOutput> {
    match (args.raw, args.json) {
        (true, _) => Box::new(Raw::new(args)),
        (false, true) => Box::new(JsonOutput::new()),
        (false, false) => Box::new(Human::new(args, printer)),
    }
}

/// The output of an iteration, or of the newest one.
fn newest(
    found: &LoopHandle,
    iteration: Option<u32>,
    args: &LogsArgs,
    show: &mut dyn ShowOutput,
) -> Result<(), StopShowing> {
    let log = found.log(iteration)?;
    log.check()?;
    whole(&log, args, show)
}

/// Why no more is shown.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum StopShowing {
    NobodyReads(#[from] io::Error),
    Error(#[from] CliError),
    Loop(#[from] ClientError),
}

/// The streams that are asked for.
fn wanted(args: &LogsArgs, source: Source) -> bool {
    !args.stderr || source == Source::Stderr
}

/// All there is of a run.
fn whole(log: &RunLog, args: &LogsArgs, show: &mut dyn ShowOutput) -> Result<(), StopShowing> {
    show.begin(log)?;
    let marks = match args.raw {
        true => GapMarks::Hidden,
        false => GapMarks::Shown,
    };
    let mut buffer = vec![0; CHUNK];
    for source in [Source::Stdout, Source::Stderr] {
        let mut reader = log.open(source, marks)?;
        while wanted(args, source) {
            let read = reader.read(&mut buffer);
            match read.map_err(at("read", &log.path(source)))? {
                0 => break,
                read => show.output(source, &buffer[..read])?,
            }
        }
    }
    Ok(show.end()?)
}

/// Writes at once: somebody may be watching.
fn write(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}
