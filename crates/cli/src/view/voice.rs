//! The output of an agent whose stream is understood, as a person wants to read it: its words,
//! and a line for each tool it uses. Plain text needs no voice.

use std::borrow::Cow;
use std::path::Path;

use descartes_agents::agent::Profiles;
use descartes_agents::reader::{Source, Spending};
use descartes_client::logs::{Prose, Thoughts, Tools, Transcript, understood};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_text::display::{Clean, Shown};

/// Turns a stream of events into text.
#[derive(Debug)]
struct Voice {
    transcript: Transcript,
    prose: Prose,
    /// After a skip, the rest of a line is no line.
    mid_line: bool,
}

impl Voice {
    /// The text for these bytes, the newest of this log.
    fn push(&mut self, bytes: &[u8], log: Option<&Path>) -> String {
        // However late they are read: between a call and its answer agents say nothing.
        let written = log.and_then(|log| std::fs::metadata(log).ok()?.modified().ok());
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

    /// The text for what is left.
    fn finish(mut self) -> String {
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

/// What a run prints on its two streams, made fit to be shown: cleaned and masked, and in the
/// agent's words where its stream is understood.
pub struct Speech {
    voice: Option<Voice>,
    clean: [Clean; 2],
    thoughts: Thoughts,
    tools: Tools,
}

impl Speech {
    pub fn new(clean: [Clean; 2], thoughts: Thoughts, tools: Tools) -> Self {
        Self {
            voice: None,
            clean,
            thoughts,
            tools,
        }
    }

    /// A run begins; it has a transcript where its stream is understood.
    pub fn begin(&mut self, transcript: Option<Transcript>) {
        self.voice = transcript.map(|transcript| Voice {
            transcript,
            prose: Prose::new(self.thoughts, self.tools),
            mid_line: false,
        });
    }

    /// The text for these bytes, the newest of this log where they are read as they come.
    pub fn push(&mut self, source: Source, bytes: &[u8], log: Option<&Path>) -> Shown {
        let said = match (source, &mut self.voice) {
            (Source::Stdout, Some(voice)) => Cow::Owned(voice.push(bytes, log).into_bytes()),
            _ => Cow::Borrowed(bytes),
        };
        let mut shown = Shown::default();
        self.clean[source as usize].push(&said, &mut shown);
        shown
    }

    /// What comes next stands somewhere else in the stream.
    pub fn skip(&mut self, source: Source) {
        if let (Source::Stdout, Some(voice)) = (source, &mut self.voice) {
            voice.mid_line = true;
        }
    }

    /// What the agent told of its use so far.
    pub fn spending(&self) -> Option<Spending> {
        let transcript = &self.voice.as_ref()?.transcript;
        Some(Spending::told(transcript.meter(), transcript.model()))
    }

    /// No more of this run: what is left of each stream.
    pub fn finish(&mut self) -> [(Source, Shown); 2] {
        let said = self.voice.take().map(Voice::finish).unwrap_or_default();
        [(Source::Stdout, said), (Source::Stderr, String::new())].map(|(source, rest)| {
            let (clean, mut shown) = (&mut self.clean[source as usize], Shown::default());
            clean.push(rest.as_bytes(), &mut shown);
            clean.finish(&mut shown);
            (source, shown)
        })
    }
}

/// The transcript of a loop's n-th agent; `None` for plain text.
pub fn transcript_of(
    config: &IterativeLoopConfig,
    profiles: &Profiles,
    agent: u32,
) -> Option<Transcript> {
    let parser = understood(config, profiles, agent)?.parser().ok()?;
    Some(Transcript::new(parser))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(command: &str, agent: u32) -> Option<Voice> {
        let mut words = shell_words::split(command).unwrap();
        let profiles = Profiles::builtin();
        let mut config = IterativeLoopConfig::default();
        config.backend.backend_type = profiles.guess(&words).to_owned();
        config.command = words.remove(0);
        config.args = words;
        config.fallback = vec!["codex".into(), "./own.sh".into()];
        let transcript = transcript_of(&config, &profiles, agent)?;
        Some(Voice {
            transcript,
            prose: Prose::new(Thoughts::Hidden, Tools::WhenCalled),
            mid_line: false,
        })
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
        let out = voice.push(format!("{line}\n").as_bytes(), Some(Path::new("gone")));
        assert!(
            out.starts_with("I look.\n") && out.contains("cargo test"),
            "{out}"
        );
        voice.mid_line = true;
        let half = &line[line.len() / 2..];
        let out = voice.push(
            format!("{half}\n{line}\n").as_bytes(),
            Some(Path::new("gone")),
        );
        assert!(out.contains("I look.") && !out.contains('{'), "{out}");
        assert!(voice.finish().ends_with('\n'));
    }
}
