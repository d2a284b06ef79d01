use std::collections::BTreeMap;

use super::*;
use crate::sandbox::{COMMON_DIR_IS_HERE, Confinement, Mechanism, OutsideView, denied_paths};

/// A machine of files and folders; a folder ends with `/`.
struct Machine(BTreeMap<PathBuf, bool>);

impl Machine {
    fn new(entries: &[&str]) -> Self {
        let mut all = BTreeMap::new();
        for entry in entries {
            let path = PathBuf::from(entry.trim_end_matches('/'));
            for folder in path.ancestors().skip(1) {
                all.insert(folder.to_owned(), true);
            }
            all.insert(path, entry.ends_with('/'));
        }
        Self(all)
    }

    fn look(&self, path: &Path) -> Option<FoundPath> {
        let is_folder = *self.0.get(path)?;
        let real = path.to_owned();
        Some(FoundPath { real, is_folder })
    }
}

const ENTRIES: &[&str] = &[
    "/tmp/",
    "/run/systemd/resolve/",
    "/home/me/.ssh/",
    "/home/me/.netrc",
    "/home/me/.cargo/registry/cache/",
    "/home/me/.cargo/credentials.toml",
    "/home/me/.cargo/bin/",
    "/home/me/.claude/settings.json",
    "/home/me/.codex/",
    "/home/me/.local/state/descartes/loops/",
    "/home/me/p/.git/config",
    "/home/me/p/.git/hooks/",
    "/home/me/p/.descartes/",
    "/home/me/p/ci/check.sh",
    "/home/me/p/Makefile",
    "/home/me/p/.claude/settings.json",
    "/home/me/other/",
    "/usr/bin/descartes",
];

fn agent(name: &str, folder: &str, lock: &[(&str, EntryKind)]) -> AgentPlaces {
    AgentPlaces {
        name: name.into(),
        write: vec![folder.into()],
        lock: lock
            .iter()
            .map(|(path, kind)| ((*path).into(), *kind))
            .collect(),
        seed: Vec::new(),
        hosts: vec!["api.example".into()],
    }
}

fn facts<'a>(look: &'a dyn Fn(&Path) -> Option<FoundPath>) -> SandboxFacts<'a> {
    SandboxFacts {
        work_dir: "/home/me/p".into(),
        git: Some(GitPlaces {
            top: "/home/me/p".into(),
            git_dir: "/home/me/p/.git".into(),
            common_dir: "/home/me/p/.git".into(),
            ..GitPlaces::default()
        }),
        home: Some(HomeFolders {
            home: "/home/me".into(),
            ..HomeFolders::default()
        }),
        own_caches: Some("/home/me/.cache/descartes/sandbox".into()),
        state_root: "/home/me/.local/state/descartes".into(),
        runtime_dir: Some("/run/user/1000".into()),
        program: "/usr/bin/descartes".into(),
        programs: vec!["/home/me/.cargo/bin".into()],
        handed: Vec::new(),
        extra_locks: Vec::new(),
        gate_scripts: vec!["ci/check.sh".into(), "missing.sh".into()],
        agent: Some(agent(
            "claude",
            "/home/me/.claude",
            &[
                ("/home/me/.claude/settings.json", EntryKind::File),
                ("/home/me/.claude/hooks", EntryKind::Folder),
            ],
        )),
        other_agents: vec![agent("codex", "/home/me/.codex", &[])],
        look,
    }
}

fn planned(config: &SandboxConfig, level: SandboxLevel, purpose: RunPurpose) -> SandboxPlan {
    let machine = Machine::new(ENTRIES);
    let look = |path: &Path| machine.look(path);
    plan(&facts(&look), config, level, purpose).unwrap()
}

