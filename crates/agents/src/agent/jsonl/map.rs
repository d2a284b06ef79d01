//! Where things stand in a JSON stream, as a profile writes it.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Field paths of a JSON stream. A rule applies to events of its `kind` (all, where none is
/// named) in which the values of `when` stand, and which hold what it is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JsonlMap {
    /// One value a line, or one in all.
    pub framing: Framing,
    /// Where an event's kind stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Kinds that are known and say nothing; `*` at the end stands for anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The session's id, model and version.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub session: Rules<SessionRule>,
    /// A request to the model begins.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub step: Rules<StepRule>,
    /// Whole blocks of the agent's own words.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub text: Rules<TextRule>,
    /// Pieces of the agent's own words.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub delta: Rules<TextRule>,
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub thinking: Rules<TextRule>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub tool: Rules<ToolRule>,
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub tool_result: Rules<ToolResultRule>,
    /// Tokens and cost.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub usage: Rules<UsageRule>,
    /// The agent tries again by itself.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub retry: Rules<RetryRule>,
    /// A provider's limit.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub limit: Rules<LimitRule>,
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub error: Rules<ErrorRule>,
    /// The agent's final word.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    pub result: Rules<ResultRule>,
}

/// How JSON values are laid out.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// One value a line.
    #[default]
    Lines,
    /// The whole output is one value.
    Document,
}

/// To which events a rule applies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The event's kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Values at other paths, as text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, String>,
}

macro_rules! rule {
    ($(#[$doc:meta])* $name:ident, $short:ident { $($(#[$field_doc:meta])* $field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            /// The event's kind.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub kind: Option<String>,
            /// Values at other paths, as text.
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            pub when: BTreeMap<String, String>,
            $($(#[$field_doc])* #[serde(skip_serializing_if = "Option::is_none")]
            pub $field: Option<String>,)*
        }

        impl Rule for $name {
            fn short(path: String) -> Self {
                Self { $short: Some(path), ..Self::default() }
            }
            fn applies(&self) -> When {
                When { kind: self.kind.clone(), when: self.when.clone() }
            }
        }
    };
}

/// A rule of a [`JsonlMap`].
pub trait Rule: Default {
    /// The rule that a path alone stands for.
    fn short(path: String) -> Self;
    /// To which events it applies.
    fn applies(&self) -> When;
}

rule! {
    /// Where the session tells of itself.
    SessionRule, id {
        /// The session's id.
        id,
        model,
        /// The agent's version.
        version,
    }
}
rule! {
    /// Which events begin a request to the model.
    StepRule, of {
        /// A path that must be there.
        of,
    }
}
rule! {
    /// Where words stand.
    TextRule, path {
        path,
        /// The id of the message that they belong to.
        message,
    }
}
rule! {
    /// Where a tool call stands.
    ToolRule, name {
        /// The call's id.
        id,
        /// The tool's name.
        name,
        /// Its input, an object.
        input,
    }
}
rule! {
    /// Where a tool's answer stands.
    ToolResultRule, id {
        /// The call's id.
        id,
        /// Whether it went well.
        ok,
        /// The exit code.
        exit,
        /// What it printed.
        output,
    }
}
rule! {
    /// Where tokens and cost stand.
    UsageRule, input {
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
        /// `run` for totals of the run; else they add up.
        scope,
    }
}
rule! {
    /// Where the agent tells that it tries again.
    RetryRule, why {
        /// Which try this is.
        attempt,
        /// How many there are at most.
        max,
        /// How long it waits, in milliseconds.
        after_ms,
        why,
    }
}
rule! {
    /// Where a provider's limit stands.
    LimitRule, words {
        /// When it ends: seconds since 1970, or a date.
        until,
        words,
    }
}
rule! {
    /// Where an error stands.
    ErrorRule, message {
        message,
        /// The HTTP status.
        status,
    }
}
rule! {
    /// Where the agent's final word stands.
    ResultRule, text {
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
}

/// One rule or several: a path, a table, or a list of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Rules<T>(pub Vec<T>);

impl<T> Default for Rules<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Rules<T> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de, T: Rule + Deserialize<'de>> Deserialize<'de> for Rules<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RulesVisitor(PhantomData))
    }
}

struct RulesVisitor<T>(PhantomData<T>);

impl<'de, T: Rule + Deserialize<'de>> Visitor<'de> for RulesVisitor<T> {
    type Value = Rules<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field path, a table of field paths, or a list of either")
    }
    fn visit_str<E: Error>(self, path: &str) -> Result<Rules<T>, E> {
        Ok(Rules(vec![T::short(path.to_owned())]))
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
