//! `descartes loop history`: one row an iteration.

use std::ops::ControlFlow;

use descartes_client::{From, LoopHandle};
use descartes_kernel::event::{EndedBy, NearMissFacts, Verdict};
use descartes_kernel::tasks::RunningTask;
use descartes_text::units::plural;
use descartes_views::view::{HistoryRow, Life, show_cost, show_tokens};

use super::which::find;
use crate::args::loops::HistoryArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::CommandContext;
use crate::style::{Paint, Tone};
use crate::view::width::{cut_end, one_line, width};
use crate::view::words;

const PREVIEW: usize = 60;
const TASK: usize = 12;
/// Columns and their widths; the last is as wide as it is.
const COLUMNS: [(&str, usize); 9] = [
    ("#", 5),
    ("DURATION", 9),
    ("EXIT", 4),
    ("PROMISE", 7),
    ("RESULT", 9),
    ("GATES", 9),
    ("FILES", 5),
    ("TOKENS", 7),
    ("COST", 8),
];

pub fn run(args: &HistoryArgs, ctx: &CommandContext, printer: &Printer) -> Result<i32, CliError> {
    let found = find(&args.which, ctx, printer)?;
    let life = found.life()?;
    let from = match args.last {
        Some(last) => From::Last(u64::from(last)),
        None => From::First,
    };
    let mut out = HistoryTable {
        args,
        printer,
        begun: false,
    };
    // A table is told as it is read: a hundred thousand rows take no memory.
    let current = found.history(from, |row| match out.row(&row, None) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()), // nobody reads any more
    })?;
    if let Some(row) = current {
        drop(out.row(&row, Some(life)));
    }
    for row in at_work(&found)? {
        drop(out.row(&row, Some(life)));
    }
    if !out.begun && !args.json {
        printer.talk("no iteration yet");
    }
    if !args.json {
        for change in &found.state()?.changes {
            let (at, words) = (change.at.strftime("%Y-%m-%d %H:%M:%SZ"), change.words());
            printer.line(&format!("changed while it ran, {at}: {words}"));
        }
    }
    Ok(0)
}

/// The attempts of a task loop that are not over.
fn at_work(found: &LoopHandle) -> Result<Vec<HistoryRow>, CliError> {
    let state = found.look()?.state;
    let Some(tasks) = state.tasks else {
        return Ok(Vec::new());
    };
    let row = |(at, running): (usize, &RunningTask)| {
        let number = u32::try_from(state.runs).unwrap_or(u32::MAX);
        let number = number.saturating_add(at as u32 + 1);
        let mut row = HistoryRow::begun(u64::from(number), running.attempt, running.since);
        row.task = Some((running.task.clone(), String::new()));
        row
    };
    Ok(tasks.running.iter().enumerate().map(row).collect())
}

struct HistoryTable<'a> {
    args: &'a HistoryArgs,
    printer: &'a Printer,
    begun: bool,
}

impl HistoryTable<'_> {
    /// `under_way` is given for the row that is not over.
    fn row(&mut self, row: &HistoryRow, under_way: Option<Life>) -> std::io::Result<()> {
        if self.args.json {
            self.begun = true;
            let json = serde_json::to_string(row).unwrap_or_default();
            return self.printer.try_json(&json);
        }
        if !self.begun {
            let mut heads: Vec<String> = COLUMNS.iter().map(|(head, to)| pad(head, *to)).collect();
            if row.task.is_some() {
                heads.insert(1, pad("TASK", TASK));
            }
            let head = format!("{}  PREVIEW\n", heads.join("  "));
            let head = self.printer.out.text(Tone::Dim, &head);
            self.printer.try_data(&head)?;
        }
        self.begun = true;
        let text = shown(row, under_way, self.printer.out);
        self.printer.try_data(&format!("{text}\n"))
    }
}

fn pad(text: &str, to: usize) -> String {
    format!("{text}{:1$}", "", to.saturating_sub(width(text)))
}

fn shown(row: &HistoryRow, under_way: Option<Life>, paint: Paint) -> String {
    let (tone, result) = result(row, under_way);
    let cells = [
        row.iteration.to_string(),
        match under_way {
            Some(_) if row.duration_ms == 0 => "-".to_owned(),
            _ => words::millis(row.duration_ms),
        },
        row.exit
            .map_or_else(|| "-".to_owned(), |code| code.to_string()),
        promise(row).to_owned(),
        result.to_owned(),
        gates(row),
        row.files
            .map_or_else(|| "?".to_owned(), |files| files.to_string()),
        show_tokens(row.tokens),
        show_cost(row.cost),
    ];
    let mut out = Vec::new();
    for ((head, to), cell) in COLUMNS.iter().zip(&cells) {
        let cell = pad(cell, *to);
        out.push(match *head {
            "RESULT" => paint.text(tone, &cell),
            _ => cell,
        });
    }
    if let Some((task, _)) = &row.task {
        out.insert(1, pad(&cut_end(task, TASK), TASK));
    }
    let near = row.near_miss.as_ref().map(NearMissFacts::words);
    let said = near.as_deref().unwrap_or(&row.preview);
    let preview = one_line(row.error.as_deref().unwrap_or(said));
    let preview = match row.trouble {
        0 => preview,
        lines => format!("[{} not understood] {preview}", plural(lines, "line")),
    };
    let preview = match row.changed_gate_files.as_slice() {
        [] => preview,
        files => format!(
            "[gate file changed: {}] {preview}",
            one_line(&files.join(", "))
        ),
    };
    out.push(cut_end(&preview, PREVIEW));
    out.join("  ").trim_end().to_owned()
}

fn result(row: &HistoryRow, under_way: Option<Life>) -> (Tone, &'static str) {
    match (&row.verdict, under_way) {
        (_, Some(Life::Alive)) => (Tone::Strong, "running"),
        (_, Some(Life::Gone)) => (Tone::Warn, "lost"),
        (Some(Verdict::Promise | Verdict::Gates | Verdict::Success), _) => (Tone::Good, "done"),
        (Some(Verdict::Refused), _) => (Tone::Warn, "refused"),
        (Some(Verdict::Blocked(_)), _) => (Tone::Warn, "blocked"),
        (Some(Verdict::Failed(_)), _) => (Tone::Bad, "failed"),
        (Some(Verdict::Worked), _) => (Tone::Normal, "worked"),
        (Some(Verdict::Stopped), _) if row.ended_by == Some(EndedBy::HostLost) => {
            (Tone::Warn, "lost")
        }
        (Some(Verdict::Stopped), _) => (Tone::Warn, "stopped"),
        // A run that met a limit counts for nothing.
        (None, None) => (Tone::Dim, "limit"),
    }
}

fn promise(row: &HistoryRow) -> &'static str {
    match (row.claimed, &row.near_miss) {
        (true, _) => "claimed",
        (false, Some(_)) => "near",
        (false, None) => "-",
    }
}

fn gates(row: &HistoryRow) -> String {
    let green = row.gates.iter().filter(|gate| gate.passed()).count();
    match (row.gates.len(), green) {
        (0, _) => "-".to_owned(),
        (all, green) if all == green => "green".to_owned(),
        (1, _) => "red".to_owned(),
        (_, green) => format!("red #{}", green + 1),
    }
}
