//! What a stranger's project may start, and what reaches a screen.

use super::super::cases::Case;
use super::world::{ensure, shell, shell_agent, start};
use crate::lab::{Lab, Trial, Trouble};

pub const CASES: &[(&str, Case)] = &[
    (
        "programs in the config of a cloned project",
        project_programs,
    ),
    ("escape sequences in names, words and files", escapes),
    ("secrets in output, status and report", secrets),
    (
        "`--env NAME` inherits, and nothing stands in the process list",
        inherited_env,
    ),
    ("a prompt file that turns into a link", prompt_link),
];

fn project_programs(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let ran = trial.world.root().join("ran");
    let stray = trial.world.program(
        "stray",
        &format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", ran.display()),
    );
    let config = format!(
        "on_event = \"{0}\"\n\n[agents.x]\ncommand = \"{0}\"\n",
        stray.display()
    );
    trial.world.write(".descartes/config.toml", config);
    for words in [
        &["agents"][..],
        &["doctor"],
        &["loop", "list"],
        &["loop", "status"],
    ] {
        trial.run(trial.descartes(words))?;
        ensure(!ran.exists(), || {
            format!("`{}` ran a program of the project", words.join(" "))
        })?;
    }
    let ended = trial.run(start(&trial, "echo hi", &["--max-iterations", "1"]))?;
    ensure(!ran.exists(), || {
        format!("`loop start` ran a program of the project unasked; {ended}")
    })?;
    ensure(ended.code() == Some(65), || {
        format!("not asked, and not refused; {ended}")
    })
}

fn escapes(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    // A title, a cleared screen, C1, hidden text and a bidi override.
    let nasty = "\\033]0;owned\\007\\033[2J\\302\\2330m\\033[8mhidden\\033[0m\\342\\200\\256";
    let agent = format!(
        "printf 'bad {nasty}\\n'; printf 'worse {nasty}\\n' >&2; touch \"$(printf 'file-{nasty}')\"; exit 1"
    );
    let flags = [
        "--max-iterations",
        "2",
        "--name",
        "n\u{202e}ame",
        "--verify",
        "true # \u{202e}",
    ];
    let started = trial.run(start(&trial, &agent, &flags))?;
    let mut shown = vec![("loop start".to_owned(), started)];
    for words in [
        &["loop", "status"][..],
        &["loop", "list"],
        &["loop", "history"],
        &["loop", "logs"],
        &["loop", "diff", "1"],
        &["loop", "rewind", "1", "--yes"],
        &["report", "--output", "-"],
    ] {
        shown.push((words.join(" "), trial.run(trial.descartes(words))?));
    }
    for (verb, ended) in shown {
        for bytes in [&ended.stdout, &ended.stderr] {
            let text = String::from_utf8_lossy(bytes);
            let bad = text.chars().find(|c| {
                let control = c.is_control() && !matches!(c, '\n' | '\t' | '\r');
                control || ('\u{202a}'..='\u{202e}').contains(c)
            });
            ensure(bad.is_none(), || format!("`{verb}` lets {bad:?} through"))?;
        }
    }
    Ok(())
}

/// Made up here; none opens anything.
const SECRETS: [(&str, &str); 8] = [
    (
        "JWT",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    ),
    ("npm", "npm_a8Kd93kLmQ02nPzXv7Tq51wYbR6cUeJh4Gf9"),
    (
        "Stripe",
        concat!("sk_", "live_4eC39HqLyjWDarjtT1zdp7dcQm82xLpA"),
    ),
    ("Hugging Face", "hf_kLmQ02nPzXv7Tq51wYbR6cUeJh4Gf9a8Kd"),
    ("password", "password=Tr0ub4dor-and-3-more"),
    ("URL", "https://person:hunter2hunter2@example.invalid/x"),
    ("GitLab", concat!("glpat", "-x7Kd93kLmQ02nPzXv7Tq")),
    ("Google", "AIzaSyA8Kd93kLmQ02nPzXv7Tq51wYbR6cUeJh4"),
];

fn secrets(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    let lines: String = SECRETS
        .iter()
        .map(|(_, secret)| format!("echo 'found {secret}'\n"))
        .collect();
    let agent = format!("{lines}exit 1");
    let started = trial.run(start(&trial, &agent, &["--max-iterations", "2"]))?;
    let mut shown = vec![("loop start".to_owned(), started)];
    for words in [
        &["loop", "status"][..],
        &["loop", "history"],
        &["loop", "logs"],
        &["report", "--output", "-"],
    ] {
        shown.push((words.join(" "), trial.run(trial.descartes(words))?));
    }
    for (verb, ended) in shown {
        let text = format!("{}{}", ended.stdout(), ended.stderr());
        for (kind, secret) in SECRETS {
            let core = secret
                .split(['=', '@'])
                .rfind(|part| part.len() > 8)
                .unwrap_or(secret);
            let core = if kind == "URL" {
                "hunter2hunter2"
            } else {
                core
            };
            ensure(!text.contains(core), || {
                format!("`{verb}` shows the secret of kind {kind}")
            })?;
        }
    }
    Ok(())
}

fn inherited_env(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let agent =
        "printf '%s' \"$MY_TOKEN\" > got; tr '\\0' ' ' < /proc/$PPID/cmdline > guard; touch up";
    let mut command = start(
        &trial,
        agent,
        &["--max-iterations", "1", "--env", "MY_TOKEN"],
    );
    command.env("MY_TOKEN", "inherited-value");
    let ended = trial.run(command)?;
    ensure(
        trial.path("got").exists() && trial.world.read("got") == "inherited-value",
        || format!("not inherited; {ended}"),
    )?;
    ensure(
        !trial.world.read("guard").contains("inherited-value"),
        || "it stands in a command line".to_owned(),
    )
}

fn prompt_link(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let secret = trial.world.home().join("key");
    std::fs::write(&secret, "the-private-key").map_err(|error| error.to_string())?;
    trial.world.write("PROMPT.md", "go\n");
    let script = format!("echo \"$*\" >> got; ln -sf {} PROMPT.md", secret.display());
    let agent = shell_agent(&trial, &script);
    let words = [
        "loop",
        "start",
        "--command",
        &agent,
        "--prompt-file",
        "PROMPT.md",
        "--max-iterations",
        "3",
    ];
    let ended = trial.run(trial.descartes(&words))?;
    ensure(!trial.world.read("got").contains("the-private-key"), || {
        format!("the link was followed; {ended}")
    })?;
    shell(&trial, "true").map(drop)
}
