//! Which tests run together. Some start a program that a machine of everyday has not, and take long: those with a
//! browser and those with an engine's server.

/// A part of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestGroup {
    All,
    /// What needs git and a shell.
    Everyday,
    /// What starts a browser or an engine's server.
    Services,
}

/// Tests that start such a program: the package, its test binary, and the modules there; none for all of it.
const SERVICES: [(&str, &str, &[&str]); 3] = [
    (
        "descartes-cli",
        "it",
        &[
            "coordinator",
            "engine",
            "engine_cluster",
            "git_remote",
            "workers",
            "workers_end",
        ],
    ),
    ("descartes-cli", "web", &["browser", "everybody", "tasks"]),
    ("descartes-fleet", "it", &[]),
];

impl TestGroup {
    /// Tells the plain runner which it is.
    pub const VARIABLE: &str = "DESCARTES_TESTS_OF";

    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Everyday => "everyday",
            Self::Services => "services",
        }
    }

    pub fn named(name: &str) -> Self {
        let mut groups = [Self::Everyday, Self::Services].into_iter();
        let group = groups.find(|group| group.name() == name);
        group.unwrap_or(Self::All)
    }

    /// As nextest takes it.
    pub fn filter(self) -> Option<String> {
        let rows = SERVICES.map(|(package, binary, modules)| {
            let of = format!("binary_id(={package}::{binary})");
            match modules.is_empty() {
                true => of,
                false => format!("({of} & test(/^({})::/))", modules.join("|")),
            }
        });
        let services = rows.join(" | ");
        match self {
            Self::All => None,
            Self::Everyday => Some(format!("not ({services})")),
            Self::Services => Some(services),
        }
    }

    /// Whether a test of a package's binary is one of them.
    pub fn holds(self, package: &str, binary: &str, test: &str) -> bool {
        let module = test.split_once("::").map_or("", |(module, _)| module);
        let is_service = SERVICES.iter().any(|(of, in_binary, modules)| {
            let is_there = *of == package && *in_binary == binary;
            is_there && (modules.is_empty() || modules.contains(&module))
        });
        match self {
            Self::All => true,
            Self::Everyday => !is_service,
            Self::Services => is_service,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_is_in_one_group_of_two() {
        for (package, binary, test, is_service) in [
            ("descartes-cli", "it", "workers::a_worker_that", true),
            ("descartes-cli", "it", "workers_of::a_worker_that", false),
            ("descartes-cli", "web", "workers::a_worker_that", false),
            ("descartes-cli", "web", "browser::one_page", true),
            ("descartes-fleet", "it", "one_page", true),
            ("descartes-gui", "it", "one_page", false),
        ] {
            let holds = |group: TestGroup| group.holds(package, binary, test);
            assert_eq!(holds(TestGroup::Services), is_service, "{package} {test}");
            assert_eq!(holds(TestGroup::Everyday), !is_service, "{package} {test}");
            assert!(holds(TestGroup::All), "{package} {test}");
        }
        for group in [TestGroup::All, TestGroup::Everyday, TestGroup::Services] {
            assert_eq!(TestGroup::named(group.name()), group);
        }
    }

    /// A module that was renamed would be everyday without a word.
    #[test]
    fn what_is_named_is_there() {
        for (package, binary, modules) in SERVICES {
            let name = package.trim_start_matches("descartes-");
            let folder = crate::shell::root().join(format!("crates/{name}/tests/{binary}"));
            assert!(folder.join("main.rs").exists(), "{}", folder.display());
            for module in modules {
                assert!(folder.join(format!("{module}.rs")).exists(), "{module}");
            }
        }
    }
}