#[test]
fn an_agent_writes_its_tree_its_own_folder_caches_and_a_private_tmp_and_nothing_else() {
    let plan = planned(
        &SandboxConfig::default(),
        SandboxLevel::Workspace,
        RunPurpose::Agent,
    );
    for (path, access) in [
        ("/home/me/p/src/main.rs", Access::Writable),
        ("/home/me/p/Makefile", Access::Writable),
        ("/home/me/p/.git/objects", Access::Pinned),
        ("/home/me/p/.git/config", Access::ReadOnly),
        ("/home/me/p/.git/hooks/post-commit", Access::ReadOnly),
        ("/home/me/p/.git/info/attributes", Access::ReadOnly),
        ("/home/me/p/.git/config.worktree", Access::ReadOnly),
        ("/home/me/p/.git/commondir", Access::ReadOnly),
        ("/home/me/p/.descartes/config.toml", Access::ReadOnly),
        ("/home/me/p/ci/check.sh", Access::ReadOnly),
        ("/home/me/p/ci/other.sh", Access::Pinned),
        ("/home/me/p/.claude/settings.json", Access::ReadOnly),
        ("/home/me/.claude/projects", Access::Writable),
        ("/home/me/.claude/settings.json", Access::ReadOnly),
        ("/home/me/.claude/hooks/x", Access::ReadOnly),
        ("/home/me/.codex/auth.json", Access::Hidden),
        ("/home/me/.ssh/id_rsa", Access::Hidden),
        ("/home/me/.netrc", Access::Hidden),
        ("/home/me/.cargo/registry/cache/x", Access::Writable),
        ("/home/me/.cargo/registry/x", Access::ReadOnly),
        ("/home/me/.cargo/bin/cargo", Access::ReadOnly),
        ("/home/me/.cargo/credentials.toml", Access::Hidden),
        ("/home/me/.bashrc", Access::ReadOnly),
        ("/home/me/other/x", Access::ReadOnly),
        ("/home/me/.local/state/descartes/loops/1", Access::Hidden),
        ("/tmp/x", Access::Private),
        ("/run/docker.sock", Access::Hidden),
        ("/run/systemd/resolve/stub-resolv.conf", Access::ReadOnly),
        ("/etc/passwd", Access::ReadOnly),
    ] {
        assert_eq!(plan.access(Path::new(path)), access, "{path}");
    }
    assert_eq!(plan.network, Network::Host);
    let made: Vec<&Make> = plan.make.iter().collect();
    assert!(made.contains(&&Make::Folder("/home/me/.claude/hooks".into())));
    assert!(made.contains(&&Make::Folder("/home/me/p/.git/info".into())));
    let here = COMMON_DIR_IS_HERE.to_owned();
    assert!(made.contains(&&Make::File("/home/me/p/.git/commondir".into(), here)));
    // Never a stub in the work tree itself: `git add` would take it.
    let in_tree = |make: &&Make| {
        let (Make::Folder(path) | Make::File(path, _)) = make;
        path.starts_with("/home/me/p") && !path.starts_with("/home/me/p/.git")
    };
    assert_eq!(plan.make.iter().find(in_tree), None);
}

#[test]
fn a_gate_has_the_tree_and_no_login() {
    let config = SandboxConfig::default();
    let plan = planned(&config, SandboxLevel::Workspace, RunPurpose::Gate);
    for (path, access) in [
        ("/home/me/p/target/x", Access::Writable),
        ("/home/me/p/ci/check.sh", Access::ReadOnly),
        ("/home/me/.claude/x", Access::Hidden),
        ("/home/me/.codex/x", Access::Hidden),
        ("/home/me/.cargo/registry/cache/x", Access::Writable),
        ("/home/me/.cargo/registry/x", Access::ReadOnly),
    ] {
        assert_eq!(plan.access(Path::new(path)), access, "{path}");
    }
    let network = |level, given| {
        let config = SandboxConfig {
            gate_network: given,
            ..SandboxConfig::default()
        };
        planned(&config, level, RunPurpose::Gate).network
    };
    assert_eq!(network(SandboxLevel::Workspace, None), Network::Host);
    assert_eq!(network(SandboxLevel::Strict, None), Network::Loopback);
    assert_eq!(network(SandboxLevel::Strict, Some(true)), Network::Host);
    assert_eq!(
        network(SandboxLevel::Workspace, Some(false)),
        Network::Loopback
    );
}

#[test]
fn strict_hides_the_home_directory_but_for_tools_and_grants_the_provider_alone() {
    let plan = planned(
        &SandboxConfig::default(),
        SandboxLevel::Strict,
        RunPurpose::Agent,
    );
    for (path, access) in [
        ("/home/me/other/x", Access::Private),
        ("/home/me/.bashrc", Access::Private),
        ("/home/me/.cargo/bin/cargo", Access::ReadOnly),
        ("/home/me/.cargo/credentials.toml", Access::Hidden),
        ("/home/me/p/x", Access::Writable),
        ("/home/me/p/.git/config", Access::ReadOnly),
        ("/home/me/.claude/projects", Access::Writable),
        ("/home/me/.ssh/id_rsa", Access::Private),
    ] {
        assert_eq!(plan.access(Path::new(path)), access, "{path}");
    }
    assert_eq!(plan.network, Network::Hosts(vec!["api.example".into()]));
}

