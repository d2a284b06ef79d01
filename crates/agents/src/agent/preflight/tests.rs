use super::*;
use crate::agent::{Choices, Permissions, Profiles, build};

fn check(command: &str, permissions: Permissions, host: Host<'_>) -> Result<(), PreflightError> {
    let profiles = Profiles::builtin();
    let words = shell_words::split(command).unwrap();
    let profile = profiles.get(profiles.guess(&words)).unwrap();
    let choices = Choices {
        permissions,
        ..Choices::default()
    };
    preflight(profile, &build(profile, &words, &choices), host)
}

const USER: Host<'_> = Host {
    root: false,
    has_env: &|_| false,
    settings_grant: false,
};

#[test]
fn agents_that_would_be_denied_their_tools_are_refused() {
    for command in [
        "claude",
        "codex",
        "gemini",
        "qwen",
        "copilot",
        "cursor-agent",
    ] {
        let refusal = check(command, Permissions::Agent, USER).unwrap_err();
        assert!(refusal.message.starts_with(command), "{refusal}");
        assert!(
            refusal.hint.contains("--permissions all"),
            "{}",
            refusal.hint
        );
        assert!(check(command, Permissions::All, USER).is_ok());
        let granted = Host {
            settings_grant: true,
            ..USER
        };
        assert!(check(command, Permissions::Agent, granted).is_ok());
    }
    let hint = check("claude", Permissions::Agent, USER).unwrap_err().hint;
    assert!(
        hint.contains("--permissions edit") && hint.contains("--allowedTools"),
        "{hint}"
    );
    for command in [
        "claude --allowedTools Bash",
        "codex -s workspace-write",
        "opencode",
        "crush",
        "ls",
    ] {
        assert!(
            check(command, Permissions::Agent, USER).is_ok(),
            "{command}"
        );
    }
}

#[test]
fn claude_as_root_needs_to_know_that_it_is_contained() {
    let root = Host { root: true, ..USER };
    let refusal = check("claude", Permissions::All, root).unwrap_err();
    assert!(
        refusal.hint.contains("--env IS_SANDBOX=1"),
        "{}",
        refusal.hint
    );
    assert!(check("claude", Permissions::Edit, root).is_ok());
    assert!(check("codex", Permissions::All, root).is_ok());
    let contained = Host {
        has_env: &|name| name == "IS_SANDBOX",
        ..root
    };
    assert!(check("claude", Permissions::All, contained).is_ok());
    assert!(
        check(
            "claude --dangerously-skip-permissions",
            Permissions::Agent,
            root
        )
        .is_err()
    );
}

#[test]
fn settings_files_grant_what_they_say() {
    let profiles = Profiles::builtin();
    let file = |name: &str| profiles.get(name).unwrap().permissions.settings[0].clone();
    let table = [
        (
            "claude",
            r#"{"permissions":{"allow":["Bash(cargo:*)"]}}"#,
            true,
        ),
        (
            "claude",
            r#"{"permissions":{"defaultMode":"acceptEdits"}}"#,
            true,
        ),
        (
            "claude",
            r#"{"permissions":{"allow":[],"defaultMode":"default"}}"#,
            false,
        ),
        ("claude", r#"{"permissions":{"deny":["Bash"]}}"#, false),
        ("claude", r#"{"permissions":"#, false),
        ("claude", "", false),
        (
            "codex",
            "sandbox_mode = \"workspace-write\"\n[a]\nb = 1",
            true,
        ),
        ("codex", "sandbox_mode = \"read-only\"", false),
        ("codex", "model = \"x\"", false),
        (
            "gemini",
            r#"{"tools":{"allowed":["run_shell_command"]}}"#,
            true,
        ),
        (
            "gemini",
            r#"{"general":{"defaultApprovalMode":"default"}}"#,
            false,
        ),
    ];
    for (name, text, want) in table {
        assert_eq!(file(name).grants(text), want, "{name}: {text}");
    }
}

#[test]
fn settings_files_that_take_all_checks_away_are_told_from_those_that_grant_something() {
    let table = [
        (
            "claude",
            r#"{"permissions":{"defaultMode":"acceptEdits"}}"#,
            false,
        ),
        (
            "claude",
            r#"{"permissions":{"defaultMode":"bypassPermissions"}}"#,
            true,
        ),
        ("codex", "sandbox_mode = \"workspace-write\"", false),
        ("codex", "sandbox_mode = \"danger-full-access\"", true),
        (
            "gemini",
            r#"{"general":{"defaultApprovalMode":"yolo"}}"#,
            true,
        ),
        ("gemini", "no JSON", false),
    ];
    let profiles = Profiles::builtin();
    for (name, text, skips) in table {
        let file = &profiles.get(name).unwrap().permissions.settings[0];
        assert_eq!(file.skips_checks(text), skips, "{name}: {text}");
    }
}
