use super::*;
use crate::agent::{Delivery, GENERIC, Profiles, PromptError};

fn profiles() -> Profiles {
    Profiles::builtin()
}

fn words(line: &str) -> Vec<String> {
    shell_words::split(line).unwrap()
}

fn built(command: &str, choices: &Choices) -> Invocation {
    let profiles = profiles();
    let words = words(command);
    build(
        profiles.get(profiles.guess(&words)).unwrap(),
        &words,
        choices,
    )
}

fn with(permissions: Permissions) -> Choices {
    Choices {
        permissions,
        ..Choices::default()
    }
}

#[test]
fn agents_are_guessed_from_the_command() {
    let table = [
        ("claude", "claude"),
        ("/opt/bin/claude --model x", "claude"),
        ("env A=1 claude", "claude"),
        ("npx -y @anthropic-ai/claude-code", "claude"),
        ("npx @openai/codex@0.166.0", "codex"),
        ("bunx opencode-ai run", "opencode"),
        ("uvx aider-chat", "aider"),
        ("npx -p @google/gemini-cli gemini", "gemini"),
        ("cursor-agent -p", "cursor-agent"),
        ("copilot", "copilot"),
        ("qwen", "qwen"),
        ("npx @continuedev/cli -p", "cn"),
        ("uvx gptme", "gptme"),
        ("droid exec", "droid"),
        ("python3 agent.py", GENERIC),
        ("sh -c claude", GENERIC),
        ("claude-wrapper", GENERIC),
        ("", GENERIC),
    ];
    let profiles = profiles();
    for (command, want) in table {
        assert_eq!(profiles.guess(&words(command)), want, "{command}");
    }
}

#[test]
fn command_lines_hold_what_is_needed_and_nothing_twice() {
    let table = [
        ("claude", "claude -p --output-format stream-json --verbose"),
        (
            "claude --print --verbose",
            "claude --print --verbose --output-format stream-json",
        ),
        (
            "claude --output-format stream-json",
            "claude --output-format stream-json -p --verbose",
        ),
        (
            "claude --output-format=text",
            "claude --output-format=text -p",
        ),
        (
            "claude -p -- x",
            "claude -p --output-format stream-json --verbose -- x",
        ),
        (
            "npx -y @anthropic-ai/claude-code",
            "npx -y @anthropic-ai/claude-code -p --output-format stream-json --verbose",
        ),
        ("codex", "codex exec --json --skip-git-repo-check"),
        (
            "codex -m o3",
            "codex exec -m o3 --json --skip-git-repo-check",
        ),
        (
            "codex exec --experimental-json",
            "codex exec --experimental-json --skip-git-repo-check",
        ),
        ("gemini", "gemini --output-format stream-json"),
        ("gemini -o json", "gemini -o json"),
        (
            "opencode run --format json",
            "opencode run --format json --print-logs --log-level ERROR",
        ),
        (
            "env A=1 opencode",
            "env A=1 opencode run --print-logs --log-level ERROR --format json",
        ),
        ("my-script --flag", "my-script --flag"),
    ];
    for (command, want) in table {
        let argv = built(command, &Choices::default()).argv;
        assert_eq!(argv.join(" "), want);
    }
}

#[test]
fn the_profiles_own_command_stands_in_for_none() {
    let profiles = profiles();
    let argv = build(profiles.get("codex").unwrap(), &[], &Choices::default()).argv;
    assert_eq!(argv[..2], ["codex", "exec"]);
}

#[test]
fn the_users_format_picks_the_parser() {
    let table = [
        ("claude", StreamKind::Claude, "stream-json", Reports::Cost),
        (
            "claude --output-format json",
            StreamKind::Claude,
            "json",
            Reports::Cost,
        ),
        (
            "claude --output-format text",
            StreamKind::Text,
            "text",
            Reports::Nothing,
        ),
        (
            "gemini --output-format=json",
            StreamKind::Jsonl,
            "json",
            Reports::Tokens,
        ),
        (
            "opencode run --format default",
            StreamKind::Text,
            "default",
            Reports::Nothing,
        ),
        ("codex", StreamKind::Codex, "json", Reports::Tokens),
        ("ls", StreamKind::Text, "text", Reports::Nothing),
    ];
    for (command, stream, format, reports) in table {
        let got = built(command, &Choices::default());
        assert_eq!(
            (got.stream, got.output_format.as_str(), got.reports),
            (stream, format, reports),
            "{command}"
        );
        assert!(got.notices.is_empty() && got.parser().is_ok());
    }
    let json = Choices {
        output_format: Some("json".into()),
        ..Choices::default()
    };
    let wanted = [
        ("claude", "json"),
        ("claude --output-format text", "text"),
        ("codex", "json"),
        ("ls", "text"),
    ];
    for (command, format) in wanted {
        assert_eq!(built(command, &json).output_format, format, "{command}");
    }
    let odd = built("claude --output-format yaml", &Choices::default());
    assert_eq!(odd.stream, StreamKind::Text);
    assert!(
        matches!(&odd.notices[..], [AgentNotice::UnknownFormat { value, .. }] if value == "yaml")
    );
}

