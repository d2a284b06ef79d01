//! The parts of a loop's page. Each is made from the same fold as the terminal's views, and sent
//! again when it differs.

use descartes_kernel::state::{LoopState, Pause, Phase};
use descartes_text::units::{plural, show_usd};
use descartes_views::picture::{
    Clock, Frame, GraphTask, Picture, Span, Timeline, gantt, graph, svg, timeline,
};
use descartes_views::view::{
    Column, Head, HistoryRow, Life, Status, activity, show_cost, show_tokens,
};
use descartes_views::words;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, PreEscaped, html};

use super::gates::gate_run;
use super::loop_facts::LoopFacts;
use super::tasks;
use super::text::{bar, code, facts, line, moment, pill, section, since, text, toned, until};
use descartes_views::tone::Cell;

/// Rows of the history on the page; all of them are on a page of their own.
const ROWS: usize = 40;
/// Remarks, notes and waits on the page.
const REMARKS: usize = 30;
/// Iterations in the picture.
const DRAWN: usize = 150;
const WIDTH: f32 = 960.0;

/// What is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redraw {
    Texts,
    /// The pictures, too, which are large.
    All,
}

/// What stands in the tab of the browser.
pub fn title(state: &LoopState, life: Life) -> String {
    let status = Status::of(state, life);
    format!("{}: {}", line(&state.name), status.label())
}

/// All parts, by the ids of their elements.
pub fn draw(known: &LoopFacts<'_>, redraw: Redraw) -> Vec<(&'static str, String)> {
    let mut out = vec![
        ("head", head(known).into_string()),
        ("controls", super::controls::controls(known).into_string()),
        ("gates", gates(known).into_string()),
        ("history", history(known).into_string()),
        ("waits", waits(known).into_string()),
        ("notes", notes(known).into_string()),
    ];
    if known.state.tasks.is_some() {
        out.push(("tasks", tasks::tasks(known).into_string()));
    }
    if redraw == Redraw::All {
        out.push(("pictures", pictures(known).into_string()));
    }
    out
}

fn head(known: &LoopFacts<'_>) -> Markup {
    let (state, now) = (known.state, known.now);
    let head = Head::of(state, known.life);
    let label = Cell::new(head.status.tone(), head.status.label());
    let doing = activity(state, known.last_at, now);
    html! {
        h1 { (line(&known.meta.name)) " " (pill(&label)) }
        p.lead {
            @match &head.status {
                Status::Waiting { until: end, why } => { "for " (until(*end, now)) " more: " (line(why)) }
                Status::Interrupted => { "no process is running it; nothing is lost: resume it" }
                Status::Ended { .. } => { (head.status.end_sentence().unwrap_or_default()) }
                status if status.is_live() => {
                    (toned(&doing.line))
                    @if let Some(elapsed) = doing.elapsed.and_then(|elapsed| elapsed.try_into().ok()) {
                        @let began = now.saturating_sub::<jiff::SignedDuration>(elapsed).unwrap_or(now);
                        " for " (since(began, now))
                    }
                }
                _ => {}
            }
        }
        @if known.life == Life::Alive && state.requests.pause == Pause::Asked && state.run().is_some() {
            p.notice { "will pause after this iteration" }
        }
        @if let Some(failure) = state.agents.last_failure.as_ref().filter(|_| state.agents.failures > 0) {
            p.notice { (plural(u64::from(state.agents.failures), "failure")) " in a row, the last: " (line(failure)) }
        }
        div.progress { (bar(head.fraction(), &head.progress())) span { (head.progress()) } }
        (facts(head_facts(known, &head)))
    }
}

