//! The gates of a form. A gate may have several lines (`cd sub`, then `make test`), which mean something
//! else when each is run by itself; so each gate has a field of its own.

use crate::start_masks::{ChangedSecret, masked, restored};

/// What the fields of the gates hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedGates {
    /// One gate each, of any number of lines; an empty one is none.
    pub each: Vec<String>,
    /// One gate a line.
    pub lines: String,
}

/// Why nobody can tell which gates are meant.
#[derive(Debug, PartialEq, Eq)]
pub enum UnclearGates {
    Secret(ChangedSecret),
    /// A line of a gate of several lines, where each line would be a gate.
    Piece(String),
}

impl TypedGates {
    /// The gates that are meant, in a form that was filled in with these.
    pub fn whole(&self, known: &[String]) -> Result<Vec<String>, UnclearGates> {
        let all = known.join("\n");
        if self.each.is_empty() && is_shown(&self.lines, &all) {
            return Ok(known.to_vec());
        }
        let mut gates = Vec::new();
        for (at, typed) in self.each.iter().enumerate() {
            let own = known.get(at);
            let same = own
                .into_iter()
                .chain(known)
                .find(|gate| is_shown(typed, gate));
            gates.push(match same {
                Some(gate) => gate.clone(),
                // Two gates may look alike with their secrets masked: what stood in this field comes last, and counts.
                None => restored(typed, &format!("{all}\n{}", own.map_or("", |own| own)))
                    .map_err(UnclearGates::Secret)?,
            });
        }
        let lines = restored(&self.lines, &all).map_err(UnclearGates::Secret)?;
        let is_piece = |line: &&str| {
            let of_several = known.iter().filter(|gate| gate.trim().contains('\n'));
            let mut pieces = of_several.flat_map(|gate| gate.lines()).map(str::trim);
            self.each.is_empty() && pieces.any(|piece| piece == *line)
        };
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        if let Some(piece) = lines.clone().find(is_piece) {
            return Err(UnclearGates::Piece(masked(piece)));
        }
        gates.extend(lines.map(str::to_owned));
        gates.retain(|gate| !gate.trim().is_empty());
        Ok(gates)
    }
}

/// Whether this is the gate as the form shows it.
fn is_shown(typed: &str, gate: &str) -> bool {
    masked(gate).trim() == typed.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUB: &str = "cd sub\nmake test";

    fn whole(each: &[&str], lines: &str, known: &[&str]) -> Result<Vec<String>, UnclearGates> {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let (each, known): (Vec<String>, Vec<String>) = (own(each), own(known));
        let lines = lines.to_owned();
        TypedGates { each, lines }.whole(&known)
    }

    #[test]
    fn a_gate_of_several_lines_stays_one() {
        let script = "if true\nthen\n\tmake test <<END\n  text\n\nEND\nfi\n";
        for (each, lines, known, expected) in [
            (&[][..], "a\n\n b ", &[][..], &["a", "b"][..]),
            (&[SUB, "b"], "", &[SUB, "b"], &[SUB, "b"]),
            (&[script.trim()], "", &[script], &[script]),
            // Added, changed, emptied, put into the other's field.
            (&[SUB], "make test", &[SUB], &[SUB, "make test"]),
            (&["cd sub\nmake all"], "", &[SUB], &["cd sub\nmake all"]),
            (&["", "b"], "", &[SUB, "b"], &["b"]),
            (&["b", SUB], "", &[SUB, "b"], &["b", SUB]),
            (&[SUB], "", &[], &[SUB]),
            // All of them in the one field, as they are.
            (&[], SUB, &[SUB], &[SUB]),
            (&[], "cd sub\nmake test\nb", &[SUB, "b"], &[SUB, "b"]),
            (&[], "other", &[SUB], &["other"]),
            (&[], "", &[SUB], &[]),
        ] {
            let expected: Vec<String> = expected.iter().map(|gate| (*gate).to_owned()).collect();
            assert_eq!(
                whole(each, lines, known),
                Ok(expected),
                "{each:?} {lines:?}"
            );
        }
        for lines in ["cd sub\nmake test\nother", "make test", "other\n cd sub "] {
            let got = whole(&[], lines, &[SUB]);
            assert!(
                matches!(got, Err(UnclearGates::Piece(_))),
                "{lines}: {got:?}"
            );
        }
    }

    #[test]
    fn gates_that_look_alike_with_their_secrets_masked_keep_their_own() {
        let key = |letters: &str| format!("sk-ant-{}", letters.repeat(10));
        let (one, two) = (
            format!("ask {}", key("a1B2")),
            format!("ask {}", key("c3D4")),
        );
        let known = [one.as_str(), two.as_str()];
        let shown = masked(&one);
        assert_eq!(masked(&two), shown);
        let both = whole(&[&shown, &shown], "", &known);
        assert_eq!(both, Ok(vec![one.clone(), two.clone()]));
        let longer = format!("{shown}\ntrue");
        let both = whole(&[&longer, &longer], "", &known);
        assert_eq!(
            both,
            Ok(vec![format!("{one}\ntrue"), format!("{two}\ntrue")])
        );
        let changed = whole(&[&format!("never {shown}")], "", &known);
        assert!(
            matches!(changed, Err(UnclearGates::Secret(_))),
            "{changed:?}"
        );
    }
}
