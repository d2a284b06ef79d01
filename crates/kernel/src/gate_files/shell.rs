//! Commands as a shell reads them: words with their variables expanded, as far as that can be known without
//! running anything. What cannot is [`UNKNOWN`].

use std::collections::BTreeMap;

/// Stands for what only running it would tell.
pub(super) const UNKNOWN: char = '\u{FFFD}';

/// Commands within commands are followed so deep.
const DEEPEST: usize = 8;

/// A simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShellCommand {
    pub(super) words: Vec<String>,
    /// Variables that are set before it.
    pub(super) set: Vec<(String, String)>,
    /// Files that its input is.
    pub(super) reads: Vec<String>,
    /// Text that its input is.
    pub(super) input: String,
    /// Its output is another's input, or a word of another.
    pub(super) is_used: bool,
    /// Its input is the output of the one before.
    pub(super) is_fed: bool,
    /// In how many brackets it stands: what `cd` does in them does not last.
    pub(super) depth: usize,
}

/// Reads texts one after the other; what one sets, the next has.
pub(super) struct Shell<'e> {
    variables: BTreeMap<String, String>,
    environment: &'e dyn Fn(&str) -> Option<String>,
    /// The script that is read.
    script: Option<String>,
    within: usize,
}

impl<'e> Shell<'e> {
    pub(super) fn new(
        environment: &'e dyn Fn(&str) -> Option<String>,
        script: Option<&str>,
    ) -> Self {
        Self {
            variables: BTreeMap::new(),
            environment,
            script: script.map(str::to_owned),
            within: 0,
        }
    }

    pub(super) fn commands(&mut self, text: &str) -> Vec<ShellCommand> {
        if self.within >= DEEPEST {
            return Vec::new();
        }
        self.within += 1;
        let chars: Vec<char> = text.chars().collect();
        let mut reading = Reading {
            shell: self,
            chars: &chars,
            at: 0,
            out: Vec::new(),
            now: ShellCommand::default(),
            word: String::new(),
            is_word: false,
            is_quoted: false,
            target: WordUse::Word,
            documents: Vec::new(),
        };
        reading.run();
        let out = std::mem::take(&mut reading.out);
        self.within -= 1;
        out
    }

    fn folder_of_script(&self) -> String {
        let script = self.script.as_deref().unwrap_or_default();
        let folder = script.rsplit_once('/').map_or(".", |(folder, _)| folder);
        folder.to_owned()
    }

    /// What a variable holds.
    fn value(&self, name: &str) -> String {
        let unknown = || UNKNOWN.to_string();
        match name {
            "PWD" => ".".to_owned(),
            "0" | "BASH_SOURCE" => self.script.clone().unwrap_or_else(unknown),
            _ => {
                let known = self.variables.get(name).cloned();
                let known = known.or_else(|| (self.environment)(name));
                known.unwrap_or_else(unknown)
            }
        }
    }

    /// What stands in `${…}`.
    fn braced(&self, inner: &str) -> String {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = inner.find(|c| !is_name(c)).unwrap_or(inner.len());
        let (name, rest) = inner.split_at(end);
        let rest = rest.strip_prefix("[0]").unwrap_or(rest);
        let value = self.value(name);
        let default = [":-", ":=", "-", "="].iter();
        let default = default.filter_map(|sign| rest.strip_prefix(sign)).next();
        match (rest, default) {
            ("", _) => value,
            ("%/*", _) if self.is_script(name) => self.folder_of_script(),
            ("%/*", _) => value
                .rsplit_once('/')
                .map_or(value.clone(), |cut| cut.0.to_owned()),
            (_, Some(default)) if value.contains(UNKNOWN) => default.to_owned(),
            (_, Some(_)) => value,
            _ => UNKNOWN.to_string(),
        }
    }

    fn is_script(&self, name: &str) -> bool {
        matches!(name, "0" | "BASH_SOURCE") && self.script.is_some()
    }

    /// What the output of these commands is, where it is one of a few that tell where one is.
    fn output(&self, inner: &str) -> String {
        let names_script =
            inner.contains("$0") || inner.contains("BASH_SOURCE") || inner.contains("${0");
        match inner.trim() {
            "pwd" | "git rev-parse --show-toplevel" => ".".to_owned(),
            inner if names_script && inner.contains("dirname") && self.script.is_some() => {
                self.folder_of_script()
            }
            inner if names_script && inner.contains("%/*") && self.script.is_some() => {
                self.folder_of_script()
            }
            _ => UNKNOWN.to_string(),
        }
    }
}

