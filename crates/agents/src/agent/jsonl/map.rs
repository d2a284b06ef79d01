//! Where things stand in a JSON stream, as a profile writes it.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::path::{self, PathError};

/// Field paths of a JSON stream. A rule applies to events of its `kind` (all, where none is
/// named) in which the values of `when` stand and those of `unless` do not, and which hold what it
/// is about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JsonlMap {
    /// One value a line, or one in all.
    pub framing: Framing,
    /// Where an event's kind stands; of several paths what is there is joined by `/`.
    pub kind: Rules<String>,
    /// Kinds that are known and say nothing; `*` at the end stands for anything.
    pub ignore: Vec<String>,
    /// The session's id, model and version.
    pub session: Rules<SessionRule>,
    /// A request to the model begins.
    pub step: Rules<EventRule>,
    /// Whole blocks of the agent's own words.
    pub text: Rules<TextRule>,
    /// Pieces of the agent's own words.
    pub delta: Rules<TextRule>,
    pub thinking: Rules<TextRule>,
    /// Somebody else speaks: what the agent says after it is another message.
    pub other: Rules<EventRule>,
    /// Tool calls.
    pub tool: Rules<ToolRule>,
    pub tool_result: Rules<ToolResultRule>,
    /// Tokens and cost.
    pub usage: Rules<UsageRule>,
    /// The agent tries again by itself.
    pub retry: Rules<RetryRule>,
    /// A provider's limit.
    pub limit: Rules<LimitRule>,
    pub error: Rules<ErrorRule>,
    /// Something is amiss, and the run goes on.
    pub warning: Rules<ErrorRule>,
    /// The agent's final word.
    pub result: Rules<ResultRule>,
}

impl JsonlMap {
    /// Whether all paths can be read.
    pub fn check(&self) -> Result<(), PathError> {
        let conditions = |rule: &dyn Rule| {
            let Condition { when, unless, .. } = rule.condition();
            when.keys()
                .chain(unless.keys())
                .try_for_each(|path| path::check(path))
        };
        self.kind.0.iter().try_for_each(|path| path::check(path))?;
        self.rules().try_for_each(|rule| {
            conditions(rule)?;
            rule.paths().into_iter().try_for_each(path::check)
        })
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = &dyn Rule> {
        macro_rules! all {
            ($($rules:ident),*) => {
                std::iter::empty::<&dyn Rule>()
                    $(.chain(self.$rules.0.iter().map(|rule| rule as &dyn Rule)))*
            };
        }
        all!(
            session,
            step,
            text,
            delta,
            thinking,
            other,
            tool,
            tool_result,
            usage,
            retry,
            limit,
            error,
            warning,
            result
        )
    }
}

/// How JSON values are laid out.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// One value a line.
    #[default]
    Lines,
    /// The whole output is one value.
    Document,
}

/// To which events a rule applies.
pub(super) struct Condition<'r> {
    pub kind: Option<&'r str>,
    pub when: &'r BTreeMap<String, String>,
    pub unless: &'r BTreeMap<String, String>,
}

/// A rule of a [`JsonlMap`].
pub(super) trait Rule {
    fn condition(&self) -> Condition<'_>;
    /// The paths of its fields.
    fn paths(&self) -> Vec<&str>;
}

/// What may be written as a text alone.
pub trait FromText {
    /// What the text stands for.
    fn from_text(text: String) -> Self;
}

impl FromText for String {
    fn from_text(text: String) -> Self {
        text
    }
}

