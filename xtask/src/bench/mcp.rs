//! How soon the MCP server answers.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, Row, Rows, Trial, Trouble, stats};

/// A client that asks one thing after the other.
struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    asked: u64,
}

impl Client {
    fn start(mut command: Command) -> Result<Self, Trouble> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server has no pipes".to_owned());
        };
        let mut client = Self {
            child,
            stdin,
            stdout: BufReader::new(stdout),
            asked: 0,
        };
        client.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }),
        )?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    fn send(&mut self, message: &Value) -> Result<(), Trouble> {
        let sent = writeln!(self.stdin, "{message}").and_then(|()| self.stdin.flush());
        sent.map_err(|error| error.to_string())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Trouble> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line);
            if read.map_err(|error| error.to_string())? == 0 {
                return Err(format!("the server ended before it answered {method}"));
            }
            let answer: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            if answer["id"] == id {
                return Ok(answer["result"].clone());
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // One that a broken trial left; else its input has ended, and so has it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let trial = Trial::new(lab);
    trial.world.git_init();
    let host = trial.spawn(trial.start("touch up\nhang", &["--kill-grace", "0s"]))?;
    trial.wait_for("up")?;
    let mut command = trial.descartes(&["mcp"]);
    command.stderr(Stdio::null());
    let mut client = Client::start(command)?;
    let mut times = Vec::new();
    for _ in 0..lab.form.pick(50, 1_000) {
        let since = Instant::now();
        let answer = client.ask("tools/call", &json!({"name": "status", "arguments": {}}))?;
        times.push(since.elapsed().as_secs_f64() * 1e3);
        if answer["isError"] == true || !answer.to_string().contains("running") {
            return Err(format!("status answered {answer}"));
        }
        // A model does not ask without a pause; the server is then asleep.
        std::thread::sleep(Duration::from_millis(lab.form.pick(1, 5)));
    }
    drop(client);
    host.signal(Signal::SIGTERM);
    let what = format!("status of a running loop ×{}, p95", times.len());
    let p95 = (stats::quantile(&times, 0.95), "ms");
    let mut row = Row::at_most(lab.form, "mcp", what, p95, 20.0);
    row.raw["p50_ms"] = stats::median(&times).into();
    Ok(vec![row])
}
