//! Field paths made ready: each has a place in what a line is read into.

use jiff::Timestamp;

use super::map::{JsonlMap, Rule, Rules};
use super::path::{PathError, Paths, Scalar};

/// A map whose paths have places.
pub(super) struct Compiled {
    pub paths: Paths,
    kind: usize,
    ignore: Vec<String>,
    pub session: Vec<Ready>,
    pub step: Vec<Ready>,
    pub text: Vec<Ready>,
    pub delta: Vec<Ready>,
    pub thinking: Vec<Ready>,
    pub tool: Vec<Ready>,
    pub tool_result: Vec<Ready>,
    pub usage: Vec<Ready>,
    pub retry: Vec<Ready>,
    pub limit: Vec<Ready>,
    pub error: Vec<Ready>,
    pub result: Vec<Ready>,
}

/// A rule whose paths have places.
pub(super) struct Ready {
    kind: Option<String>,
    when: Vec<(usize, String)>,
    fields: Vec<(&'static str, usize)>,
    run_scope: bool,
}

impl JsonlMap {
    /// Whether all paths can be read.
    pub fn check(&self) -> Result<(), PathError> {
        Compiled::new(self).map(|_| ())
    }
}

impl Compiled {
    pub fn new(map: &JsonlMap) -> Result<Self, PathError> {
        let mut paths = Paths::default();
        let kind = paths.slot(map.kind.as_deref().unwrap_or("type"))?;
        macro_rules! rules {
            ($rules:ident { $($field:ident),* }) => {
                ready(&mut paths, &map.$rules, |rule| vec![$((stringify!($field), rule.$field.as_deref())),*])?
            };
        }
        Ok(Self {
            kind,
            ignore: map.ignore.clone(),
            session: rules!(session { id, model, version }),
            step: rules!(step { of }),
            text: rules!(text { path, message }),
            delta: rules!(delta { path, message }),
            thinking: rules!(thinking { path }),
            tool: rules!(tool { id, name, input }),
            tool_result: rules!(tool_result {
                id,
                ok,
                exit,
                output
            }),
            usage: usage(&mut paths, map)?,
            retry: rules!(retry {
                attempt,
                max,
                after_ms,
                why
            }),
            limit: rules!(limit { until, words }),
            error: rules!(error { message, status }),
            result: rules!(result {
                text,
                ok,
                failed,
                error,
                turns
            }),
            paths,
        })
    }

    fn rules(&self) -> impl Iterator<Item = &Ready> {
        [
            &self.session,
            &self.step,
            &self.text,
            &self.delta,
            &self.thinking,
            &self.tool,
            &self.tool_result,
            &self.usage,
            &self.retry,
            &self.limit,
            &self.error,
            &self.result,
        ]
        .into_iter()
        .flatten()
    }
}

/// `scope` is a word, not a path.
fn usage(paths: &mut Paths, map: &JsonlMap) -> Result<Vec<Ready>, PathError> {
    let mut all = ready(paths, &map.usage, |rule| {
        vec![
            ("input", rule.input.as_deref()),
            ("input_all", rule.input_all.as_deref()),
            ("output", rule.output.as_deref()),
            ("total", rule.total.as_deref()),
            ("cache_read", rule.cache_read.as_deref()),
            ("cache_write", rule.cache_write.as_deref()),
            ("reasoning", rule.reasoning.as_deref()),
            ("cost", rule.cost.as_deref()),
        ]
    })?;
    for (ready, rule) in all.iter_mut().zip(&map.usage.0) {
        ready.run_scope = rule.scope.as_deref() == Some("run");
    }
    Ok(all)
}

fn ready<T: Rule>(
    paths: &mut Paths,
    rules: &Rules<T>,
    fields: impl Fn(&T) -> Vec<(&'static str, Option<&str>)>,
) -> Result<Vec<Ready>, PathError> {
    rules
        .0
        .iter()
        .map(|rule| {
            let applies = rule.applies();
            let mut slots = Vec::new();
            for (name, path) in fields(rule) {
                let Some(path) = path else { continue };
                // A number of tokens at an `input` is kept as a number all the same.
                let slot = match name {
                    "input" => paths.input_slot(path)?,
                    _ => paths.slot(path)?,
                };
                slots.push((name, slot));
            }
            let when = applies.when.iter();
            let when = when.map(|(path, value)| Ok((paths.slot(path)?, value.clone())));
            Ok(Ready {
                kind: applies.kind,
                when: when.collect::<Result<_, PathError>>()?,
                fields: slots,
                run_scope: false,
            })
        })
        .collect()
}

/// What one value holds at the paths of a map.
pub(super) struct FoundField<'a> {
    pub map: &'a Compiled,
    values: &'a [Option<Scalar>],
}

impl<'a> FoundField<'a> {
    pub fn new(map: &'a Compiled, values: &'a [Option<Scalar>]) -> Self {
        Self { map, values }
    }

