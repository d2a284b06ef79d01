//! What a trial of an agent showed, a line a thing.

use descartes_agents::agent::{Invocation, Profile, Reports, VersionSeen};
use descartes_kernel::event::{EndedBy, LimitKind, RunFacts};
use descartes_text::units::plural;
use serde::Serialize;

use super::super::installed::Installed;
use crate::commands::doctor::finding::{Level, tell};
use crate::printer::Printer;
use crate::session::foreground::Format;
use crate::view::width::{cut_end, one_line};
use crate::view::words;

/// Everything that is judged.
pub struct TrialFindings<'a> {
    pub profile: &'a Profile,
    pub invocation: &'a Invocation,
    /// What is known of the run; `None` if there was none.
    pub facts: Option<&'a RunFacts>,
    /// Whether the file that was asked for is there.
    pub wrote: bool,
    pub installed: &'a Installed,
}

#[derive(Debug, Serialize)]
struct CheckLine {
    level: Level,
    what: &'static str,
    told: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// All lines.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Report(Vec<CheckLine>);

impl Report {
    pub fn of(seen: &TrialFindings<'_>) -> Self {
        let Some(facts) = seen.facts else {
            return Self(vec![problem(
                "started",
                "it was not started".to_owned(),
                None,
            )]);
        };
        let mut lines = vec![
            started(facts),
            stream(seen, facts),
            promise(facts),
            work(seen),
        ];
        lines.extend(limit(seen.profile, facts));
        lines.extend(failure(facts));
        lines.push(spent(seen, facts));
        lines.extend(version(seen));
        Self(lines)
    }

    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.0.iter().all(|line| line.level != Level::Problem)
    }

    pub fn show(&self, format: Format, printer: &Printer) {
        if format == Format::Json {
            return printer.json(self);
        }
        for line in &self.0 {
            tell(
                line.level,
                (line.what, 8),
                &line.told,
                line.hint.as_ref(),
                printer,
            );
        }
    }
}

fn line(level: Level, what: &'static str, told: String) -> CheckLine {
    CheckLine {
        level,
        what,
        told,
        hint: None,
    }
}

fn problem(what: &'static str, told: String, hint: Option<String>) -> CheckLine {
    CheckLine {
        hint,
        ..line(Level::Problem, what, told)
    }
}

fn started(facts: &RunFacts) -> CheckLine {
    let time = words::millis(facts.duration_ms);
    let exit = facts
        .exit
        .map_or_else(|| "no exit code".to_owned(), words::exit);
    match facts.ended_by {
        EndedBy::Exit => line(Level::Ok, "started", format!("it ran for {time}: {exit}")),
        EndedBy::Result | EndedBy::Promise => line(
            Level::Note,
            "started",
            format!("it was done but kept running, and was ended after {time}"),
        ),
        EndedBy::Timeout | EndedBy::Idle => {
            let hint = "give it more time with --timeout".to_owned();
            problem(
                "started",
                format!("it did not end within {time}"),
                Some(hint),
            )
        }
        _ => problem("started", format!("it was ended after {time}"), None),
    }
}

fn stream(seen: &TrialFindings<'_>, facts: &RunFacts) -> CheckLine {
    let size = facts.stdout_bytes;
    match (seen.invocation.stream.is_understood(), facts.trouble) {
        (false, _) => line(Level::Ok, "stream", format!("plain text, {size} bytes")),
        (true, 0) if !facts.did_nothing => {
            line(Level::Ok, "stream", format!("understood, {size} bytes"))
        }
        (true, 0) => problem(
            "stream",
            format!("{size} bytes, containing no text and no actions"),
            None,
        ),
        (true, lines) => problem(
            "stream",
            format!("{} not understood", plural(lines, "line")),
            Some(
                "is it an older or newer version? as a fallback, add its text output format to \
                 the command"
                    .to_owned(),
            ),
        ),
    }
}

fn promise(facts: &RunFacts) -> CheckLine {
    match &facts.claim {
        Some(claim) => line(Level::Ok, "promise", format!("seen: {}", one_line(claim))),
        None => problem("promise", "not seen".to_owned(), None),
    }
}

fn work(seen: &TrialFindings<'_>) -> CheckLine {
    if seen.wrote {
        return line(Level::Ok, "work", "the file was written".to_owned());
    }
    let hint = "it may not be allowed to: try --permissions all".to_owned();
    problem("work", "the file was not written".to_owned(), Some(hint))
}

fn limit(profile: &Profile, facts: &RunFacts) -> Option<CheckLine> {
    let limit = facts.limit.as_ref()?;
    let told = one_line(&limit.words);
    Some(match (limit.kind, limit.until) {
        (LimitKind::Login, _) => problem("login", told, profile.login.clone()),
        (_, Some(until)) => problem("limit", format!("{told} (until {until})"), None),
        (_, None) => problem("limit", told, Some("try again later".to_owned())),
    })
}

/// A limit has told it already.
fn failure(facts: &RunFacts) -> Option<CheckLine> {
    let why = facts.failure().filter(|_| facts.limit.is_none())?;
    Some(problem("failed", cut_end(&one_line(&why), 400), None))
}

fn spent(seen: &TrialFindings<'_>, facts: &RunFacts) -> CheckLine {
    let tokens = facts
        .tokens
        .and_then(|tokens| tokens.total())
        .map(words::tokens);
    let dollars = facts.cost.map(|cost| {
        let about = if cost.estimated { "~" } else { "" };
        format!("{about}${:.4}", cost.micros as f64 / 1e6)
    });
    match (tokens, dollars, seen.invocation.reports) {
        (Some(tokens), Some(dollars), _) => line(Level::Ok, "cost", format!("{tokens}, {dollars}")),
        (Some(tokens), None, _) => line(
            Level::Ok,
            "cost",
            format!("{tokens}; dollars need a price in [prices]"),
        ),
        (None, _, Reports::Nothing) => line(
            Level::Note,
            "cost",
            "it reports neither tokens nor cost".to_owned(),
        ),
        (None, ..) => line(Level::Note, "cost", "no tokens were reported".to_owned()),
    }
}

fn version(seen: &TrialFindings<'_>) -> Option<CheckLine> {
    let told = match seen.installed.version.as_ref()? {
        VersionSeen::Older(_) => "older than the version this profile was tested with",
        VersionSeen::Newer(_) => "newer than the version this profile was tested with",
        _ if !seen.profile.verified => "this agent has not been tested with descartes",
        _ => return None,
    };
    Some(line(Level::Note, "version", told.to_owned()))
}
