//! A notification on the desktop, by whichever program is there to show one.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::env::Environment;

/// Any of these says that there is a desktop.
const SIGNS: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"];

/// Whether there is a desktop, and a program that can talk to it.
pub fn is_there(environment: &Environment) -> bool {
    let desktop = SIGNS.iter().any(|name| environment.text(name).is_some());
    desktop
        && ["notify-send", "gdbus"]
            .iter()
            .any(|name| environment.program(name).is_some())
}

pub fn show(notice: &Value) -> Result<(), String> {
    let text = |key: &str| notice[key].as_str().unwrap_or_default().to_owned();
    let (title, words) = (format!("descartes: {}", text("name")), text("message"));
    let urgency = match notice["event"].as_str() {
        Some("needs_person" | "stalled") => "critical",
        _ => "normal",
    };
    // Bodies are markup.
    let body = words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let mut send = Command::new("notify-send");
    send.args([
        "--app-name=descartes",
        "--urgency",
        urgency,
        "--",
        &title,
        &body,
    ]);
    match run(send) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        other => return ended("notify-send", other),
    }
    let mut bus = Command::new("gdbus");
    bus.args([
        "call",
        "--session",
        "--dest",
        "org.freedesktop.Notifications",
    ]);
    bus.args(["--object-path", "/org/freedesktop/Notifications"]);
    bus.args(["--method", "org.freedesktop.Notifications.Notify"]);
    bus.args([
        "descartes",
        "0",
        "",
        &quoted(&title),
        &quoted(&body),
        "[]",
        "{}",
        "-1",
    ]);
    ended("gdbus", run(bus))
}

/// A text as gdbus reads it: a bare word could be taken for a number.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn run(mut command: Command) -> std::io::Result<std::process::ExitStatus> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
}

fn ended(program: &str, how: std::io::Result<std::process::ExitStatus>) -> Result<(), String> {
    match how {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(format!("{program}: {error}")),
    }
}
