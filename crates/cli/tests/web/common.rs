//! A server in a world of its own, and loops to look at.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use descartes_testkit::{World, eventually};
use serde_json::Value;

use descartes_testkit::http::{self, Ask, Reply, Stream};

pub const SOON: Duration = descartes_testkit::PATIENCE;

/// `descartes serve`, ended with the test.
pub struct Served {
    child: Child,
    /// Address and port.
    pub address: String,
    /// The path with the one-time code.
    pub entrance: String,
    /// What it printed first.
    pub line: String,
    pub full: String,
    pub read: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves on a free port, unless the flags name one.
pub fn serve(world: &World, flags: &[&str]) -> Served {
    let mut command = world.descartes(["serve"]);
    if !flags.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.args(flags).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let url = line.split_whitespace().find(|word| word.contains("://"));
    let url = url
        .unwrap_or_else(|| panic!("no address: {line}"))
        .to_owned();
    let (_, rest) = url.split_once("://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let behind = line.split_once("finds it at ");
    let address = behind.map_or(address, |(_, at)| at.trim_end().trim_end_matches(')'));
    let (full, read) = tokens(world);
    Served {
        child,
        address: address.to_owned(),
        entrance: format!("/{path}"),
        line,
        full,
        read,
    }
}

/// The tokens of the world.
pub fn tokens(world: &World) -> (String, String) {
    let text = std::fs::read_to_string(world.state().join("web-tokens.json")).unwrap();
    let tokens: Value = serde_json::from_str(&text).unwrap();
    let token = |name: &str| tokens[name].as_str().unwrap().to_owned();
    (token("full"), token("read"))
}

impl Served {
    pub fn ask(&self, ask: &Ask) -> Reply {
        http::ask(&self.address, ask)
    }

    /// With the full token.
    pub fn get(&self, path: &str) -> Reply {
        self.ask(&Ask::get(path).bearer(&self.full))
    }

    /// With the full token.
    pub fn post(&self, path: &str, body: &str) -> Reply {
        self.ask(&Ask::post(path, body).bearer(&self.full))
    }

    pub fn open(&self, path: &str) -> Stream {
        http::open(&self.address, &Ask::get(path).bearer(&self.full))
    }

    /// A cookie, as a browser gets it by the one-time link.
    pub fn cookie(&self) -> String {
        let reply = self.ask(&Ask::get(&self.entrance)).assert_status(303);
        let cookie = reply.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its exit code.
    pub fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// Starts a loop with this script of the scripted agent; gives its id.
pub fn start(world: &World, script: &str, flags: &[&str]) -> String {
    let agent = world.agent(script);
    let mut command = world.descartes(["loop", "start", "--command", &agent]);
    if !flags.contains(&"--prompt") {
        command.args(["--prompt", "go"]);
    }
    command.args(["--detach"]).args(flags);
    let run = world.run(command);
    run.assert_code(0);
    run.stdout().trim().to_owned()
}

/// A loop's status, as its own command tells it.
pub fn status(world: &World, id: &str) -> Value {
    let run = world.run(world.descartes(["loop", "status", id, "--json"]));
    run.assert_code(0);
    serde_json::from_str(&run.stdout()).unwrap()
}

#[track_caller]
pub fn until_status(world: &World, id: &str, wanted: &str) {
    eventually(wanted, SOON, || status(world, id)["status"] == wanted);
}

/// An agent that waits for leave to end.
pub const PATIENT: &str = "print at work ${ITERATION}\nwait-file go-${ITERATION}";