fn head_facts(known: &LoopFacts<'_>, head: &Head) -> Vec<(&'static str, Markup)> {
    let (config, spent, now) = (&known.state.config, &head.spent, known.now);
    let of = |limit: Option<String>| {
        limit.map_or_else(String::new, |limit| format!(" of at most {limit}"))
    };
    let dollars = config.max_cost_usd.map(show_usd);
    let time = config
        .max_duration_secs
        .map(|limit| words::seconds(limit.0));
    let mut rows = vec![
        ("cost", html! { (show_cost(spent.cost())) (of(dollars)) }),
        (
            "tokens",
            html! { (show_tokens(spent.tokens)) (of(config.max_tokens.map(|most| show_tokens(Some(most))))) },
        ),
        (
            "time of agents and gates",
            html! { (words::millis(spent.ms)) (of(time)) },
        ),
        ("started", html! { (moment(head.started_at, now)) }),
    ];
    match head.ended_at {
        Some(end) => rows.push(("ended", moment(end, now))),
        None => rows.push(("age", since(head.started_at, now))),
    }
    if let Some(model) = &config.model {
        rows.push(("model", code(model)));
    }
    if let Some(promise) = &config.completion_promise {
        rows.push(("promise", code(promise)));
    }
    if let Some(branch) = &known.state.branch {
        rows.push(("branch", code(branch)));
    }
    rows.push(("agent", code(&words::command(config))));
    rows.push((
        "project",
        code(&known.meta.working_dir.display().to_string()),
    ));
    rows
}

/// The gates as they were last run; those that are set, where none has run yet.
fn gates(known: &LoopFacts<'_>) -> Markup {
    let mut rows = known.story.rows().iter().chain(known.story.current());
    let judged = rows.rfind(|row| !row.gates.is_empty());
    let body = match judged {
        Some(row) => html! {
            p.dim {
                "as last run, "
                (iteration_link(&known.meta.id, row))
            }
            @for gate in &row.gates { (gate_run(gate)) }
        },
        None if known.state.config.verify.is_empty() && known.state.tasks.is_none() => html! {
            p.dim { "none is set: the agent's own word is all there is" }
        },
        None => html! {
            p.dim { "none has run yet" }
            @for gate in &known.state.config.verify { p { (code(gate)) } }
        },
    };
    section("Gates", Some(body))
}

fn iteration_link(id: &str, row: &HistoryRow) -> Markup {
    let (id, words) = match &row.task {
        Some((task, id)) => (
            id.as_str(),
            format!("task {task}, attempt {}", row.iteration),
        ),
        None => (id, format!("iteration {}", row.iteration)),
    };
    html! { a href={ "/loops/" (id) "/iterations/" (row.iteration) } { (words) } }
}

/// The columns of the history, for tables of any length.
pub const COLUMNS: [Column; 10] = [
    Column::Number,
    Column::Result,
    Column::Gates,
    Column::Duration,
    Column::Exit,
    Column::Promise,
    Column::Files,
    Column::Tokens,
    Column::Cost,
    Column::Preview,
];

fn history(known: &LoopFacts<'_>) -> Markup {
    let rows = known.story.rows();
    let newest = known.story.current().into_iter().chain(rows.iter().rev());
    let shown: Vec<&HistoryRow> = newest.take(ROWS).collect();
    let more = known.state.runs > shown.len() as u64;
    let body = (!shown.is_empty()).then(|| {
        html! {
            (history_table(&known.meta.id, &shown, known.life, known.now))
            @if more {
                p { a href={ "/loops/" (known.meta.id) "/history" } { "all iterations" } }
            }
        }
    });
    let none = || html! { p.dim { "no iteration yet" } };
    section("History", Some(body.unwrap_or_else(none)))
}

