//! Backends: how an agent is started and how its completion is recognised.

use descartes_kernel::agent::StreamKind;
use descartes_kernel::config::{LoopBackendConfig, PromptMode};
use descartes_kernel::promise::{ClaimKind, PromiseMatch, PromiseSpec, find_in_text};

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
///     fn output_format(&self) -> &str { "text" }
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
    fn output_format(&self) -> &str;

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

    /// How the prompt reaches the agent.
    fn prompt_mode(&self) -> PromptMode {
        PromptMode::Arg
    }

    /// Which parser reads its output.
    fn stream(&self) -> StreamKind {
        StreamKind::Text
    }
}

macro_rules! builtin {
    ($name:ident, $doc:literal, $command:literal, [$($arg:literal),*], $format:literal, $stream:ident) => {
        #[doc = $doc]
        #[derive(Clone, Debug)]
        pub struct $name {
            command: String,
        }

        impl $name {
            /// With another program of the same kind.
            pub fn with_command(command: impl Into<String>) -> Self {
                Self { command: command.into() }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::with_command($command)
            }
        }

        impl LoopBackend for $name {
            fn command(&self) -> &str {
                &self.command
            }

            fn base_args(&self) -> Vec<String> {
                vec![$($arg.to_owned()),*]
            }

            fn output_format(&self) -> &str {
                $format
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
    ClaudeBackend,
    "Claude Code, headless.",
    "claude",
    ["-p", "--output-format", "stream-json", "--verbose"],
    "stream-json",
    Claude
);
builtin!(
    CodexBackend,
    "Codex, headless.",
    "codex",
    ["exec", "--json"],
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
#[derive(Clone, Debug)]
pub struct GenericBackend {
    command: String,
    prompt_mode: PromptMode,
}

impl GenericBackend {
    /// For this program.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            prompt_mode: PromptMode::Arg,
        }
    }
}

impl LoopBackend for GenericBackend {
    fn command(&self) -> &str {
        &self.command
    }

    fn base_args(&self) -> Vec<String> {
        Vec::new()
    }

    fn output_format(&self) -> &str {
        "text"
    }

    fn prompt_mode(&self) -> PromptMode {
        self.prompt_mode
    }
}

/// The backend that a config names, for this command.
///
/// ```
/// use descartes_core::{LoopBackendConfig, create_backend};
///
/// let config = LoopBackendConfig { backend_type: "claude".into(), ..Default::default() };
/// let claude = create_backend(&config, "claude");
/// assert_eq!(claude.output_format(), "stream-json");
/// ```
pub fn create_backend(config: &LoopBackendConfig, command: &str) -> Box<dyn LoopBackend> {
    match config.backend_type.as_str() {
        "claude" => Box::new(ClaudeBackend::with_command(command)),
        "codex" => Box::new(CodexBackend::with_command(command)),
        "gemini" => Box::new(GeminiBackend::with_command(command)),
        "opencode" => Box::new(OpenCodeBackend::with_command(command)),
        _ => {
            let prompt_mode = config.prompt_mode.unwrap_or(PromptMode::Arg);
            Box::new(GenericBackend {
                command: command.to_owned(),
                prompt_mode,
            })
        }
    }
}
