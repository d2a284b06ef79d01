//! What may be started: one thing to do, with a budget, while there is room; and the command line that
//! a person would have typed for it.

use std::path::{Component, Path, PathBuf};

use descartes_text::units::{parse_duration, plural};

use crate::answer::ToolFailure;
use crate::calls::StartCall;

/// How agents are started, as the person said who started the server. What is not said is the config's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFlags {
    pub command: Option<String>,
    pub backend: Option<String>,
    pub model: Option<String>,
    pub permissions: Option<String>,
    pub sandbox: Option<String>,
}

impl AgentFlags {
    fn words(&self) -> Vec<String> {
        let all = [
            ("--command", &self.command),
            ("--backend", &self.backend),
            ("--model", &self.model),
            ("--permissions", &self.permissions),
            ("--sandbox", &self.sandbox),
        ];
        let given = all
            .into_iter()
            .filter_map(|(flag, value)| Some((flag, value.as_ref()?)));
        given
            .map(|(flag, value)| format!("{flag}={value}"))
            .collect()
    }
}

/// Refuses one more loop where as many run as there may.
pub fn check_room(running: usize, most: u32) -> Result<(), ToolFailure> {
    match running < most as usize {
        true => Ok(()),
        false => Err(ToolFailure::new(
            format!(
                "{} already, and this server starts one only while fewer than {most} run",
                match running {
                    1 => "1 loop is running".to_owned(),
                    _ => format!("{} are running", plural(running as u64, "loop")),
                }
            ),
            "wait for one with `wait`, or end one with `cancel`; a person can allow more: \
             descartes mcp --max-loops N",
        )),
    }
}

/// A path of the server's folder, as a word for the command line.
pub fn inside(folder: &Path, argument: &str, path: &str) -> Result<PathBuf, ToolFailure> {
    let given = Path::new(path);
    let relative = given.strip_prefix(folder).unwrap_or(given);
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    match !path.trim().is_empty() && relative.components().all(plain) {
        true => Ok(folder.join(relative)),
        false => Err(ToolFailure::new(
            format!(
                "`{argument}` is {path:?}: not a path in {}",
                folder.display()
            ),
            "give it relative to that folder, without `..`",
        )),
    }
}

/// Where a loop is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// In no loop.
    Outside,
    /// In a loop, which the person allowed; with this state file where it needs one of its own.
    Inside { state_file: PathBuf },
}

/// A prompt longer than this goes by standard input: systems refuse arguments of 128 KiB.
const LONGEST_WORD: usize = 100 << 10;

/// What starts a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartLine {
    pub words: Vec<String>,
    /// What is given on standard input.
    pub input: Option<String>,
}

/// The command line that starts what was asked for. Values stand behind `=`, or behind `--`: none is
/// taken for a flag.
pub fn start_line(
    call: &StartCall,
    flags: &AgentFlags,
    folder: &Path,
    nesting: &Nesting,
) -> Result<StartLine, ToolFailure> {
    let long = call.prompt.as_ref();
    let long = long.filter(|prompt| prompt.len() > LONGEST_WORD);
    Ok(StartLine {
        words: words(call, flags, folder, nesting)?,
        input: long.cloned(),
    })
}

fn words(
    call: &StartCall,
    flags: &AgentFlags,
    folder: &Path,
    nesting: &Nesting,
) -> Result<Vec<String>, ToolFailure> {
    check_budget(call)?;
    check_times(call)?;
    let mut words = work(call, folder)?;
    let file = match words.first().map(String::as_str) {
        Some("roadmap") => words.pop(),
        _ => None,
    };
    words.push("--detach".to_owned());
    words.extend(flags.words());
    if let Nesting::Inside { state_file } = nesting {
        words.push("--nested".to_owned());
        // That of a roadmap is named after it.
        if file.is_none() {
            words.push(format!("--state-file={}", state_file.display()));
        }
    }
    if let Some(name) = &call.name {
        words.push(format!("--name={name}"));
    }
    words.extend(limits(call));
    for gate in &call.gates {
        match gate.trim() {
            "" => {
                let hint = "give a shell command, for example: cargo test";
                return Err(ToolFailure::new("a gate in `gates` is empty", hint));
            }
            gate => words.push(format!("--verify={gate}")),
        }
    }
    if let Some(file) = file {
        words.extend(["--".to_owned(), file]);
    }
    Ok(words)
}

