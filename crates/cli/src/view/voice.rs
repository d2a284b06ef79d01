//! The output of agents whose stream is understood, as a person wants to read it: their
//! words, and a line for each tool they use. Plain text stays as it is.

use descartes_kernel::agent::{
    AgentEvent, Choices, Invocation, Piece, Profiles, StreamParser, ToolOutcome, build,
};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::units::show_duration;

use super::width::{cut_end, one_line};
use crate::style::{Paint, Tone};

/// A line of a tool is not longer than this.
const TOOL_COLUMNS: usize = 160;

/// How each of a loop's agents is read.
#[derive(Debug)]
pub struct Voices {
    agents: Vec<Option<Invocation>>,
    paint: Paint,
}

impl Voices {
    /// For the agent of a config and its fallbacks.
    pub fn of(config: &IterativeLoopConfig, profiles: &Profiles, paint: Paint) -> Self {
        let words: Vec<String> = std::iter::once(&config.command)
            .chain(&config.args)
            .cloned()
            .collect();
        let read = |name: &str, words: &[String]| {
            let invocation = build(profiles.get(name)?, words, &Choices::default());
            invocation.stream.is_understood().then_some(invocation)
        };
        let fallback = |text: &String| match profiles.get(text) {
            Some(profile) if !profile.command.is_empty() => read(text, &[]),
            _ => {
                let words = shell_words::split(text).ok()?;
                read(profiles.guess(&words), &words)
            }
        };
        let first = read(&config.backend.backend_type, &words);
        let agents = std::iter::once(first)
            .chain(config.fallback.iter().map(fallback))
            .collect();
        Self { agents, paint }
    }

    /// The voice of an agent; `None` for plain text.
    pub fn voice(&self, agent: u32) -> Option<Voice> {
        let invocation = self.agents.get(agent as usize)?.as_ref()?;
        Some(Voice {
            parser: invocation.parser().ok()?,
            paint: self.paint,
            open: false,
            said: String::new(),
        })
    }
}

/// Turns a stream of events into text.
pub struct Voice {
    parser: Box<dyn StreamParser>,
    paint: Paint,
    /// A line was begun and not ended.
    open: bool,
    /// The last words: a result often repeats them.
    said: String,
}

impl std::fmt::Debug for Voice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Voice")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl Voice {
    /// The text for these bytes.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut events = Vec::new();
        self.parser.push(bytes, &mut events);
        self.tell(&events)
    }

    /// The text for what is left.
    pub fn finish(&mut self) -> String {
        let mut events = Vec::new();
        self.parser.finish(&mut events);
        let mut out = self.tell(&events);
        self.end_line(&mut out);
        out
    }

    fn tell(&mut self, events: &[AgentEvent]) -> String {
        let mut out = String::new();
        for event in events {
            self.event(event, &mut out);
        }
        out
    }

    fn event(&mut self, event: &AgentEvent, out: &mut String) {
        match event {
            AgentEvent::Text {
                piece: Piece::Delta,
                text,
                ..
            } => {
                out.push_str(text);
                self.open =
                    !text.is_empty() && !text.ends_with('\n') || (text.is_empty() && self.open);
                self.said = text.clone();
            }
            AgentEvent::Text {
                piece: Piece::Block,
                text,
                ..
            } => {
                self.end_line(out);
                out.push_str(text.trim_end());
                out.push('\n');
                self.said = text.clone();
            }
            AgentEvent::ToolCall { summary, .. } => {
                self.line(Tone::Dim, &format!("> {summary}"), out)
            }
            AgentEvent::ToolResult {
                outcome, preview, ..
            } if !outcome.is_ok() => {
                let how = match outcome {
                    ToolOutcome::Exit(code) => format!("exit code {code}"),
                    _ => "failed".to_owned(),
                };
                self.line(Tone::Dim, &format!("  {how}: {preview}"), out);
            }
            AgentEvent::Retry { after, why, .. } => {
                let wait = after.map(|after| format!(" in {}", show_duration(after)));
                self.line(
                    Tone::Warn,
                    &format!("trying again{}: {why}", wait.unwrap_or_default()),
                    out,
                );
            }
            AgentEvent::Denied(denial) => {
                self.line(Tone::Warn, &format!("denied: {}", denial.rule), out)
            }
            AgentEvent::Warning { message } => self.line(Tone::Warn, message, out),
            AgentEvent::Failed(failure) => self.line(Tone::Bad, &failure.message, out),
            AgentEvent::LimitWarning { told, .. } | AgentEvent::Limit { told } => {
                self.line(Tone::Warn, &told.words, out);
            }
            AgentEvent::Result(result) => {
                let text = result.text.as_deref().filter(|_| self.said.is_empty());
                if let Some(text) = text {
                    self.end_line(out);
                    out.push_str(text.trim_end());
                    out.push('\n');
                }
            }
            AgentEvent::Noise { text } => self.line(Tone::Normal, text, out),
            _ => {}
        }
    }

    fn line(&mut self, tone: Tone, text: &str, out: &mut String) {
        self.end_line(out);
        let text = cut_end(&one_line(text), TOOL_COLUMNS);
        out.push_str(&self.paint.text(tone, &text));
        out.push('\n');
    }

    fn end_line(&mut self, out: &mut String) {
        if std::mem::take(&mut self.open) {
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voices(command: &str) -> Voices {
        let mut words = shell_words::split(command).unwrap();
        let profiles = Profiles::builtin().unwrap();
        let mut config = IterativeLoopConfig::default();
        config.backend.backend_type = profiles.guess(&words).to_owned();
        config.command = words.remove(0);
        config.args = words;
        config.fallback = vec!["codex".into(), "./own.sh".into()];
        Voices::of(&config, &profiles, Paint::Plain)
    }

    #[test]
    fn understood_streams_have_a_voice_and_plain_text_has_none() {
        assert!(voices("claude").voice(0).is_some());
        assert!(voices("./script.sh").voice(0).is_none());
        assert!(voices("claude").voice(1).is_some());
        assert!(voices("claude").voice(2).is_none());
        assert!(voices("claude --output-format text").voice(0).is_none());
    }

    #[test]
    fn words_and_tools_are_told_and_the_rest_is_not() {
        let mut voice = voices("claude").voice(0).unwrap();
        let lines = [
            r#"{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}"#,
            r#"{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}"#,
            r#"{"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"Done."}]}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}"#,
        ];
        let mut out = voice.push(lines.join("\n").as_bytes());
        out.push_str(&voice.finish());
        assert!(out.starts_with("I look.\n> "), "{out}");
        assert!(out.contains("cargo test"), "{out}");
        assert!(out.ends_with("Done.\n"), "{out}");
        assert_eq!(out.matches("Done.").count(), 1, "{out}");
        assert!(!out.contains("session"), "{out}");
    }
}