/// As of a user in a container who has none.
#[test]
fn a_home_that_is_the_root_hides_no_programs_in_strict() {
    let machine = Machine::new(&["/.ssh/", "/w/p/", "/usr/bin/descartes"]);
    let look = |path: &Path| machine.look(path);
    let facts = SandboxFacts {
        work_dir: "/w/p".into(),
        git: None,
        home: Some(HomeFolders {
            home: "/".into(),
            ..HomeFolders::default()
        }),
        state_root: "/w/p/.descartes".into(),
        programs: Vec::new(),
        gate_scripts: Vec::new(),
        ..facts(&look)
    };
    let level = SandboxLevel::Strict;
    let plan = plan(&facts, &SandboxConfig::default(), level, RunPurpose::Gate).unwrap();
    for (path, access) in [
        ("/usr/bin/git", Access::ReadOnly),
        ("/w/other", Access::ReadOnly),
        ("/.ssh/id_rsa", Access::Hidden),
        ("/w/p/x", Access::Writable),
    ] {
        assert_eq!(plan.access(Path::new(path)), access, "{path}");
    }
}

#[test]
fn flags_open_and_close_what_they_name() {
    let config = SandboxConfig {
        write: vec!["/home/me/other".into(), "/home/me/p/ci".into()],
        read: vec!["/home/me/.ssh".into()],
        hide: vec!["/home/me/p/Makefile".into()],
        ..SandboxConfig::default()
    };
    let plan = planned(&config, SandboxLevel::Workspace, RunPurpose::Agent);
    for (path, access) in [
        ("/home/me/other/x", Access::Writable),
        ("/home/me/p/ci/check.sh", Access::Writable),
        ("/home/me/.ssh/known_hosts", Access::ReadOnly),
        ("/home/me/p/Makefile", Access::Hidden),
        ("/home/me/p/.git/config", Access::ReadOnly),
    ] {
        assert_eq!(plan.access(Path::new(path)), access, "{path}");
    }
    let config = SandboxConfig {
        write: vec!["/home/me/.cargo".into()],
        caches: Some(Vec::new()),
        ..SandboxConfig::default()
    };
    let plan = planned(&config, SandboxLevel::Workspace, RunPurpose::Agent);
    for (path, access) in [
        ("/home/me/.cargo/config.toml", Access::Pinned),
        ("/home/me/.cargo/bin/cargo", Access::ReadOnly),
        ("/home/me/.cargo/credentials.toml", Access::Hidden),
    ] {
        let found = plan.access(Path::new(path));
        let same = found == access || (access == Access::Pinned && found.takes_writes());
        assert!(same, "{path}: {found:?}");
    }
}

