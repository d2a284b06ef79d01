//! M4, M5: what each tool takes for the end of the work.

use std::time::{Duration, Instant};

use descartes_testkit::stamp::{self, Edge};

use super::stage::{Speech, Stage, Work};
use super::{Cell, tool::Tool, with_all};
use crate::lab::{Lab, Rows, Trouble};

/// No tool is waited for longer, once its agent is gone.
const HELD: Duration = Duration::from_secs(10);

/// The same words for every tool; `{}` stands for what it listens for.
struct Case {
    what: &'static str,
    speech: Speech,
    /// The lines of the agent's script.
    lines: &'static str,
    /// For our own loop alone, where a gate is to decide.
    gate: Option<&'static str>,
    /// Nothing but a gate can tell this one from a real claim.
    undecidable: bool,
}

const fn text(what: &'static str, lines: &'static str) -> Case {
    Case {
        what,
        speech: Speech::Text,
        lines,
        gate: None,
        undecidable: false,
    }
}

const fn events(what: &'static str, lines: &'static str) -> Case {
    Case {
        what,
        speech: Speech::Events,
        lines,
        gate: None,
        undecidable: false,
    }
}

/// Where `{}` stands in a stream, with the tag's marks as some encoders write them.
const ESCAPED: &str = "{escaped}";

const FALSE: [Case; 8] = [
    Case {
        gate: Some("test -f work"),
        ..text(
            "claims, while the check it was given is red",
            "print All done.\nprint {}",
        )
    },
    text("echoes its prompt", "{echo}"),
    text(
        "says what it will print",
        "print I will print {} when the tests pass, and they do not.",
    ),
    text("says that it is not done", "print I cannot print {} yet."),
    text(
        "shows it in a code fence",
        "printf The loop ends on:\\n```\\n{}\\n```\\nNow the work.\\n",
    ),
    text(
        "quotes it behind a mark",
        "printf > {}\\nis what the plan wants.\\n",
    ),
    events(
        "reads it in a file, by a tool",
        r#"printf {"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"PROMPT.md says:\\n{}"}]}}\n{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"I have read the file.","session_id":"s"}\n"#,
    ),
    Case {
        undecidable: true,
        ..text(
            "quotes it on a line of its own (claim or quotation: only a gate can tell)",
            "printf When finished I shall print\\n{}\\nand there is much to do.\\n",
        )
    },
];

const TRUE: [Case; 11] = [
    text("on a line of its own", "print {}"),
    text("after a sentence", "print All tests pass now. {}"),
    text("with CRLF", "printf done\\r\\n{}\\r\\n"),
    text("in colour", "printf \\e[32m{}\\e[0m\\n"),
    text("on stderr", "err {}"),
    text(
        "beside bytes that are no UTF-8",
        "printf \\xff\\xfe\\x80 noise\\n{}\\n",
    ),
    text(
        "split over many writes",
        "flush-split each pause 100us {}\\n",
    ),
    text("before 3 MB of output", "print {}\nflood 3M lines"),
    events(
        "in a stream's result",
        r#"printf {"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"All done.\\n{}"}],"usage":{"input_tokens":1,"output_tokens":1}},"session_id":"s"}\n{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"All done.\\n{}","session_id":"s"}\n"#,
    ),
    events(
        "in a result whose encoder escapes `<`",
        r#"printf {"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"All done.\\n{escaped}"}],"usage":{"input_tokens":1,"output_tokens":1}},"session_id":"s"}\n{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"All done.\\n{escaped}","session_id":"s"}\n"#,
    ),
    events(
        "split over two deltas of a stream",
        r#"printf {"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"{first}"}}}\n{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"{second}"}}}\n"#,
    ),
];

fn lines(stage: &Stage<'_>, case: &Case, says: &str) -> String {
    // In JSON within `printf`, whose own escapes are doubled.
    let escaped = says.replace('<', "\\\\u003c").replace('>', "\\\\u003e");
    let (first, second) = says.split_at(says.len() / 2);
    let drain = if case.lines == "{echo}" {
        ""
    } else {
        "read-stdin-to got\n"
    };
    let lines = case
        .lines
        .replace("{echo}", stage.echo())
        .replace(ESCAPED, &escaped)
        .replace("{first}", first)
        .replace("{second}", second)
        .replace("{}", says);
    format!("{drain}{lines}")
}

