//! Backends: how an agent is started and how its completion is recognised.

use descartes_agents::agent::{StreamKind, parser};
use descartes_agents::promise::{ClaimKind, PromiseMatch, PromiseSpec, find_in_text};
use descartes_agents::reader::{RunReader, Source};
use descartes_kernel::config::PromptMode;
use descartes_kernel::event::EndedBy;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::LoopBackendConfig;

/// An agent that a loop can run. Implement it for an agent of your own and give it to
/// [`IterativeLoop::with_backend`](crate::IterativeLoop::with_backend).
///
/// ```
/// use descartes_core::LoopBackend;
///
/// struct Aided;
/// impl LoopBackend for Aided {
///     fn command(&self) -> &str { "aider" }
///     fn base_args(&self) -> Vec<String> { vec!["--yes-always".into(), "--message".into()] }
/// }
/// assert_eq!(Aided.format_prompt("Fix it", 0, Some(10)), "Fix it");
/// assert!(Aided.format_prompt("Fix it", 1, Some(10)).contains("Iteration 2 of 10"));
/// assert_eq!(
///     Aided.check_completion("All done.\n<promise>COMPLETE</promise>", "COMPLETE"),
///     Some("COMPLETE".to_owned()),
/// );
/// ```
pub trait LoopBackend: Send + Sync {
    /// The program.
    fn command(&self) -> &str;

    /// Arguments that come before the prompt.
    fn base_args(&self) -> Vec<String>;

    /// What the agent prints: `text`, `stream-json`, `json`.
    fn output_format(&self) -> &str {
        "text"
    }

    /// The prompt of an iteration, counted from 0: the first as it is, later ones say where
    /// the loop stands.
    fn format_prompt(&self, prompt: &str, iteration: u32, max: Option<u32>) -> String {
        if iteration == 0 {
            return prompt.to_owned();
        }
        let of = descartes_kernel::prompt::limit_words(max);
        format!(
            "{prompt}\n\n---\nIteration {} of {of}\n\
             Your previous work persists in files and git history\n---\n",
            iteration + 1
        )
    }

    /// The promise as it stands in the output, if the agent claims to be done.
    fn check_completion(&self, output: &str, promise: &str) -> Option<String> {
        let spec = PromiseSpec {
            done: Some(promise.to_owned()),
            abort: None,
            mode: self.promise_match(),
        };
        let claim = find_in_text(&spec, output)?;
        (claim.kind == ClaimKind::Done).then_some(claim.text)
    }

    /// How the promise must stand in the output.
    fn promise_match(&self) -> PromiseMatch {
        PromiseMatch::Line
    }

    /// How the prompt is passed to the agent.
    fn prompt_mode(&self) -> PromptMode {
        PromptMode::Arg
    }

    /// Which parser reads its output.
    fn stream(&self) -> StreamKind {
        StreamKind::Text
    }
}

/// The promise in what an agent printed: in its final message where that is a stream of JSON,
/// anywhere in plain text.
fn find_claim(
    stream: StreamKind,
    mode: PromiseMatch,
    output: &str,
    promise: &str,
) -> Option<String> {
    let spec = PromiseSpec {
        done: Some(promise.to_owned()),
        abort: None,
        mode,
    };
    let is_json = output.lines().any(|line| line.starts_with('{'));
    if is_json && let Ok(parser) = parser(stream, None) {
        let mut reader = RunReader::understood(&spec, parser);
        reader.push(Source::Stdout, output.as_bytes(), &mut Vec::new());
        let (now, zone) = (Timestamp::now(), TimeZone::UTC);
        return reader.finish(None, EndedBy::Exit, now, &zone).claim;
    }
    let claim = find_in_text(&spec, output)?;
    (claim.kind == ClaimKind::Done).then_some(claim.text)
}

/// Arguments, and `--model` where one is chosen.
fn with_model(args: &[&str], model: Option<&String>) -> Vec<String> {
    let mut args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
    if let Some(model) = model {
        args.extend(["--model".to_owned(), model.clone()]);
    }
    args
}

