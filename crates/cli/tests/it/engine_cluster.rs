//! An engine of three servers: set up as the guide says, and without one of them.

use std::net::TcpListener;
use std::path::PathBuf;

use descartes_testkit::wait::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::workers::{LONG, Machines, waits_for};

/// Three servers, each with a state folder and a loopback address of its own.
struct Cluster {
    machines: Machines,
    states: Vec<PathBuf>,
    port: u16,
}

fn free_port(host: &str) -> u16 {
    let listener = TcpListener::bind((host, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn host(number: usize) -> String {
    format!("127.0.0.{}", number + 1)
}

impl Cluster {
    fn new(what: &str) -> Option<Self> {
        let machines = Machines::new(what)?;
        let others = [1, 2].map(|n| machines.world.root().join(format!("state-server-{n}")));
        let first = machines.world.state();
        Some(Self {
            states: std::iter::once(first).chain(others).collect(),
            machines,
            port: free_port("0.0.0.0"),
        })
    }

    fn start(&self, number: usize, flags: &[&str]) -> String {
        let listen = format!("{}:{}", host(number), self.port);
        let words = [&["start", "--listen", &listen][..], flags].concat();
        let started = self.machines.engine_at(&self.states[number], &words);
        started.assert_code(0);
        started.stdout() + &started.stderr()
    }

    /// What the guide has people copy from the first server to another.
    fn copy_to(&self, number: usize, files: &[&str]) {
        let (from, to) = (&self.states[0], &self.states[number]);
        std::fs::create_dir_all(to.join("engine")).unwrap();
        for file in files {
            let file = PathBuf::from("engine").join(file);
            std::fs::copy(from.join(&file), to.join(&file)).unwrap();
        }
    }

    fn status(&self, number: usize) -> Value {
        let words = ["status", "--json"];
        let status = self.machines.engine_at(&self.states[number], &words);
        serde_json::from_str(&status.stdout()).unwrap()
    }

    fn kill(&self, number: usize) {
        let pid = self.status(number)["pid"].as_i64().unwrap();
        let pid = Pid::from_raw(i32::try_from(pid).unwrap());
        kill(pid, Signal::SIGKILL).unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for state in &self.states {
            self.machines.engine_at(state, &["stop"]);
        }
    }
}

#[test]
fn tasks_go_on_when_a_server_of_a_cluster_dies() {
    let Some(mut cluster) = Cluster::new("an engine of three servers") else {
        return;
    };
    let meet: Vec<String> = (0..3)
        .map(|n| format!("{}:{}", host(n), free_port(&host(n))))
        .collect();
    let told = cluster.start(0, &["--cluster", &meet.join(",")]);
    assert!(
        told.contains("before the other servers of its cluster run: 127.0.0.2, 127.0.0.3"),
        "{told}"
    );
    for number in [1, 2] {
        cluster.copy_to(number, &["setup.json", "coordinator.url"]);
        cluster.start(number, &[]);
    }
    // A key is made on one server, and copied to the others while they run.
    let token = cluster.machines.join("w1");
    let (line, hint) = (token.stdout(), token.stderr());
    let hosts = (0..3).map(|n| format!("{}:{}", host(n), cluster.port));
    let hosts: Vec<String> = hosts.collect();
    assert!(line.contains(&hosts.join(",")), "{line}");
    assert!(
        hint.contains("copy engine/setup.json") && hint.contains("descartes engine start"),
        "{hint}"
    );
    for number in [1, 2] {
        cluster.copy_to(number, &["setup.json"]);
        let command = ["start"];
        let again = cluster
            .machines
            .engine_at(&cluster.states[number], &command);
        again.assert_code(0);
        assert!(
            again.stdout().contains("runs already"),
            "{}",
            again.stdout()
        );
        assert_eq!(cluster.status(number)["keys"][0], "w1");
    }
    let path = cluster.machines.path();
    cluster.machines.start_worker("w1", &[], &path);
    let go = cluster.machines.world.root().join("go");
    // The server of this machine is the one that dies.
    cluster.machines.start_tasks(&hosts[0], &waits_for(&go));
    let child = cluster.machines.running_child("1");
    cluster.kill(0);
    std::fs::write(&go, "").unwrap();
    let parent = child["parent"].as_str().unwrap();
    eventually("all is done", LONG, || {
        let status = cluster
            .machines
            .typed(&["loop", "status", parent, "--json"]);
        let status: Value = serde_json::from_str(&status.stdout()).unwrap();
        status["completed"] == true
    });
    let journal = cluster.states[0].join("loops").join(parent);
    let journal = std::fs::read_to_string(journal.join("journal.jsonl")).unwrap();
    let started = journal.matches("\"kind\":\"attempt_started\"").count();
    assert_eq!(started, 3, "{journal}");
}

#[test]
fn what_a_cluster_needs_is_said() {
    let Some(cluster) = Cluster::new("an engine of two servers") else {
        return;
    };
    let listen = format!("127.0.0.1:{}", cluster.port);
    let refused = |servers: &str, why: &str| {
        let words = ["start", "--listen", &listen, "--cluster", servers];
        let refused = cluster.machines.engine(&words);
        refused.assert_code(65);
        assert!(refused.stderr().contains(why), "{}", refused.stderr());
    };
    refused("127.0.0.1,127.0.0.2", "three or five servers");
    refused(
        "a,b,c",
        "reached as `127.0.0.1`, which is none of its cluster",
    );
    refused("a,b:x,c", "`b:x` is no server of a cluster");
    // Nothing of it was kept.
    let folder = cluster.states[0].join("engine");
    assert!(!folder.join("setup.json").exists() && !folder.join("machine.json").exists());
}
