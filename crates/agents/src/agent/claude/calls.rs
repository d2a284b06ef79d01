//! Tool calls of a run, and which of them were denied.

use crate::agent::dialect::Out;
use crate::agent::json::JsonValue;
use crate::agent::recent::Recent;
use crate::agent::{AgentEvent, Denial, tool};

/// The last calls with the rules that allow them, and the ids of calls told as denied.
#[derive(Default)]
pub(super) struct Calls {
    last: Recent<(String, Denial)>,
    denied: Recent<String>,
}

impl Calls {
    pub fn note(&mut self, id: &str, name: &str, input: &JsonValue<'_>) {
        self.last.add((id.to_owned(), denial(name, input)));
    }

    /// An answer that says that permission was not given.
    pub fn denied_in_answer(&mut self, block: &JsonValue<'_>, out: &mut Out<'_>) {
        let words = block["content"].preview();
        let refused = block["is_error"].flag() == Some(true)
            && words.contains("requested permissions to ")
            && words.contains("haven't granted");
        let id = block["tool_use_id"].or_empty();
        if let Some(denial) = self.known(id).filter(|_| refused) {
            self.tell(id, denial, out);
        }
    }

    /// An event that says so.
    pub fn denied_now(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        let id = line["tool_use_id"].or_empty();
        let denial = self.known(id).unwrap_or_else(|| told(line));
        self.tell(id, denial, out);
    }

    /// The result lists all of them: those not told yet are told now.
    pub fn denied_in_result(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        let denials = line["permission_denials"].list().iter();
        for denied in denials.filter(|denied| denied.is_object()) {
            self.tell(denied["tool_use_id"].or_empty(), told(denied), out);
        }
    }

    fn known(&self, id: &str) -> Option<Denial> {
        let call = self.last.find(|(known, _)| known == id);
        call.map(|(_, denial)| denial.clone())
    }

    fn tell(&mut self, id: &str, denial: Denial, out: &mut Out<'_>) {
        if self.denied.find(|known| known == id).is_none() {
            self.denied.add(id.to_owned());
            out.push(AgentEvent::Denied(denial));
        }
    }
}

fn told(of: &JsonValue<'_>) -> Denial {
    denial(of["tool_name"].or_empty(), &of["tool_input"])
}

fn denial(name: &str, input: &JsonValue<'_>) -> Denial {
    Denial {
        tool: name.to_owned(),
        rule: tool::rule(name, input),
    }
}
