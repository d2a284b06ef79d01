//! What to do where `bwrap` does not work: one sentence that can be followed.

/// What is known of the machine, as far as it keeps `bwrap` from working.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// A sandbox of ours is around already.
    pub within: bool,
    /// `kernel.apparmor_restrict_unprivileged_userns` is 1.
    pub apparmor_restricts: bool,
    /// `kernel.unprivileged_userns_clone` is 0.
    pub needs_root: bool,
    /// `user.max_user_namespaces` is 0.
    pub none_allowed: bool,
    /// This is in a container.
    pub container: bool,
}

impl NamespaceFacts {
    /// What to install, allow or type, where `bwrap` ended with these words.
    pub fn advice(self, why: &str) -> &'static str {
        match self {
            Self { within: true, .. } => {
                "this is inside of a sandbox of descartes already, and `bwrap` cannot be nested: start it outside"
            }
            _ if why.contains("not installed") => {
                "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
            }
            Self {
                needs_root: true, ..
            } => "allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1",
            Self {
                none_allowed: true, ..
            } => "allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000",
            // Seen of a root to whom no capability was left.
            Self {
                container: true, ..
            } if why.contains("uid map") => {
                "start the container with --cap-add SETFCAP --security-opt seccomp=unconfined \
                 --security-opt systempaths=unconfined, or start descartes in it as an ordinary user"
            }
            Self {
                container: true, ..
            } => {
                "start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined, \
                 where AppArmor is in use also with --security-opt apparmor=unconfined"
            }
            Self {
                apparmor_restricts: true,
                ..
            } => {
                "AppArmor keeps programs from making user namespaces: install the profile bwrap-userns-restrict of \
                 your distribution"
            }
            _ => {
                "something keeps `bwrap` from it, as AppArmor and SELinux can (sudo dmesg tells); this has to work: bwrap \
                 --unshare-user --unshare-pid --ro-bind / / --proc /proc true"
            }
        }
    }

    /// What else may be the reason where the kernel seems to lack something.
    pub fn kept_out(self) -> &'static str {
        match self.container {
            true => ", or this container keeps it out",
            false => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_follows_from_what_keeps_bwrap_from_working() {
        let facts = NamespaceFacts::default();
        let container = NamespaceFacts {
            container: true,
            ..facts
        };
        let no_namespace = "bwrap: Creating new namespace failed: Operation not permitted";
        let table = [
            (facts, "bwrap is not installed", "install bubblewrap"),
            (container, "bwrap is not installed", "install bubblewrap"),
            (facts, no_namespace, "sudo dmesg"),
            (container, no_namespace, "--security-opt seccomp=unconfined"),
            (
                container,
                "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
                "--security-opt systempaths=unconfined",
            ),
            (
                container,
                "bwrap: setting up uid map: Operation not permitted",
                "--cap-add SETFCAP",
            ),
            (
                NamespaceFacts {
                    needs_root: true,
                    ..facts
                },
                no_namespace,
                "sudo sysctl -w kernel.unprivileged_userns_clone=1",
            ),
            (
                NamespaceFacts {
                    none_allowed: true,
                    ..facts
                },
                "bwrap: Creating new namespace failed: No space left on device",
                "sudo sysctl -w user.max_user_namespaces=",
            ),
            (
                NamespaceFacts {
                    apparmor_restricts: true,
                    ..facts
                },
                "bwrap: setting up uid map: Permission denied",
                "bwrap-userns-restrict",
            ),
            // A sandbox of ours leads to the same words, and none of the above would help.
            (
                NamespaceFacts {
                    within: true,
                    ..container
                },
                no_namespace,
                "start it outside",
            ),
        ];
        for (facts, why, wanted) in table {
            let advice = facts.advice(why);
            assert!(advice.contains(wanted), "{facts:?} {why}: {advice}");
        }
        assert_eq!(facts.kept_out(), "");
        assert!(container.kept_out().contains("this container"));
    }
}
