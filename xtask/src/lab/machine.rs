//! On what it was measured.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

fn line_of(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The load average of the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(f64::NAN)
}

/// Processor, memory, kernel and date, in a sentence.
pub fn describe() -> String {
    let cpu = line_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = line_of("/proc/meminfo", "MemTotal").unwrap_or_default();
    let gib = memory
        .split(' ')
        .next()
        .and_then(|kib| kib.parse::<f64>().ok())
        .map_or(0.0, |kib| kib / 1048576.0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{cores} cores ({cpu}), {gib:.0} GiB of memory, Linux {}",
        kernel.trim()
    )
}

/// The commit that is measured.
pub fn commit() -> &'static str {
    static COMMIT: OnceLock<String> = OnceLock::new();
    COMMIT.get_or_init(|| {
        let mut git = Command::new("git");
        git.args(["rev-parse", "--short=10", "HEAD"])
            .current_dir(crate::shell::root());
        match git.output() {
            Ok(output) if output.status.success() => {
                String::from_utf8_lossy(&output.stdout).trim().to_owned()
            }
            _ => "unknown".to_owned(),
        }
    })
}
