//! The names of loops: made up where none is given, and told apart while they run.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use descartes_store::catalog;
use descartes_store::lock::{NameLock, holder_of_loop};

use super::{HostError, HostSettings};

/// Time for another loop of the same name to begin.
const CLAIM: Duration = Duration::from_secs(10);

/// Refuses a name that a running loop goes by: nobody could tell the two apart.
pub(super) fn check_name(settings: &HostSettings, name: &str) -> Result<(), HostError> {
    let named = catalog::list(&settings.root)?.into_iter();
    for other in named.filter(|other| other.meta.name == name) {
        if holder_of_loop(&other.dir)?.is_some() {
            let id = other.meta.id;
            return Err(HostError::refused(
                format!("loop {id} is running and already has the name {name:?}"),
                format!("choose another --name; see that loop with: descartes loop status {id}"),
            ));
        }
    }
    Ok(())
}

/// Keeps a name for a loop that is about to begin, until it is registered.
pub(super) fn claim_name(settings: &HostSettings, name: &str) -> Result<NameLock, HostError> {
    let Some(claim) = NameLock::acquire(&settings.root, name, CLAIM)? else {
        return Err(HostError::refused(
            format!("another loop named {name:?} is just starting"),
            "choose another --name, or find that loop with: descartes loop list --all",
        ));
    };
    check_name(settings, name)?;
    Ok(claim)
}

/// A made-up name that no other loop goes by.
pub(super) fn unused_name(
    settings: &HostSettings,
    dir: &Path,
    loop_id: &str,
) -> Result<String, HostError> {
    let taken: HashSet<String> = catalog::list(&settings.root)?
        .into_iter()
        .map(|entry| entry.meta.name)
        .collect();
    let name = made_up_name(dir, loop_id);
    Ok(first_free(name, |name| taken.contains(name)))
}

/// `project-7f3a`, or else `project-7f3a-2` and so on.
fn first_free(name: String, is_taken: impl Fn(&str) -> bool) -> String {
    let more = (2u32..).map(|n| format!("{name}-{n}"));
    let mut all = std::iter::once(name.clone()).chain(more);
    all.find(|name| !is_taken(name)).unwrap_or(name)
}

/// `project-7f3a`: the folder's name and something to tell loops apart.
pub(super) fn made_up_name(dir: &Path, loop_id: &str) -> String {
    let folder = dir
        .file_name()
        .map_or_else(|| "loop".into(), |name| name.to_string_lossy());
    let clean: String = folder
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect();
    let tail = &loop_id[loop_id.len().saturating_sub(4)..];
    format!("{}-{tail}", clean.trim_matches('-').to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_names_are_words_and_told_apart() {
        let id = "0192-7f3a";
        assert_eq!(made_up_name(Path::new("/x/My App"), id), "my-app-7f3a");
        let taken = |name: &str| ["app-7f3a", "app-7f3a-2"].contains(&name);
        assert_eq!(first_free("app-7f3a".to_owned(), taken), "app-7f3a-3");
        assert_eq!(first_free("web-7f3a".to_owned(), taken), "web-7f3a");
    }
}
