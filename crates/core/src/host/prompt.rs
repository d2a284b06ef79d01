//! The prompt of an iteration, from the config, its files, and what the loop has to tell.

use std::path::{Path, PathBuf};

use descartes_agents::promise::PIECE;
use descartes_kernel::config::{IterativeLoopConfig, check_prompt};
use descartes_kernel::control::CommandId;
use descartes_kernel::prompt::{
    ContextStyle, NearMiss, PromiseHint, PromptParts, build, spec_block,
};
use descartes_kernel::state::{FailedGate, Phase};
use descartes_plans::spec::SpecFile;

use descartes_store::Sync;
use descartes_store::prompts::{prompt_path, store_prompt};
use descartes_store::safe_open::{Refusal, read_fixed_text};

use super::HostError;
use super::agent_loop::AgentLoop;
use super::open::fix_files;

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
    /// Puts the prompt together and keeps it as it is sent.
    pub(super) fn build_prompt(
        &mut self,
        iteration: u32,
        agent: u32,
    ) -> Result<BuiltPrompt, HostError> {
        debug_assert!(matches!(self.d.state.phase, Phase::Ready { .. }));
        let Composed {
            text,
            warning,
            pieces,
        } = self.compose(iteration, agent)?;
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

    pub(super) fn compose(&self, iteration: u32, agent: u32) -> Result<Composed, HostError> {
        let config = &self.d.state.config;
        let own = self.d.settings.backend.as_ref();
        let notes = self.d.state.next_prompt.notes.iter();
        let frame = PromptFrame {
            config,
            dir: &self.d.working_dir(),
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
        })?;
        Ok(match own {
            Some(own) => Composed {
                text: own.format_prompt(&composed.text, iteration - 1, config.max_iterations),
                ..composed
            },
            None => composed,
        })
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
    let frame = PromptFrame {
        config: &config,
        dir,
        understood,
        own_backend: false,
    };
    let composed = frame.compose(IterationParts {
        iteration: 1,
        failed_gate: None,
        notes: Vec::new(),
        near_miss: None,
        nudge: None,
    })?;
    Ok((composed.text, composed.warning))
}

/// What every prompt of a loop is made of.
struct PromptFrame<'a> {
    config: &'a IterativeLoopConfig,
    dir: &'a Path,
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
    fn compose(&self, parts: IterationParts<'_>) -> Result<Composed, HostError> {
        let task = self.task()?;
        let SpecBlock {
            text: spec,
            warning,
            mut pieces,
        } = self.spec_block()?;
        if spec.is_some() {
            pieces.push(task.clone());
        }
        let config = self.config;
        let fresh =
            config.fresh_context_mode || !config.include_iteration_context || self.own_backend;
        let text = build(&PromptParts {
            spec: spec.as_deref(),
            task: &task,
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
        Ok(Composed {
            text,
            warning,
            pieces,
        })
    }

    /// The task: given, or read again from its file so that editing it steers the loop.
    fn task(&self) -> Result<String, HostError> {
        let config = self.config;
        let Some(file) = &config.prompt_file else {
            return Ok(config.prompt.clone());
        };
        let path = self.dir.join(file);
        let text = read_fixed_text(&path)
            .map_err(|error| unreadable("the prompt file", &path, "--prompt-file", &error))?;
        if text.trim().is_empty() {
            return Err(HostError::Prompt(format!(
                "the prompt file {} is empty",
                path.display()
            )));
        }
        check_prompt(&text).map_err(|error| HostError::Prompt(error.message))?;
        Ok(text)
    }

    /// What the specification files say.
    fn spec_block(&self) -> Result<SpecBlock, HostError> {
        let config = self.config;
        if config.spec_files.is_empty() {
            return Ok(SpecBlock {
                text: config.spec_prefix.clone(),
                ..SpecBlock::default()
            });
        }
        let mut files = Vec::new();
        for file in &config.spec_files {
            let path = self.dir.join(file);
            let text = read_fixed_text(&path)
                .map_err(|error| unreadable("the spec file", &path, "", &error))?;
            let name = file.display().to_string();
            files.push(SpecFile { name, text });
        }
        let built = spec_block(
            config.spec_prefix.as_deref(),
            &files,
            config.max_spec_tokens,
        );
        Ok(SpecBlock {
            text: Some(built.text),
            warning: built.warning,
            pieces: files.into_iter().map(|file| file.text).collect(),
        })
    }
}

/// A file that the person named and that cannot be read. One that became a link is not followed: it
/// lies in the agent's reach.
fn unreadable(what: &str, path: &Path, flag: &str, error: &std::io::Error) -> HostError {
    let file = path.display();
    let Some(refusal) = Refusal::of(error) else {
        return HostError::Prompt(format!("cannot read {what} {file}: {error}"));
    };
    let other = match flag {
        "" => String::new(),
        flag => format!(", or name another with {flag} FILE"),
    };
    HostError::Prompt(format!(
        "{what} {file} was replaced after the loop started: {refusal}; restore the file and \
         continue with `descartes loop resume`{other}"
    ))
}
