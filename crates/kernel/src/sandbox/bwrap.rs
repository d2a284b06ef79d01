//! A plan as the arguments of `bwrap`, which draws the view.

use std::ffi::OsString;
use std::path::Path;

use super::plan::{Access, Network, PathRule, SandboxPlan};
use super::secrets::stand_in;

/// The arguments before `--`. `stand_ins` is the folder with what is shown in place of files that are
/// hidden: programs read it as nothing instead of failing.
pub fn bwrap_args(plan: &SandboxPlan, stand_ins: &Path) -> Vec<OsString> {
    let mut args = Words::default();
    args.words(&[
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
    ]);
    args.pair("--cap-drop", "ALL");
    if plan.network != Network::Host {
        args.words(&["--unshare-net"]);
    }
    args.bind("--ro-bind", Path::new("/"), Path::new("/"));
    args.pair("--dev", "/dev");
    args.pair("--proc", "/proc");
    // Else a root inside can set `core_pattern`, which the kernel starts outside.
    args.bind("--ro-bind", Path::new("/proc/sys"), Path::new("/proc/sys"));
    for rule in &plan.rules {
        args.rule(rule, stand_ins);
    }
    args.path("--chdir", &plan.work_dir);
    args.0
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn pair(&mut self, flag: &str, value: &str) {
        self.words(&[flag, value]);
    }

    fn path(&mut self, flag: &str, path: &Path) {
        self.0.extend([flag.into(), path.into()]);
    }

    fn bind(&mut self, flag: &str, source: &Path, path: &Path) {
        self.0.extend([flag.into(), source.into(), path.into()]);
    }

    fn empty_folder(&mut self, path: &Path, mode: &str) {
        self.pair("--perms", mode);
        self.path("--tmpfs", path);
    }

    fn rule(&mut self, rule: &PathRule, stand_ins: &Path) {
        let path = rule.path.as_path();
        let source = rule.source.as_deref().unwrap_or(path);
        match (rule.access, rule.is_folder) {
            (Access::ReadOnly, _) if rule.why.may_be_gone() => {
                self.bind("--ro-bind-try", source, path);
            }
            (Access::ReadOnly, _) => self.bind("--ro-bind", source, path),
            (Access::Writable | Access::Pinned, _) => self.bind("--bind", source, path),
            (Access::Hidden, false) => {
                self.bind("--ro-bind", &stand_ins.join(stand_in(path).0), path);
            }
            // Nobody may write there, by its mode: `bwrap` reads the whole table of mounts again for each one
            // that it makes read-only.
            (Access::Hidden, true) => self.empty_folder(path, "0555"),
            (Access::Private, _) if path.ends_with("tmp") => self.empty_folder(path, "1777"),
            (Access::Private, _) => self.empty_folder(path, "0755"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{RunPurpose, SandboxLevel};

    fn rule(path: &str, access: Access, is_folder: bool) -> PathRule {
        PathRule {
            path: path.into(),
            is_folder,
            access,
            source: None,
            why: "".into(),
        }
    }

    fn text(plan: &SandboxPlan) -> String {
        let args = bwrap_args(plan, Path::new("/state"));
        let args: Vec<String> = args
            .iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect();
        args.join(" ")
    }

    #[test]
    fn the_view_is_drawn_from_the_outside_in_and_hidden_folders_are_shut() {
        let mut plan = SandboxPlan {
            level: SandboxLevel::Workspace,
            purpose: RunPurpose::Agent,
            rules: vec![
                rule("/h/.netrc", Access::Hidden, false),
                rule("/h/.ssh", Access::Hidden, true),
                rule("/h/p", Access::Writable, true),
                rule("/h/p/.git", Access::Pinned, true),
                rule("/h/p/.git/config", Access::ReadOnly, false),
                rule("/tmp", Access::Private, true),
            ],
            silent: Vec::new(),
            network: Network::Host,
            work_dir: "/h/p".into(),
            make: Vec::new(),
            in_private: Vec::new(),
            cache_home: None,
        };
        let args = text(&plan);
        assert!(args.starts_with("--unshare-user --unshare-pid"), "{args}");
        let view = "--ro-bind / / --dev /dev --proc /proc --ro-bind /proc/sys /proc/sys \
            --ro-bind /state/empty /h/.netrc --perms 0555 --tmpfs /h/.ssh --bind /h/p /h/p \
            --bind /h/p/.git /h/p/.git --ro-bind /h/p/.git/config /h/p/.git/config \
            --perms 1777 --tmpfs /tmp --chdir /h/p";
        assert!(args.ends_with(view), "{args}");
        assert!(!args.contains("--unshare-net"));
        plan.network = Network::Loopback;
        assert!(text(&plan).contains("--unshare-net"));
        plan.network = Network::Hosts(Vec::new());
        assert!(text(&plan).contains("--unshare-net"));
    }
}
