//! A settings file as text: what stands in it about us, and the text with that put in or taken out. Every
//! other byte stays; what comes of it is read again and compared before anything is written.

use serde_json::Value;

use super::insertion::{Insertion, SettingsProblem};
use super::{jsonc, toml_entry};

/// Our entry's name in every settings file.
pub const NAME: &str = "descartes";

/// How a settings file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// With comments, which some of them allow.
    Json,
    Toml,
}

/// What stands in a settings file about us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryStanding {
    Nothing,
    /// The very entry that would be written.
    Same,
    /// `descartes mcp`, otherwise than it would be written.
    Changed,
    /// Something else under our name.
    Foreign,
}

/// Where the entry stands, and what it is.
#[derive(Clone, Debug)]
pub struct SettingsEntry {
    pub syntax: Syntax,
    pub container: &'static str,
    pub value: Value,
}

impl SettingsEntry {
    fn parse(&self, text: &str) -> Result<Value, SettingsProblem> {
        match self.syntax {
            Syntax::Json if text.trim().is_empty() => Ok(Value::Object(serde_json::Map::new())),
            Syntax::Json => jsonc::parse(text).map(|root| root.value),
            Syntax::Toml => toml_entry::parse(text),
        }
    }

    /// What stands there.
    pub fn standing(&self, text: &str) -> Result<EntryStanding, SettingsProblem> {
        let whole = self.parse(text)?;
        let found = whole.get(self.container).and_then(|all| all.get(NAME));
        Ok(match found {
            None => EntryStanding::Nothing,
            Some(found) if *found == self.value => EntryStanding::Same,
            Some(found) if runs_us(found) => EntryStanding::Changed,
            Some(_) => EntryStanding::Foreign,
        })
    }

    /// What is put in, where nothing stands; `None` where it would not come to that entry alone.
    pub fn insertions(&self, text: &str) -> Result<Option<Vec<Insertion>>, SettingsProblem> {
        let place = (self.container, NAME);
        let new = match self.syntax {
            Syntax::Json => jsonc::insertions(text, place, &self.value)?,
            Syntax::Toml => toml_entry::insertions(text, place, &self.value)?,
        };
        let mut wanted = self.parse(text)?;
        if wanted.get(self.container).is_none() {
            wanted[self.container] = Value::Object(serde_json::Map::new());
        }
        wanted[self.container][NAME] = self.value.clone();
        let is_right = self
            .parse(&with(text, &new))
            .is_ok_and(|come| come == wanted);
        Ok(is_right.then_some(new))
    }

    /// The text without the entry; `None` where something else would change.
    pub fn without(&self, text: &str) -> Result<Option<String>, SettingsProblem> {
        let place = (self.container, NAME);
        let new = match self.syntax {
            Syntax::Json => {
                let mut new = text.to_owned();
                for cut in jsonc::cuts(text, place)?.into_iter().rev() {
                    new.replace_range(cut, "");
                }
                new
            }
            Syntax::Toml => toml_entry::without(text, place)?,
        };
        let empty = Value::Object(serde_json::Map::new());
        let mut wanted = self.parse(text)?;
        let mut come = self.parse(&new).unwrap_or_default();
        if let Some(all) = wanted[self.container].as_object_mut() {
            all.remove(NAME);
        }
        // A table of TOML that holds nothing is not written.
        for whole in [&mut wanted, &mut come] {
            if whole.get(self.container) == Some(&empty) && self.syntax == Syntax::Toml {
                whole.as_object_mut().map(|all| all.remove(self.container));
            }
        }
        Ok((come == wanted).then_some(new))
    }
}

/// The text with all that is put in; places are those of the text before.
pub fn with(text: &str, new: &[Insertion]) -> String {
    let mut out = text.to_owned();
    for one in new.iter().rev() {
        out.insert_str(one.at, &one.text);
    }
    out
}

/// The text before all that was put in, by the same places.
pub fn before(text: &str, new: &[Insertion]) -> Option<String> {
    let mut out = text.to_owned();
    for one in new {
        let end = one.at.checked_add(one.text.len())?;
        if out.get(one.at..end)? != one.text {
            return None;
        }
        out.replace_range(one.at..end, "");
    }
    Some(out)
}