/// A rule's struct: fields that hold paths, the first of which a text alone stands for, and fields
/// that hold words.
macro_rules! rule {
    (
        $(#[$doc:meta])* $name:ident {
            $(#[$first_doc:meta])* $first:ident,
            $($(#[$path_doc:meta])* $path:ident,)*
        }
        $(words { $($(#[$word_doc:meta])* $word:ident: $type:ty,)* })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            /// The event's kind.
            pub kind: Option<String>,
            /// Values at other paths, as text; `*` at the end stands for anything.
            pub when: BTreeMap<String, String>,
            /// Values that must not stand there.
            pub unless: BTreeMap<String, String>,
            $(#[$first_doc])* pub $first: Option<String>,
            $($(#[$path_doc])* pub $path: Option<String>,)*
            $($($(#[$word_doc])* pub $word: $type,)*)?
        }

        impl FromText for $name {
            fn from_text(path: String) -> Self {
                Self { $first: Some(path), ..Self::default() }
            }
        }

        impl Rule for $name {
            fn condition(&self) -> Condition<'_> {
                Condition {
                    kind: self.kind.as_deref(),
                    when: &self.when,
                    unless: &self.unless,
                }
            }
            fn paths(&self) -> Vec<&str> {
                [&self.$first, $(&self.$path),*].into_iter().flatten().map(String::as_str).collect()
            }
        }
    };
}

rule! {
    /// Where the session tells of itself.
    SessionRule {
        /// The session's id.
        id,
        model,
        /// The agent's version.
        version,
    }
}
rule! {
    /// Which events are meant.
    EventRule {
        /// A path that must be there.
        of,
    }
}
rule! {
    /// Where words stand.
    TextRule {
        path,
        /// The id of the message that they belong to.
        message,
    }
}
rule! {
    /// Where a tool call stands.
    ToolRule {
        /// The tool's name.
        name,
        /// The call's id.
        id,
        /// Its input, an object.
        input,
        /// When it began: a date, or seconds or milliseconds since 1970.
        at,
    }
}
rule! {
    /// Where a tool's answer stands.
    ToolResultRule {
        /// The call's id.
        id,
        /// Whether it went well.
        ok,
        /// Whether it went wrong: true.
        failed,
        /// The exit code.
        exit,
        /// What it printed.
        output,
        /// What went wrong, shown where it printed nothing.
        error,
        /// When it came: with the call's own time it tells how long the tool took.
        at,
    }
    words {
        /// What stands before the exit code at the beginning of the output.
        exit_after: Option<String>,
        /// Words in the error that tell that permission was not given.
        denied: Rules<String>,
    }
}
rule! {
    /// Where tokens and cost stand.
    UsageRule {
        /// Input tokens outside any cache.
        input,
        /// Input tokens, those from a cache included.
        input_all,
        /// Generated tokens.
        output,
        /// All tokens: what is missing to it besides input and output is reasoning.
        total,
        /// Input tokens read from a cache.
        cache_read,
        /// Input tokens written to a cache.
        cache_write,
        /// The reasoning part of the output.
        reasoning,
        cost,
    }
    words {
        /// `run` for totals of the run, `result` for those of its result; else they add up.
        scope: Option<String>,
    }
}
rule! {
    /// Where the agent tells that it tries again.
    RetryRule {
        why,
        /// Which try this is.
        attempt,
        /// How many there are at most.
        max,
        /// How long it waits, in milliseconds.
        after_ms,
    }
}
rule! {
    /// Where a provider's limit stands.
    LimitRule {
        words,
        /// When it ends: seconds since 1970, or a date.
        until,
    }
}
rule! {
    /// Where an error stands.
    ErrorRule {
        message,
        /// The HTTP status.
        status,
    }
}
rule! {
    /// Where the agent's final word stands.
    ResultRule {
        /// The final message.
        text,
        /// Whether it went well: true, 0, or a word such as `success`.
        ok,
        /// Whether it went wrong: true.
        failed,
        /// What went wrong.
        error,
        turns,
    }
    words {
        /// `failed` where such an event says by being there that the run failed.
        outcome: Option<String>,
    }
}

/// One rule or several: a path, a table, or a list of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules<T>(pub Vec<T>);

impl<T> Default for Rules<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: FromText + Deserialize<'de>> Deserialize<'de> for Rules<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RulesVisitor(PhantomData))
    }
}

struct RulesVisitor<T>(PhantomData<T>);

impl<'de, T: FromText + Deserialize<'de>> Visitor<'de> for RulesVisitor<T> {
    type Value = Rules<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field path, a table of field paths, or a list of either")
    }
    fn visit_str<E: Error>(self, path: &str) -> Result<Rules<T>, E> {
        Ok(Rules(vec![T::from_text(path.to_owned())]))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Rules<T>, A::Error> {
        Ok(Rules(vec![T::deserialize(MapAccessDeserializer::new(
            map,
        ))?]))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Rules<T>, A::Error> {
        let many = Vec::<Rules<T>>::deserialize(SeqAccessDeserializer::new(seq))?;
        Ok(Rules(many.into_iter().flat_map(|rules| rules.0).collect()))
    }
}
