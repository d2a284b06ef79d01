//! The pictures of a page, each with what its colours mean.

use descartes_views::picture::{
    Clock, Frame, GraphTask, Picture, Span, Timeline, gantt, graph, svg, timeline,
};

use super::gather::Gathered;
use super::html::section;

const WIDTH: f32 = 960.0;

/// Iterations over time; the graph and the lanes of a task loop.
pub fn pictures(gathered: &Gathered, clock: &Clock) -> String {
    let story = &gathered.story;
    let rows: Vec<_> = story.rows().iter().cloned().collect();
    let waits: Vec<Span> = story.waits().iter().map(|wait| wait.span()).collect();
    let state = gathered.state.as_ref();
    let dollars = state.and_then(|state| state.config.max_cost_usd);
    let tasks = state.and_then(|state| state.tasks.as_deref());
    let mut out = String::new();
    if tasks.is_none() && (!rows.is_empty() || story.current().is_some()) {
        let of = Timeline {
            rows: &rows,
            current: story.current(),
            waits: &waits,
            budget_micros: dollars.map(|dollars| (dollars * 1e6) as u64),
        };
        let words = "width: time · height: tokens (an empty bar: not reported) · green: proven \
            done · \
                     red: a failed gate or a failure · yellow: waiting · line: cost so far";
        let picture = figure(&timeline(&of, clock, WIDTH, 240.0), "", words);
        out.push_str(&section("Over time", &picture));
    }
    if let Some(tasks) = tasks {
        let picture = figure(&graph(&GraphTask::of_loop(tasks)), " graph", "");
        out.push_str(&section("Tasks by wave", &picture));
        let lanes = gathered.lanes.lanes();
        if !lanes.is_empty() {
            let words = "one bar per attempt or merge · green: proven · red: refused or failed · \
                         grey: interrupted";
            let picture = figure(&gantt(&lanes, clock, WIDTH), "", words);
            out.push_str(&section("Over time", &picture));
        }
    }
    out
}

fn figure(picture: &Picture, class: &str, words: &str) -> String {
    let image = svg(picture, Frame::Inline);
    let words = match words {
        "" => String::new(),
        words => format!("<p class=\"muted\">{words}</p>\n"),
    };
    format!("<div class=\"picture{class}\">\n{image}</div>\n{words}")
}
