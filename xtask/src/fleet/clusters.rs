//! An engine of three servers whose leader is killed again and again.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::MEASURE;
use super::deaths::summary;
use super::simulated::{Engine, Programs, lost};
use crate::lab::{Lab, Row, Rows, Trouble};

/// So long nothing may become of any task.
const STALL_MS: f64 = 15_000.0;
/// Longer no election and no catching up takes.
const LONG: Duration = Duration::from_secs(60);
/// Offers a second, and how long a task takes: there is always one that something becomes of.
const RATE: u64 = 20;
const WORK_MS: u64 = 2_000;

/// Three servers on one machine.
struct Cluster<'a> {
    servers: Vec<Engine<'a>>,
}

impl<'a> Cluster<'a> {
    fn start(programs: &'a Programs) -> Result<Self, Trouble> {
        let servers = Engine::start_cluster(programs, 3)?;
        let cluster = Self { servers };
        cluster.settled()?;
        Ok(cluster)
    }

    /// Who leads, once there is somebody and all have everything.
    fn settled(&self) -> Result<usize, Trouble> {
        let until = Instant::now() + LONG;
        let mut last = Value::Null;
        while Instant::now() < until {
            for server in &self.servers {
                last = server.leader().unwrap_or_default();
                if let Some(leader) = self.leader_in(&last) {
                    return Ok(leader);
                }
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Err(format!("the cluster does not come to rest: {last}"))
    }

    fn leader_in(&self, cluster: &Value) -> Option<usize> {
        let leader = cluster["leader"].as_str()?;
        let replicas = cluster["replicas"].as_array()?;
        let current = replicas.iter().filter(|it| it["current"] == true).count();
        let number = self.servers.iter().position(|it| it.name() == leader)?;
        (current + 1 == self.servers.len()).then_some(number)
    }
}

/// The server that leads is killed, and started again, while tasks come and go.
pub fn leader_killed(lab: &Lab, programs: &Programs) -> Rows {
    let (workers, times) = (lab.form.pick(60, 100), lab.form.pick(2, 20));
    let cluster = Cluster::start(programs)?;
    let first = &cluster.servers[0];
    let workers = first.workers("first", workers)?;
    // Killing, electing and catching up take about fifteen seconds each time.
    let tasks = RATE as usize * 15 * times;
    let settings = json!({
        "ttl_s": 60, "work_ms": WORK_MS, "rate": RATE, "limit_s": 120 + 60 * times, "grace_ms": 30_000,
    });
    let mut coordinator = first.coordinator(tasks, &settings)?;
    coordinator.begun()?;
    let began = Instant::now();
    let mut wrong = Vec::new();
    for _ in 0..times {
        let leader = cluster.settled()?;
        cluster.servers[leader].kill()?;
        std::thread::sleep(Duration::from_secs(2));
        cluster.servers[leader].start_again()?;
    }
    let killing = began.elapsed();
    let report = coordinator.report()?;
    if report["seconds"].as_f64().unwrap_or_default() < killing.as_secs_f64() {
        wrong.push("the tasks were done before the last leader was killed".to_owned());
    }
    let workers = workers.report()?;
    wrong.extend(lost(&report));
    if report["moved"] != 0 || report["resets"] != 0 {
        wrong.push(format!(
            "{} moved, {} times all was forgotten",
            report["moved"], report["resets"]
        ));
    }
    let what = format!("leader of three servers killed {times} times under {tasks} tasks");
    let mut row = Row::count(MEASURE, what.clone(), tasks as u64, &wrong);
    row.raw = json!({ "lost": wrong, "coordinator": summary(&report), "workers": workers });
    let gap = report["longest_gap_ms"].as_f64().unwrap_or(f64::MAX);
    Ok(vec![
        row,
        Row::at_most(
            lab.form,
            MEASURE,
            format!("{what}: the longest time in which nothing became of any task"),
            (gap, "ms"),
            STALL_MS,
        ),
    ])
}
