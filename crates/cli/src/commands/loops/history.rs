//! `descartes loop history`: one row an iteration.

use std::ops::ControlFlow;

use descartes_client::From;
use descartes_views::view::{Column, HistoryRow, Life, promise_missing};
use jiff::Timestamp;

use super::which::find;
use crate::args::loops::HistoryArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::CommandContext;
use crate::style::Tone;
use crate::view::width::{cut_end, one_line, pad};

const PREVIEW: usize = 60;
const TASK: usize = 12;
/// Columns and their widths; that of tasks is for task loops alone.
const COLUMNS: [(Column, usize); 11] = [
    (Column::Iteration, 5),
    (Column::Task, TASK),
    (Column::Duration, 9),
    (Column::Exit, 4),
    (Column::Promise, 7),
    (Column::Result, 9),
    (Column::Gates, 9),
    (Column::Files, 5),
    (Column::Tokens, 7),
    (Column::Cost, 8),
    (Column::Preview, PREVIEW),
];

pub fn run(args: &HistoryArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let found = find(&args.which, ctx)?;
    let life = found.life()?;
    let from = match args.last {
        Some(last) => From::Last(u64::from(last)),
        None => From::First,
    };
    let mut out = HistoryTable {
        args,
        printer: &ctx.printer,
        life,
        now: Timestamp::now(),
        begun: false,
    };
    // A table is told as it is read: a hundred thousand rows take no memory.
    let current = found.history(from, |row| match out.row(&row) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()), // nobody reads any more
    })?;
    for row in current.into_iter().chain(found.attempts_at_work()?) {
        drop(out.row(&row));
    }
    if !out.begun && !args.json {
        ctx.printer.talk("no iteration yet");
    }
    if !args.json {
        let state = found.state()?;
        for change in state.told_changes() {
            let (at, words) = (change.at.strftime("%Y-%m-%d %H:%M:%SZ"), change.describe());
            ctx.printer
                .line(&format!("changed while it ran, {at}: {words}"));
        }
        if let Some(words) = promise_missing(&state).filter(|_| state.iterations > 0) {
            ctx.printer.line(&format!("promise: {}", one_line(&words)));
        }
    }
    Ok(0)
}

struct HistoryTable<'a> {
    args: &'a HistoryArgs,
    printer: &'a Printer,
    life: Life,
    now: Timestamp,
    begun: bool,
}

impl HistoryTable<'_> {
    fn row(&mut self, row: &HistoryRow) -> std::io::Result<()> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        if self.args.json {
            return self.printer.try_json(row);
        }
        let columns = COLUMNS.iter();
        let columns = columns.filter(|(column, _)| *column != Column::Task || row.task.is_some());
        let paint = self.printer.out;
        let mut text = String::new();
        if is_first {
            let titles = columns.clone();
            let titles = titles.map(|(column, to)| pad(&column.title().to_uppercase(), *to));
            let titles = titles.collect::<Vec<_>>().join("  ");
            text = paint.text(Tone::Dim, &format!("{}\n", titles.trim_end()));
        }
        let cells = columns.map(|(column, to)| {
            let cell = row.cell(*column, self.life, self.now);
            let (most, least) = match column {
                Column::Task => (TASK, TASK),
                Column::Preview => (PREVIEW, 0),
                _ => (usize::MAX, *to),
            };
            paint.text(cell.tone, &pad(&cut_end(&cell.text, most), least))
        });
        let cells = cells.collect::<Vec<_>>().join("  ");
        text.push_str(&format!("{}\n", cells.trim_end()));
        self.printer.try_data(&text)
    }
}
