//! A sandbox that was tried, as a prefix of command lines.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use descartes_kernel::sandbox::{
    Confinement, GroupOrder, HeldLimits, Make, Mechanism, Network, OuterOrder, ProbeOrder,
    STAND_INS, SandboxLevel, SandboxPlan, bwrap_args,
};
use thiserror::Error;
use tracing::debug;

use crate::groups;
use crate::machine::Machine;
use crate::stage::STAGE_VERB;

/// A sandbox that cannot be had here, with what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Unavailable {
    /// Why.
    pub message: String,
    /// What to install, allow or type.
    pub hint: String,
}

/// What carries plans out on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    machine: Machine,
    mechanism: Mechanism,
    /// Why it is not the stronger one.
    weaker: Option<String>,
    /// This binary.
    program: PathBuf,
    /// The folder with what is shown in place of files that are hidden.
    stand_ins: PathBuf,
    /// Limits on processes and memory, for `strict`.
    limits: HeldLimits,
}

/// What Landlock alone cannot do, in one line.
const WEAKER: &str = "Landlock and seccomp alone protect nothing inside the work tree (gate scripts and git's \
     hooks are compared, not locked), hide no names, share /tmp, and leave most sockets open";

impl Sandbox {
    /// The strongest sandbox that holds these plans here; each is tried. `state_root` is where a file of
    /// ours is kept.
    pub fn choose(
        machine: Machine,
        program: &Path,
        state_root: &Path,
        plans: &[&SandboxPlan],
    ) -> Result<Self, Unavailable> {
        let mut sandbox = Self {
            machine,
            mechanism: Mechanism::Bwrap,
            weaker: None,
            program: program.to_owned(),
            stand_ins: stand_ins(state_root)?,
            limits: HeldLimits::default(),
        };
        for plan in plans {
            make_all(plan)?;
        }
        if plans.iter().any(|plan| plan.level == SandboxLevel::Strict) {
            sandbox.limits = sandbox.find_limits();
        }
        let why = match sandbox.probe_bwrap(plans) {
            Ok(()) => return Ok(sandbox),
            Err(Failed::Sandbox(why)) => why,
            // The machine can; this project cannot.
            Err(Failed::Promise(why)) => return Err(broken_promise(&why)),
        };
        debug!(why, "bwrap does not work here");
        let advice = sandbox.machine.namespaces.advice(&why);
        if let Some(instead) = instead_of_bwrap(plans) {
            return Err(Unavailable {
                message: format!("this sandbox needs bwrap, which does not work here: {why}"),
                hint: format!("{advice}; or use {instead}"),
            });
        }
        if sandbox.machine.landlock.is_none() {
            return Err(Unavailable {
                message: format!(
                    "no sandbox works here: {why}; and the kernel has no Landlock{}",
                    sandbox.machine.namespaces.kept_out()
                ),
                hint: format!("{advice}; or use --sandbox off"),
            });
        }
        sandbox.mechanism = Mechanism::Landlock;
        sandbox.weaker = Some(format!("{why}; {WEAKER}"));
        for plan in plans {
            let probed = sandbox.probe(plan);
            probed.map_err(|failed| match failed {
                Failed::Promise(why) => broken_promise(&why),
                Failed::Sandbox(why) => Unavailable {
                    message: format!("no sandbox works here: {why}"),
                    hint: "install bubblewrap, or use --sandbox off".to_owned(),
                },
            })?;
        }
        Ok(sandbox)
    }

    /// What carries it out.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Versions, for people.
    pub fn version(&self) -> String {
        self.machine.version(self.mechanism)
    }

    /// Why it is weaker than it could be.
    pub fn weaker(&self) -> Option<&str> {
        self.weaker.as_deref()
    }

    /// Limits on processes and memory that hold in `strict`.
    pub fn limits(&self) -> &HeldLimits {
        &self.limits
    }

    /// Which limits this machine can set; a control group is tried.
    fn find_limits(&self) -> HeldLimits {
        let facts = groups::look();
        let limits = facts.limits();
        match limits.group.as_ref().map(|order| self.try_group(order)) {
            Some(Err(why)) => HeldLimits::without_group(&facts, &why),
            Some(Ok(())) | None => limits,
        }
    }

