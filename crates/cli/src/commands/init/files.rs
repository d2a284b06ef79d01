//! What `init` writes.

use super::project::Project;

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Its path in the project.
    pub path: &'static str,
    pub text: String,
}

/// The project's config.
pub const CONFIG: &str = ".descartes/config.toml";

/// All files for a project.
pub fn all(project: &Project) -> Vec<NewFile> {
    vec![
        NewFile {
            path: "PROMPT.md",
            text: prompt(project),
        },
        NewFile {
            path: "AGENTS.md",
            text: agents(project),
        },
        NewFile {
            path: "specs/README.md",
            text: SPECS.to_owned(),
        },
        NewFile {
            path: CONFIG,
            text: config(project),
        },
    ]
}

/// PROMPT.md, before and behind the line that names the project's own check.
const PROMPT: (&str, &str) = (
    "# Task\n\n\
     Describe here what should be done, and how to tell that it is done. For example:\n\n\
     - the behaviour you want, with an example of input and output\n\
     - what must not change\n\n\
     # How to work\n\n\
     - Read AGENTS.md and the files in specs/ first.\n\
     - Take one step at a time. Your work persists in the files from iteration to iteration.\n\
     - ",
    "\n\n\
     When everything is done, print this on a line of its own:\n\n\
     <promise>COMPLETE</promise>\n\n\
     If it cannot be done, say why, then print:\n\n\
     <promise>BLOCKED</promise>\n",
);

fn prompt(project: &Project) -> String {
    let check = match project.gates.first() {
        Some(gate) => {
            format!("Before you say that you are done, run `{gate}` and make sure it passes.")
        }
        None => "Before you say that you are done, check that it works.".to_owned(),
    };
    let (before, behind) = PROMPT;
    format!("{before}{check}{behind}")
}

/// Whether a prompt is PROMPT.md as it was written: nobody has said yet what should be done.
pub fn is_untouched_prompt(text: &str) -> bool {
    let text = text.replace("\r\n", "\n");
    let (before, behind) = PROMPT;
    let check = text.trim().strip_prefix(before);
    let check = check.and_then(|rest| rest.strip_suffix(behind.trim_end()));
    check.is_some_and(|check| !check.contains('\n'))
}

fn agents(project: &Project) -> String {
    let mut out = String::from(
        "# Notes for agents\n\n\
         Keep this file short: it is read in every iteration. Write down what is not obvious \
         from the code.\n\n\
         ## Commands\n\n",
    );
    if project.commands.is_empty() {
        out.push_str("- (how to build and test)\n");
    }
    for (name, command) in &project.commands {
        out.push_str(&format!("- {name}: `{command}`\n"));
    }
    out.push_str("\n## Conventions\n\n- (what a newcomer is likely to get wrong)\n");
    out
}

const SPECS: &str = "# Specs\n\n\
    One file for each part of what should be built: what it does, seen from outside, and how to \
    check it.\n\
    Give a file to a loop with `--spec-file specs/NAME.md`; it is then put before the prompt in \
    every iteration.\n";

fn config(project: &Project) -> String {
    let mut out = String::from(
        "# Settings of this project. All keys and their defaults: descartes config defaults\n\
         # This folder keeps itself out of git; to share this file: git add -f .descartes/config.toml\n\n\
         # The task, read again in every iteration.\n\
         prompt_file = \"PROMPT.md\"\n\n",
    );
    if project.gates.is_empty() {
        out.push_str(
            "# A command that proves the work. Without one there is only the agent's word for it.\n\
             #verify = [\"./check.sh\"]\n",
        );
    } else {
        let gates: Vec<String> = project
            .gates
            .iter()
            .map(|gate| toml::Value::String(gate.clone()).to_string())
            .collect();
        out.push_str("# The work is done when these pass, whatever the agent says.\n");
        out.push_str(&format!("verify = [{}]\n", gates.join(", ")));
    }
    out.push_str(
        "\n# The agent: a command, or claude, codex, gemini, opencode.\n\
         #default_agent = \"claude\"\n\n\
         # What it may do without asking, since nobody is there to answer: \"edit\" lets it \
         change files here,\n\
         # \"all\" lets it do anything (best in a sandbox), \"agent\" leaves it to the agent's own settings.\n\
         permissions = \"edit\"\n\n\
         max_iterations = 20\n",
    );
    if project.git {
        out.push_str("\n# Commit after each iteration.\n#auto_commit = true\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_kernel::config::Permissions;
    use descartes_store::config::{ConfigPlaces, Layers};

    #[test]
    fn the_config_is_read_back_with_the_gate_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let gates = vec![
            "cargo check && cargo test".to_owned(),
            "say \"hi\"".to_owned(),
        ];
        for project in [
            Project {
                gates: gates.clone(),
                git: true,
                ..Project::default()
            },
            Project::default(),
        ] {
            std::fs::write(&file, config(&project)).unwrap();
            let places = ConfigPlaces {
                project_file: Some(file.clone()),
                ..Default::default()
            };
            let layers = Layers::load(&places).unwrap();
            assert!(layers.unknown().is_empty());
            let verify = layers.settings.verify.get();
            assert_eq!(verify.unwrap_or_default(), project.gates);
            let file = layers.settings.prompt_file.get();
            assert_eq!(file, Some("PROMPT.md".into()));
            assert_eq!(layers.settings.permissions.get(), Some(Permissions::Edit));
        }
    }

    #[test]
    fn the_prompt_tells_both_promises_and_the_gate() {
        let project = Project {
            gates: vec!["make test".into()],
            ..Project::default()
        };
        let text = prompt(&project);
        for words in [
            "<promise>COMPLETE</promise>",
            "<promise>BLOCKED</promise>",
            "`make test`",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }
}
