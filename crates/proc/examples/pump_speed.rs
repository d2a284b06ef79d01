//! How fast the pump is: gigabytes from an agent into a file, beside `cat` doing the same.
//!
//! `cargo run --release -p descartes-proc --example pump_speed -- [GIGABYTES] [FOLDER]`
#![expect(clippy::print_stdout, reason = "it reports to a person")]

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use descartes_proc::{Channel, Launch, Sink, Stdin, Supervisor, TreeEvent, guard_main};

/// To a file as a log is, or nowhere.
struct To(Option<File>);

impl Sink for To {
    fn chunk(&mut self, _: Channel, bytes: &[u8]) {
        if let Some(file) = &mut self.0 {
            // A short file shows in the sum below.
            let _ = file.write_all(bytes);
        }
    }
}

/// One process writes zeros in blocks of 64 KiB.
fn source(gigabytes: u64) -> Vec<String> {
    let count = gigabytes * 16384;
    let args = ["if=/dev/zero", "bs=65536", "status=none"].map(str::to_owned);
    ["dd".to_owned()]
        .into_iter()
        .chain(args)
        .chain([format!("count={count}")])
        .collect()
}

fn floor(gigabytes: u64, to: Option<&Path>) -> Result<Duration, Box<dyn Error>> {
    let source = source(gigabytes);
    let target = to.unwrap_or(Path::new("/dev/null"));
    let begun = Instant::now();
    let mut dd = Command::new(&source[0])
        .args(&source[1..])
        .stdout(Stdio::piped())
        .spawn()?;
    let pipe = dd.stdout.take().ok_or("no pipe")?;
    let status = Command::new("cat")
        .stdin(pipe)
        .stdout(File::create(target)?)
        .status()?;
    dd.wait()?;
    assert!(status.success());
    Ok(begun.elapsed())
}

fn pump(gigabytes: u64, to: Option<&Path>) -> Result<Duration, Box<dyn Error>> {
    let (sender, events) = mpsc::channel();
    let on_event = Box::new(move |event| drop(sender.send(event)));
    let mut supervisor =
        Supervisor::guarded(&std::env::current_exe()?, &["__guard"], &[], on_event)?;
    let launch = Launch {
        argv: source(gigabytes).into_iter().map(Into::into).collect(),
        env: std::env::vars_os().collect(),
        cwd: "/".into(),
        stdin: Stdin::Null,
        finish: std::time::Duration::ZERO,
    };
    let begun = Instant::now();
    supervisor.start(1, &launch, Box::new(To(to.map(File::create).transpose()?)))?;
    while !matches!(events.recv()?, TreeEvent::Swept { .. }) {}
    let report = supervisor.collect(Duration::from_secs(60));
    let took = begun.elapsed();
    assert_eq!(report.stdout.bytes, gigabytes << 30);
    if let Some(to) = to {
        assert_eq!(std::fs::metadata(to)?.len(), gigabytes << 30);
    }
    Ok(took)
}

fn peak_kilobytes() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("?").trim().to_owned()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let first = args.next();
    if first.as_deref() == Some("__guard") {
        guard_main();
        return Ok(());
    }
    let gigabytes = first.map_or(Ok(2), |text| text.parse())?;
    let folder = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let file = folder.join(format!("pump-speed-{}", std::process::id()));
    for (name, to) in [("nowhere", None), ("a file", Some(file.as_path()))] {
        for round in 1..=3 {
            let floor = floor(gigabytes, to)?;
            let pump = pump(gigabytes, to)?;
            let rate = |took: Duration| gigabytes as f64 * 1.073_741_824 / took.as_secs_f64();
            println!(
                "{name}, round {round}: cat {:.2} GB/s, pump {:.2} GB/s, ratio {:.2}",
                rate(floor),
                rate(pump),
                rate(pump) / rate(floor)
            );
        }
    }
    std::fs::remove_file(file)?;
    println!("peak memory of the host: {}", peak_kilobytes());
    Ok(())
}
