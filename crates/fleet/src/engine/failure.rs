//! What went wrong, and what to type.

/// A message for a person, with hints.
#[derive(Debug, PartialEq, Eq)]
pub struct EngineFailure {
    pub message: String,
    pub hints: Vec<String>,
}

impl EngineFailure {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hints: Vec::new(),
        }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// An error of a file or folder.
    pub fn at(path: &std::path::Path) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::new(format!("{}: {error}", path.display()))
    }
}

impl From<String> for EngineFailure {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<descartes_bridge::EngineError> for EngineFailure {
    fn from(error: descartes_bridge::EngineError) -> Self {
        Self::new(error.to_string())
    }
}
