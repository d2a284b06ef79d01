//! Many event streams on many loops that print: what they cost, and that no loop notices them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use descartes_testkit::stamp;
use serde_json::json;

use super::MEASURE;
use super::served::Served;
use crate::bench::views::share;
use crate::lab::stats::ms;
use crate::lab::{Lab, Row, Rows, Trial, Trouble, proc};

/// Loops, clients, and the seconds for which they are watched.
struct Crowd {
    loops: usize,
    clients: usize,
    seconds: u64,
}

/// Iterations whose gaps are measured beside the others.
const BESIDE: &str = "60";

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let short = Crowd {
        loops: 5,
        clients: 25,
        seconds: 5,
    };
    let long = Crowd {
        loops: 20,
        clients: 100,
        seconds: 30,
    };
    let crowd = lab.form.pick(short, long);
    let trial = Trial::new(lab);
    let ids: Vec<String> = (0..crowd.loops)
        .map(|number| printing(&trial, number))
        .collect::<Result<_, _>>()?;
    let without = gaps(&trial, "without")?;
    let served = Served::start(&trial)?;
    let clients = Clients::open(&served, &ids, crowd.clients)?;
    // Connecting is another matter.
    thread::sleep(Duration::from_secs(2));
    let before = clients.events();
    let cpu = share(served.pid(), crowd.seconds);
    let each = (clients.events() - before) as f64 / crowd.clients as f64 / crowd.seconds as f64;
    let with = gaps(&trial, "with")?;
    let memory = proc::peak_kib(served.pid()).unwrap_or(u64::MAX) as f64 / 1024.0;
    let silent = clients.silent();
    clients.end(served);
    trial.world.end_all();
    let form = lab.form;
    let what = format!(
        "{} event streams on {} loops of 50 lines/s",
        crowd.clients, crowd.loops
    );
    let mut processor = Row::at_most(
        form,
        MEASURE,
        format!("{what}: processor of the server, in percent of a core"),
        (cpu, "%"),
        25.0,
    );
    processor.raw = json!({ "value": cpu, "events_a_second_and_client": each });
    Ok(vec![
        processor,
        Row::at_most(
            form,
            MEASURE,
            format!("{what}: memory at its peak (RSS)"),
            (memory, "MiB"),
            64.0,
        ),
        Row::count(
            MEASURE,
            format!("{what}: streams that told nothing"),
            crowd.clients as u64,
            &silent,
        ),
        Row::ratio(
            form,
            MEASURE,
            format!("{what}: gap between the agents of a loop beside them"),
            &with,
            ("the same without a server", &without),
            1.1,
        ),
    ])
}

/// A loop whose agent prints fifty lines a second until it is ended.
fn printing(trial: &Trial<'_>, number: usize) -> Result<String, Trouble> {
    let file = format!("printing-{number}.json");
    let flags = ["--detach", "--kill-grace", "0s", "--state-file", &file];
    let ended = trial.run(trial.start("drip 60000 20ms", &flags))?;
    match ended.code() {
        Some(0) => Ok(ended.stdout().trim().to_owned()),
        _ => Err(format!("no loop: {ended}")),
    }
}

/// The gaps between the agents of a loop of its own, in milliseconds.
fn gaps(trial: &Trial<'_>, name: &str) -> Result<Vec<f64>, Trouble> {
    let stamps = trial.world.root().join(format!("stamps-{name}"));
    let script = format!("print working\nstamp {}", stamps.display());
    let file = format!("{name}.json");
    let flags = ["--max-iterations", BESIDE, "--state-file", &file];
    let ended = trial.run(trial.start(&script, &flags))?;
    match ended.code() {
        Some(2) => Ok(stamp::gaps_ns(&stamp::read(&stamps))
            .into_iter()
            .map(ms)
            .collect()),
        _ => Err(format!("the loop did not run to its limit; {ended}")),
    }
}

/// Streams that are read as fast as they come.
struct Clients {
    threads: Vec<thread::JoinHandle<()>>,
    counts: Vec<Arc<AtomicU64>>,
    over: Arc<AtomicBool>,
}

impl Clients {
    fn open(served: &Served, ids: &[String], count: usize) -> Result<Self, Trouble> {
        let over = Arc::new(AtomicBool::new(false));
        let (mut threads, mut counts) = (Vec::new(), Vec::new());
        for id in ids.iter().cycle().take(count) {
            let mut stream = served.open(&format!("/loops/{id}/live"))?;
            let (seen, over) = (Arc::new(AtomicU64::new(0)), Arc::clone(&over));
            counts.push(Arc::clone(&seen));
            threads.push(thread::spawn(move || {
                while !over.load(Ordering::Relaxed) && stream.event().is_some() {
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        Ok(Self {
            threads,
            counts,
            over,
        })
    }

    fn events(&self) -> u64 {
        let counts = self.counts.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Those that were told next to nothing.
    fn silent(&self) -> Vec<String> {
        let counts = self.counts.iter().enumerate();
        counts
            .filter(|(_, count)| count.load(Ordering::Relaxed) < 10)
            .map(|(number, _)| format!("client {number}"))
            .collect()
    }

    /// Ends the server, and with it every stream.
    fn end(self, served: Served) {
        self.over.store(true, Ordering::Relaxed);
        drop(served);
        for thread in self.threads {
            drop(thread.join());
        }
    }
}
