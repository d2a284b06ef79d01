//! The prompt on its way to the agent.

use super::invocation::Invocation;
use super::profile::{Profile, PromptLimit, PromptMode};

/// The kernel refuses longer arguments and variables (131 072 bytes on Linux); the rest is
/// left for a flag in the same word.
const LONGEST_WORD: usize = 100 * 1024;

/// A command line with its prompt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delivery {
    /// The whole command line.
    pub argv: Vec<String>,
    /// How the prompt travels: on standard input, in `PROMPT`, in a file, in `argv`, or not.
    pub mode: PromptMode,
    /// The prompt was too long for the way it should go, and goes by standard input.
    pub switched: bool,
}

/// A prompt that the agent would not take in whole.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PromptError {
    /// It is longer than the agent reads.
    #[error("the prompt is {length} {unit} long; agent `{agent}` accepts at most {limit}")]
    TooLong {
        /// The profile's name.
        agent: String,
        /// The prompt's length.
        length: u64,
        /// Bytes or characters.
        unit: &'static str,
        /// The agent's limit.
        limit: u64,
    },
    /// No argument or variable can hold it.
    #[error(
        "the prompt contains a NUL byte, which cannot be passed as an argument or a variable; \
         use --prompt-mode stdin"
    )]
    Nul,
}

impl Invocation {
    /// The command line for this prompt. `file` is the path at which mode `file` finds it.
    pub fn deliver(
        &self,
        profile: &Profile,
        prompt: &str,
        file: &str,
    ) -> Result<Delivery, PromptError> {
        let by_word = matches!(self.prompt_mode, PromptMode::Arg | PromptMode::Env);
        let switched = by_word && prompt.len() > LONGEST_WORD;
        let mode = if switched {
            PromptMode::Stdin
        } else {
            self.prompt_mode
        };
        let args = match mode {
            PromptMode::Arg => filled(&profile.prompt_arg, "{prompt}", prompt),
            PromptMode::Stdin => profile.prompt_stdin.clone(),
            PromptMode::File => filled(&profile.prompt_file, "{file}", file),
            PromptMode::Env | PromptMode::None => Vec::new(),
        };
        match mode {
            PromptMode::Stdin => check_length(profile, prompt)?,
            PromptMode::Arg | PromptMode::Env if prompt.contains('\0') => {
                return Err(PromptError::Nul);
            }
            _ => {}
        }
        let argv = self.argv.iter().cloned().chain(args).collect();
        Ok(Delivery {
            argv,
            mode,
            switched,
        })
    }
}

fn filled(args: &[String], name: &str, value: &str) -> Vec<String> {
    args.iter().map(|arg| arg.replace(name, value)).collect()
}

fn check_length(profile: &Profile, prompt: &str) -> Result<(), PromptError> {
    let (length, limit, unit) = match profile.prompt_limit {
        Some(PromptLimit::Bytes(limit)) => (prompt.len() as u64, limit, "bytes"),
        Some(PromptLimit::Chars(limit)) => (prompt.chars().count() as u64, limit, "characters"),
        None => return Ok(()),
    };
    if length <= limit {
        return Ok(());
    }
    Err(PromptError::TooLong {
        agent: profile.name.clone(),
        length,
        unit,
        limit,
    })
}
