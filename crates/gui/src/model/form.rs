//! The form that starts a loop: what was typed, what is wrong with it, and the command line
//! that it stands for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use descartes_text::units::{parse_count, parse_duration, parse_usd};
use iced::widget::text_editor;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The agent's command.
    Agent,
    /// Where it works.
    Folder,
    /// The loop's name.
    Name,
    Prompt,
    /// The task from a file.
    PromptFile,
    /// What the agent says when it is done.
    Promise,
    /// The gates, one a line.
    Gates,
    MaxIterations,
    MaxDuration,
    MaxCost,
    MaxTokens,
    /// What the agent may do.
    Permissions,
}

impl Field {
    /// The id of its widget.
    pub fn id(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Folder => "folder",
            Self::Name => "name",
            Self::Prompt => "prompt",
            Self::PromptFile => "prompt-file",
            Self::Promise => "promise",
            Self::Gates => "gates",
            Self::MaxIterations => "max-iterations",
            Self::MaxDuration => "max-duration",
            Self::MaxCost => "max-cost",
            Self::MaxTokens => "max-tokens",
            Self::Permissions => "permissions",
        }
    }

    /// The field that a message of the command line is about, by the flag or the thing it names.
    pub fn of_message(message: &str) -> Option<Self> {
        let table = [
            ("--max-iterations", Self::MaxIterations),
            ("--max-duration", Self::MaxDuration),
            ("--max-cost", Self::MaxCost),
            ("--max-tokens", Self::MaxTokens),
            ("--permissions", Self::Permissions),
            ("--verify", Self::Gates),
            ("--completion-promise", Self::Promise),
            ("--prompt-file", Self::PromptFile),
            ("--working-dir", Self::Folder),
            ("--name", Self::Name),
            ("state file", Self::Folder),
            ("promise", Self::Promise),
            ("prompt", Self::Prompt),
            ("--command", Self::Agent),
            ("program", Self::Agent),
            ("agent", Self::Agent),
        ];
        let found = table.iter().find(|(word, _)| message.contains(word));
        found.map(|(_, field)| *field)
    }
}

/// What the agent may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// What its own settings say.
    #[default]
    Agent,
    /// Edit files.
    Edit,
    All,
}

impl Permissions {
    pub const ALL: [Self; 3] = [Self::Agent, Self::Edit, Self::All];

    /// As the command line writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Edit => "edit",
            Self::All => "all",
        }
    }

    /// As people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Agent => "the agent's own settings",
            Self::Edit => "edit files",
            Self::All => "anything",
        }
    }
}

type Check = fn(&str) -> Result<(), String>;

/// What was typed.
#[derive(Debug)]
pub struct Form {
    texts: BTreeMap<Field, String>,
    pub prompt: text_editor::Content,
    pub gates: text_editor::Content,
    /// What the agent may do.
    pub permissions: Permissions,
    /// What is wrong, by field.
    pub errors: BTreeMap<Field, String>,
    /// What is wrong with none of them in particular.
    pub trouble: Option<String>,
    /// Whether a loop is being started.
    pub starting: bool,
}

impl Form {
    /// An empty form, for this folder.
    pub fn new(folder: &str) -> Self {
        let texts = BTreeMap::from([
            (Field::Folder, folder.to_owned()),
            (Field::Promise, "COMPLETE".to_owned()),
            (Field::MaxIterations, "20".to_owned()),
        ]);
        Self {
            texts,
            prompt: text_editor::Content::new(),
            gates: text_editor::Content::new(),
            permissions: Permissions::default(),
            errors: BTreeMap::new(),
            trouble: None,
            starting: false,
        }
    }

    /// What stands in a field.
    pub fn text(&self, field: Field) -> &str {
        self.texts.get(&field).map_or("", String::as_str)
    }

    /// Something was typed; what was wrong with it is no longer said.
    pub fn set(&mut self, field: Field, text: String) {
        self.errors.remove(&field);
        self.texts.insert(field, text);
    }

    /// Checks every field, and gives the command line if all of them are right.
    pub fn check(&mut self) -> Option<(Vec<String>, PathBuf)> {
        self.errors.clear();
        self.trouble = None;
        let mut words = ["loop", "start", "--detach", "--json"]
            .map(str::to_owned)
            .to_vec();
        self.agent(&mut words);
        self.task(&mut words);
        self.done(&mut words);
        self.limits(&mut words);
        let name = self.text(Field::Name).trim();
        if !name.is_empty() {
            words.push(format!("--name={name}"));
        }
        if self.permissions != Permissions::Agent {
            words.push(format!("--permissions={}", self.permissions.as_str()));
        }
        let folder = self.text(Field::Folder).trim().to_owned();
        if folder.is_empty() {
            self.wrong(Field::Folder, "enter the directory to work in");
        } else if !folder.starts_with('/') {
            self.wrong(
                Field::Folder,
                "must be an absolute path (e.g. /home/me/project)",
            );
        }
        let right = self.errors.is_empty();
        right.then(|| (words, PathBuf::from(folder)))
    }

    fn wrong(&mut self, field: Field, message: impl Into<String>) {
        self.errors.entry(field).or_insert(message.into());
    }

