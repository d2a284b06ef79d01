//! The output of an agent whose stream is understood, as a person wants to read it: its words,
//! and a line for each tool it uses. Plain text needs no voice.

use std::path::Path;

use descartes_agents::agent::Profiles;
use descartes_agents::reader::Spending;
use descartes_client::logs::{Prose, Thoughts, Tools, Transcript, understood};
use descartes_kernel::config::IterativeLoopConfig;

/// Turns a stream of events into text.
#[derive(Debug)]
pub struct Voice {
    transcript: Transcript,
    prose: Prose,
    /// After a skip, the rest of a line is no line.
    mid_line: bool,
}

impl Voice {
    /// The voice of a loop's n-th agent; `None` for plain text.
    pub fn of(
        config: &IterativeLoopConfig,
        profiles: &Profiles,
        agent: u32,
        thoughts: Thoughts,
    ) -> Option<Self> {
        let parser = understood(config, profiles, agent)?.parser().ok()?;
        Some(Self {
            transcript: Transcript::new(parser),
            prose: Prose::new(thoughts, Tools::WhenCalled),
            mid_line: false,
        })
    }

    /// What the agent told of its use so far.
    pub fn spending(&self) -> Spending {
        Spending::told(self.transcript.meter(), self.transcript.model())
    }

    /// The text for these bytes, the newest of this log.
    pub fn push(&mut self, bytes: &[u8], log: &Path) -> String {
        // However late they are read: between a call and its answer agents say nothing.
        let written = std::fs::metadata(log).and_then(|log| log.modified()).ok();
        let from = match (self.mid_line, bytes.iter().position(|byte| *byte == b'\n')) {
            (false, _) => 0,
            (true, Some(end)) => end + 1,
            (true, None) => return String::new(),
        };
        self.mid_line = false;
        let mut said = Vec::new();
        self.transcript
            .push_written(&bytes[from..], written, &mut said);
        self.write(&said)
    }

    /// What comes next stands somewhere else in the stream.
    pub fn skip(&mut self) {
        self.mid_line = true;
    }

    /// The text for what is left.
    pub fn finish(mut self) -> String {
        let mut said = Vec::new();
        self.transcript.finish(&mut said);
        let mut out = self.write(&said);
        self.prose.finish(&mut out);
        out
    }

    fn write(&mut self, said: &[descartes_client::logs::TranscriptEntry]) -> String {
        let mut out = String::new();
        for said in said {
            self.prose.write(said, &mut out);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(command: &str, agent: u32) -> Option<Voice> {
        let mut words = shell_words::split(command).unwrap();
        let profiles = Profiles::builtin().unwrap();
        let mut config = IterativeLoopConfig::default();
        config.backend.backend_type = profiles.guess(&words).to_owned();
        config.command = words.remove(0);
        config.args = words;
        config.fallback = vec!["codex".into(), "./own.sh".into()];
        Voice::of(&config, &profiles, agent, Thoughts::Hidden)
    }

    #[test]
    fn understood_streams_have_a_voice_and_plain_text_has_none() {
        assert!(voice("claude", 0).is_some());
        assert!(voice("./script.sh", 0).is_none());
        assert!(voice("claude", 1).is_some());
        assert!(voice("claude", 2).is_none());
        assert!(voice("claude --output-format text", 0).is_none());
    }

    #[test]
    fn words_and_tools_are_told_also_after_a_skip() {
        let line = r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}"#;
        let mut voice = voice("claude", 0).unwrap();
        let out = voice.push(format!("{line}\n").as_bytes(), Path::new("gone"));
        assert!(
            out.starts_with("I look.\n") && out.contains("cargo test"),
            "{out}"
        );
        voice.skip();
        let half = &line[line.len() / 2..];
        let out = voice.push(format!("{half}\n{line}\n").as_bytes(), Path::new("gone"));
        assert!(out.contains("I look.") && !out.contains('{'), "{out}");
        assert!(voice.finish().ends_with('\n'));
    }
}
