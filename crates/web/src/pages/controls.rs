//! What can be done with a loop, as it stands.

use descartes_kernel::state::Pause;
use descartes_views::view::Status;
use maud::{Markup, html};

use super::loop_facts::LoopFacts;
use super::text::line;

/// The buttons; what is typed has forms of its own, which are never drawn anew.
pub fn controls(known: &LoopFacts<'_>) -> Markup {
    let id = &known.meta.id;
    let status = Status::of(known.state, known.life);
    let paused = known.state.requests.pause != Pause::No;
    let done = matches!(&status, Status::Ended { reason } if reason.is_success());
    let name = line(&known.meta.name);
    let asks = format!("Cancel {name}? Its agent and everything it started is ended.");
    html! {
        @if status.is_live() {
            @if paused { (button(id, "unpause", "go on", "p", None)) }
            @else { (button(id, "pause", "pause", "p", None)) }
            @if matches!(status, Status::Waiting { .. }) || known.state.tasks.is_some() {
                (button(id, "retry", "retry now", "r", None))
            }
            (button(id, "cancel", "cancel", "c", Some(&asks)))
        } @else if done {
            p.dim { "the loop is done: it takes no orders any more" }
        } @else {
            (button(id, "resume", "resume", "r", None))
            @if matches!(status, Status::Interrupted) {
                (button(id, "cancel", "cancel", "c", Some(&asks)))
            }
        }
    }
}

/// One button; it may ask first. The key is that of `descartes watch`.
fn button(id: &str, verb: &str, label: &str, key: &str, asks: Option<&str>) -> Markup {
    html! {
        form method="post" action={ "/api/v1/loops/" (id) "/" (verb) } data-confirm=[asks] {
            button type="submit" id={ "do-" (verb) } data-key=(key) aria-keyshortcuts=(key) { (label) }
        }
    }
}

/// A note for the next iteration.
pub fn say_form(id: &str) -> Markup {
    html! {
        form.say method="post" action={ "/api/v1/loops/" (id) "/say" } data-clear="yes" {
            label for="say" { "note for the next iteration" }
            textarea #say name="text" rows="2" maxlength="20000" required data-key="s" aria-keyshortcuts="s" {}
            button type="submit" { "say" }
        }
    }
}

/// Limits, which alone can be changed from a browser.
pub fn limits_form(id: &str, limits: &[(&'static str, &'static str, String)]) -> Markup {
    html! {
        details #limits {
            summary { "limits" }
            form.limits method="post" action={ "/api/v1/loops/" (id) "/set" } data-clear="yes" {
                @for (name, label, now) in limits {
                    div {
                        label for={ "set-" (name) } { (label) }
                        input id={ "set-" (name) } name=(name) placeholder=(now) autocomplete="off";
                    }
                }
                div { button type="submit" { "change" } " " button type="submit" formaction={ "/api/v1/loops/" (id) "/resume" } { "resume with these" } }
            }
        }
    }
}
