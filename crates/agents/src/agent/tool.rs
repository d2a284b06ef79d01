//! Tool calls as one line for people.

use std::borrow::Cow;

use super::json::{JsonValue, head};

const LINE_BYTES: usize = 160;

/// Fields of tools' inputs that say what the call is about, the best one first.
const FILES: [&str; 6] = [
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "path",
    "dir_path",
];
const SUBJECTS: [&str; 5] = ["pattern", "query", "url", "description", "prompt"];

fn command<'j>(input: &'j JsonValue<'_>) -> Option<Cow<'j, str>> {
    input["command"]
        .describe()
        .or_else(|| input["cmd"].describe())
}

fn first<'j>(input: &'j JsonValue<'_>, names: &[&str]) -> Option<&'j str> {
    names.iter().find_map(|name| input[*name].text())
}

/// `$ cargo test`, `edit src/lib.rs`, `search "fn main"`. Paths are shown from `cwd` on.
pub(super) fn summary(name: &str, input: &JsonValue<'_>, cwd: Option<&str>) -> String {
    if let Some(command) = command(input) {
        return shell(&command);
    }
    let file = first(input, &FILES).map(|path| relative(path, cwd));
    let about = first(input, &SUBJECTS);
    let verb = verb(name);
    let what = match verb {
        Some("search" | "list") => about.or(file),
        Some("fetch" | "task") => about,
        _ => file.or(about),
    };
    let verb = verb.unwrap_or(name);
    match what {
        Some(what) => format!("{} {}", one_line(verb, 60), one_line(what, LINE_BYTES)),
        None => one_line(verb, 60),
    }
}

/// A command line, out of the shell that is wrapped around it.
pub(super) fn shell(command: &str) -> String {
    let inner = shell_words::split(command).ok().and_then(|words| {
        let [shell, flag, script] = <[String; 3]>::try_from(words).ok()?;
        let name = shell.rsplit('/').next().unwrap_or(&shell);
        let wrapped =
            ["sh", "bash", "zsh", "dash"].contains(&name) && ["-c", "-lc"].contains(&flag.as_str());
        wrapped.then_some(script)
    });
    format!(
        "$ {}",
        one_line(inner.as_deref().unwrap_or(command), LINE_BYTES)
    )
}

/// The rule by which the agent would have let the call through.
pub(super) fn rule(name: &str, input: &JsonValue<'_>) -> String {
    match command(input) {
        Some(command) => format!("{name}({})", one_line(&command, LINE_BYTES)),
        None => name.to_owned(),
    }
}

fn verb(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let verbs: [(&[&str], &str); 8] = [
        (&["todo", "plan"], "plan"),
        (&["edit", "replace", "patch"], "edit"),
        (&["write", "create"], "write"),
        (&["grep", "search"], "search"),
        (&["glob", "list", "ls"], "list"),
        (&["read", "view"], "read"),
        (&["fetch"], "fetch"),
        (&["task", "agent"], "task"),
    ];
    let held = |words: &[&str]| words.iter().any(|word| name.contains(word));
    verbs
        .iter()
        .find(|(words, _)| held(words))
        .map(|(_, verb)| *verb)
}

fn relative<'a>(path: &'a str, cwd: Option<&str>) -> &'a str {
    cwd.filter(|cwd| cwd.len() > 1)
        .and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/'))
        .unwrap_or(path)
}

/// A text's first line with something on it, shortened; `…` stands for what is left out.
pub(super) fn one_line(text: &str, bytes: usize) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default().trim_end();
    let short = head(line, bytes);
    let mut shown: String = short
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if short.len() < text.len() {
        shown.push_str(" …");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_one_line() {
        let table = [
            ("Bash", r#"{"command":"cargo test"}"#, "$ cargo test"),
            (
                "exec_command",
                r#"{"cmd":["bash","-lc","ls | wc"]}"#,
                "$ ls | wc",
            ),
            ("bash", r#"{"command":"cat <<X\nline\nX"}"#, "$ cat <<X …"),
            (
                "Edit",
                r#"{"file_path":"/home/me/p/src/x.rs","old_string":"a"}"#,
                "edit src/x.rs",
            ),
            (
                "write",
                r#"{"filePath":"/elsewhere/y"}"#,
                "write /elsewhere/y",
            ),
            ("read_file", r#"{"absolute_path":"/home/me/p/a"}"#, "read a"),
            (
                "Grep",
                r#"{"pattern":"fn main","path":"src"}"#,
                "search fn main",
            ),
            ("list_directory", r#"{"dir_path":"src"}"#, "list src"),
            (
                "WebFetch",
                r#"{"url":"http://a/b","prompt":"read"}"#,
                "fetch http://a/b",
            ),
            (
                "Task",
                r#"{"description":"look around","prompt":"long"}"#,
                "task look around",
            ),
            ("TodoWrite", r#"{"todos":[]}"#, "plan"),
            ("mcp__x__y", r#"{"query":"q"}"#, "mcp__x__y q"),
            ("odd", r#"{"command":{"a":1}}"#, "odd"),
        ];
        for (name, input, want) in table {
            let input = JsonValue::read(input.as_bytes()).unwrap();
            assert_eq!(summary(name, &input[0], Some("/home/me/p")), want);
        }
    }

    #[test]
    fn long_lines_and_control_characters_are_tamed() {
        let line = shell(&format!("echo \u{1b}[31m {}", "ä".repeat(500)));
        assert!(line.len() < 200 && line.ends_with(" …") && !line.contains('\u{1b}'));
        assert_eq!(one_line("  \n x \n", 10), "x");
    }
}
