//! An MCP client of a few lines: JSON-RPC over the pipes of a child.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use descartes_testkit::{World, wait};
use serde_json::{Value, json};

/// Everything is answered by then, however busy the machine.
pub const SOON: Duration = descartes_testkit::PATIENCE;

pub struct McpClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    id: u64,
    /// Everything that came beside answers.
    pub notifications: Vec<Value>,
}

impl McpClient {
    /// Starts `descartes mcp` with these flags and greets it.
    #[track_caller]
    pub fn start(world: &World, flags: &[&str]) -> Self {
        let mut command = world.descartes(["mcp"]);
        command.args(flags);
        let mut client = Self::without_greeting(command);
        client.greet();
        client
    }

    #[track_caller]
    pub fn without_greeting(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("start the server");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("its output"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            id: 0,
            notifications: Vec::new(),
        }
    }

    #[track_caller]
    pub fn greet(&mut self) -> Value {
        let answer = self.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Sends a line as it is.
    #[track_caller]
    pub fn send(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("an open input");
        stdin.write_all(bytes).expect("send it");
        stdin.flush().expect("send it");
    }

    /// Sends nothing more.
    pub fn end_input(&mut self) {
        drop(self.stdin.take());
    }

    /// The next line, which is one message of the protocol.
    #[track_caller]
    pub fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(SOON).expect("an answer");
        let message: Value = serde_json::from_str(&line).expect(&line);
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// Sends a request; gives its number.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.id += 1;
        let id = self.id;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&line.to_string());
        id
    }

    /// The answer to a request; what comes before it is kept.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            match message["id"].as_u64() == Some(id) {
                true => return message,
                false => self.notifications.push(message),
            }
        }
    }

    #[track_caller]
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool; gives what it says, and whether it failed.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> (Value, bool) {
        let params = json!({
            "name": tool, "arguments": arguments, "_meta": { "progressToken": tool },
        });
        let answer = self.request("tools/call", &params);
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{answer}");
        let told: Value = serde_json::from_str(text).expect(text);
        assert_eq!(told, result["structuredContent"], "{answer}");
        (told, result["isError"] == true)
    }

    /// Calls a tool that has to work.
    #[track_caller]
    pub fn done(&mut self, tool: &str, arguments: &Value) -> Value {
        let (told, failed) = self.call(tool, arguments);
        assert!(!failed, "{tool} {arguments}: {told}");
        told
    }

    /// Calls a tool that has to refuse; gives the error and the hint.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: &Value) -> (String, String) {
        let (told, failed) = self.call(tool, arguments);
        assert!(failed, "{tool} {arguments}: {told}");
        let text = |key: &str| told[key].as_str().expect(key).to_owned();
        (text("error"), text("hint"))
    }

    /// Closes the input and waits for the end, whatever is still answered.
    #[track_caller]
    pub fn leave(mut self) {
        drop(self.stdin.take());
        let ended = wait::poll(SOON, &mut || {
            self.child.try_wait().expect("wait for the server")
        });
        assert!(ended.expect("the server ends with its input").success());
    }

    /// Closes the input and waits for the end; nothing more may have been printed.
    #[track_caller]
    pub fn close(mut self) -> ExitStatus {
        drop(self.stdin.take());
        let ended = wait::poll(SOON, &mut || {
            self.child.try_wait().expect("wait for the server")
        });
        let rest: Vec<String> = self.lines.iter().collect();
        assert!(rest.is_empty(), "{rest:?}");
        ended.expect("the server ends with its input")
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
