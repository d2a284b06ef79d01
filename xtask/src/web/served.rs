//! A server over the loops of a trial.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Instant;

use descartes_testkit::http::{self, Ask, Reply, Stream};

use crate::lab::{Trial, Trouble};

/// `descartes serve`, ended with the measure.
pub struct Served {
    child: Child,
    /// Address and port.
    pub address: String,
    /// The path with the one-time code.
    entrance: String,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Served {
    /// Starts it on a free port.
    pub fn start(trial: &Trial<'_>) -> Result<Self, Trouble> {
        let said = |error: std::io::Error| format!("descartes serve: {error}");
        let mut command = trial.descartes(&["serve", "--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(said)?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(said)?;
        }
        let url = line.split("http://").nth(1).unwrap_or_default();
        let url = url.split_whitespace().next().unwrap_or_default();
        let (address, path) = url.split_once('/').ok_or("the server printed no address")?;
        let tokens = trial.world.state().join("web-tokens.json");
        let tokens: serde_json::Value = std::fs::read(&tokens)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or("the server has no tokens")?;
        Ok(Self {
            child,
            address: address.to_owned(),
            entrance: format!("/{path}"),
            token: tokens["full"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// The address that signs a browser in.
    pub fn entrance(&self) -> String {
        format!("http://{}{}", self.address, self.entrance)
    }

    /// An address of a page.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn ask(&self, path: &str) -> Ask {
        Ask::get(path).bearer(&self.token)
    }

    /// Milliseconds until the whole of a page is there, and the page.
    pub fn timed(&self, path: &str) -> Result<(f64, Reply), Trouble> {
        let since = Instant::now();
        let reply = http::ask(&self.address, &self.ask(path));
        let took = since.elapsed().as_secs_f64() * 1e3;
        match reply.status {
            200 => Ok((took, reply)),
            status => Err(format!("{path}: {status}: {}", reply.body)),
        }
    }

    /// An event stream.
    pub fn open(&self, path: &str) -> Result<Stream, Trouble> {
        let stream = http::open(&self.address, &self.ask(path));
        match stream.status {
            200 => Ok(stream),
            status => Err(format!("{path}: {status}")),
        }
    }
}