/// What each path of a cache is: whose, and what may be done with it.
#[test]
fn a_cache_from_which_programs_outside_run_something_is_not_the_users() {
    let mut entries = ENTRIES.to_vec();
    let own = "/home/me/.cache/descartes/sandbox";
    let owned = [
        format!("{own}/.cache/"),
        format!("{own}/.cargo/registry/src/"),
    ];
    entries.extend(owned.iter().map(String::as_str));
    entries.extend([
        "/home/me/.cache/p10k-instant-prompt-me.zsh",
        "/home/me/.cache/gitstatus/gitstatusd",
        "/home/me/.cache/go-build/",
        "/home/me/.cache/ms-playwright/chrome",
        "/home/me/.cache/huggingface/token",
        "/home/me/.cache/node/corepack/",
        "/home/me/.cache/pip/http-v2/",
        "/home/me/.cargo/registry/src/",
        "/home/me/.npm/_cacache/",
    ]);
    let machine = Machine::new(&entries);
    let look = |path: &Path| machine.look(path);
    let planned = |caches: Option<&[&str]>, level| {
        let caches = caches.map(|caches| caches.iter().map(|one| (*one).to_owned()).collect());
        let config = SandboxConfig {
            caches,
            ..SandboxConfig::default()
        };
        plan(&facts(&look), &config, level, RunPurpose::Agent).unwrap()
    };
    let seen = |plan: &SandboxPlan, path: &str| {
        let path = Path::new("/home/me").join(path);
        let rules = plan.rules.iter().rev();
        let mut above = rules.filter(|rule| path.starts_with(&rule.path));
        let source = above.next().and_then(|rule| rule.source.clone());
        (plan.access(&path), source.is_some())
    };
    use Access::{Hidden, Pinned, Private, ReadOnly, Writable};
    let workspace = planned(None, SandboxLevel::Workspace);
    let strict = planned(None, SandboxLevel::Strict);
    for (path, in_workspace, apart, in_strict) in [
        (".cache/p10k-instant-prompt-me.zsh", Writable, true, Private),
        (".cache/gitstatus/gitstatusd", Writable, true, Private),
        (".cache/go-build/x", Writable, true, Private),
        (".cache/new", Writable, true, Private),
        (".cache/ms-playwright/chrome", ReadOnly, false, ReadOnly),
        (".cache/huggingface/hub", ReadOnly, false, ReadOnly),
        (".cache/huggingface/token", Hidden, false, Hidden),
        (".cache/node/corepack/x", ReadOnly, false, ReadOnly),
        (".cache/pip/http-v2/x", Writable, false, Writable),
        (".npm/_cacache/x", Writable, false, Writable),
        (".cargo/registry/cache/x", Writable, false, Writable),
        (".cargo/registry/src/x", Writable, true, ReadOnly),
    ] {
        assert_eq!(seen(&workspace, path), (in_workspace, apart), "{path}");
        assert_eq!(seen(&strict, path), (in_strict, false), "{path} in strict");
    }
    // Asked for by name, it is the user's own; what is installed there stays as it is.
    let asked = planned(Some(&["~/.cache"]), SandboxLevel::Workspace);
    for (path, access) in [
        (".cache/go-build/x", Writable),
        (".cache/ms-playwright/chrome", ReadOnly),
        (".cache/node/x", Pinned),
    ] {
        assert_eq!(seen(&asked, path), (access, false), "{path}");
    }
    // Without a view of its own what is granted is where the sandbox's own caches are.
    let order = Confinement::of(&workspace, Mechanism::Landlock, false);
    assert!(order.write.contains(&PathBuf::from(own).join(".cache")));
    assert!(!order.write.contains(&PathBuf::from("/home/me/.cache")));
    assert_eq!(order.cache_home, Some(PathBuf::from(own).join(".cache")));
    let order = Confinement::of(&workspace, Mechanism::Bwrap, false);
    assert_eq!(order.cache_home, None);
}

#[test]
fn keys_and_logins_are_hidden_wherever_xdg_puts_them() {
    let places = [
        "/home/me/.config/sops/age/keys.txt",
        "/home/me/.config/github-copilot/hosts.json",
        "/cfg/stripe/config.toml",
        "/home/me/.s3cfg",
        "/home/me/.viminfo",
        "/home/me/.bitcoin/wallet.dat",
        "/data/keyrings/login",
    ];
    let machine = Machine::new(&[ENTRIES, &places].concat());
    let look = |path: &Path| machine.look(path);
    let mut facts = facts(&look);
    if let Some(home) = &mut facts.home {
        home.config = Some("/cfg".into());
        home.data = Some("/data".into());
    }
    let config = SandboxConfig::default();
    let level = SandboxLevel::Workspace;
    let plan = plan(&facts, &config, level, RunPurpose::Agent).unwrap();
    for place in places {
        assert_eq!(plan.access(Path::new(place)), Access::Hidden, "{place}");
    }
}

