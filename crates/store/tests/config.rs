//! Settings come from where they say, and slips are told with their place.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_store::config::{
    ConfigError, ConfigPlaces, DEFAULT_TOML, KEYS, Kind, Layers, Source,
};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

struct World {
    dir: TempDir,
    places: ConfigPlaces,
}

impl World {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let places = ConfigPlaces {
            user_file: Some(dir.path().join("user.toml")),
            project_file: Some(dir.path().join("project.toml")),
            environment: Default::default(),
        };
        Self { dir, places }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn env(&mut self, name: &str, value: &str) {
        self.places.environment.insert(name.into(), value.into());
    }

    fn load(&self) -> Layers {
        Layers::load(&self.places).unwrap()
    }

    /// The error without the folder of this world.
    fn error(&self) -> String {
        let error = Layers::load(&self.places).unwrap_err().to_string();
        error.replace(&format!("{}/", self.dir.path().display()), "")
    }
}

#[test]
fn without_files_the_documented_defaults_hold() {
    let layers = World::new().load();
    let count = layers.limit("max_iterations").unwrap();
    assert_eq!((count.value, count.source), (Some(20), Source::Default));
    assert_eq!(
        layers.get::<String>("completion_promise").unwrap().value,
        "COMPLETE"
    );
    assert_eq!(
        layers.duration("promise_grace").unwrap().value,
        Duration::from_secs(10)
    );
    assert_eq!(
        layers.duration("idle_timeout").unwrap().value,
        Duration::from_secs(1800)
    );
    assert_eq!(
        layers.duration("verify_timeout").unwrap().value,
        Duration::from_secs(1800)
    );
    assert!(
        layers.duration("kill_grace").is_none(),
        "agents differ in it"
    );
    assert_eq!(layers.limit("max_log").unwrap().value, Some(2_000_000_000));
    assert_eq!(layers.get::<u32>("max_failures").unwrap().value, 5);
    assert_eq!(layers.get::<u32>("max_spec_tokens").unwrap().value, 5000);
    assert!(layers.duration("timeout").is_none());
    assert!(layers.unknown().is_empty());
}

#[test]
fn the_default_file_explains_every_key() {
    for (key, kind, _) in KEYS {
        let stands = |line: &str| match kind {
            Kind::Tables => line.starts_with(&format!("#[{key}.")),
            _ => line
                .trim_start_matches('#')
                .starts_with(&format!("{key} = ")),
        };
        assert!(
            DEFAULT_TOML.lines().any(stands),
            "{key} is not in default.toml"
        );
    }
    assert!(KEYS.is_sorted_by(|a, b| a.0 < b.0));
    // With every example taken in, it is still a good config file.
    let is_example =
        |line: &&str| line.starts_with('#') && !line.starts_with("# ") && line.len() > 1;
    let all: Vec<_> = DEFAULT_TOML
        .lines()
        .map(|line| if is_example(&line) { &line[1..] } else { line })
        .collect();
    let world = World::new();
    world.write("user.toml", &all.join("\n"));
    let layers = world.load();
    assert!(layers.unknown().is_empty());
    assert_eq!(
        layers.entries("agents").keys().collect::<Vec<_>>(),
        [&"my-agent"]
    );
}

#[test]
fn each_layer_wins_over_the_one_before() {
    let mut world = World::new();
    let key = "max_iterations";
    let from = |world: &World| {
        let found = world.load().limit(key).unwrap();
        (found.value, found.source)
    };
    world.write("user.toml", "\n# mine\nmax_iterations = 5\n");
    let source = Source::UserFile {
        path: world.path("user.toml"),
        line: 3,
    };
    assert_eq!(from(&world), (Some(5), source));
    world.write("project.toml", "max_iterations = \"unlimited\"\n");
    let source = Source::ProjectFile {
        path: world.path("project.toml"),
        line: 1,
    };
    assert_eq!(from(&world), (None, source));
    world.env("DESCARTES_MAX_ITERATIONS", "7");
    let source = Source::Environment("DESCARTES_MAX_ITERATIONS".into());
    assert_eq!(from(&world), (Some(7), source));
    let mut layers = world.load();
    layers.set_flag(key, "--max-iterations", 9).unwrap();
    let found = layers.limit(key).unwrap();
    assert_eq!(
        (found.value, found.source.to_string()),
        (Some(9), "flag --max-iterations".into())
    );
    let wrong = layers
        .set_flag(key, "--max-iterations", "lots")
        .unwrap_err();
    assert!(matches!(wrong, ConfigError::Value { .. }));
}