#[test]
fn permissions_are_given_in_the_agents_own_way() {
    use Permissions::*;
    let table = [
        ("claude", Edit, "--permission-mode acceptEdits"),
        ("claude", All, "--dangerously-skip-permissions"),
        ("codex", Edit, "--sandbox workspace-write"),
        ("codex", All, "--dangerously-bypass-approvals-and-sandbox"),
        ("gemini", Edit, "--approval-mode auto_edit"),
        ("gemini", All, "--yolo"),
        ("opencode", All, "--auto"),
        ("qwen", All, "--yolo"),
        ("copilot", All, "--allow-all-tools"),
        ("cn", All, "--auto"),
        ("droid", Edit, "--auto low"),
        ("droid", All, "--skip-permissions-unsafe"),
        ("cline", All, "--auto-approve true"),
        ("kilo", All, "--auto"),
    ];
    for (command, permissions, want) in table {
        let got = built(command, &with(permissions));
        assert!(
            shell_words::join(&got.argv).ends_with(want),
            "{:?}",
            got.argv
        );
        assert!(got.granted && got.notices.is_empty());
        assert!(!built(command, &with(Agent)).granted, "{command}");
    }
    assert!(
        built("opencode", &with(Edit))
            .env
            .contains_key("OPENCODE_PERMISSION")
    );
}

#[test]
fn the_users_own_permission_flags_stand() {
    let table = [
        ("claude --allowed-tools Bash", "--allowedTools"),
        (
            "codex exec -c sandbox_mode=workspace-write",
            "-c sandbox_mode",
        ),
        (
            "codex exec --yolo",
            "--dangerously-bypass-approvals-and-sandbox",
        ),
        ("gemini -y", "--yolo"),
    ];
    for (command, flag) in table {
        let got = built(command, &with(Permissions::All));
        let notice = AgentNotice::PermissionsGiven { flag: flag.into() };
        assert_eq!(got.notices, [notice], "{command}");
        assert!(got.granted && built(command, &with(Permissions::Agent)).granted);
    }
    // More is never granted than was asked for.
    let edit = built("cursor-agent", &with(Permissions::Edit));
    assert!(!edit.granted && !edit.argv.contains(&"--force".to_owned()));
    assert!(matches!(
        edit.notices[..],
        [AgentNotice::NoPermissionFlag { .. }]
    ));
}

#[test]
fn models_are_passed_once() {
    let opus = Choices {
        model: Some("opus".into()),
        ..Choices::default()
    };
    let argv = |command| shell_words::join(built(command, &opus).argv);
    assert!(argv("claude").ends_with("--model opus"));
    assert!(!argv("codex -m o3").contains("opus"));
    let given = built("codex -m o3", &opus).notices;
    assert!(matches!(&given[..], [AgentNotice::ModelGiven { flag, .. }] if flag == "--model"));
    assert!(matches!(
        built("ls", &opus).notices[..],
        [AgentNotice::NoModelFlag { .. }]
    ));
}

#[test]
fn prompts_travel_as_the_mode_says() {
    use PromptMode::{Arg, Env, File, Stdin};
    let table = [
        ("claude", None, &[][..], Stdin),
        ("claude", Some(Arg), &["--", "-p do it"][..], Arg),
        ("codex", None, &["-"][..], Stdin),
        ("gemini", Some(Arg), &["--prompt=-p do it"][..], Arg),
        ("aider", None, &["--message-file", "/tmp/p"][..], File),
        ("echo", None, &["-p do it"][..], Arg),
        ("echo", Some(Env), &[][..], Env),
        ("echo", Some(File), &["/tmp/p"][..], File),
        ("echo", Some(PromptMode::None), &[][..], PromptMode::None),
    ];
    let profiles = profiles();
    for (command, mode, tail, want) in table {
        let profile = profiles.get(profiles.guess(&words(command))).unwrap();
        let choices = Choices {
            prompt_mode: mode,
            ..Choices::default()
        };
        let invocation = build(profile, &words(command), &choices);
        let Delivery {
            argv,
            mode,
            switched,
        } = invocation.deliver(profile, "-p do it", "/tmp/p").unwrap();
        assert_eq!(argv[invocation.argv.len()..], *tail, "{command} {mode:?}");
        assert_eq!((mode, switched), (want, false));
    }
}