/// What the agent is to print, or why there is nothing that this tool would hear.
fn says(stage: &Stage<'_>, speech: Speech) -> Result<&'static str, Cell> {
    let cannot = |why: &str| Cell::Cannot(why.to_owned());
    if speech == Speech::Events && !stage.tool.reads_events() {
        return Err(cannot("asks its agent for plain text"));
    }
    let why = "listens for no promise: runs to its limit";
    stage.tool.says().ok_or_else(|| cannot(why))
}

/// Plays every case to every tool that can hear it.
fn play(
    lab: &Lab,
    cases: &[Case],
    once: impl Fn(&Stage<'_>, &Case, &str) -> Result<Cell, Trouble>,
) -> Rows {
    let mut rows = Vec::new();
    for case in cases {
        let heard = |stage: &Stage<'_>| match says(stage, case.speech) {
            Ok(says) => once(stage, case, &lines(stage, case, says)),
            Err(cell) => Ok(cell),
        };
        let rounds = lab.form.pick(1, 2);
        rows.extend(with_all(lab, "M4", case.what, rounds, heard)?);
    }
    Ok(rows)
}

/// An agent that is never done; a tool that stops before its limit was fooled.
pub fn false_claims(lab: &Lab) -> Rows {
    play(lab, &FALSE, |stage, case, script| {
        let work = Work {
            speech: case.speech,
            gate: case.gate,
            ..Work::new(script, 3)
        };
        let ended = stage.trial.run(stage.begin(&work))?;
        Ok(match (stage.starts(), ended.code()) {
            (3, Some(0)) if stage.tool == Tool::Descartes => {
                Cell::Wrong("called done at the limit".to_owned())
            }
            (3, _) => Cell::Right("goes on".to_owned()),
            (1 | 2, _) if case.undecidable => Cell::Seen("called done".to_owned()),
            // Nobody can be held to a check that he cannot be given.
            (1 | 2, _) if case.gate.is_some() && !stage.tool.has_gates() => {
                Cell::Seen("called done; takes no check".to_owned())
            }
            (1 | 2, _) if ended.code() != Some(0) => {
                Cell::Wrong(format!("broke off ({})", ended.status))
            }
            (1 | 2, _) => Cell::Wrong("called done".to_owned()),
            (starts, _) => return Err(format!("{starts} starts; {ended}")),
        })
    })
}

/// An agent that is done in its second iteration.
pub fn missed(lab: &Lab) -> Rows {
    let mut rows = play(lab, &TRUE, |stage, case, lines| {
        let script = format!("@1 read-stdin-to got\nprint working\n@2-\n{lines}");
        let work = Work {
            speech: case.speech,
            ..Work::new(&script, 4)
        };
        let ended = stage.trial.run(stage.begin(&work))?;
        Ok(match stage.starts() {
            2 if ended.code() == Some(0) => Cell::Right("heard".to_owned()),
            2 => Cell::Wrong(format!("broke off ({})", ended.status)),
            4 => Cell::Wrong("missed".to_owned()),
            starts => return Err(format!("{starts} starts; {ended}")),
        })
    })?;
    rows.extend(with_all(
        lab,
        "M5",
        "agent has ended, its child holds the pipe: the tool ends after",
        lab.form.pick(1, 2),
        held,
    )?);
    Ok(rows)
}

/// How long a tool waits for a pipe after its agent said that all is done, and went.
fn held(stage: &Stage<'_>) -> Result<Cell, Trouble> {
    let says = match says(stage, Speech::Text) {
        Ok(says) => says,
        Err(cell) => return Ok(cell),
    };
    let script = format!("read-stdin-to got\nspawn-child setsid pipe kids\nprint {says}");
    let mut host = stage.trial.spawn(stage.begin(&Work::new(&script, 2)))?;
    let since = Instant::now();
    let limit = match stage.tool {
        Tool::Descartes => stage.trial.lab.form.deadline(HELD),
        _ => HELD,
    };
    let code = host.wait_at_most(limit + Duration::from_secs(3));
    let ended = stamp::now_ns();
    let agent = stage
        .stamps()
        .iter()
        .find(|stamp| stamp.edge == Edge::End)
        .map(|stamp| stamp.ns)
        .ok_or("the agent did not end")?;
    Ok(match code {
        Some(_) if since.elapsed() < limit => {
            let seconds = ended.saturating_sub(agent) as f64 / 1e9;
            Cell::Right(format!("{seconds:.2} s"))
        }
        _ => Cell::Wrong(format!("more than {} s", limit.as_secs())),
    })
}