#[test]
fn tables_are_merged_by_entry() {
    let world = World::new();
    world.write(
        "user.toml",
        "[agents.a]\ncommand = \"user-a\"\nargs = [\"-x\"]\n[agents.b]\ncommand = \"user-b\"\n",
    );
    world.write(
        "project.toml",
        "agents.a = { command = \"project-a\" }\n[prices.m]\ninput = 3\n",
    );
    let layers = world.load();
    let agents = layers.entries("agents");
    assert_eq!(agents["a"].value["command"].as_str(), Some("project-a"));
    assert!(
        agents["a"].value.get("args").is_none(),
        "an entry is replaced as a whole"
    );
    assert_eq!(
        agents["b"].source,
        Source::UserFile {
            path: world.path("user.toml"),
            line: 4
        }
    );
    assert_eq!(
        layers.entries("prices")["m"].value["input"].as_integer(),
        Some(3)
    );
    let row = layers
        .rows()
        .into_iter()
        .find(|row| row.key == "agents.b")
        .unwrap();
    assert_eq!(row.value, "{ command = \"user-b\" }");
}

#[test]
fn unknown_keys_are_told_with_their_line_and_what_was_meant() {
    let mut world = World::new();
    world.write(
        "user.toml",
        "max_iterations = 3\nmax-iteration = 4\n\ncolour = \"blue\"\n",
    );
    world.env("DESCARTES_MAX_ITERATION", "4");
    world.env("DESCARTES_LOOP_ID", "x");
    world.env("DESCARTES_SOMETHING_ELSE", "x");
    world.env("PATH", "/bin");
    let layers = world.load();
    let mut told: Vec<_> = layers
        .unknown()
        .iter()
        .map(|key| {
            key.to_string()
                .replace(&format!("{}/", world.dir.path().display()), "")
        })
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            "DESCARTES_MAX_ITERATION: unknown key `max_iteration` (did you mean `max_iterations`?)",
            "user.toml:2: unknown key `max-iteration` (did you mean `max_iterations`?)",
            "user.toml:4: unknown key `colour`",
        ]
    );
    assert_eq!(layers.limit("max_iterations").unwrap().value, Some(3));
}

#[test]
fn wrong_values_name_file_line_and_column() {
    let cases = [
        (
            "max_iterations = \"many\"",
            "user.toml:2:18: `max_iterations`: `many` is not a count; write for example 50000, 200k or 1.5M",
        ),
        (
            "max_iterations = -1",
            "user.toml:2:18: `max_iterations`: a whole number or \"unlimited\" is needed, not -1",
        ),
        ("ümlaut", "user.toml:2:7: key with no value"),
        (
            "verify = [\"a\", 3]",
            "user.toml:2:10: `verify`: a list of texts is needed, not a list",
        ),
        (
            "permissions = \"root\"",
            "user.toml:2:15: `permissions`: one of agent, edit, all is needed, not \"root\"",
        ),
        (
            "auto_commit = 3",
            "user.toml:2:15: `auto_commit`: true or false is needed, not a whole number",
        ),
        (
            "idle_timeout = \"soon\"",
            "user.toml:2:16: `idle_timeout`: `soon` is not a duration",
        ),
        (
            "timeout = 0",
            "user.toml:2:11: `timeout`: nothing can be done in no time; write for example \"30m\"",
        ),
        (
            "max_duration = 0",
            "user.toml:2:16: `max_duration`: nothing can be done in no time",
        ),
        (
            "verify_timeout = \"0s\"",
            "user.toml:2:18: `verify_timeout`: nothing can be done in no time",
        ),
        (
            "on_event_timeout = 0.0",
            "user.toml:2:20: `on_event_timeout`: nothing can be done in no time",
        ),
        (
            "max_iterations = 0",
            "user.toml:2:18: `max_iterations`: 0 would do nothing; write a number from 1, or \"unlimited\"",
        ),
        (
            "max_failures = 0",
            "user.toml:2:16: `max_failures`: 0 would do nothing; write a number from 1",
        ),
        (
            "max_log = \"big\"",
            "user.toml:2:11: `max_log`: `big` is not a size",
        ),
        (
            "max_cost = true",
            "user.toml:2:12: `max_cost`: an amount of US dollars is needed, not true or false",
        ),
        (
            "agents = 3",
            "user.toml:2:10: `agents`: a table is needed, not a whole number",
        ),
        (
            "agents.x = 3",
            "user.toml:2:8: `agents.x`: a table is needed",
        ),
        ("a = 1\na = 2", "user.toml:3:1: duplicate key"),
        ("verify = [", "user.toml:2:1"),
    ];
    for (line, expected) in cases {
        let world = World::new();
        world.write("user.toml", &format!("# line one\n{line}"));
        let error = world.error();
        assert!(
            error.starts_with(expected),
            "{line}\n  got  {error}\n  want {expected}"
        );
    }
    let world = World::new();
    fs::write(world.path("project.toml"), b"a = 1\n\"\xff\"").unwrap();
    assert_eq!(world.error(), "project.toml:2:2: the file is not UTF-8");
}