#[test]
fn long_prompts_go_by_stdin_or_not_at_all() {
    let profiles = profiles();
    let deliver = |name: &str, prompt: &str| {
        let profile = profiles.get(name).unwrap();
        build(profile, &words("x"), &Choices::default()).deliver(profile, prompt, "/f")
    };
    let long = "x".repeat(100 * 1024 + 1);
    let sent = deliver(GENERIC, &long).unwrap();
    assert_eq!(
        (sent.mode, sent.switched, sent.argv.len()),
        (PromptMode::Stdin, true, 1)
    );
    assert!(deliver("codex", &"ä".repeat(1_048_576)).is_ok());
    let too_long = |agent: &str, length, unit, limit| PromptError::TooLong {
        agent: agent.into(),
        length,
        unit,
        limit,
    };
    assert_eq!(
        deliver("codex", &"ä".repeat(1_048_577)),
        Err(too_long("codex", 1_048_577, "characters", 1_048_576))
    );
    assert_eq!(
        deliver("gemini", &"x".repeat(8_388_609)),
        Err(too_long("gemini", 8_388_609, "bytes", 8_388_608))
    );
    assert_eq!(deliver(GENERIC, "a\0b"), Err(PromptError::Nul));
    assert!(deliver("claude", "a\0b").is_ok());
}

#[test]
fn it_is_known_which_commands_take_all_checks_away() {
    let table = [
        ("claude", false),
        ("claude --permission-mode acceptEdits", false),
        ("claude --permission-mode bypassPermissions", true),
        ("claude --permission-mode=bypassPermissions", true),
        ("claude --dangerously-skip-permissions", true),
        ("claude -- --dangerously-skip-permissions", false),
        ("codex exec --full-auto", false),
        ("codex exec -s workspace-write", false),
        ("codex exec -s danger-full-access", true),
        ("codex exec --yolo", true),
        ("codex exec -c sandbox_mode=danger-full-access", true),
        ("gemini --approval-mode auto_edit", false),
        ("gemini --approval-mode yolo", true),
        ("gemini -y", true),
        ("copilot --allow-tool write", false),
        ("copilot --yolo", true),
        ("cline --auto-approve false", false),
        ("cline --auto-approve true", true),
        ("goose run", false),
        ("opencode run", true),
        ("pi", true),
        (
            "python3 agent.py --yolo --dangerously-skip-permissions",
            false,
        ),
    ];
    for (command, want) in table {
        let invocation = built(command, &Choices::default());
        assert_eq!(invocation.skips_checks, want, "{command}");
    }
}

#[test]
fn a_sandbox_of_the_agents_own_is_turned_off_inside_ours() {
    let confined = |permissions| Choices {
        permissions,
        confined_by: ConfinedBy::Us,
        ..Choices::default()
    };
    let (agent, edit, all) = (Permissions::Agent, Permissions::Edit, Permissions::All);
    let full = Some("--sandbox danger-full-access");
    let bypass = Some("--dangerously-bypass-approvals-and-sandbox");
    // Command, permissions, what turns it off, and how often the flag stands in the command line.
    let table = [
        ("codex", agent, full, 1),
        ("codex", edit, full, 1),
        ("codex", all, bypass, 0),
        ("codex exec --yolo", agent, bypass, 0),
        ("codex exec -s danger-full-access", edit, full, 0),
        ("codex exec --sandbox=danger-full-access", edit, full, 1),
        ("codex exec --sandbox workspace-write", edit, None, 1),
        ("codex exec --full-auto", agent, None, 0),
        ("codex exec -c sandbox_mode=read-only", agent, None, 0),
    ];
    for (command, permissions, off, times) in table {
        let built = built(command, &confined(permissions));
        assert_eq!(built.own_sandbox_off.as_deref(), off, "{command}");
        let is_flag = |word: &&String| word.starts_with("--sandbox");
        assert_eq!(
            built.argv.iter().filter(is_flag).count(),
            times,
            "{command}"
        );
        let left = |notice: &AgentNotice| matches!(notice, AgentNotice::OwnSandbox { .. });
        // Either it is off, or the user is told that it is not.
        assert_ne!(built.notices.iter().any(left), off.is_some(), "{command}");
    }
    let settings = r#"{"sandbox":{"enabled":false}}"#;
    for permissions in [agent, edit, all] {
        let claude = built("claude", &confined(permissions));
        assert!(
            claude.argv.iter().any(|word| word == settings),
            "{:?}",
            claude.argv
        );
        let gemini = built("gemini", &confined(permissions));
        assert_eq!(gemini.off_env["GEMINI_SANDBOX"], "false");
        assert_eq!(
            gemini.own_sandbox_off.as_deref(),
            Some("GEMINI_SANDBOX=false")
        );
        let opencode = built("opencode", &confined(permissions));
        assert_eq!(opencode.own_sandbox_off, None, "it has none");
        // Nothing of that where the agent confines itself.
        for command in ["claude", "codex", "gemini"] {
            let alone = built(command, &with(permissions));
            assert_eq!(alone.own_sandbox_off, None, "{command}");
            assert!(alone.off_env.is_empty() && !alone.argv.iter().any(|word| word == settings));
        }
    }
    let own = built("claude --settings mine.json", &confined(all));
    assert_eq!(own.own_sandbox_off, None);
    assert!(
        own.notices
            .iter()
            .any(|notice| notice.to_string().contains("--settings"))
    );
}
