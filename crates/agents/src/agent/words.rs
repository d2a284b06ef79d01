//! The words of a command line: which is the program, which flags are given.

/// The program that a command starts, and where its word stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Program<'a> {
    /// A command by its base name.
    Command { at: usize, name: &'a str },
    /// A package that a runner such as `npx` starts, without its version.
    Package { at: usize, name: &'a str },
}

impl Program<'_> {
    pub fn at(self) -> usize {
        match self {
            Self::Command { at, .. } | Self::Package { at, .. } => at,
        }
    }
}

/// Finds the program, behind `env` with its options and assignments and behind the runners
/// of packages.
pub(super) fn program(words: &[String]) -> Option<Program<'_>> {
    let at = after_env(words);
    let name = base_name(words.get(at)?);
    let next = words.get(at + 1).map(String::as_str);
    let first_argument = match (name, next) {
        ("npx" | "bunx" | "uvx", _) => at + 1,
        ("pnpm" | "yarn", Some("dlx")) | ("npm", Some("exec")) | ("pipx", Some("run")) => at + 2,
        _ => return Some(Program::Command { at, name }),
    };
    let at = package(words, first_argument)?;
    let name = unversioned(&words[at]);
    Some(Program::Package { at, name })
}

fn after_env(words: &[String]) -> usize {
    if words.first().map(|word| base_name(word)) != Some("env") {
        return 0;
    }
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "-u" | "--unset" | "-C" | "--chdir" => at += 2,
            "--" => return at + 1,
            word if word.starts_with('-') || is_assignment(word) => at += 1,
            _ => break,
        }
    }
    at
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(key, _)| !key.is_empty() && !key.contains('/'))
}

/// The first word that is no option of the runner. With `-p PACKAGE` the program follows.
fn package(words: &[String], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "-p" | "--package" => at += 2,
            "--" => return (at + 1 < words.len()).then_some(at + 1),
            word if word.starts_with('-') => at += 1,
            _ => return Some(at),
        }
    }
    None
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// `@scope/name@1.2` without its version.
fn unversioned(package: &str) -> &str {
    match package.rfind('@') {
        Some(at) if at > 0 => &package[..at],
        _ => package,
    }
}

/// Flags that stand in a command, before a `--`.
pub(super) struct Flags<'a> {
    words: &'a [String],
    same: &'a [Vec<String>],
}

impl<'a> Flags<'a> {
    pub fn new(words: &'a [String], same: &'a [Vec<String>]) -> Self {
        let end = words
            .iter()
            .position(|word| word == "--")
            .unwrap_or(words.len());
        Self {
            words: &words[..end],
            same,
        }
    }

    /// Whether the flag, or one that means the same, is given. `-c key` asks for a flag
    /// whose value begins so.
    pub fn has(&self, flag: &str) -> bool {
        match flag.split_once(' ') {
            Some((flag, start)) => self
                .words
                .windows(2)
                .any(|pair| pair[0] == flag && pair[1].starts_with(start)),
            None => self.place(flag).is_some(),
        }
    }

    /// The value of a flag: `--flag value` or `--flag=value`.
    pub fn value(&self, flag: &str) -> Option<&'a str> {
        let at = self.place(flag)?;
        match self.words[at].split_once('=') {
            Some((_, value)) => Some(value),
            None => self.words.get(at + 1).map(String::as_str),
        }
    }

    /// Whether one of the words stands by itself.
    pub fn has_word(&self, wanted: &[String]) -> bool {
        self.words.iter().any(|word| wanted.contains(word))
    }

    fn place(&self, flag: &str) -> Option<usize> {
        let groups = self
            .same
            .iter()
            .filter(|group| group.iter().any(|f| f == flag));
        let mut names: Vec<&str> = groups.flatten().map(String::as_str).collect();
        names.push(flag);
        self.words.iter().position(|word| {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            names.contains(&name)
        })
    }
}

/// Arguments as groups of a flag and its values.
pub(super) fn groups(args: &[String]) -> Vec<&[String]> {
    let starts = |arg: &String| arg.starts_with('-') && arg.len() > 1;
    let mut groups = Vec::new();
    let mut from = 0;
    for at in 1..=args.len() {
        if at == args.len() || starts(&args[at]) || !starts(&args[from]) {
            groups.push(&args[from..at]);
            from = at;
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        shell_words::split(line).unwrap()
    }

    #[test]
    fn the_program_is_found_behind_its_runners() {
        let table = [
            ("claude -p", Some((0, "claude"))),
            ("/usr/local/bin/claude", Some((0, "claude"))),
            ("env claude", Some((1, "claude"))),
            ("env -i -u HOME A=1 B= codex exec", Some((6, "codex"))),
            ("env -- gemini", Some((2, "gemini"))),
            (
                "npx @anthropic-ai/claude-code -p",
                Some((1, "@anthropic-ai/claude-code")),
            ),
            (
                "npx -y @openai/codex@0.166.0 exec",
                Some((2, "@openai/codex")),
            ),
            (
                "env A=1 npx --yes opencode-ai@latest run",
                Some((4, "opencode-ai")),
            ),
            ("npx -p @google/gemini-cli gemini", Some((3, "gemini"))),
            ("pnpm dlx opencode-ai", Some((2, "opencode-ai"))),
            ("pnpm test", Some((0, "pnpm"))),
            ("npx", None),
            ("env A=1", None),
            ("", None),
        ];
        for (line, want) in table {
            let words = words(line);
            let got = program(&words).map(|program| match program {
                Program::Command { at, name } | Program::Package { at, name } => (at, name),
            });
            assert_eq!(got, want, "{line}");
        }
    }

    #[test]
    fn flags_are_found_in_their_spellings() {
        let same = [vec!["-m".to_owned(), "--model".to_owned()]];
        let line = words("x -m a --output-format=json --yolo -- --verbose");
        let flags = Flags::new(&line, &same);
        assert!(flags.has("--model") && flags.has("-m") && flags.has("--yolo"));
        assert!(!flags.has("--verbose") && !flags.has("--output"));
        assert_eq!(flags.value("--output-format"), Some("json"));
        assert_eq!(flags.value("--model"), Some("a"));
        assert!(flags.has("-m a") && !flags.has("-m b"));
    }

    #[test]
    fn arguments_group_by_flag() {
        let args = words("run -p --output-format stream-json --verbose - x");
        let got: Vec<String> = groups(&args).iter().map(|group| group.join(" ")).collect();
        assert_eq!(
            got,
            ["run", "-p", "--output-format stream-json", "--verbose - x"]
        );
        assert!(groups(&[]).is_empty());
    }
}
