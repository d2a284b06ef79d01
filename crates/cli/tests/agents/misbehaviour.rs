//! Agents that are stuck, limited or merely slow, side by side: the right verdict in each, no
//! false alarm, nothing counted while limited.

use crate::stage::{Stage, whole};

/// What a loop must come to.
enum Verdict {
    /// It stops by itself, with this reason, after so many iterations.
    Stops(&'static str, u64),
    /// It is let work until its last allowed iteration.
    WorksOn,
    /// It is done.
    Done,
    /// It waits, and nothing is counted.
    Waits,
}

struct Agent {
    name: &'static str,
    backend: &'static str,
    script: String,
    flags: &'static [&'static str],
    git: bool,
    verdict: Verdict,
}

fn plain(
    name: &'static str,
    script: &str,
    flags: &'static [&'static str],
    verdict: Verdict,
) -> Agent {
    Agent {
        name,
        backend: "generic",
        script: script.to_owned(),
        flags,
        git: true,
        verdict,
    }
}

const STALL: &[&str] = &["--stall-after", "2", "-m", "8"];

fn agents() -> Vec<Agent> {
    use Verdict::{Done, Stops, Waits, WorksOn};
    let mut all = vec![
        plain(
            "identical output",
            "print I am working on it.",
            STALL,
            Stops("stalled", 4),
        ),
        plain(
            "identical error",
            "err error: it does not compile\nexit 1",
            &["--max-failures", "3"],
            Stops("agent_failed", 3),
        ),
        plain(
            "only touches its files",
            "sh touch README.md\nprint done soon",
            STALL,
            Stops("stalled", 4),
        ),
        plain(
            "two outputs in turn",
            "@1 print A\n@2 print B\n@3 print A\n@4 print B\n@5- print A",
            STALL,
            Stops("stalled", 4),
        ),
        // The second iteration is the last that brings something new.
        plain(
            "two contents in turn",
            "sh if grep -q one work; then echo two > work; else echo one > work; fi",
            STALL,
            Stops("stalled", 6),
        ),
        plain(
            "two contents in turn, committed",
            "sh if grep -q one work; then echo two > work; else echo one > work; fi",
            &["--stall-after", "2", "-m", "8", "--auto-commit"],
            Stops("stalled", 6),
        ),
        plain(
            "writes the time and nothing else",
            "sh date +%s%N > .git/when\nprint ${ITERATION} o'clock",
            STALL,
            Stops("stalled", 4),
        ),
        plain(
            "commits each time",
            "append notes ${ITERATION}\ngit-commit step ${ITERATION}",
            &["--stall-after", "2", "-m", "6"],
            WorksOn,
        ),
        Agent {
            git: false,
            ..plain(
                "no git, nothing done",
                "print hm",
                STALL,
                Stops("stalled", 4),
            )
        },
        Agent {
            git: false,
            ..plain(
                "no git, work done",
                "append notes ${ITERATION}",
                &["--stall-after", "2", "-m", "6"],
                WorksOn,
            )
        },
        plain(
            "slow but real",
            "cpu 3s\npromise",
            &["--idle-timeout", "1s", "-m", "1"],
            Done,
        ),
        Agent {
            backend: "claude",
            ..plain(
                "no-op",
                "exit 0",
                &["--max-failures", "2"],
                Stops("agent_failed", 2),
            )
        },
        plain(
            "growing diff, the same gate red",
            "append notes more and more ${ITERATION}\npromise",
            &["--verify", "false", "--stall-after", "2", "-m", "6"],
            WorksOn,
        ),
        Agent {
            backend: "claude",
            ..plain(
                "limit text in a tool result",
                &whole("claude-tool-says-promise"),
                &["-m", "2"],
                WorksOn,
            )
        },
        Agent {
            backend: "claude",
            ..plain(
                "permission denied",
                &whole("claude-denied"),
                &["--max-failures", "2"],
                Stops("agent_failed", 2),
            )
        },
    ];
    let wordings = [
        "Claude AI usage limit reached|4102444800",
        "You've hit your limit · resets 3am (Europe/Berlin)",
        "You’ve hit your usage limit. Upgrade to Pro or try again at 1:18 AM.",
        "[API Error: You have exhausted your daily quota on this model.]",
        "Error: 429 Too Many Requests, retry after 3600 seconds",
        "API Error: 529 Overloaded",
    ];
    all.extend(wordings.map(|words| plain(words, &format!("err {words}\nexit 1"), &[], Waits)));
    all
}

#[test]
fn every_misbehaviour_gets_the_right_verdict() {
    let wrong: Vec<String> = agents()
        .iter()
        .filter_map(|agent| {
            play(agent)
                .err()
                .map(|wrong| format!("{}: {wrong}", agent.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn play(agent: &Agent) -> Result<(), String> {
    let stage = Stage::new();
    if agent.git {
        stage.world.git_init();
    }
    let iterations = |stage: &Stage| stage.records("iteration_finished").len() as u64;
    if let Verdict::Waits = agent.verdict {
        let running = stage.spawn(agent.backend, &agent.script, agent.flags);
        stage.await_record("wait_started");
        running.end();
        return match (iterations(&stage), stage.starts()) {
            (0, 1) => Ok(()),
            (counted, starts) => Err(format!("{counted} iterations counted, {starts} starts")),
        };
    }
    let code = stage.run(agent.backend, &agent.script, agent.flags).code();
    let reason = stage.reason()["type"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let seen = (reason.as_str(), iterations(&stage));
    let right = match agent.verdict {
        Verdict::Stops(reason, count) => seen == (reason, count),
        Verdict::WorksOn => seen.0 == "max_iterations_reached",
        Verdict::Done => code == Some(0),
        Verdict::Waits => false,
    };
    match right {
        true => Ok(()),
        false => Err(format!(
            "{reason} after {} iterations, exit code {code:?}",
            seen.1
        )),
    }
}
