//! A user's own arrangement of a spec.

use thiserror::Error;

use descartes_text::finding::nearest;

const NAMES: [&str; 4] = ["task", "plan", "custom", "verification"];

/// A template that would lose something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// It does not hold the task.
    #[error("the template has no {{task}}: the agent would not be told what to do")]
    NoTask,
    /// It holds a name that is nearly one of the four.
    #[error("`{{{name}}}` is unknown; did you mean `{{{meant}}}`?")]
    UnknownName {
        name: String,
        /// What may be meant.
        meant: String,
    },
}

/// Checks a template before any agent starts. Braces that are not near a known name are text.
pub fn check_template(template: &str) -> Result<(), TemplateError> {
    for (name, _) in holes(template) {
        let meant = nearest(name, NAMES).filter(|_| !NAMES.contains(&name));
        if let Some(meant) = meant {
            let (name, meant) = (name.to_owned(), meant.to_owned());
            return Err(TemplateError::UnknownName { name, meant });
        }
    }
    match template.contains("{task}") {
        true => Ok(()),
        false => Err(TemplateError::NoTask),
    }
}

/// Words in braces, and where they begin.
fn holes(template: &str) -> impl Iterator<Item = (&str, usize)> {
    template.match_indices('{').filter_map(|(at, _)| {
        let name = template[at + 1..].split('}').next()?;
        let is_word = template[at + 1 + name.len()..].starts_with('}')
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_lowercase());
        is_word.then_some((name, at))
    })
}

/// The four parts put together: by the template, or one after the other.
///
/// What is put in is not looked at again, so a text that holds `{plan}` stays as it is.
pub(super) fn assemble(template: Option<&str>, parts: [&str; 4]) -> String {
    let Some(template) = template else {
        let told: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        return told.join("\n\n");
    };
    let mut out =
        String::with_capacity(template.len() + parts.iter().map(|part| part.len()).sum::<usize>());
    let mut at = 0;
    for (name, hole) in holes(template) {
        if let Some(slot) = NAMES.iter().position(|known| *known == name) {
            out.push_str(&template[at..hole]);
            out.push_str(parts[slot]);
            at = hole + name.len() + 2;
        }
    }
    out.push_str(&template[at..]);
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_once() {
        let parts = ["T {plan}", "P", "", "V"];
        assert_eq!(
            assemble(
                Some("a {task} b {plan}{custom} {x} {}{verification}"),
                parts
            ),
            "a T {plan} b P {x} {}V"
        );
        assert_eq!(assemble(None, parts), "T {plan}\n\nP\n\nV");
    }

    #[test]
    fn templates_that_would_lose_something_are_refused() {
        assert_eq!(check_template("{task} and { anything } and {json}"), Ok(()));
        assert_eq!(check_template("{plan}"), Err(TemplateError::NoTask));
        let error = check_template("{task} {custm}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`{custm}` is unknown; did you mean `{custom}`?"
        );
    }
}