    fn agent(&mut self, words: &mut Vec<String>) {
        let command = self.text(Field::Agent).trim().to_owned();
        match shell_words::split(&command) {
            Ok(parts) if parts.is_empty() => {
                self.wrong(Field::Agent, "enter the command of an agent")
            }
            Ok(_) => words.push(format!("--command={command}")),
            Err(_) => self.wrong(
                Field::Agent,
                "not valid shell syntax: a quote is not closed",
            ),
        }
    }

    fn task(&mut self, words: &mut Vec<String>) {
        let prompt = self.prompt.text().trim().to_owned();
        let file = self.text(Field::PromptFile).trim().to_owned();
        match (prompt.is_empty(), file.is_empty()) {
            (true, true) => self.wrong(Field::Prompt, "enter a prompt, or name a prompt file"),
            (false, false) => {
                self.wrong(
                    Field::PromptFile,
                    "use either a prompt or a prompt file, not both",
                );
            }
            // In one word: a text may begin as a flag does.
            (false, true) => words.push(format!("--prompt={prompt}")),
            (true, false) => words.extend(["--prompt-file".to_owned(), file]),
        }
    }

    fn done(&mut self, words: &mut Vec<String>) {
        let promise = self.text(Field::Promise).trim().to_owned();
        if promise.is_empty() {
            words.push("--no-promise".to_owned());
        } else if promise.contains('<') || promise.len() > 256 {
            self.wrong(Field::Promise, "must be at most 256 characters, without <");
        } else {
            words.push(format!("--completion-promise={promise}"));
        }
        let gates = self.gates.text();
        for gate in gates.lines().map(str::trim).filter(|gate| !gate.is_empty()) {
            words.push(format!("--verify={gate}"));
        }
    }

    fn limits(&mut self, words: &mut Vec<String>) {
        let iterations = self.text(Field::MaxIterations).trim().to_owned();
        match &*iterations {
            "" => self.wrong(Field::MaxIterations, "must be a number, or unlimited"),
            "unlimited" => words.extend(["--max-iterations".to_owned(), iterations]),
            number => match number.parse::<u32>() {
                Ok(0) => self.wrong(Field::MaxIterations, "must be at least 1, or unlimited"),
                Ok(_) => words.extend(["--max-iterations".to_owned(), iterations]),
                Err(_) => self.wrong(Field::MaxIterations, "must be a number, or unlimited"),
            },
        }
        let checks: [(Field, &str, Check); 3] = [
            (Field::MaxDuration, "--max-duration", |text| {
                parse_duration(text).map(drop).map_err(|e| e.to_string())
            }),
            (Field::MaxCost, "--max-cost", |text| {
                parse_usd(text).map(drop).map_err(|e| e.to_string())
            }),
            (Field::MaxTokens, "--max-tokens", |text| {
                parse_count(text).map(drop).map_err(|e| e.to_string())
            }),
        ];
        for (field, flag, check) in checks {
            let text = self.text(field).trim().to_owned();
            if text.is_empty() {
                continue;
            }
            match check(&text) {
                Ok(()) => words.extend([flag.to_owned(), text]),
                Err(error) => self.wrong(field, error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> Form {
        let mut form = Form::new("/project");
        form.set(Field::Agent, "claude --model 'x y'".into());
        form.prompt = text_editor::Content::with_text("make it work");
        form.gates = text_editor::Content::with_text("cargo test\n\ncargo fmt --check\n");
        form
    }

    #[test]
    fn a_filled_form_is_a_command_line() {
        let mut form = filled();
        form.set(Field::MaxCost, "5".into());
        form.permissions = Permissions::Edit;
        let (words, folder) = form.check().unwrap();
        assert_eq!(folder, PathBuf::from("/project"));
        assert_eq!(
            shell_words::join(words),
            "loop start --detach --json '--command=claude --model '\\''x y'\\''' \
             '--prompt=make it work' '--completion-promise=COMPLETE' '--verify=cargo test' \
             '--verify=cargo fmt --check' --max-iterations 20 --max-cost 5 '--permissions=edit'"
        );
        form.set(Field::Promise, String::new());
        assert!(form.check().unwrap().0.contains(&"--no-promise".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_said_beside_its_field() {
        let mut form = Form::new("relative");
        form.set(Field::MaxIterations, "0".into());
        form.set(Field::MaxDuration, "soon".into());
        form.set(Field::Agent, "claude 'x".into());
        assert_eq!(form.check(), None);
        let wrong: Vec<Field> = form.errors.keys().copied().collect();
        assert_eq!(
            wrong,
            [
                Field::Agent,
                Field::Folder,
                Field::Prompt,
                Field::MaxIterations,
                Field::MaxDuration
            ]
        );
        form.set(Field::MaxIterations, "3".into());
        assert!(!form.errors.contains_key(&Field::MaxIterations));
    }

    #[test]
    fn messages_of_the_command_line_find_their_field() {
        let field = |text| Field::of_message(text);
        assert_eq!(
            field("--max-cost needs an agent that reports its cost"),
            Some(Field::MaxCost)
        );
        assert_eq!(field("there is no program `clade`"), Some(Field::Agent));
        assert_eq!(field("the moon is full"), None);
    }
}