/// What the word under way is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordUse {
    Word,
    /// Behind `<`.
    Read,
    /// Behind `<<<`.
    Input,
    /// Behind `<<`: where the document ends.
    Document,
    /// Behind `>`.
    Write,
}

struct Reading<'r, 'e> {
    shell: &'r mut Shell<'e>,
    chars: &'r [char],
    at: usize,
    out: Vec<ShellCommand>,
    now: ShellCommand,
    word: String,
    is_word: bool,
    is_quoted: bool,
    target: WordUse,
    /// Ends of documents that begin at the next line.
    documents: Vec<String>,
}

impl Reading<'_, '_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '\\' => {
                    if let Some(next) = self.peek(0) {
                        self.at += 1;
                        if next != '\n' {
                            self.push(next);
                        }
                    }
                }
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '$' => self.dollar(false),
                '`' => {
                    let inner = self.until('`');
                    self.substitute(&inner, false);
                }
                '#' if !self.is_word => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                '\n' => {
                    self.end_command(false);
                    self.read_documents();
                }
                ' ' | '\t' | '\r' => self.end_word(),
                '<' | '>' => self.redirection(c),
                ';' => self.end_command(false),
                '&' if self.peek(0) == Some('>') => {}
                '&' => {
                    if self.peek(0) == Some('&') {
                        self.at += 1;
                    }
                    self.end_command(false);
                }
                '|' if self.peek(0) == Some('|') => {
                    self.at += 1;
                    self.end_command(false);
                }
                '|' => {
                    if self.peek(0) == Some('&') {
                        self.at += 1;
                    }
                    self.end_command(true);
                }
                '(' => {
                    self.end_command(false);
                    self.now.depth += 1;
                }
                ')' => {
                    self.end_command(false);
                    self.now.depth = self.now.depth.saturating_sub(1);
                }
                c => self.push(c),
            }
        }
        self.end_command(false);
    }

    fn push(&mut self, c: char) {
        self.word.push(c);
        self.is_word = true;
    }

    fn single_quoted(&mut self) {
        let text = self.until('\'');
        self.word.push_str(&text);
        (self.is_word, self.is_quoted) = (true, true);
    }

    fn double_quoted(&mut self) {
        (self.is_word, self.is_quoted) = (true, true);
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '"' => return,
                '\\' => {
                    if let Some(next) = self.peek(0) {
                        self.at += 1;
                        if !matches!(next, '"' | '\\' | '$' | '`' | '\n') {
                            self.word.push('\\');
                        }
                        self.word.push(next);
                    }
                }
                '$' => self.dollar(true),
                '`' => {
                    let inner = self.until('`');
                    self.substitute(&inner, true);
                }
                c => self.word.push(c),
            }
        }
    }

    /// The text up to a sign, which is taken, too.
    fn until(&mut self, end: char) -> String {
        let rest = &self.chars[self.at.min(self.chars.len())..];
        let length = rest.iter().position(|c| *c == end).unwrap_or(rest.len());
        self.at += length + 1;
        rest[..length].iter().collect()
    }

    /// The text up to the bracket that closes the one before.
    fn until_closed(&mut self, open: char, close: char) -> String {
        let (mut depth, mut quote) = (1, None);
        let start = self.at;
        while let Some(c) = self.peek(0) {
            match quote {
                Some(sign) if c == sign => quote = None,
                Some(_) => {}
                None if c == '\'' || c == '"' => quote = Some(c),
                None if c == open => depth += 1,
                None if c == close => depth -= 1,
                None => {}
            }
            self.at += 1;
            if depth == 0 {
                return self.chars[start..self.at - 1].iter().collect();
            }
        }
        self.chars[start.min(self.chars.len())..].iter().collect()
    }

    fn dollar(&mut self, in_quotes: bool) {
        match self.peek(0) {
            Some('(') if self.peek(1) == Some('(') => {
                self.at += 1;
                self.until_closed('(', ')');
                self.put(&UNKNOWN.to_string(), in_quotes);
            }
            Some('(') => {
                self.at += 1;
                let inner = self.until_closed('(', ')');
                self.substitute(&inner, in_quotes);
            }
            Some('{') => {
                self.at += 1;
                let inner = self.until_closed('{', '}');
                let value = self.shell.braced(&inner);
                self.put(&value, in_quotes);
            }
            Some('\'') if !in_quotes => {}
            Some(c)
                if c.is_ascii_digit() || matches!(c, '@' | '*' | '#' | '?' | '$' | '!' | '-') =>
            {
                self.at += 1;
                let value = self.shell.value(&c.to_string());
                self.put(&value, in_quotes);
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = &self.chars[self.at..];
                let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
                let length = rest.iter().take_while(|c| is_name(c)).count();
                let name: String = rest[..length].iter().collect();
                self.at += length;
                let value = self.shell.value(&name);
                self.put(&value, in_quotes);
            }
            _ => self.push('$'),
        }
    }

    /// What was expanded: outside of quotes its blanks end words.
    fn put(&mut self, value: &str, in_quotes: bool) {
        self.is_word = true;
        if in_quotes {
            self.word.push_str(value);
            return;
        }
        for (n, part) in value.split_whitespace().enumerate() {
            if n > 0 {
                self.end_word();
                self.is_word = true;
            }
            self.word.push_str(part);
        }
    }

    fn substitute(&mut self, inner: &str, in_quotes: bool) {
        self.also(inner);
        let value = self.shell.output(inner);
        self.put(&value, in_quotes);
    }

    /// Commands that run as part of this one.
    fn also(&mut self, inner: &str) {
        let depth = self.now.depth + 1;
        let found = self.shell.commands(inner);
        self.out
            .extend(found.into_iter().map(|command| ShellCommand {
                is_used: true,
                depth: command.depth + depth,
                ..command
            }));
    }

    fn redirection(&mut self, c: char) {
        // The number of what is redirected is no word.
        if self.is_word && !self.is_quoted && self.word.chars().all(|c| c.is_ascii_digit()) {
            self.word.clear();
            self.is_word = false;
        }
        self.end_word();
        if self.peek(0) == Some('(') {
            self.at += 1;
            let inner = self.until_closed('(', ')');
            self.also(&inner);
            self.put(&UNKNOWN.to_string(), true);
            return;
        }
        let mut signs = 1;
        while self.peek(0) == Some(c) && signs < 3 {
            self.at += 1;
            signs += 1;
        }
        if matches!(self.peek(0), Some('&' | '|' | '-')) {
            self.at += 1;
        }
        self.target = match (c, signs) {
            ('<', 1) => WordUse::Read,
            ('<', 2) => WordUse::Document,
            ('<', _) => WordUse::Input,
            _ => WordUse::Write,
        };
    }

    fn end_word(&mut self) {
        if !std::mem::take(&mut self.is_word) {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let is_quoted = std::mem::take(&mut self.is_quoted);
        match std::mem::replace(&mut self.target, WordUse::Word) {
            WordUse::Read => return self.now.reads.push(word),
            WordUse::Input => return self.now.input.push_str(&word),
            WordUse::Document => return self.documents.push(word),
            WordUse::Write => return,
            WordUse::Word => {}
        }
        if self.now.words.is_empty() && !is_quoted && RESERVED.contains(&word.as_str()) {
            return;
        }
        let assigned = word.split_once('=').filter(|(name, _)| is_variable(name));
        match assigned {
            Some((name, value)) if self.now.words.is_empty() => {
                self.now.set.push((name.to_owned(), value.to_owned()));
            }
            _ => self.now.words.push(word),
        }
    }

    fn end_command(&mut self, feeds: bool) {
        self.end_word();
        let next = ShellCommand {
            depth: self.now.depth,
            is_fed: feeds,
            ..ShellCommand::default()
        };
        let mut command = std::mem::replace(&mut self.now, next);
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["for", name, "in", values @ ..] => {
                let values = values.join(" ");
                self.shell.variables.insert((*name).to_owned(), values);
                return;
            }
            ["case" | "for" | "select" | "function", ..] => return,
            [
                "export" | "declare" | "local" | "readonly" | "typeset",
                rest @ ..,
            ] => {
                let set = rest.iter().filter_map(|word| word.split_once('='));
                let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
                command.set.extend(set.collect::<Vec<_>>());
                command.words.clear();
            }
            _ => {}
        }
        for (name, value) in &command.set {
            self.shell.variables.insert(name.clone(), value.clone());
        }
        command.is_used = feeds;
        let says_nothing = command.words.is_empty() && command.reads.is_empty();
        if !says_nothing {
            self.out.push(command);
        }
    }

    /// The documents that begin at this line.
    fn read_documents(&mut self) {
        for end in std::mem::take(&mut self.documents) {
            let mut text = String::new();
            while self.at < self.chars.len() {
                let line = self.until('\n');
                if line.trim_start_matches('\t') == end {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
            }
            if let Some(command) = self.out.last_mut() {
                command.input.push_str(&text);
            }
        }
    }
}

/// Words behind which, or behind whose condition, a command begins.
const RESERVED: [&str; 14] = [
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}", "esac", "in",
];

fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    let first = chars.next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