#[test]
fn what_must_stay_shut_is_refused_with_the_way_out() {
    let machine = Machine::new(ENTRIES);
    let look = |path: &Path| machine.look(path);
    let with = |write: &str, read: &str, hide: &str| {
        let list = |path: &str| match path {
            "" => Vec::new(),
            path => vec![PathBuf::from(path)],
        };
        let config = SandboxConfig {
            write: list(write),
            read: list(read),
            hide: list(hide),
            ..SandboxConfig::default()
        };
        plan(
            &facts(&look),
            &config,
            SandboxLevel::Workspace,
            RunPurpose::Agent,
        )
    };
    for (write, read, hide, words) in [
        ("/", "", "", "home directory"),
        ("/home", "", "", "home directory"),
        ("/home/me", "", "", "home directory"),
        ("/home/me/.local", "", "", "journals"),
        ("/home/me/.local/state/descartes/loops", "", "", "journals"),
        ("/usr/bin", "", "", "folder of the system"),
        ("/run", "", "", "folder of the system"),
        ("/home/me/.cargo/bin", "", "", "programs are started"),
        ("/home/me/p/.git/hooks", "", "", "which programs git starts"),
        ("/home/me/nowhere", "", "", "no such file"),
        ("", "/home/me/.local/state/descartes/loops", "", "journals"),
        ("", "/nowhere", "", "no such file"),
        ("", "", "/home/me", "works in there"),
        ("", "", "/home/me/p", "works in there"),
    ] {
        let error = with(write, read, hide).unwrap_err();
        assert!(
            error.message.contains(words),
            "{write}{read}{hide}: {error}"
        );
        assert!(!error.hint.is_empty());
    }
    assert!(with("", "", "").is_ok());
}

#[test]
fn a_work_tree_that_holds_the_home_directory_is_refused_and_a_repository_of_it_is_not_granted() {
    let machine = Machine::new(ENTRIES);
    let look = |path: &Path| machine.look(path);
    let at = |dir: &str, top: Option<&str>| {
        let mut facts = facts(&look);
        facts.work_dir = dir.into();
        facts.git = top.map(|top| GitPlaces {
            top: top.into(),
            git_dir: PathBuf::from(top).join(".git"),
            common_dir: PathBuf::from(top).join(".git"),
            ..GitPlaces::default()
        });
        plan(
            &facts,
            &SandboxConfig::default(),
            SandboxLevel::Workspace,
            RunPurpose::Agent,
        )
    };
    for dir in ["/", "/home", "/home/me", "/usr"] {
        assert!(at(dir, None).is_err(), "{dir}");
    }
    let below = at("/home/me/other", Some("/home/me")).unwrap();
    assert_eq!(
        below.access(Path::new("/home/me/other/x")),
        Access::Writable
    );
    assert_eq!(below.access(Path::new("/home/me/x")), Access::ReadOnly);
    let inside = at("/home/me/p/ci", Some("/home/me/p")).unwrap();
    let top = inside.access(Path::new("/home/me/p/README"));
    assert!(top.takes_writes(), "{top:?}");
}

#[test]
fn a_slot_writes_objects_and_refs_of_its_own_alone() {
    let common = "/home/me/p/.git";
    let slot = "/home/me/.local/state/descartes/worktrees/s1";
    let mut entries = ENTRIES.to_vec();
    entries.extend([
        "/home/me/.local/state/descartes/worktrees/s1/.git",
        "/home/me/p/.git/objects/",
        "/home/me/p/.git/HEAD",
        "/home/me/p/.git/worktrees/s1/gitdir",
        "/home/me/p/.git/worktrees/s2/HEAD",
        "/home/me/p/.git/refs/heads/descartes/t/1",
        "/home/me/p/.git/refs/heads/descartes/t/2",
    ]);
    let machine = Machine::new(&entries);
    let look = |path: &Path| machine.look(path);
    let mut facts = facts(&look);
    facts.work_dir = slot.into();
    facts.git = Some(GitPlaces {
        top: slot.into(),
        git_dir: format!("{common}/worktrees/s1").into(),
        common_dir: common.into(),
        other_work_trees: vec![format!("{common}/worktrees/s2").into()],
        slot: Some(SlotGit {
            refs: Some((
                format!("{common}/refs/heads/descartes/t").into(),
                "/own/r".into(),
            )),
            logs: Some((
                format!("{common}/logs/refs/heads/descartes/t").into(),
                "/own/l".into(),
            )),
            objects: "/home/me/.local/state/descartes/objects/s1".into(),
        }),
    });
    let plan = plan(
        &facts,
        &SandboxConfig::default(),
        SandboxLevel::Workspace,
        RunPurpose::Agent,
    )
    .unwrap();
    for (path, writes) in [
        (format!("{slot}/src"), true),
        (format!("{slot}/.git"), false),
        (format!("{common}/objects/ab"), true),
        (format!("{common}/refs/heads/descartes/t/1"), true),
        (format!("{common}/refs/heads/main"), false),
        (format!("{common}/packed-refs"), false),
        (format!("{common}/HEAD"), false),
        (format!("{common}/config"), false),
        (format!("{common}/worktrees/s1/HEAD"), true),
        (format!("{common}/worktrees/s1/gitdir"), false),
        (format!("{common}/worktrees/s2/HEAD"), false),
        ("/home/me/p/src".to_owned(), false),
    ] {
        let access = plan.access(Path::new(&path));
        assert_eq!(access.takes_writes(), writes, "{path}: {access:?}");
    }
    let refs = |rule: &&PathRule| rule.path.ends_with(".git/refs/heads/descartes/t");
    let refs = plan.rules.iter().find(refs);
    let source = refs.and_then(|rule| rule.source.as_deref());
    assert_eq!(
        source,
        Some(Path::new("/own/r")),
        "not those of other tasks"
    );
    let objects = plan
        .rules
        .iter()
        .find(|rule| rule.path.ends_with(".git/objects"));
    let source = objects.and_then(|rule| rule.source.as_deref());
    assert_eq!(
        source,
        Some(Path::new("/home/me/.local/state/descartes/objects/s1"))
    );
}

