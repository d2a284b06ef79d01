//! Settings come from where they say, and slips are told with their place.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_store::config::{
    ConfigPlaces, DEFAULT_TOML, IterationLimit, KEYS, Kind, Layers, Settings, SizeLimit, Source,
};
use descartes_text::units::Secs;
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
    let settings = &layers.settings;
    assert_eq!(
        settings.max_iterations.value,
        Some(IterationLimit(Some(20)))
    );
    assert_eq!(settings.max_iterations.source, Source::Default);
    let promise = settings.completion_promise.value.as_deref();
    assert_eq!(promise, Some("COMPLETE"));
    assert_eq!(settings.promise_grace.value, Some(Secs::new(10)));
    assert_eq!(settings.idle_timeout.value, Some(Secs::new(1800)));
    assert_eq!(settings.verify_timeout.value, Some(Secs::new(1800)));
    assert_eq!(settings.kill_grace.value, None, "agents differ in it");
    assert_eq!(settings.max_log.value, Some(SizeLimit(Some(2_000_000_000))));
    assert_eq!(settings.max_failures.value, Some(5));
    assert_eq!(settings.max_spec_tokens.value, Some(5000));
    assert_eq!(settings.timeout.value, None);
    assert!(layers.unknown().is_empty());
}

#[test]
fn the_default_file_explains_every_key() {
    for known in KEYS {
        let key = known.name;
        let stands = |line: &str| match known.kind {
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
        layers.settings.agents.keys().collect::<Vec<_>>(),
        ["my-agent"]
    );
}

#[test]
fn each_layer_wins_over_the_one_before() {
    let mut world = World::new();
    let of = |settings: Settings| {
        let IterationLimit(limit) = settings.max_iterations.value.unwrap();
        (limit, settings.max_iterations.source)
    };
    let from = |world: &World| of(world.load().settings);
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
    let mut settings = world.load().settings;
    let limit = &mut settings.max_iterations;
    limit.put("--max-iterations", None);
    assert_eq!(limit.from_flag(), None);
    limit.put("--max-iterations", Some(IterationLimit(Some(9))));
    assert_eq!(limit.from_flag(), Some(IterationLimit(Some(9))));
    let (limit, source) = of(settings);
    assert_eq!(
        (limit, source.to_string()),
        (Some(9), "flag --max-iterations".into())
    );
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
    let agents = &layers.settings.agents;
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
        layers.settings.prices["m"].value["input"].as_integer(),
        Some(3)
    );
    let row = layers
        .rows()
        .into_iter()
        .find(|row| row.key == "agents.b")
        .unwrap();
    assert_eq!(row.value.unwrap().to_string(), "{ command = \"user-b\" }");
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
    assert_eq!(
        layers.settings.max_iterations.value,
        Some(IterationLimit(Some(3)))
    );
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
            "user.toml:2:18: `max_iterations`: expected a whole number or \"unlimited\", found -1",
        ),
        ("ümlaut", "user.toml:2:7: key with no value"),
        (
            "verify = [\"a\", 3]",
            "user.toml:2:10: `verify`: expected a list of strings, found a whole number in it",
        ),
        (
            "permissions = \"root\"",
            "user.toml:2:15: `permissions`: expected one of agent, edit, all, found \"root\"",
        ),
        (
            "auto_commit = 3",
            "user.toml:2:15: `auto_commit`: expected true or false, found a whole number",
        ),
        (
            "idle_timeout = \"soon\"",
            "user.toml:2:16: `idle_timeout`: `soon` is not a duration",
        ),
        (
            "timeout = 0",
            "user.toml:2:11: `timeout`: must be greater than zero (e.g. \"30m\"",
        ),
        (
            "max_duration = 0",
            "user.toml:2:16: `max_duration`: must be greater than zero",
        ),
        (
            "verify_timeout = \"0s\"",
            "user.toml:2:18: `verify_timeout`: must be greater than zero",
        ),
        (
            "on_event_timeout = 0.0",
            "user.toml:2:20: `on_event_timeout`: must be greater than zero",
        ),
        (
            "max_iterations = 0",
            "user.toml:2:18: `max_iterations`: must be 1 or more, or \"unlimited\"",
        ),
        (
            "max_failures = 0",
            "user.toml:2:16: `max_failures`: must be 1 or more",
        ),
        (
            "max_failures = 5000000000",
            "user.toml:2:16: `max_failures`: 5000000000 is out of range",
        ),
        (
            "max_log = \"big\"",
            "user.toml:2:11: `max_log`: `big` is not a size",
        ),
        (
            "max_cost = true",
            "user.toml:2:12: `max_cost`: expected an amount of US dollars, found true or false",
        ),
        (
            "agents = 3",
            "user.toml:2:10: `agents`: expected a table, found a whole number",
        ),
        (
            "agents.x = 3",
            "user.toml:2:8: `agents.x`: expected a table",
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
    let settings = world.load().settings;
    assert_eq!(settings.verify.value.unwrap(), ["make test"]);
    assert_eq!(settings.fallback.value.unwrap(), ["codex", "gemini"]);
    let files = settings.spec_file.value.unwrap();
    assert_eq!(files, [PathBuf::from("a b.md")]);
    assert_eq!(settings.promise_hint.value, Some(false));
    assert_eq!(settings.auto_commit.value, Some(true));
    assert_eq!(settings.timeout.value, Some(Secs::new(90)));
    let grace = Secs(Duration::from_millis(250));
    assert_eq!(settings.kill_grace.value, Some(grace));
    assert_eq!(settings.max_tokens.value, Some(1_500_000));
    assert_eq!(settings.max_cost.value, Some(2.5));
    assert_eq!(settings.max_log.value, Some(SizeLimit(Some(1000))));
    assert_eq!(settings.model.value, None, "empty is not set");
    world.env("DESCARTES_TIMEOUT", "0");
    let told = world.error();
    assert!(
        told.starts_with("DESCARTES_TIMEOUT: must be greater than zero"),
        "{told}"
    );
    world.env("DESCARTES_TIMEOUT", "");
    world.env("DESCARTES_AUTO_COMMIT", "perhaps");
    let told = world.error();
    assert_eq!(
        told,
        "DESCARTES_AUTO_COMMIT: expected true or false, found a string"
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
    assert_eq!(row.value.as_ref().unwrap()[0].as_str(), Some("make \"x\""));
    assert!(
        row.source.to_string().ends_with("project.toml:1"),
        "{}",
        row.source
    );
    assert!(row.source.to_string().starts_with("project file "));
}
