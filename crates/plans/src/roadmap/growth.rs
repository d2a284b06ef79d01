//! Asking an agent for one more task when all are done, and reading its answer.

use std::time::Duration;

use super::edit::NewTask;
use super::model::Roadmap;
use super::value::duration;
use descartes_text::units::show_duration;

/// Times that an agent may give its own task.
const SHORTEST: Duration = Duration::from_secs(5 * 60);
const LONGEST: Duration = Duration::from_secs(120 * 60);

/// What an agent is asked when every task is done.
pub fn growth_prompt(roadmap: &Roadmap) -> String {
    let mut parts = vec![format!(
        "Every task of the roadmap{} is done. Look at the project and propose exactly one more \
         task, small enough for one session. Do not change any files.",
        roadmap
            .title
            .as_ref()
            .map_or_else(String::new, |title| format!(" \"{title}\""))
    )];
    if !roadmap.objective.trim().is_empty() {
        parts.push(format!("## Objective\n\n{}", roadmap.objective.trim()));
    }
    let list = |items: Vec<String>| items.join("\n");
    if !roadmap.growth.is_empty() {
        let ideas = roadmap.growth.iter().map(|idea| format!("- {idea}"));
        parts.push(format!("## Where to grow\n\n{}", list(ideas.collect())));
    }
    let done = roadmap.tasks.iter();
    let done = done.map(|task| format!("- {}: {}", task.id, task.description));
    parts.push(format!("## Done\n\n{}", list(done.collect())));
    parts.push(
        "Answer with these lines and nothing else:\n\n\
         TASK_ID: a short name in lower case, with dashes\n\
         DESCRIPTION: what to do, in one line\n\
         TIMEOUT: minutes for one attempt\n\
         SUCCESS_CRITERIA: how to tell that it is done, in one line\n\
         CHECK: a shell command that proves it, or none"
            .to_owned(),
    );
    parts.join("\n\n")
}

/// The task in an agent's answer, or why there is none.
pub fn growth_reply(text: &str) -> Result<NewTask, String> {
    let field = |name: &str| {
        let of = |line: &str| {
            let line = line.trim().trim_start_matches(['*', '-', ' ', '`']);
            let (key, value) = line.split_once(':')?;
            let is_key = key.trim_matches(['*', ' ', '`']).eq_ignore_ascii_case(name);
            let value = value.trim().trim_matches(['*', '`']).trim();
            (is_key && !value.is_empty()).then(|| value.to_owned())
        };
        text.lines().rev().find_map(of)
    };
    let (Some(id), Some(description)) = (field("TASK_ID"), field("DESCRIPTION")) else {
        return Err("the answer has no TASK_ID and DESCRIPTION".to_owned());
    };
    let mut keys = Vec::new();
    let asked = field("TIMEOUT").and_then(|text| duration(&text).map(|(time, _)| time));
    if let Some(asked) = asked {
        let time = asked.clamp(SHORTEST, LONGEST);
        keys.push(("timeout".to_owned(), show_duration(time)));
    }
    if let Some(success) = field("SUCCESS_CRITERIA") {
        keys.push(("success".to_owned(), success));
    }
    let check = field("CHECK").filter(|check| !check.eq_ignore_ascii_case("none"));
    keys.extend(check.map(|check| ("check".to_owned(), check)));
    Ok(NewTask {
        id,
        description,
        keys,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roadmap::parse;

    #[test]
    fn the_prompt_tells_what_there_is_and_how_to_answer() {
        let text = "# Roadmap: Tides\n## Objective\nPrint tides.\n## Tasks\n- [x] **a**: Read\n## Growth Mode\n1. Add a harbour\n";
        let prompt = growth_prompt(&parse(text));
        for words in [
            "\"Tides\"",
            "Print tides.",
            "- Add a harbour",
            "- a: Read",
            "TASK_ID:",
        ] {
            assert!(prompt.contains(words), "{words}: {prompt}");
        }
        // An agent that echoes its prompt proposes nothing that would be run.
        let echoed = growth_reply(&prompt).unwrap();
        assert!(echoed.id.contains(' '));
    }

    #[test]
    fn answers_are_read_as_agents_write_them_and_times_are_held_within_bounds() {
        let text = "Here it is:\n\n**TASK_ID:** add-brest\n- DESCRIPTION: Add Brest\nTIMEOUT: 500\n\
            SUCCESS_CRITERIA: `tides Brest` prints\nCHECK: `tides Brest | grep -c .`\n";
        let task = growth_reply(text).unwrap();
        assert_eq!(
            (task.id.as_str(), task.description.as_str()),
            ("add-brest", "Add Brest")
        );
        let keys: Vec<(&str, &str)> = task
            .keys
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(keys[0], ("timeout", "2h"));
        assert_eq!(keys[2], ("check", "tides Brest | grep -c ."));
        let short = growth_reply("TASK_ID: a\nDESCRIPTION: b\nTIMEOUT: 1\nCHECK: none\n").unwrap();
        assert_eq!(short.keys, [("timeout".to_owned(), "5m".to_owned())]);
        assert!(growth_reply("I have no idea").is_err());
    }
}
