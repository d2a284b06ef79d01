//! The prompt of an iteration, from the config, its files, and what the loop has to tell.

use std::path::{Path, PathBuf};

use descartes_agents::promise::PIECE;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::control::CommandId;
use descartes_kernel::prompt::{
    ContextStyle, NearMiss, PromiseHint, PromptParts, build, spec_block,
};
use descartes_kernel::prompt_files::{LONGEST_SAVE, LOOK_AGAIN};
use descartes_kernel::state::{FailedGate, Phase};
use descartes_store::Sync;
use descartes_store::prompts::{prompt_path, store_prompt};

use super::HostError;
use super::agent_loop::AgentLoop;
use super::open::fix_files;
use super::prompt_files::{FileTexts, PromptFiles};

/// A prompt as it will be sent.
pub(super) struct BuiltPrompt {
    pub(super) text: String,
    pub(super) hash: String,
    pub(super) path: PathBuf,
    pub(super) notes: Vec<CommandId>,
    /// The files that it was made of, as they are.
    pieces: Vec<String>,
}

impl BuiltPrompt {
    /// All that an agent may print without claiming anything.
    pub(super) fn echoes(&self) -> String {
        let mut all = self.text.clone();
        for piece in &self.pieces {
            all.push(PIECE);
            all.push_str(piece);
        }
        all
    }
}

/// A prompt that was put together, and nothing more.
pub(super) struct Composed {
    pub(super) text: String,
    warning: Option<String>,
    pieces: Vec<String>,
}

/// What the specification files come to.
#[derive(Default)]
struct SpecBlock {
    text: Option<String>,
    /// What is to be said of their size.
    warning: Option<String>,
    /// Each as it is.
    pieces: Vec<String>,
}

impl AgentLoop {
    /// The texts for the next prompt; `None` where they are to be looked at again, or the loop is over.
    pub(super) fn read_prompt_files(&mut self) -> Result<Option<FileTexts>, HostError> {
        let (now, dir) = (self.d.mono(), self.d.working_dir());
        let since = *self.files.since.get_or_insert(now);
        let waited = now.saturating_sub(since);
        match self.files.read(&self.d.state.config, &dir, waited) {
            Ok(Some(texts)) => {
                self.tell_stale(&texts.stale)?;
                Ok(Some(texts))
            }
            Ok(None) => {
                if let Some(message) = self.d.next(Some(now + LOOK_AGAIN))? {
                    self.handle_control(message)?;
                }
                Ok(None)
            }
            Err(HostError::Prompt(message)) => self.broken(message).map(|()| None),
            Err(error) => Err(error),
        }
    }

    /// A file that stays away is told once, and not waited for again.
    fn tell_stale(&mut self, stale: &[String]) -> Result<(), HostError> {
        if stale.is_empty() {
            (self.files.since, self.files.warned) = (None, false);
            return Ok(());
        }
        match std::mem::replace(&mut self.files.warned, true) {
            true => Ok(()),
            false => self.d.warn(format!(
                "{}: going on with the text of the iteration before",
                stale.join("; ")
            )),
        }
    }

    /// Puts the prompt together and keeps it as it is sent.
    pub(super) fn build_prompt(
        &mut self,
        iteration: u32,
        agent: u32,
        texts: &FileTexts,
    ) -> Result<BuiltPrompt, HostError> {
        debug_assert!(matches!(self.d.state.phase, Phase::Ready { .. }));
        let Composed {
            text,
            warning,
            pieces,
        } = self.compose(iteration, agent, texts);
        if let Some(warning) = warning
            && !self.warned_spec
        {
            self.warned_spec = true;
            self.d.warn(warning)?;
        }
        let stored = store_prompt(&self.d.dir, &text, Sync::Lazy);
        let hash = stored.map_err(|error| HostError::Prompt(error.to_string()))?;
        let path = prompt_path(&self.d.dir, &hash);
        let notes = self
            .d
            .state
            .next_prompt
            .notes
            .iter()
            .map(|note| note.id)
            .collect();
        Ok(BuiltPrompt {
            text,
            hash,
            path,
            notes,
            pieces,
        })
    }