    fn try_group(&self, order: &GroupOrder) -> Result<(), String> {
        let output = Command::new(&self.program)
            .args([STAGE_VERB, "group"])
            .arg(serde_json::to_string(order).unwrap_or_default())
            .stdin(Stdio::null())
            .output();
        let output = output.map_err(|error| error.to_string())?;
        let told = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => Ok(()),
            false => Err(told
                .trim()
                .trim_start_matches("descartes sandbox: ")
                .to_owned()),
        }
    }

    /// The words before a command that confine it. Makes first what has to be there.
    pub fn prefix(&self, plan: &SandboxPlan) -> Result<Vec<OsString>, Unavailable> {
        make_all(plan)?;
        let stage = |name: &str| -> Vec<OsString> {
            vec![self.program.clone().into(), STAGE_VERB.into(), name.into()]
        };
        let confinement = Confinement::of(plan, self.mechanism, self.machine.is_root);
        let order = serde_json::to_string(&confinement).unwrap_or_default();
        let mut inner = stage("inner");
        inner.push(order.into());
        let (Mechanism::Bwrap, Some(bwrap)) = (self.mechanism, &self.machine.bwrap) else {
            return Ok(inner);
        };
        let outer = OuterOrder::of(plan, self.limits.group.as_ref());
        let mut words = stage("outer");
        words.push(serde_json::to_string(&outer).unwrap_or_default().into());
        words.push(bwrap.path.clone().into());
        words.extend(bwrap_args(plan, &self.stand_ins));
        words.push("--".into());
        words.extend(inner);
        Ok(words)
    }

    fn probe_bwrap(&self, plans: &[&SandboxPlan]) -> Result<(), Failed> {
        if self.machine.bwrap.is_none() {
            return Err(Failed::Sandbox("bwrap is not installed".to_owned()));
        }
        plans.iter().try_for_each(|plan| self.probe(plan))
    }

    /// Runs the real thing around a program of ours that tries what it must and must not be able to do.
    fn probe(&self, plan: &SandboxPlan) -> Result<(), Failed> {
        let words = self.prefix(plan);
        let words = words.map_err(|error| Failed::Promise(error.message))?;
        let Some((name, args)) = words.split_first() else {
            return Err(Failed::Sandbox("nothing to run".to_owned()));
        };
        let order = serde_json::to_string(&ProbeOrder::of(plan, self.mechanism));
        let output = Command::new(name)
            .args(args)
            .arg(&self.program)
            .args([STAGE_VERB, "probe"])
            .arg(order.unwrap_or_default())
            .current_dir(&plan.work_dir)
            .stdin(Stdio::null())
            .output();
        let output = output.map_err(|error| Failed::Sandbox(error.to_string()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        match output.status.code() {
            Some(0) => Ok(()),
            Some(1) if !out.is_empty() => Err(Failed::Promise(out.replace('\n', "; "))),
            _ => Err(Failed::Sandbox(match err.is_empty() {
                true => format!("it ended with {}", output.status),
                false => {
                    let last = err.lines().last().unwrap_or_default();
                    last.trim_end_matches('.').to_owned()
                }
            })),
        }
    }
}

/// Why a sandbox that was tried is not good.
enum Failed {
    /// It did not start.
    Sandbox(String),
    /// It started, and does not do what the plan says.
    Promise(String),
}

/// What would work without `bwrap` in place of these plans, where they need it.
fn instead_of_bwrap(plans: &[&SandboxPlan]) -> Option<&'static str> {
    match () {
        () if plans.iter().any(|plan| plan.level == SandboxLevel::Strict) => {
            Some("--sandbox workspace")
        }
        () if plans.iter().any(|plan| plan.network != Network::Host) => Some("--gate-network on"),
        () => None,
    }
}

fn broken_promise(why: &str) -> Unavailable {
    Unavailable {
        message: format!("the sandbox was tried and is not as planned: {why}"),
        hint: "make these folders yours and writable, name them with --sandbox-write, or use --sandbox off"
            .to_owned(),
    }
}

/// Makes what is shown in place of files that are hidden.
fn stand_ins(state_root: &Path) -> Result<PathBuf, Unavailable> {
    let folder = state_root.join("sandbox");
    let made = std::fs::create_dir_all(&folder);
    made.map_err(|error| cannot_make(&folder, &error))?;
    for (name, text) in STAND_INS {
        let file = folder.join(name);
        if std::fs::read(&file).is_ok_and(|found| found == text.as_bytes()) {
            continue;
        }
        std::fs::write(&file, text).map_err(|error| cannot_make(&file, &error))?;
    }
    Ok(folder)
}

fn cannot_make(path: &Path, error: &io::Error) -> Unavailable {
    Unavailable {
        message: format!("the sandbox needs {}: {error}", path.display()),
        hint: "make it yourself, or use --sandbox off".to_owned(),
    }
}

fn make_all(plan: &SandboxPlan) -> Result<(), Unavailable> {
    for make in &plan.make {
        let (Make::Folder(path) | Make::File(path, _)) = make;
        make_one(make).map_err(|error| cannot_make(path, &error))?;
    }
    Ok(())
}

pub(crate) fn make_one(make: &Make) -> io::Result<()> {
    match make {
        Make::Folder(path) => std::fs::create_dir_all(path),
        Make::File(path, text) => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            if text.is_empty() {
                return write_new(path, text);
            }
            // Whole at once: a git beside us may read it at any moment.
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}.tmp", std::process::id()));
            let new = path.with_file_name(name);
            // What lies there was never ours.
            drop(std::fs::remove_file(&new));
            write_new(&new, text)?;
            let made = std::fs::hard_link(&new, path);
            std::fs::remove_file(&new)?;
            match made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                // Not every file system has them.
                Err(_) => write_new(path, text),
                Ok(()) => Ok(()),
            }
        }
    }
}

/// Makes a file, never through a link; one that is there stays.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    match made {
        Ok(mut file) => io::Write::write_all(&mut file, text.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