/// Claude Code, headless.
///
/// ```
/// use descartes_core::{ClaudeBackend, LoopBackend};
///
/// let claude = ClaudeBackend { model: Some("opus".into()), output_format: "stream-json".into() };
/// assert_eq!(claude.base_args(), ["-p", "--output-format", "stream-json", "--verbose", "--model", "opus"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaudeBackend {
    /// The model; `None`: the agent's own choice.
    pub model: Option<String>,
    /// `stream-json`, `json` or `text`.
    pub output_format: String,
}

impl Default for ClaudeBackend {
    fn default() -> Self {
        Self {
            model: None,
            output_format: "stream-json".to_owned(),
        }
    }
}

impl LoopBackend for ClaudeBackend {
    fn command(&self) -> &str {
        "claude"
    }

    fn base_args(&self) -> Vec<String> {
        let mut args = vec!["-p", "--output-format", &self.output_format];
        if self.output_format == "stream-json" {
            // Else it refuses that format in print mode.
            args.push("--verbose");
        }
        with_model(&args, self.model.as_ref())
    }

    fn output_format(&self) -> &str {
        &self.output_format
    }

    fn check_completion(&self, output: &str, promise: &str) -> Option<String> {
        find_claim(self.stream(), self.promise_match(), output, promise)
    }

    fn promise_match(&self) -> PromiseMatch {
        PromiseMatch::Tagged
    }

    fn prompt_mode(&self) -> PromptMode {
        PromptMode::Stdin
    }

    fn stream(&self) -> StreamKind {
        match self.output_format.as_str() {
            "stream-json" | "json" => StreamKind::Claude,
            _ => StreamKind::Text,
        }
    }
}

macro_rules! builtin {
    ($name:ident, $doc:literal, $command:literal, [$($arg:literal),*], $format:literal, $stream:ident) => {
        #[doc = $doc]
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            /// The model; `None`: the agent's own choice.
            pub model: Option<String>,
        }

        impl LoopBackend for $name {
            fn command(&self) -> &str {
                $command
            }

            fn base_args(&self) -> Vec<String> {
                with_model(&[$($arg),*], self.model.as_ref())
            }

            fn output_format(&self) -> &str {
                $format
            }

            fn check_completion(&self, output: &str, promise: &str) -> Option<String> {
                find_claim(self.stream(), self.promise_match(), output, promise)
            }

            fn promise_match(&self) -> PromiseMatch {
                PromiseMatch::Tagged
            }

            fn prompt_mode(&self) -> PromptMode {
                PromptMode::Stdin
            }

            fn stream(&self) -> StreamKind {
                StreamKind::$stream
            }
        }
    };
}

builtin!(
    CodexBackend,
    "Codex, headless.",
    "codex",
    ["exec", "--json", "--skip-git-repo-check"],
    "json",
    Codex
);
builtin!(
    GeminiBackend,
    "Gemini CLI, headless.",
    "gemini",
    ["--output-format", "stream-json"],
    "stream-json",
    Gemini
);
builtin!(
    OpenCodeBackend,
    "opencode, headless.",
    "opencode",
    ["run", "--format", "json"],
    "json",
    OpenCode
);

/// Any other command: plain text, the prompt as its last argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenericBackend {
    /// The program.
    pub command: String,
    /// Arguments that come before the prompt.
    pub base_args: Vec<String>,
}

impl GenericBackend {
    /// For this program, without arguments.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            base_args: Vec::new(),
        }
    }
}

impl LoopBackend for GenericBackend {
    fn command(&self) -> &str {
        &self.command
    }

    fn base_args(&self) -> Vec<String> {
        self.base_args.clone()
    }
}

/// A backend as a config has it: with another program of its kind, or another way for the prompt.
struct Adapted<B> {
    inner: B,
    command: String,
    prompt_mode: Option<PromptMode>,
}

impl<B: LoopBackend> LoopBackend for Adapted<B> {
    fn command(&self) -> &str {
        &self.command
    }

    fn base_args(&self) -> Vec<String> {
        self.inner.base_args()
    }

    fn output_format(&self) -> &str {
        self.inner.output_format()
    }

    fn format_prompt(&self, prompt: &str, iteration: u32, max: Option<u32>) -> String {
        self.inner.format_prompt(prompt, iteration, max)
    }

    fn check_completion(&self, output: &str, promise: &str) -> Option<String> {
        self.inner.check_completion(output, promise)
    }

    fn promise_match(&self) -> PromiseMatch {
        self.inner.promise_match()
    }