    pub fn kind(&self) -> Option<&'a str> {
        match self.values.get(self.map.kind)? {
            Some(Scalar::Text(kind)) => Some(kind),
            _ => None,
        }
    }

    /// Whether the kind is one that a rule names or that is known to say nothing.
    pub fn is_known(&self) -> bool {
        let kind = self.kind().unwrap_or_default();
        self.map
            .rules()
            .any(|rule| rule.kind.as_deref() == Some(kind))
            || self.is_ignored(kind)
    }

    fn is_ignored(&self, kind: &str) -> bool {
        self.map
            .ignore
            .iter()
            .any(|known| match known.strip_suffix('*') {
                Some(start) => kind.starts_with(start),
                None => kind == known,
            })
    }

    /// The rules that apply to this value.
    pub fn matching(&self, rules: &'a [Ready]) -> impl Iterator<Item = Matched<'a>> {
        let (kind, values) = (self.kind(), self.values);
        rules
            .iter()
            .filter(move |rule| rule.applies(kind, values))
            .map(move |rule| Matched { rule, values })
    }
}

impl Ready {
    fn applies(&self, kind: Option<&str>, values: &[Option<Scalar>]) -> bool {
        let right_kind = self.kind.is_none() || self.kind.as_deref() == kind;
        right_kind
            && self.when.iter().all(|(slot, want)| {
                let value = values.get(*slot).and_then(Option::as_ref);
                value.is_some_and(|value| value.to_text() == *want)
            })
            && (self.kind.is_some() || !self.when.is_empty() || self.any(values))
    }

    fn any(&self, values: &[Option<Scalar>]) -> bool {
        self.fields
            .iter()
            .any(|(_, slot)| values.get(*slot).is_some_and(Option::is_some))
    }
}

/// A rule that applies, with the values at its paths.
pub(super) struct Matched<'a> {
    rule: &'a Ready,
    values: &'a [Option<Scalar>],
}

impl<'a> Matched<'a> {
    pub fn get(&self, field: &str) -> Option<&'a Scalar> {
        let (_, slot) = self.rule.fields.iter().find(|(name, _)| *name == field)?;
        self.values.get(*slot)?.as_ref()
    }

    pub fn text(&self, field: &str) -> Option<String> {
        self.get(field)
            .map(Scalar::to_text)
            .filter(|text| !text.is_empty())
    }

    pub fn texts<const N: usize>(&self, fields: [&str; N]) -> [Option<String>; N] {
        fields.map(|field| self.text(field))
    }

    pub fn number(&self, field: &str) -> Option<f64> {
        match self.get(field)? {
            Scalar::Number(number) => Some(*number),
            Scalar::Text(text) => text.trim().parse().ok(),
            Scalar::Truth(_) => None,
        }
    }

    pub fn count(&self, field: &str) -> Option<u64> {
        self.number(field)
            .filter(|n| (0.0..9e15).contains(n))
            .map(|n| n as u64)
    }

    pub fn run_scope(&self) -> bool {
        self.rule.run_scope
    }

    /// A result that names an event by its kind says something by being there; one that
    /// is known by its fields alone must have one of them.
    pub fn says_anything(&self) -> bool {
        self.rule.kind.is_some() || self.rule.any(self.values)
    }
}

impl Scalar {
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
        }
    }

    /// True, 0 as an exit code has it, or a word for success.
    pub fn is_good(&self) -> bool {
        match self {
            Self::Truth(truth) => *truth,
            Self::Number(number) => *number == 0.0,
            Self::Text(text) => [
                "success",
                "ok",
                "completed",
                "complete",
                "done",
                "0",
                "true",
            ]
            .contains(&text.as_str()),
        }
    }

    pub fn is_true(&self) -> bool {
        matches!(self, Self::Truth(true))
    }

    /// Seconds or milliseconds since 1970, or a date.
    pub fn instant(&self) -> Option<Timestamp> {
        match self {
            Self::Number(n) if *n > 1e12 => Timestamp::from_millisecond(*n as i64).ok(),
            Self::Number(n) if *n > 1e9 => Timestamp::from_second(*n as i64).ok(),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}