/// Whether an entry starts `descartes mcp`, in any of the forms.
fn runs_us(entry: &Value) -> bool {
    let mut words: Vec<&str> = Vec::new();
    for key in ["command", "args"] {
        match &entry[key] {
            Value::String(word) => words.push(word),
            Value::Array(all) => words.extend(all.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    let program = words.first().map(|word| word.rsplit('/').next());
    program == Some(Some("descartes")) && words.get(1) == Some(&"mcp")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn json_entry() -> SettingsEntry {
        SettingsEntry {
            syntax: Syntax::Json,
            container: "mcpServers",
            value: json!({ "command": "descartes", "args": ["mcp"] }),
        }
    }

    fn toml_entry() -> SettingsEntry {
        SettingsEntry {
            syntax: Syntax::Toml,
            container: "mcp_servers",
            value: json!({ "command": "descartes", "args": ["mcp"], "tool_timeout_sec": 600 }),
        }
    }

    #[track_caller]
    fn there_and_back(entry: &SettingsEntry, text: &str) -> String {
        assert_eq!(
            entry.standing(text).unwrap(),
            EntryStanding::Nothing,
            "{text}"
        );
        let new = entry.insertions(text).unwrap().expect(text);
        let come = with(text, &new);
        assert_eq!(
            entry.standing(&come).unwrap(),
            EntryStanding::Same,
            "{come}"
        );
        assert_eq!(before(&come, &new).as_deref(), Some(text));
        // Also where nothing is known of how it was put in.
        let without = entry.without(&come).unwrap().expect(&come);
        assert_eq!(entry.standing(&without).unwrap(), EntryStanding::Nothing);
        come
    }

    #[test]
    fn an_entry_is_put_in_as_the_file_is_written_and_taken_out_again() {
        let cases = [
            "",
            "\n",
            "{}",
            "{\n}\n",
            "{ }",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{\"mcpServers\":{}}",
            "{\"mcpServers\":{\"x\":{\"command\":\"y\"}}}\n",
            "{\n    \"theme\": \"dark\" // mine\n}\n",
            "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"x\": { \"url\": \"y\" }, // last\n\t},\n}",
            "\u{feff}{\r\n  \"a\": [1, 2, {\"b\": null}],\r\n  \"mcpServers\": {\r\n  }\r\n}\r\n",
            "// top\n{ /* in */ \"a\": \"// no comment, \\\" {\" /* b */ }\n// end",
            "{\n  \"mcpServers\": {\n    // nothing yet\n  }\n}\n",
        ];
        for text in cases {
            there_and_back(&json_entry(), text);
        }
        let come = there_and_back(&json_entry(), "{\n    \"theme\": \"dark\" // mine\n}\n");
        assert_eq!(
            come,
            "{\n    \"theme\": \"dark\", // mine\n    \"mcpServers\": {\n        \"descartes\": {\n            \
             \"command\": \"descartes\",\n            \"args\": [\n                \"mcp\"\n            ]\n        \
             }\n    }\n}\n"
        );
        for text in [
            "",
            "model = \"x\"",
            "model = \"x\"\n",
            "# mine\r\n[mcp_servers.other]\r\ncommand = \"y\" # why\r\n\r\n[tui]\r\nx = 1\r\n",
            "[mcp_servers]\nother = { command = \"y\" }\n",
            "mcp_servers = { other = { command = \"y\" } }\n\n[a]\n",
            "mcp_servers = {}\n",
        ] {
            there_and_back(&toml_entry(), text);
        }
    }

    #[test]
    fn what_stands_there_is_told_apart() {
        let entry = json_entry();
        for (found, standing) in [
            (
                r#"{"command":"descartes","args":["mcp"]}"#,
                EntryStanding::Same,
            ),
            (
                r#"{"command":"/x/descartes","args":["mcp","--max-loops","2"]}"#,
                EntryStanding::Changed,
            ),
            (
                r#"{"type":"local","command":["descartes","mcp"]}"#,
                EntryStanding::Changed,
            ),
            (
                r#"{"command":"cartesian","args":["mcp"]}"#,
                EntryStanding::Foreign,
            ),
            (r#"{"url":"http://localhost"}"#, EntryStanding::Foreign),
        ] {
            let text = format!(r#"{{"mcpServers":{{"descartes":{found}}}}}"#);
            assert_eq!(entry.standing(&text).unwrap(), standing, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        for (entry, text, line, what) in [
            (
                json_entry(),
                "{\n  \"a\": 1\n  \"b\": 2\n}",
                3,
                "expected `,` or `}`",
            ),
            (json_entry(), "{\n  a: 1\n}", 2, "expected `\"` or `}`"),
            (json_entry(), "[]", 1, "expected an object: {"),
            (
                json_entry(),
                "{\"mcpServers\": 7}",
                1,
                "`mcpServers` is no object",
            ),
            (json_entry(), "{} {}", 1, "something stands behind the end"),
            (json_entry(), "{\"a\": \"\n\"}", 1, "a text does not end"),
            (json_entry(), "{\"a\": maybe}", 1, "`maybe` is no value"),
            (json_entry(), "{ /* x", 1, "a comment does not end"),
        ] {
            let problem = entry.insertions(text).unwrap_err();
            assert_eq!(
                (problem.line, problem.what.as_str()),
                (line, what),
                "{text}"
            );
        }
        let problem = toml_entry().insertions("a = 1\nb = \n").unwrap_err();
        assert_eq!(problem.line, 2);
        let deep = "[".repeat(10_000);
        assert!(json_entry().standing(&deep).is_err());
    }

    #[test]
    fn only_our_member_is_taken_out_of_many() {
        let ours = "\"descartes\": {\"command\": \"descartes\", \"args\": [\"mcp\"]}";
        for (members, left) in [
            (format!("\"a\": 1, {ours}, \"b\": 2"), "\"a\": 1, \"b\": 2"),
            (format!("{ours}, \"b\": 2"), " \"b\": 2"),
            (format!("\"a\": 1, {ours}"), "\"a\": 1"),
            (format!("\n  \"a\": 1,\n  {ours}\n"), "\n  \"a\": 1\n"),
            (
                format!("\n  \"a\": 1,\n  {ours}, // c\n"),
                "\n  \"a\": 1, // c\n",
            ),
        ] {
            let text = format!("{{\"mcpServers\": {{{members}}}}}");
            let new = json_entry().without(&text).unwrap().unwrap();
            assert_eq!(new, format!("{{\"mcpServers\": {{{left}}}}}"));
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_break_and_what_is_put_in_comes_out(text in "[{}\\[\\]\":,a1/* \n\\\\.]{0,60}") {
            for entry in [json_entry(), toml_entry()] {
                if let Ok(Some(new)) = entry.insertions(&text) {
                    let come = with(&text, &new);
                    prop_assert_eq!(before(&come, &new), Some(text.clone()));
                }
            }
        }
    }
}
