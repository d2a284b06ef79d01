//! An agent that cannot ask would be denied its tools: the person at the terminal says what it may do.

use descartes_agents::agent::Denied;
use descartes_kernel::config::Permissions;

use crate::printer::Printer;
use crate::within::refuse_from_within;

/// Asks; `None` is no, or nobody there to ask.
pub fn ask(denied: &Denied, printer: &Printer) -> Option<Permissions> {
    if refuse_from_within("--permissions").is_err() {
        return None;
    }
    let mut words = Vec::new();
    let mut answers = Vec::new();
    for way in &denied.ways {
        let (answer, means) = match way {
            Permissions::Agent => continue,
            Permissions::Edit => (
                "edit",
                "change files; it cannot run commands, such as your tests",
            ),
            Permissions::All => ("all", "do anything, in the sandbox where one works here"),
        };
        words.push(format!("\n  {answer:<5} {means}"));
        answers.push((answer, Some(*way)));
    }
    if answers.is_empty() {
        return None;
    }
    words.push(format!("\n  {:<5} do not start", "no"));
    answers.push(("no", None));
    let keep = answers.first().map_or("all", |(answer, _)| *answer);
    let question = format!(
        "What may {} do without asking? While a loop runs, nobody is there to answer it.{}\n\
         to keep the answer: --permissions {keep}, or permissions = \"{keep}\" in the config\n",
        denied.agent,
        words.concat()
    );
    printer.choose(&question, &answers).flatten()
}
