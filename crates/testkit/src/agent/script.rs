//! A script as lines, and which of them run in an iteration.

use std::ops::RangeInclusive;

/// A script that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: no section is called {header:?}")]
pub struct ScriptError {
    /// The line, counted from 1.
    pub line: usize,
    /// The header that was not understood.
    pub header: String,
}

/// A parsed script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    lines: Vec<Line>,
}

/// A verb with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) text: String,
    when: When,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum When {
    Always,
    Within(RangeInclusive<u64>),
    Otherwise,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// When a section's header is not understood.
    pub fn parse(source: &str) -> Result<Self, ScriptError> {
        let mut lines = Vec::new();
        let mut when = When::Always;
        for (index, whole) in source.lines().enumerate() {
            let number = index + 1;
            for part in whole.split(";;") {
                let mut text = part.trim();
                if text.is_empty() || text.starts_with('#') {
                    continue;
                }
                if let Some(rest) = text.strip_prefix('@') {
                    let (header, verb) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                    when = section(header).ok_or_else(|| ScriptError {
                        line: number,
                        header: format!("@{header}"),
                    })?;
                    text = verb.trim_start();
                }
                if !text.is_empty() {
                    lines.push(Line {
                        number,
                        text: text.to_owned(),
                        when: when.clone(),
                    });
                }
            }
        }
        Ok(Self { lines })
    }

    /// The lines that run in this iteration, in order.
    pub(super) fn lines(&self, iteration: u64) -> impl Iterator<Item = &Line> {
        let numbered =
            |when: &When| matches!(when, When::Within(range) if range.contains(&iteration));
        let any = self.lines.iter().any(|line| numbered(&line.when));
        self.lines.iter().filter(move |line| match &line.when {
            When::Always => true,
            When::Within(range) => range.contains(&iteration),
            When::Otherwise => !any,
        })
    }
}

fn section(header: &str) -> Option<When> {
    match header {
        "all" => return Some(When::Always),
        "*" => return Some(When::Otherwise),
        _ => {}
    }
    let (first, last) = match header.split_once('-') {
        None => (header, header),
        Some((first, "")) => return Some(When::Within(first.parse().ok()?..=u64::MAX)),
        Some((first, last)) => (first, last),
    };
    Some(When::Within(first.parse().ok()?..=last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(source: &str, iteration: u64) -> Vec<String> {
        let script = Script::parse(source).unwrap();
        script
            .lines(iteration)
            .map(|line| line.text.clone())
            .collect()
    }

    #[test]
    fn sections_run_in_their_iterations() {
        let source =
            "print a\n@1 print b\n@2-3\n# no\n  print c\n@4- print d\n@* print e\n@all print z";
        assert_eq!(run(source, 1), ["print a", "print b", "print z"]);
        assert_eq!(run(source, 3), ["print a", "print c", "print z"]);
        assert_eq!(run(source, 9), ["print a", "print d", "print z"]);
    }

    #[test]
    fn otherwise_is_for_iterations_that_nobody_named() {
        assert_eq!(run("@1 exit 1\n@* promise", 1), ["exit 1"]);
        assert_eq!(run("@1 exit 1\n@* promise", 2), ["promise"]);
        assert_eq!(
            run("@1 exit 1;;@* print x;; promise", 5),
            ["print x", "promise"]
        );
    }

    #[test]
    fn a_header_that_is_none_is_refused_with_its_line() {
        let error = Script::parse("print a\n@soon print b").unwrap_err();
        assert_eq!(error.to_string(), "line 2: no section is called \"@soon\"");
    }
}
