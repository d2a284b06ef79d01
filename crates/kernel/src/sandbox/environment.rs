//! Which variables are passed on into a sandbox: not the keys that nobody inside needs.

/// Ends and parts of names behind which keys stand.
const SECRET_ENDS: [&str; 8] = [
    "_TOKEN",
    "_KEY",
    "_SECRET",
    "_PASSWORD",
    "_PASSWD",
    "_PASS",
    "_CREDENTIALS",
    "_PAT",
];
const SECRET_PARTS: [&str; 4] = ["SECRET", "PASSWORD", "ACCESS_KEY", "AUTH_TOKEN"];

/// Names that stand for keys or for doors out of the sandbox.
const SECRET_NAMES: [&str; 12] = [
    "AWS_*",
    "AZURE_*",
    "DBUS_*",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "KUBECONFIG",
    "VAULT_*",
    "PGPASSWORD",
    "MYSQL_PWD",
];

/// Names that only look so.
const HARMLESS: [&str; 4] = [
    "AWS_CA_BUNDLE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_DEFAULT_OUTPUT",
];

/// Whether a variable of this name usually holds a key, or leads to one.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if HARMLESS.contains(&&*name) {
        return false;
    }
    SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || SECRET_PARTS.iter().any(|part| name.contains(part))
        || SECRET_NAMES.iter().any(|wanted| fits(wanted, &name))
}

/// `AWS_*` stands for all that begin so.
fn fits(wanted: &str, name: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == wanted,
    }
}

/// Variables that the text of a settings file names: `env_key = "NAME"`, `{env:NAME}`.
pub fn named_variables(text: &str) -> Vec<String> {
    let name = |rest: &str| {
        let rest = rest.trim_start_matches([' ', '=', '"', '\'']);
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    let marks = ["env_key", "{env:"];
    let found = marks.iter().flat_map(|mark| text.split(mark).skip(1));
    let names = found.map(name).filter(|name| !name.is_empty());
    names.collect()
}

/// Which of the variables that look like keys are passed on all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentRules {
    /// Names that the agent needs, and that the user named.
    pub keep: Vec<String>,
}

impl EnvironmentRules {
    /// Whether a variable of this name is passed on.
    pub fn passes(&self, name: &str) -> bool {
        !is_secret_name(name) || self.keep.iter().any(|wanted| fits(wanted, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_files_name_variables() {
        let toml = "[model_providers.x]\nenv_key = \"MY_KEY\"\nenv_key=\'OTHER\'\n";
        assert_eq!(named_variables(toml), ["MY_KEY", "OTHER"]);
        let json = r#"{"apiKey": "{env:PROXY_KEY}"}"#;
        assert_eq!(named_variables(json), ["PROXY_KEY"]);
        assert!(named_variables("nothing").is_empty());
    }

    #[test]
    fn keys_stay_outside_unless_they_are_the_agents_own() {
        let none = EnvironmentRules::default();
        let claude = EnvironmentRules {
            keep: vec!["ANTHROPIC_*".into()],
        };
        for name in [
            "GITHUB_TOKEN",
            "ANTHROPIC_API_KEY",
            "AWS_PROFILE",
            "AWS_SECRET_ACCESS_KEY",
            "NPM_TOKEN",
            "DB_PASSWORD",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "my_secret_thing",
        ] {
            assert!(!none.passes(name), "{name}");
        }
        assert!(claude.passes("ANTHROPIC_API_KEY"));
        assert!(!claude.passes("OPENAI_API_KEY"));
        for name in [
            "PATH",
            "HOME",
            "KEYBOARD",
            "TOKENS",
            "AWS_CA_BUNDLE",
            "DESCARTES_LOOP_ID",
            "LANG",
        ] {
            assert!(none.passes(name), "{name}");
        }
    }
}
