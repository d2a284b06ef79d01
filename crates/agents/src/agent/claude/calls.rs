//! Tool calls of a run, and which of them were denied.

use std::collections::VecDeque;

use super::line::{Block, ClaudeLine};
use crate::agent::dialect::Out;
use crate::agent::tool::{self, ToolInput};
use crate::agent::{AgentEvent, Denial};

const KEPT: usize = 64;

/// The last calls with the rules that allow them, and the ids of calls told as denied.
#[derive(Default)]
pub(super) struct Calls {
    last: VecDeque<(String, Denial)>,
    denied: VecDeque<String>,
}

impl Calls {
    pub fn note(&mut self, id: &str, name: &str, input: &ToolInput<'_>) {
        let denial = denial(name, input);
        self.last.push_back((id.to_owned(), denial));
        if self.last.len() > KEPT {
            self.last.pop_front();
        }
    }

    /// An answer that says that permission was not given.
    pub fn denied_in_answer(&mut self, block: &Block<'_>, out: &mut Out<'_>) {
        let refused = block.is_error.0 == Some(true)
            && block.content.0.contains("requested permissions to ")
            && block.content.0.contains("haven't granted");
        if refused {
            self.tell_known(block.tool_use_id.or_empty(), out);
        }
    }

    /// An event that says so.
    pub fn denied_now(&mut self, line: &ClaudeLine<'_>, out: &mut Out<'_>) {
        let input = line.tool_input.0.clone().unwrap_or_default();
        let denial = denial(line.tool_name.or_empty(), &input);
        let id = line.tool_use_id.or_empty();
        let known = self.known(id);
        self.tell(id, known.unwrap_or(denial), out);
    }

    /// The result lists all of them: those not told yet are told now.
    pub fn denied_in_result(&mut self, line: &ClaudeLine<'_>, out: &mut Out<'_>) {
        let denials = line
            .permission_denials
            .0
            .iter()
            .filter_map(|denied| denied.0.as_ref());
        for denied in denials {
            let input = denied.tool_input.0.clone().unwrap_or_default();
            let denial = denial(denied.tool_name.or_empty(), &input);
            self.tell(denied.tool_use_id.or_empty(), denial, out);
        }
    }

    fn known(&self, id: &str) -> Option<Denial> {
        let call = self.last.iter().find(|(known, _)| known == id);
        call.map(|(_, denial)| denial.clone())
    }

    fn tell_known(&mut self, id: &str, out: &mut Out<'_>) {
        if let Some(denial) = self.known(id) {
            self.tell(id, denial, out);
        }
    }

    fn tell(&mut self, id: &str, denial: Denial, out: &mut Out<'_>) {
        if self.denied.iter().any(|known| known == id) {
            return;
        }
        self.denied.push_back(id.to_owned());
        if self.denied.len() > KEPT {
            self.denied.pop_front();
        }
        out.push(AgentEvent::Denied(denial));
    }
}

fn denial(name: &str, input: &ToolInput<'_>) -> Denial {
    Denial {
        tool: name.to_owned(),
        rule: tool::rule(name, input),
    }
}