pub fn history_table(id: &str, rows: &[&HistoryRow], life: Life, now: Timestamp) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table.history {
                thead { tr { @for column in COLUMNS { th scope="col" class=(column.title()) { (heading(column)) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for column in COLUMNS {
                                @let cell = row.cell(column, life, now);
                                td class=(column.title()) {
                                    @match column {
                                        Column::Number => {
                                            @let id = row.task.as_ref().map_or(id, |(_, id)| id);
                                            a href={ "/loops/" (id) "/iterations/" (row.iteration) } { (cell.text) }
                                        }
                                        Column::Result => (pill(&cell)),
                                        Column::Duration if row.under_way && life == Life::Alive => (since(row.started_at, now)),
                                        _ => (toned(&cell)),
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn heading(column: Column) -> &'static str {
    match column {
        Column::Number => "iteration",
        column => column.title(),
    }
}

fn waits(known: &LoopFacts<'_>) -> Markup {
    let zone = TimeZone::system();
    let rows = known.story.waits().iter().rev().take(REMARKS);
    let rows: Vec<_> = rows
        .map(|wait| (wait.since, wait.cell(known.now, &zone)))
        .collect();
    let body = (!rows.is_empty()).then(|| {
        html! {
            ul.events {
                @for (at, cell) in &rows { li { (moment(*at, known.now)) " " (toned(cell)) } }
            }
        }
    });
    section("Waits", body)
}

/// Notes of the person, near misses, warnings and changes, newest first.
fn notes(known: &LoopFacts<'_>) -> Markup {
    let notes = known.story.notes().iter();
    let notes = notes.map(|note| (note.at, "your note: ", note.cell()));
    let remarks = known.story.remarks().iter();
    let remarks = remarks.map(|remark| (Some(remark.at), "", Cell::from(remark.text.clone())));
    let near = known.story.rows().iter().filter_map(|row| {
        let near = row.near_miss.as_ref()?;
        Some((
            Some(row.ended_at()),
            "near miss: ",
            Cell::from(near.describe()),
        ))
    });
    let mut all: Vec<(Option<Timestamp>, &str, Cell)> = notes.chain(remarks).chain(near).collect();
    all.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    all.truncate(REMARKS);
    let body = (!all.is_empty()).then(|| {
        html! {
            ul.events {
                @for (at, lead, cell) in &all {
                    li {
                        @if let Some(at) = at { (moment(*at, known.now)) " " }
                        (lead) span class={ "t-" (super::text::class(cell.tone)) } { (text(&cell.text)) }
                    }
                }
            }
        }
    });
    section("Notes", body)
}

fn pictures(known: &LoopFacts<'_>) -> Markup {
    let clock = Clock {
        now: known.now,
        zone: TimeZone::system(),
    };
    let (story, state) = (known.story, known.state);
    if let Some(tasks) = &state.tasks {
        let lanes = known.lanes.lanes();
        return html! {
            (section("Tasks by wave", Some(figure(&graph(&GraphTask::of_loop(tasks), &tasks.blocks), ""))))
            @if !lanes.is_empty() {
                (section("Over time", Some(figure(&gantt(&lanes, &clock, WIDTH),
                    "one bar for each attempt or merge · green: proven · red: refused or failed · grey: interrupted"))))
            }
        };
    }
    let skip = story.rows().len().saturating_sub(DRAWN);
    let rows: Vec<HistoryRow> = story.rows().iter().skip(skip).cloned().collect();
    if rows.is_empty() && story.current().is_none() {
        return html! {};
    }
    let first = rows.first().map(|row| row.started_at);
    let waits = story
        .waits()
        .iter()
        .filter(|wait| first.is_none_or(|first| wait.since >= first));
    let waits: Vec<Span> = waits.map(|wait| wait.span()).collect();
    let is_over = matches!(state.phase, Phase::Finished { .. });
    let of = Timeline {
        rows: &rows,
        current: story.current().filter(|_| !is_over),
        waits: &waits,
        budget_micros: state.config.max_cost_usd.map(|usd| (usd * 1e6) as u64),
    };
    section(
        "Over time",
        Some(figure(
            &timeline(&of, &clock, WIDTH, 200.0),
            "width: time · height: tokens (an empty bar: not reported) · green: proven done · red: a failed gate or a failure · yellow: waiting · line: cost so far",
        )),
    )
}

fn figure(picture: &Picture, words: &str) -> Markup {
    html! {
        // Escaped shape by shape where it is drawn.
        div.picture tabindex="0" { (PreEscaped(svg(picture, Frame::Inline))) }
        @if !words.is_empty() { p.dim { (words) } }
    }
}