#[test]
fn settings_of_an_agent_name_the_hosts_of_its_provider() {
    let toml = "[model_providers.x]\nbase_url = \"https://llm.example.com/v1\"\nbase_url='http://10.0.0.1:8080/x'\n";
    assert_eq!(named_hosts(toml), ["llm.example.com", "10.0.0.1:8080"]);
    let json = r#"{"options": {"baseURL": "http://box/v1", "apiKey": "k"}}"#;
    assert_eq!(named_hosts(json), ["box:80"]);
    for nothing in ["base_url = \"{env:URL}\"", "baseURL", "base_url = 7", ""] {
        assert!(named_hosts(nothing).is_empty(), "{nothing}");
    }
}

#[test]
fn whatever_flag_a_denial_suggests_opens_the_path_when_it_is_typed() {
    let machine = Machine::new(ENTRIES);
    let look = |path: &Path| machine.look(path);
    let facts_of = facts;
    let facts = facts_of(&look);
    let is_folder = |path: &Path| machine.look(path).map(|found| found.is_folder);
    let around = OutsideView {
        home: facts.home.as_ref().map(|folders| folders.home.as_path()),
        look: &is_folder,
    };
    let asked = SandboxConfig {
        hide: vec!["/home/me/p/Makefile".into()],
        ..SandboxConfig::default()
    };
    let (mut opened, mut refused) = (0, 0);
    for level in [SandboxLevel::Workspace, SandboxLevel::Strict] {
        let before = plan(&facts, &asked, level, RunPurpose::Agent).unwrap();
        for path in machine
            .0
            .keys()
            .flat_map(|path| [path.clone(), path.join("new")])
        {
            let line = format!(
                "sh: 1: cannot create '{}': Read-only file system",
                path.display()
            );
            let told = denied_paths(&before, Mechanism::Bwrap, &line, &around);
            let Some(denial) = told.first() else { continue };
            if denial.flag.is_empty() {
                refused += 1;
                continue;
            }
            let (flag, given) = denial.flag.split_once(' ').unwrap();
            let mut config = asked.clone();
            match flag {
                "--sandbox-write" => config.write.push(given.into()),
                _ => config.read.push(given.into()),
            }
            let mut entries = ENTRIES.to_vec();
            let folder = denial.note.strip_prefix("mkdir ");
            let folder = folder.map(|folder| format!("{folder}/"));
            let made = folder.or_else(|| Some(denial.note.strip_prefix("touch ")?.to_owned()));
            entries.extend(made.as_deref());
            let later = Machine::new(&entries);
            let look = |path: &Path| later.look(path);
            let after = plan(&facts_of(&look), &config, level, RunPurpose::Agent);
            let after = after.unwrap_or_else(|error| panic!("{}: {error}", denial.describe()));
            let access = after.access(&path);
            let is_open = match flag {
                "--sandbox-write" => access.takes_writes(),
                _ => access != Access::Hidden,
            };
            assert!(is_open, "{}: {access:?}", denial.describe());
            opened += 1;
        }
    }
    assert!(opened > 5 && refused > 5, "{opened} and {refused}");
}
