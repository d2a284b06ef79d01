//! What every page has: head, navigation, style and script from this server.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use super::text::line;
use crate::access::Access;
use crate::reply::{RequestFailure, typed};

/// A whole page.
pub fn page(title: &str, access: Access, main: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body data-access=(match access { Access::Read => "read", Access::Steer => "steer" }) {
                a.skip href="#main" { "to the content" }
                header.top {
                    nav aria-label="pages" {
                        a.home href="/" { "descartes" }
                        span #link role="status" {}
                        @if access == Access::Read { span.pill.dim { "read only" } }
                        form method="post" action="/sign-out" data-plain="yes" { button.quiet type="submit" { "sign out" } }
                    }
                }
                (main)
                noscript { p.notice { "Without script the page does not follow the loop: load it again to see what is new." } }
            }
        }
    }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (line(title)) " – descartes" }
            link rel="stylesheet" href="/assets/style.css";
            link rel="icon" href="/assets/icon.svg";
            script src="/assets/app.js" defer {}
        }
    }
}

pub const USED_LINK: &str = "This link was used already, or belongs to a server that has ended.";

/// Asks for a token.
pub fn sign_in(status: StatusCode, words: Option<&str>) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head("sign in"))
            body {
                main.narrow #main {
                    h1 { "descartes" }
                    @if let Some(words) = words { p.notice role="alert" { (words) } }
                    p { "Open the address that " code { "descartes serve" } " printed: it works once. Or give a token from "
                        code { "web-tokens.json" } " in the state folder: " code { "full" } " looks and steers, " code { "read" } " only looks." }
                    form.sign-in method="post" action="/sign-in" data-plain="yes" {
                        // What password managers keep a token under.
                        input type="text" value="descartes" autocomplete="username" readonly hidden;
                        label for="token" { "token" }
                        input #token name="token" type="password" autocomplete="current-password" required autofocus;
                        button type="submit" { "sign in" }
                    }
                }
            }
        }
    };
    with_status(status, page)
}

pub fn with_status(status: StatusCode, page: Markup) -> Response {
    let mut response = reply(page);
    *response.status_mut() = status;
    response
}

pub fn reply(page: Markup) -> Response {
    typed("text/html; charset=utf-8", page.into_string())
}

/// A page that cannot be shown: what happened, and what to do about it.
pub fn failed(failure: &RequestFailure, access: Access) -> Response {
    let main = html! {
        main #main {
            h1 { "Not shown" }
            p.notice role="alert" { (line(&failure.message)) }
            @if let Some(hint) = &failure.hint { p { (line(hint)) } }
            p { a href="/" { "all loops" } }
        }
    };
    with_status(failure.status, page("not shown", access, main))
}

/// A page, or why there is none.
pub fn page_or_failure(made: Result<Markup, RequestFailure>, access: Access) -> Response {
    match made {
        Ok(page) => reply(page),
        Err(failure) => failed(&failure, access),
    }
}

/// The style sheet: the inks of the pictures, and our own.
pub async fn style() -> Response {
    let sheet = descartes_views::picture::style_sheet() + include_str!("../assets/style.css");
    typed("text/css; charset=utf-8", sheet).into_response()
}

pub async fn icon() -> Response {
    let icon = include_str!("../assets/icon.svg");
    typed("image/svg+xml", icon).into_response()
}

pub async fn script() -> Response {
    let script = include_str!("../assets/app.js");
    typed("text/javascript; charset=utf-8", script).into_response()
}
