//! The lines of claude's stream, as far as they are read. Unknown fields are passed over.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess};

use crate::agent::lenient::{self, Flag, Lenient, List, Num, Obj, Preview, Str};
use crate::agent::tool::ToolInput;
use crate::agent::usage::Usage;

/// One event; which fields it has depends on its type.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeLine<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    #[serde(borrow)]
    pub subtype: Str<'a>,
    #[serde(borrow)]
    pub session_id: Str<'a>,
    #[serde(borrow)]
    pub model: Str<'a>,
    #[serde(borrow)]
    pub cwd: Str<'a>,
    #[serde(borrow)]
    pub claude_code_version: Str<'a>,
    #[serde(borrow)]
    pub qwen_code_version: Str<'a>,
    #[serde(borrow)]
    pub message: Obj<ClaudeMessage<'a>>,
    #[serde(borrow)]
    pub parent_tool_use_id: Str<'a>,
    #[serde(borrow)]
    pub error: Str<'a>,
    #[serde(borrow)]
    pub text: Str<'a>,
    #[serde(borrow)]
    pub event: Obj<Delta<'a>>,
    #[serde(borrow)]
    pub rate_limit_info: Obj<RateLimit<'a>>,
    pub attempt: Num,
    pub max_retries: Num,
    pub retry_delay_ms: Num,
    pub error_status: Num,
    pub is_error: Flag,
    pub api_error_status: Num,
    #[serde(borrow)]
    pub result: Str<'a>,
    #[serde(borrow)]
    pub errors: List<Str<'a>>,
    pub num_turns: Num,
    pub total_cost_usd: Num,
    pub usage: Obj<Tokens>,
    #[serde(rename = "modelUsage")]
    pub model_usage: ModelUsage,
    #[serde(borrow)]
    pub permission_denials: List<Obj<Denied<'a>>>,
    #[serde(borrow)]
    pub tool_name: Str<'a>,
    #[serde(borrow)]
    pub tool_use_id: Str<'a>,
    #[serde(borrow)]
    pub tool_input: Obj<ToolInput<'a>>,
    #[serde(borrow)]
    pub call_id: Str<'a>,
    #[serde(borrow)]
    pub tool_call: Obj<NamedCall<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeMessage<'a> {
    #[serde(borrow)]
    pub id: Str<'a>,
    #[serde(borrow)]
    pub model: Str<'a>,
    #[serde(borrow)]
    pub stop_reason: Str<'a>,
    pub usage: Obj<Tokens>,
    #[serde(borrow)]
    pub content: List<Obj<Block<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    #[serde(borrow)]
    pub text: Str<'a>,
    #[serde(borrow)]
    pub thinking: Str<'a>,
    #[serde(borrow)]
    pub id: Str<'a>,
    #[serde(borrow)]
    pub name: Str<'a>,
    #[serde(borrow)]
    pub input: Obj<ToolInput<'a>>,
    #[serde(borrow)]
    pub tool_use_id: Str<'a>,
    pub is_error: Flag,
    pub content: Preview,
}

/// A piece of a message that is being written.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    #[serde(borrow)]
    pub message: Obj<ClaudeMessage<'a>>,
    #[serde(borrow)]
    pub delta: Obj<Block<'a>>,
    pub usage: Obj<Tokens>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RateLimit<'a> {
    #[serde(borrow)]
    pub status: Str<'a>,
    pub resets_at: Num,
    #[serde(borrow)]
    pub rate_limit_type: Str<'a>,
    pub utilization: Num,
    pub is_using_overage: Flag,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Denied<'a> {
    #[serde(borrow)]
    pub tool_name: Str<'a>,
    #[serde(borrow)]
    pub tool_use_id: Str<'a>,
    #[serde(borrow)]
    pub tool_input: Obj<ToolInput<'a>>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    #[serde(alias = "inputTokens")]
    input_tokens: Num,
    #[serde(alias = "outputTokens")]
    output_tokens: Num,
    #[serde(alias = "cacheReadInputTokens", alias = "cacheReadTokens")]
    cache_read_input_tokens: Num,
    #[serde(alias = "cacheCreationInputTokens", alias = "cacheWriteTokens")]
    cache_creation_input_tokens: Num,
    total_tokens: Num,
}

impl Tokens {
    /// Qwen counts what came from a cache as input too, which shows in its total.
    pub fn usage(self) -> Usage {
        let (input, output) = (self.input_tokens.count(), self.output_tokens.count());
        let cached = self.cache_read_input_tokens.count().unwrap_or(0);
        let all = input
            .zip(output)
            .map(|(input, output)| input.saturating_add(output));
        let included = all.is_some() && all == self.total_tokens.count();
        Usage {
            input: input.map(|all| {
                if included {
                    all.saturating_sub(cached)
                } else {
                    all
                }
            }),
            output,
            cache_read: self.cache_read_input_tokens.count(),
            cache_write: self.cache_creation_input_tokens.count(),
            reasoning: None,
        }
    }
}

/// Tokens by model, added up: side calls and agents of the agent are in here.
#[derive(Default)]
pub(super) struct ModelUsage(pub Usage);

impl<'de> Lenient<'de> for ModelUsage {
    fn map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut sum = Usage::default();
        while let Some((_, tokens)) = map.next_entry::<IgnoredAny, Obj<Tokens>>()? {
            sum = sum.plus(&tokens.0.unwrap_or_default().usage());
        }
        Ok(Self(sum))
    }
}

impl<'de> Deserialize<'de> for ModelUsage {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        lenient::read(from)
    }
}

/// A tool call under its own name: `{"shellToolCall":{"args":{…},"result":{…}}}`.
#[derive(Default)]
pub(super) struct NamedCall<'a> {
    pub name: Cow<'a, str>,
    pub call: CallBody<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CallBody<'a> {
    #[serde(borrow)]
    pub args: Obj<ToolInput<'a>>,
    pub result: Obj<CallResult>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CallResult {
    pub success: Obj<CallSuccess>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CallSuccess {
    pub exit_code: Num,
}

impl<'de: 'a, 'a> Lenient<'de> for NamedCall<'a> {
    fn map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut named = Self::default();
        while let Some((name, call)) = map.next_entry::<Str<'a>, Obj<CallBody<'a>>>()? {
            if let (Some(name), Some(call)) = (name.0, call.0) {
                named = Self { name, call };
            }
        }
        Ok(named)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for NamedCall<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        lenient::read(from)
    }
}