/// The verb and what is worked on; the file of a roadmap stands last.
fn work(call: &StartCall, folder: &Path) -> Result<Vec<String>, ToolFailure> {
    let owned = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let text = |value: &Option<String>| value.clone().filter(|text| !text.trim().is_empty());
    let given = [text(&call.prompt), text(&call.tag), text(&call.file)];
    if call.source.is_some() && call.file.is_none() {
        let hint = "leave it out, or name the `file`";
        return Err(ToolFailure::new("`source` belongs to `file`", hint));
    }
    match given {
        [Some(prompt), None, None] => {
            let mut words = owned(&["loop", "start"]);
            words.push(match prompt.len() > LONGEST_WORD {
                true => "--prompt-file=-".to_owned(),
                false => format!("--prompt={prompt}"),
            });
            Ok(words)
        }
        [None, Some(tag), None] => {
            let mut words = owned(&["loop", "start"]);
            words.push(format!("--scud-tag={tag}"));
            Ok(words)
        }
        [None, None, Some(file)] => {
            let file = inside(folder, "file", &file)?;
            let mut words = owned(&["roadmap", "run", "--no-task-agents"]);
            words.extend(call.source.as_ref().map(|name| format!("--source={name}")));
            words.push(file.display().to_string());
            Ok(words)
        }
        [None, None, None] => Err(ToolFailure::new(
            "nothing to do: there is no `prompt`, no `tag` and no `file`",
            "give one of them, for example: prompt: \"make the tests pass\"",
        )),
        _ => Err(ToolFailure::new(
            "more than one of `prompt`, `tag` and `file`",
            "give one of them",
        )),
    }
}

/// A loop that a model starts ends by itself.
fn check_budget(call: &StartCall) -> Result<(), ToolFailure> {
    let zero = [
        ("max_iterations", call.max_iterations == Some(0)),
        ("max_tokens", call.max_tokens == Some(0)),
        (
            "max_cost",
            call.max_cost
                .is_some_and(|cost| cost.is_nan() || cost <= 0.0),
        ),
    ];
    if let Some((name, _)) = zero.iter().find(|(_, zero)| *zero) {
        let hint = "give a number greater than zero";
        return Err(ToolFailure::new(format!("`{name}` allows nothing"), hint));
    }
    let has_budget = call.max_iterations.is_some()
        || call.max_duration.is_some()
        || call.max_cost.is_some()
        || call.max_tokens.is_some();
    match has_budget {
        true => Ok(()),
        false => Err(ToolFailure::new(
            "no budget: a loop that is started here needs one",
            "give at least one of max_iterations (10), max_duration (\"2h\"), max_tokens (500000), \
             max_cost (5.0, in dollars)",
        )),
    }
}

