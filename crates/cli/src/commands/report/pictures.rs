//! The pictures of a page, each with what its colours mean.

use descartes_views::picture::{
    Clock, Frame, GraphTask, Picture, Span, Timeline, gantt, graph, svg, timeline,
};
use maud::{Markup, PreEscaped, html};

use super::gather::Gathered;
use super::html::section;

const WIDTH: f32 = 960.0;

/// Iterations over time; the graph and the lanes of a task loop.
pub fn pictures(gathered: &Gathered, clock: &Clock) -> Markup {
    let story = &gathered.story;
    let rows: Vec<_> = story.rows().iter().cloned().collect();
    let waits: Vec<Span> = story.waits().iter().map(|wait| wait.span()).collect();
    let state = gathered.state.as_ref();
    let dollars = state.and_then(|state| state.config.max_cost_usd);
    let tasks = state.and_then(|state| state.tasks.as_deref());
    let over_time =
        (tasks.is_none() && (!rows.is_empty() || story.current().is_some())).then(|| {
            let of = Timeline {
                rows: &rows,
                current: story.current(),
                waits: &waits,
                budget_micros: dollars.map(|dollars| (dollars * 1e6) as u64),
            };
            let words = "width: time · height: tokens (an empty bar: not reported) · green: proven \
            done · \
                     red: a failed gate or a failure · yellow: waiting · line: cost so far";
            figure(&timeline(&of, clock, WIDTH, 240.0), "picture", words)
        });
    let lanes = gathered.lanes.lanes();
    html! {
        @if let Some(picture) = &over_time { (section("Over time", picture)) }
        @if let Some(tasks) = tasks {
            (section("Tasks by wave", &figure(&graph(&GraphTask::of_loop(tasks), &tasks.blocks), "picture graph", "")))
            @if !lanes.is_empty() { (section("Over time", &figure(&gantt(&lanes, clock, WIDTH), "picture", LANES))) }
        }
    }
}

/// What the lanes of a task loop show.
const LANES: &str = "one bar per attempt or merge · green: proven · red: refused or failed · \
                     grey: interrupted";

fn figure(picture: &Picture, class: &str, words: &str) -> Markup {
    html! {
        // Drawn and escaped by the kernel's pictures.
        div class=(class) { "\n" (PreEscaped(svg(picture, Frame::Inline))) } "\n"
        @if !words.is_empty() { p.muted { (words) } "\n" }
    }
}
