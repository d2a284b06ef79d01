//! Landlock: what this process and all that it starts may do with files from now on.

use std::io;
use std::path::{Path, PathBuf};

use descartes_kernel::sandbox::Confinement;
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    Scope, path_beneath_rules,
};

/// The newest interface that is asked for; an older kernel does what it can.
const WANTED: ABI = ABI::V6;

/// Takes all rights that were not granted, where the kernel has Landlock.
pub(crate) fn restrict(confinement: &Confinement) -> io::Result<()> {
    let other = |error: landlock::RulesetError| io::Error::other(error.to_string());
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(Ruleset::create)
        .map_err(other)?;
    let mut read = readable(&confinement.hidden);
    read.extend_from_slice(&confinement.read);
    let write = confinement.write.iter().map(PathBuf::as_path);
    // Terminals and the like; which devices there are is the view's to say.
    let write: Vec<&Path> = write.chain([Path::new("/dev")]).collect();
    // A namespace of users begins with a table of theirs, written there.
    let tables = confinement.namespaces.then_some(Path::new("/proc"));
    let write_only = AccessFs::WriteFile | AccessFs::Truncate;
    rules
        .add_rules(path_beneath_rules(tables, write_only))
        .and_then(|rules| rules.add_rules(path_beneath_rules(&read, AccessFs::from_read(WANTED))))
        .and_then(|rules| rules.add_rules(path_beneath_rules(&write, AccessFs::from_all(WANTED))))
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(other)?;
    Ok(())
}

/// Everything but what is hidden. Rights are granted, never taken: so each folder above a hidden path is
/// granted entry by entry.
fn readable(hidden: &[PathBuf]) -> Vec<PathBuf> {
    let mut out = Vec::new();
    collect(Path::new("/"), hidden, &mut out);
    out
}

fn collect(folder: &Path, hidden: &[PathBuf], out: &mut Vec<PathBuf>) {
    if !hidden.iter().any(|hidden| hidden.starts_with(folder)) {
        out.push(folder.to_owned());
        return;
    }
    if hidden.iter().any(|hidden| hidden == folder) {
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        // A link leads to a place that is looked at by itself.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if !is_link {
            collect(&entry.path(), hidden, out);
        }
    }
}