    fn compose(&self, iteration: u32, agent: u32, texts: &FileTexts) -> Composed {
        let config = &self.d.state.config;
        let own = self.d.settings.backend.as_ref();
        let notes = self.d.state.next_prompt.notes.iter();
        let frame = PromptFrame {
            config,
            texts,
            understood: self.agents[agent as usize].understood(),
            own_backend: own.is_some(),
        };
        let composed = frame.compose(IterationParts {
            iteration,
            failed_gate: self.d.state.next_prompt.failed_gate.as_ref(),
            notes: notes.map(|note| note.text.as_str()).collect(),
            near_miss: NearMiss::of(
                self.d.state.next_prompt.near_miss.as_ref(),
                config.completion_promise.as_deref(),
                config.abort_promise.as_deref(),
            ),
            nudge: self.d.state.progress.nudge_due(),
        });
        match own {
            Some(own) => Composed {
                text: own.format_prompt(&composed.text, iteration - 1, config.max_iterations),
                ..composed
            },
            None => composed,
        }
    }
}

/// The prompt that the first iteration of a loop with this config gets in `dir`, and what is to be
/// said of its size. `understood`: whether its agent's stream tells the agent's own words.
pub fn first_prompt(
    config: &IterativeLoopConfig,
    dir: &Path,
    understood: bool,
) -> Result<(String, Option<String>), HostError> {
    let mut config = config.clone();
    fix_files(&mut config, dir)?;
    // Nobody waits for a file here: what is wrong with it is told.
    let texts = PromptFiles::default().read(&config, dir, LONGEST_SAVE)?;
    let texts = texts.ok_or_else(|| HostError::Prompt("a file is being written".to_owned()))?;
    let frame = PromptFrame {
        config: &config,
        texts: &texts,
        understood,
        own_backend: false,
    };
    let composed = frame.compose(IterationParts {
        iteration: 1,
        failed_gate: None,
        notes: Vec::new(),
        near_miss: None,
        nudge: None,
    });
    Ok((composed.text, composed.warning))
}

/// What every prompt of a loop is made of.
struct PromptFrame<'a> {
    config: &'a IterativeLoopConfig,
    texts: &'a FileTexts,
    understood: bool,
    own_backend: bool,
}

/// What one iteration is told besides: as in [`PromptParts`].
struct IterationParts<'a> {
    iteration: u32,
    failed_gate: Option<&'a FailedGate>,
    notes: Vec<&'a str>,
    near_miss: Option<NearMiss<'a>>,
    nudge: Option<u32>,
}

impl PromptFrame<'_> {
    /// Puts a prompt together.
    fn compose(&self, parts: IterationParts<'_>) -> Composed {
        let task = &self.texts.task;
        let SpecBlock {
            text: spec,
            warning,
            mut pieces,
        } = self.spec_block();
        pieces.push(task.clone());
        let config = self.config;
        let fresh =
            config.fresh_context_mode || !config.include_iteration_context || self.own_backend;
        let text = build(&PromptParts {
            spec: spec.as_deref(),
            task,
            iteration: parts.iteration,
            max: config.max_iterations,
            promise: config.completion_promise.as_deref(),
            hint: if config.promise_hint.unwrap_or(self.understood) {
                PromiseHint::On
            } else {
                PromiseHint::Off
            },
            style: if fresh {
                ContextStyle::Fresh
            } else {
                ContextStyle::Full
            },
            failed_gate: parts.failed_gate,
            notes: parts.notes,
            near_miss: parts.near_miss,
            nudge: parts.nudge,
        });
        Composed {
            text,
            warning,
            pieces,
        }
    }

    /// What the specification files say.
    fn spec_block(&self) -> SpecBlock {
        let (config, files) = (self.config, &self.texts.specs);
        if files.is_empty() {
            return SpecBlock {
                text: config.spec_prefix.clone(),
                ..SpecBlock::default()
            };
        }
        let built = spec_block(config.spec_prefix.as_deref(), files, config.max_spec_tokens);
        SpecBlock {
            text: Some(built.text),
            warning: built.warning,
            pieces: files.iter().map(|file| file.text.clone()).collect(),
        }
    }
}
