//! Tokens and dollars: told, priced, kept as receipts, and held to a budget.

use crate::stage::{AGENTS, Stage, recording, whole};

#[test]
fn a_budget_ends_a_run_that_reaches_it() {
    // After its first step opencode has told 1240 tokens and $0.0042, and goes on for ever.
    let script = format!("{} first 4\nhang", recording("opencode-tool"));
    for (flags, budget) in [
        (["--max-tokens", "1000"], "tokens"),
        (["--max-cost", "0.001"], "cost"),
    ] {
        let stage = Stage::new();
        let flags = [&flags[..], &["--kill-grace", "1s"]].concat();
        stage.run("opencode", &script, &flags).assert_code(3);
        assert_eq!(stage.record("agent_ended")["ended_by"]["budget"], budget);
        let reason = stage.reason();
        assert_eq!(
            (reason["type"].as_str(), reason["budget"].as_str()),
            (Some("budget_exhausted"), Some(budget))
        );
    }
}

#[test]
fn a_budget_in_dollars_holds_for_priced_tokens_while_they_are_spent() {
    let stage = priced("claude-*");
    let turn = r#"{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-x","content":[{"type":"text","text":"at work"}],"usage":{"input_tokens":600,"output_tokens":1}}}"#;
    let script = format!("print {turn}\nhang");
    stage
        .run(
            "claude",
            &script,
            &[&BUDGET[..], &["--model", "claude-x"]].concat(),
        )
        .assert_code(3);
    let ended = stage.record("agent_ended");
    assert_eq!(ended["ended_by"]["budget"], "cost", "{ended:#}");
    assert_eq!(ended["cost"]["estimated"], true);
}

#[test]
fn an_agent_that_told_its_result_is_not_cut_off_and_its_price_counts() {
    let stage = priced("gpt-*");
    let script = format!("{}\nhang", recording("codex-early-promise"));
    stage
        .run(
            "codex",
            &script,
            &[&BUDGET[..], &["--model", "gpt-5"]].concat(),
        )
        .assert_code(3);
    let ended = stage.record("agent_ended");
    assert_eq!(ended["ended_by"], "result", "{ended:#}");
    assert_eq!(ended["cost"]["estimated"], true);
}

const BUDGET: [&str; 4] = ["--max-cost", "0.2", "--kill-grace", "1s"];

/// A stage on which tokens of these models have a price.
fn priced(models: &str) -> Stage {
    let stage = Stage::new();
    let prices = format!("[prices.\"{models}\"]\ninput = 1000.0\noutput = 1000.0\n");
    stage.world.write(".descartes/config.toml", prices);
    stage
}

#[test]
fn every_iteration_has_its_receipt() {
    for agent in AGENTS {
        let stage = Stage::new();
        stage
            .run(agent, &whole(&format!("{agent}-tool")), &[])
            .assert_code(0);
        let ended = stage.record("agent_ended");
        assert!(
            ended["tokens"]["output"].as_u64().is_some_and(|n| n > 0),
            "{agent}: {ended:#}"
        );
        let told = matches!(agent, "claude" | "opencode");
        assert_eq!(ended["cost"]["micros"].is_u64(), told, "{agent}: {ended:#}");
        let history = stage
            .world
            .run(stage.world.descartes(["loop", "history"]))
            .stdout();
        assert_eq!(history.contains('$'), told, "{agent}: {history}");
        assert!(
            !history.contains('?') && (told || history.contains('–')),
            "unknown is told as unknown: {agent}: {history}"
        );
    }
}

#[test]
fn prices_are_the_users_and_their_sums_are_marked() {
    let stage = Stage::new();
    stage.world.write(
        ".descartes/config.toml",
        "[prices.gpt-5]\ninput = 2.0\noutput = 10.0\n",
    );
    let run = stage.run(
        "codex",
        &whole("codex-tool"),
        &["--model", "gpt-5", "--max-cost", "5"],
    );
    run.assert_code(0);
    assert_eq!(stage.record("agent_ended")["cost"]["estimated"], true);
    assert!(run.stdout().contains("~$"), "{run}");
}

#[test]
fn a_budget_that_can_never_be_reached_is_refused() {
    let stage = Stage::new();
    let run = stage.run("codex", "touch ran", &["--max-cost", "1"]);
    run.assert_code(65);
    assert!(run.stderr().contains("[prices]"), "{run}");
    assert!(!stage.world.has("ran"));
}