    fn prompt_mode(&self) -> PromptMode {
        self.prompt_mode.unwrap_or(self.inner.prompt_mode())
    }

    fn stream(&self) -> StreamKind {
        self.inner.stream()
    }
}

/// The backend that a config names, for this command.
///
/// ```
/// use descartes_core::{LoopBackendConfig, create_backend};
///
/// let config = LoopBackendConfig { backend_type: "claude".into(), ..Default::default() };
/// let claude = create_backend(&config, "/opt/bin/claude");
/// assert_eq!((claude.command(), claude.output_format()), ("/opt/bin/claude", "stream-json"));
/// ```
pub fn create_backend(config: &LoopBackendConfig, command: &str) -> Box<dyn LoopBackend> {
    fn adapted<B: LoopBackend + 'static>(
        inner: B,
        config: &LoopBackendConfig,
        command: &str,
    ) -> Box<dyn LoopBackend> {
        let command = match command.is_empty() {
            true => inner.command(),
            false => command,
        };
        Box::new(Adapted {
            command: command.to_owned(),
            prompt_mode: config.known_prompt_mode(),
            inner,
        })
    }
    let format = config.output_format.as_str();
    match config.backend_type.as_str() {
        "claude" => {
            let claude = match format {
                "json" => ClaudeBackend {
                    output_format: format.to_owned(),
                    ..ClaudeBackend::default()
                },
                _ => ClaudeBackend::default(),
            };
            adapted(claude, config, command)
        }
        "codex" => adapted(CodexBackend::default(), config, command),
        "gemini" => adapted(GeminiBackend::default(), config, command),
        "opencode" => adapted(OpenCodeBackend::default(), config, command),
        _ => adapted(GenericBackend::new(command), config, command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_backend_are_in_what_it_runs() {
        let model = Some("m".to_owned());
        let claude = |format: &str| ClaudeBackend {
            model: None,
            output_format: format.into(),
        };
        assert_eq!(
            claude("json").base_args(),
            ["-p", "--output-format", "json"]
        );
        assert_eq!(claude("text").stream(), StreamKind::Text);
        let opencode = OpenCodeBackend { model };
        assert_eq!(
            opencode.base_args(),
            ["run", "--format", "json", "--model", "m"]
        );
        let generic = GenericBackend {
            command: "python".into(),
            base_args: vec!["agent.py".into()],
        };
        assert_eq!(generic.base_args(), ["agent.py"]);
        assert_eq!(generic.output_format(), "text");
    }

    #[test]
    fn a_promise_counts_in_the_final_message_of_a_stream_and_in_plain_text() {
        let claude = ClaudeBackend::default();
        let stream = |text: &str| {
            let message = serde_json::json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}});
            let result = serde_json::json!({"type": "result", "subtype": "success", "is_error": false, "result": text});
            format!("{message}\n{result}\n")
        };
        let done = Some("COMPLETE".to_owned());
        let tag = "All done.\n<promise>COMPLETE</promise>";
        assert_eq!(claude.check_completion(&stream(tag), "COMPLETE"), done);
        assert_eq!(claude.check_completion(tag, "COMPLETE"), done);
        let not = "I will print `<promise>COMPLETE</promise>` later";
        assert_eq!(claude.check_completion(&stream(not), "COMPLETE"), None);
        let quoted = serde_json::json!({"type": "user", "message": {"content": tag}});
        assert_eq!(
            claude.check_completion(&quoted.to_string(), "COMPLETE"),
            None
        );
    }

    #[test]
    fn a_config_names_a_backend_and_how_its_prompt_goes() {
        let config = |backend_type: &str, prompt_mode: &str| LoopBackendConfig {
            backend_type: backend_type.into(),
            prompt_mode: prompt_mode.into(),
            ..LoopBackendConfig::default()
        };
        let mode = |config| create_backend(&config, "x").prompt_mode();
        assert_eq!(mode(config("claude", "")), PromptMode::Stdin);
        assert_eq!(mode(config("claude", "arg")), PromptMode::Arg);
        assert_eq!(mode(config("generic", "")), PromptMode::Arg);
        assert_eq!(mode(config("generic", "env")), PromptMode::Env);
        let codex = create_backend(&config("codex", ""), "");
        assert_eq!(codex.command(), "codex");
    }
}
