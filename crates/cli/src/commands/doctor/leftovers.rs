//! What dead loops left behind: processes, sockets, loops that nobody runs.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use descartes_proc::MARK;
use descartes_store::catalog::{self, LoopStanding};
use descartes_store::layout::{EnvPaths, StateRoot};
use descartes_store::lock::holder_of_loop;
use nix::unistd::Uid;

use super::finding::{Finding, note, ok, problem};
use descartes_text::units::plural;

/// Looks for all of it.
pub fn look(root: &StateRoot, paths: &EnvPaths) -> Vec<Finding> {
    let mut out = processes(root);
    out.extend(sockets(paths));
    out.extend(interrupted(root));
    if out.is_empty() {
        out.push(ok("leftovers", "none"));
    }
    out
}

/// Processes that carry the mark of a loop which nobody runs.
fn processes(root: &StateRoot) -> Vec<Finding> {
    let mut left: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (pid, id) in marked() {
        left.entry(id).or_default().push(pid);
    }
    left.retain(|id, _| !is_held(root, id));
    let tell = |(id, pids): (String, Vec<u32>)| {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        let message = format!(
            "processes of loop {id}, which is not running: {}",
            pids.join(" ")
        );
        problem(
            "leftovers",
            message,
            format!("end them with: kill {}", pids.join(" ")),
        )
    };
    left.into_iter().map(tell).collect()
}

fn is_held(root: &StateRoot, id: &str) -> bool {
    let Ok(dir) = root.loop_dir(id) else {
        return false;
    };
    // A loop of another state root is none of ours to judge.
    !dir.path().exists() || matches!(holder_of_loop(&dir), Ok(Some(_)) | Err(_))
}

/// Processes with a loop's mark in their environment, as far as we may look.
fn marked() -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id())
        .filter_map(|pid: u32| {
            Some((
                pid,
                mark_of(&std::fs::read(format!("/proc/{pid}/environ")).ok()?)?,
            ))
        })
        .collect()
}

fn mark_of(environment: &[u8]) -> Option<String> {
    let mark = [MARK.as_bytes(), b"="].concat();
    let mut entries = environment.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(mark.as_slice()))?;
    String::from_utf8(value.to_vec()).ok()
}

fn sockets(paths: &EnvPaths) -> Option<Finding> {
    let dead = dead_sockets(paths).len() as u64;
    let message = plural(dead, "dead socket");
    (dead > 0).then(|| problem("leftovers", message, "remove with: descartes clean"))
}

/// Sockets that nobody listens at.
pub fn dead_sockets(paths: &EnvPaths) -> Vec<PathBuf> {
    let ours = format!("descartes-{}", Uid::effective());
    let runtime = paths.xdg_runtime_dir.as_ref().filter(|dir| dir.is_dir());
    let mut folders: Vec<PathBuf> = match runtime {
        Some(dir) => vec![dir.join("descartes")],
        None => vec![paths.temp_dir.join(&ours), Path::new("/tmp").join(&ours)],
    };
    folders.dedup();
    let files = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .flatten();
    files
        .map(|file| file.path())
        .filter(|path| is_dead(path))
        .collect()
}

/// Whether it is a socket that nobody listens at.
pub fn is_dead(path: &Path) -> bool {
    let socket = path
        .extension()
        .is_some_and(|extension| extension == "sock");
    let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    socket && UnixStream::connect(path).is_err_and(refused)
}

/// Loops that are not over and that nobody runs.
fn interrupted(root: &StateRoot) -> Vec<Finding> {
    let entries = catalog::list(root).unwrap_or_default();
    let left = entries
        .into_iter()
        .filter_map(|entry| match entry.standing() {
            Ok(LoopStanding::Interrupted) => {
                let place = entry.meta.working_dir.display();
                let message = format!("loop {} in {place} was interrupted", entry.meta.name);
                let hint = format!("continue it with: descartes loop resume {}", entry.meta.id);
                Some(note("leftovers", message, &hint))
            }
            Ok(LoopStanding::Running(_) | LoopStanding::Finished(_)) => None,
            Err(error) => {
                let hint = error.hint().unwrap_or("look at the file");
                Some(problem("leftovers", error.to_string(), hint))
            }
        });
    left.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_read_from_an_environment() {
        assert_eq!(
            mark_of(b"A=1\0DESCARTES_LOOP_ID=0192-x\0B=2\0").unwrap(),
            "0192-x"
        );
        assert_eq!(mark_of(b"XDESCARTES_LOOP_ID=no\0"), None);
    }

    #[test]
    fn a_socket_without_a_listener_is_dead() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("descartes");
        std::fs::create_dir(&dir).unwrap();
        let live = std::os::unix::net::UnixListener::bind(dir.join("live.sock")).unwrap();
        drop(std::os::unix::net::UnixListener::bind(dir.join("dead.sock")).unwrap());
        let paths = EnvPaths {
            xdg_runtime_dir: Some(folder.path().to_owned()),
            temp_dir: folder.path().to_owned(),
            ..EnvPaths::default()
        };
        assert_eq!(dead_sockets(&paths), [dir.join("dead.sock")]);
        assert_eq!(sockets(&paths).unwrap().message, "1 dead socket");
        drop(live);
    }
}
