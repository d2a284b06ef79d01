use super::*;
use crate::agent::PromptMode;

fn with(text: &str) -> Result<Profiles, ProfileError> {
    let mut profiles = Profiles::builtin();
    profiles.add_toml(text)?;
    Ok(profiles)
}

#[test]
fn the_built_in_profiles_are_all_there() {
    let profiles = Profiles::builtin();
    let names: Vec<&str> = profiles.names().collect();
    let want = [
        "aider",
        "amp",
        "claude",
        "cline",
        "cn",
        "codex",
        "copilot",
        "crush",
        "cursor-agent",
        "droid",
        "gemini",
        "generic",
        "goose",
        "gptme",
        "kilo",
        "opencode",
        "pi",
        "qwen",
    ];
    assert_eq!(names, want);
    // These want a login or a server of their own, download at install, or hide their errors.
    let unverified = profiles.iter().filter(|profile| !profile.verified);
    let unverified: Vec<&str> = unverified.map(|profile| profile.name.as_str()).collect();
    assert_eq!(unverified, ["amp", "crush", "cursor-agent", "gptme"]);
}

/// Each is read alone, and only where it is asked for.
#[test]
fn a_built_in_profile_alone_is_what_the_whole_file_says() {
    let profiles = Profiles::builtin();
    let whole = parse(BUILTIN).unwrap();
    assert!(whole.len() > 10, "{}", whole.len());
    assert!(whole.keys().map(String::as_str).eq(profiles.names()));
    for (name, table) in &whole {
        let table = table.as_table().unwrap();
        assert_eq!(profiles.table(name), Some(table));
        let read = read(name, table).unwrap();
        assert_eq!(profiles.get(name), Some(&read));
    }
}

#[test]
fn six_lines_make_an_agent() {
    let text = r#"
        [mine]
        command = "my-agent --headless"
        prompt_mode = "stdin"
        stream = "jsonl"
        jsonl.text = "message.content"
        jsonl.result.ok = "status"
    "#;
    let profiles = with(text).unwrap();
    let mine = profiles.get("mine").unwrap();
    assert_eq!(mine.prompt_mode, PromptMode::Stdin);
    assert_eq!(mine.stream, StreamKind::Jsonl);
    assert!(!mine.verified);
    assert_eq!(profiles.guess(&["/bin/my-agent".to_owned()]), "mine");
}

#[test]
fn a_profile_may_be_like_one_that_comes_after_it() {
    let text = r#"
        [alpha]
        like = "middle"
        [middle]
        like = "zulu"
        args = ["--two"]
        [zulu]
        command = "zulu"
        args = ["--one"]
        kill_grace = "1s"
        idle_cpu = 2.5
        [codex]
        args = ["--mine"]
        [a-codex]
        like = "codex"
    "#;
    let profiles = with(text).unwrap();
    let alpha = profiles.get("alpha").unwrap();
    assert_eq!(
        (&*alpha.command, &*alpha.args),
        ("zulu", &["--two".to_owned()][..])
    );
    assert_eq!(alpha.kill_grace, Some(std::time::Duration::from_secs(1)));
    assert_eq!(alpha.idle_cpu, Some(2.5));
    assert!(
        profiles
            .show("zulu")
            .unwrap()
            .contains("kill_grace = \"1s\"")
    );
    assert_eq!(profiles.get("a-codex").unwrap().args, ["--mine"]);
    let circle = with("[a]\nlike = \"b\"\n[b]\nlike = \"a\"").unwrap_err();
    assert!(circle.to_string().contains("a, b"), "{circle}");
    assert!(with("[a]\ncommand = \"a\"\nkill_grace = \"soon\"").is_err());
}

#[test]
fn a_built_in_profile_is_changed_key_by_key() {
    let profiles =
        with("[claude]\nargs = [\"-p\", \"--bare\"]\nformat.default = \"json\"").unwrap();
    let claude = profiles.get("claude").unwrap();
    assert_eq!(claude.args, ["-p", "--bare"]);
    assert_eq!(claude.format.as_ref().unwrap().default, "json");
    assert_eq!(claude.stream, StreamKind::Claude);
    assert!(claude.permissions.needed.is_some());
}

#[test]
fn an_agent_may_be_like_another() {
    let profiles = with("[wrapped]\nlike = \"claude\"\ncommand = \"my-claude\"").unwrap();
    let wrapped = profiles.get("wrapped").unwrap();
    assert_eq!(
        (wrapped.command.as_str(), wrapped.stream),
        ("my-claude", StreamKind::Claude)
    );
    assert!(!wrapped.verified && wrapped.packages.is_empty());
    assert_eq!(
        profiles.guess(&["npx".into(), "@anthropic-ai/claude-code".into()]),
        "claude"
    );
}

#[test]
fn what_is_wrong_is_named() {
    let table = [
        (
            "[mine]\nstream = \"text\"",
            "agent `mine`: missing field `command`",
        ),
        (
            "[mine]\ncommand = \"x\"\npromt_mode = \"arg\"",
            "unknown field `promt_mode`",
        ),
        (
            "[mine]\ncommand = \"x\"\nprompt_mode = \"pipe\"",
            "unknown variant `pipe`, expected one of `arg`",
        ),
        (
            "[mine]\ncommand = \"x 'y\"",
            "agent `mine`: command `x 'y`: missing closing quote",
        ),
        (
            "[mine]\ncommand = \"x\"\nstream = \"jsonl\"",
            "add jsonl.text",
        ),
        (
            "[mine]\ncommand = \"x\"\njsonl.text = \"a..b\"",
            "`a..b` is not a valid field path",
        ),
        (
            "[mine]\ncommand = \"x\"\njsonl.text.pth = \"a\"",
            "unknown field `pth`",
        ),
        ("[mine]\ncommand = \"x\"\njsonl.text = 3", "a field path"),
        (
            "[mine]\nlike = \"nobody\"",
            "is based on `nobody`, which is not a known agent (known: aider, amp",
        ),
        (
            "[\"my agent\"]\ncommand = \"x\"",
            "`my agent` is not a valid agent name",
        ),
        ("mine = 3", "write [agents.mine]"),
        ("[mine", "not valid TOML"),
        (
            "[claude]\nformat.default = \"yaml\"",
            "format.default `yaml` is not one of format.values",
        ),
    ];
    for (text, want) in table {
        let error = with(text).unwrap_err().to_string();
        assert!(error.contains(want), "{text}\n{error}");
        assert!(!error.ends_with('.') && !error.ends_with('\n'), "{error}");
    }
}

#[test]
fn a_profile_can_be_shown_and_read_again() {
    let profiles = Profiles::builtin();
    for profile in profiles.iter() {
        let shown = profiles.show(&profile.name).unwrap();
        let table = shown.parse::<Table>().unwrap()["agents"][&profile.name].clone();
        // Under a new name: nothing built in is below it.
        let mut again = Profiles::builtin();
        again
            .add(&Table::from_iter([("again".to_owned(), table)]))
            .unwrap();
        let want = Profile {
            name: "again".to_owned(),
            ..profile.clone()
        };
        assert_eq!(again.get("again"), Some(&want), "{shown}");
    }
}