#[test]
fn values_have_the_forms_people_write() {
    let mut world = World::new();
    world.write(
        "user.toml",
        "verify = \"make test\"\npromise_hint = \"off\"\ntimeout = 90\nmax_tokens = \"1.5M\"\nmax_cost = \"$2.50\"\nmax_log = 1000\n",
    );
    world.env("DESCARTES_FALLBACK", "[\"codex\", \"gemini\"]");
    world.env("DESCARTES_SPEC_FILE", "a b.md");
    world.env("DESCARTES_AUTO_COMMIT", "on");
    world.env("DESCARTES_KILL_GRACE", "250ms");
    world.env("DESCARTES_MODEL", "");
    let layers = world.load();
    let texts = |key| layers.get::<Vec<String>>(key).unwrap().value;
    assert_eq!(texts("verify"), ["make test"]);
    assert_eq!(texts("fallback"), ["codex", "gemini"]);
    assert_eq!(texts("spec_file"), ["a b.md"]);
    assert!(!layers.get::<bool>("promise_hint").unwrap().value);
    assert!(layers.get::<bool>("auto_commit").unwrap().value);
    assert_eq!(
        layers.duration("timeout").unwrap().value,
        Duration::from_secs(90)
    );
    assert_eq!(
        layers.duration("kill_grace").unwrap().value,
        Duration::from_millis(250)
    );
    assert_eq!(layers.get::<u64>("max_tokens").unwrap().value, 1_500_000);
    assert_eq!(layers.get::<f64>("max_cost").unwrap().value, 2.5);
    assert_eq!(layers.limit("max_log").unwrap().value, Some(1000));
    assert!(layers.get::<String>("model").is_none(), "empty is not set");
    world.env("DESCARTES_TIMEOUT", "0");
    let told = world.error();
    assert!(
        told.starts_with("DESCARTES_TIMEOUT: nothing can be done in no time"),
        "{told}"
    );
    world.env("DESCARTES_TIMEOUT", "");
    world.env("DESCARTES_AUTO_COMMIT", "perhaps");
    let told = world.error();
    assert_eq!(
        told,
        "DESCARTES_AUTO_COMMIT: true or false is needed, not a text"
    );
}

#[test]
fn rows_show_every_value_with_its_source() {
    let world = World::new();
    world.write("project.toml", "verify = [\"make \\\"x\\\"\"]\n");
    let layers = world.load();
    let rows = layers.rows();
    assert!(rows.is_sorted_by(|a, b| a.key < b.key));
    let row = rows.iter().find(|row| row.key == "verify").unwrap();
    assert_eq!(
        row.value.parse::<toml::Value>().unwrap()[0].as_str(),
        Some("make \"x\"")
    );
    assert!(
        row.source.to_string().ends_with("project.toml:1"),
        "{}",
        row.source
    );
    assert!(row.source.to_string().starts_with("project file "));
}