fn check_times(call: &StartCall) -> Result<(), ToolFailure> {
    let all = [
        ("max_duration", &call.max_duration),
        ("timeout", &call.timeout),
        ("idle_timeout", &call.idle_timeout),
    ];
    for (name, value) in all {
        let Some(value) = value else { continue };
        let hint = "for example: \"30m\", \"2h\"";
        match parse_duration(value) {
            Err(error) => return Err(ToolFailure::new(format!("`{name}`: {error}"), hint)),
            // Silence without end is what 0 means there.
            Ok(time) if time.is_zero() && name != "idle_timeout" => {
                return Err(ToolFailure::new(format!("`{name}` allows nothing"), hint));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

fn limits(call: &StartCall) -> Vec<String> {
    let text = |value: &Option<String>| value.clone();
    let all = [
        ("max-iterations", call.max_iterations.map(|n| n.to_string())),
        ("max-duration", text(&call.max_duration)),
        ("max-cost", call.max_cost.map(|cost| cost.to_string())),
        ("max-tokens", call.max_tokens.map(|n| n.to_string())),
        ("timeout", text(&call.timeout)),
        ("idle-timeout", text(&call.idle_timeout)),
        ("max-failures", call.max_failures.map(|n| n.to_string())),
        ("stall-after", call.stall_after.map(|n| n.to_string())),
    ];
    let given = all
        .into_iter()
        .filter_map(|(flag, value)| Some((flag, value?)));
    given
        .map(|(flag, value)| format!("--{flag}={}", value.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> StartCall {
        StartCall {
            prompt: Some("go".into()),
            max_iterations: Some(5),
            ..StartCall::default()
        }
    }

    fn typed(call: &StartCall) -> Result<String, String> {
        let words = words(
            call,
            &AgentFlags::default(),
            Path::new("/p"),
            &Nesting::Outside,
        );
        words
            .map(|words| words.join(" "))
            .map_err(|failure| failure.message)
    }

    #[test]
    fn a_call_becomes_what_a_person_would_type() {
        let some = |text: &str| Some(text.to_owned());
        for (call, expected) in [
            (call(), "loop start --prompt=go --detach --max-iterations=5"),
            (
                StartCall {
                    prompt: some("--verify=true"),
                    gates: vec!["cargo test".into(), " --flag ".into()],
                    name: some("-x"),
                    ..call()
                },
                "loop start --prompt=--verify=true --detach --name=-x --max-iterations=5 \
                 --verify=cargo test --verify=--flag",
            ),
            (
                StartCall {
                    prompt: None,
                    tag: some("auth"),
                    max_iterations: None,
                    max_duration: some("2h"),
                    max_cost: Some(2.5),
                    max_tokens: Some(9),
                    timeout: some("5m"),
                    idle_timeout: some("0s"),
                    max_failures: Some(2),
                    stall_after: Some(0),
                    ..call()
                },
                "loop start --scud-tag=auth --detach --max-duration=2h --max-cost=2.5 \
                 --max-tokens=9 --timeout=5m --idle-timeout=0s --max-failures=2 --stall-after=0",
            ),
            (
                StartCall {
                    prompt: None,
                    file: some("docs/ROADMAP.md"),
                    source: some("plan"),
                    ..call()
                },
                "roadmap run --no-task-agents --source=plan --detach --max-iterations=5 -- \
                 /p/docs/ROADMAP.md",
            ),
        ] {
            assert_eq!(typed(&call).unwrap(), expected);
        }
    }

    #[test]
    fn the_agent_is_the_persons() {
        let flags = AgentFlags {
            command: Some("my agent".into()),
            backend: Some("claude".into()),
            model: Some("m".into()),
            permissions: Some("edit".into()),
            sandbox: Some("workspace".into()),
        };
        let words = words(&call(), &flags, Path::new("/p"), &Nesting::Outside).unwrap();
        assert_eq!(
            words[4..9],
            [
                "--command=my agent",
                "--backend=claude",
                "--model=m",
                "--permissions=edit",
                "--sandbox=workspace"
            ]
        );
    }

    #[test]
    fn a_loop_inside_a_loop_has_a_state_file_of_its_own() {
        let nesting = Nesting::Inside {
            state_file: "/p/own.json".into(),
        };
        let typed = |call: &StartCall| {
            let words = words(call, &AgentFlags::default(), Path::new("/p"), &nesting);
            words.unwrap().join(" ")
        };
        let prompt = typed(&call());
        assert!(
            prompt.contains("--nested --state-file=/p/own.json"),
            "{prompt}"
        );
        let roadmap = typed(&StartCall {
            prompt: None,
            file: Some("a.md".into()),
            ..call()
        });
        assert!(roadmap.contains("--nested"), "{roadmap}");
        assert!(!roadmap.contains("--state-file"), "{roadmap}");
    }

    #[test]
    fn what_may_not_be_started_is_said() {
        let some = |text: &str| Some(text.to_owned());
        let none = || StartCall {
            max_iterations: None,
            ..call()
        };
        for (call, said) in [
            (none(), "no budget"),
            (
                StartCall {
                    timeout: some("5m"),
                    max_failures: Some(3),
                    ..none()
                },
                "no budget",
            ),
            (
                StartCall {
                    max_iterations: Some(0),
                    ..call()
                },
                "`max_iterations` allows nothing",
            ),
            (
                StartCall {
                    max_cost: Some(f64::NAN),
                    ..none()
                },
                "`max_cost` allows nothing",
            ),
            (
                StartCall {
                    max_duration: some("soon"),
                    ..none()
                },
                "`max_duration`",
            ),
            (
                StartCall {
                    max_duration: some("0s"),
                    ..none()
                },
                "`max_duration` allows nothing",
            ),
            (
                StartCall {
                    prompt: some(" "),
                    ..call()
                },
                "nothing to do",
            ),
            (
                StartCall {
                    tag: some("auth"),
                    ..call()
                },
                "more than one of",
            ),
            (
                StartCall {
                    source: some("plan"),
                    ..call()
                },
                "`source` belongs to `file`",
            ),
            (
                StartCall {
                    gates: vec![String::new()],
                    ..call()
                },
                "a gate in `gates` is empty",
            ),
        ] {
            let failure = typed(&call).unwrap_err();
            assert!(failure.starts_with(said), "{failure}");
        }
    }

    #[test]
    fn paths_stay_in_the_folder() {
        let folder = Path::new("/p");
        for (path, inside_it) in [
            ("a.md", Some("/p/a.md")),
            ("./specs/1", Some("/p/specs/1")),
            ("/p/a.md", Some("/p/a.md")),
            ("../a.md", None),
            ("specs/../../a", None),
            ("/etc/passwd", None),
            ("", None),
        ] {
            let found = inside(folder, "path", path).ok();
            assert_eq!(found.as_deref(), inside_it.map(Path::new), "{path}");
        }
    }

    #[test]
    fn there_is_room_for_so_many() {
        assert!(check_room(0, 1).is_ok());
        assert!(check_room(3, 4).is_ok());
        for (running, said) in [(1, "1 loop is running"), (5, "5 loops are running")] {
            let failure = check_room(running, 1).unwrap_err();
            assert!(failure.message.starts_with(said), "{}", failure.message);
        }
        assert!(check_room(0, 0).is_err());
    }
}
