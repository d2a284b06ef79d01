//! Standard input and output, each on a thread of its own.

use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use descartes_bridge::EngineError;
use descartes_bridge::message::{BridgeCall, BridgeLine, BridgeRequest, BridgeResult};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A call that came in.
pub struct PipeInput {
    pub id: u64,
    pub call: BridgeCall,
}

/// Where lines go.
#[derive(Clone)]
pub struct LineOutput(Sender<Vec<u8>>);

/// The thread that writes them.
pub struct Writer(JoinHandle<()>);

pub fn open() -> (UnboundedReceiver<PipeInput>, LineOutput, Writer) {
    let (calls, input) = unbounded_channel();
    let (output, lines) = channel();
    let output = LineOutput(output);
    let answers = output.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().split(b'\n') {
            let Ok(line) = line else { return };
            match serde_json::from_slice::<BridgeRequest>(&line) {
                Ok(BridgeRequest { id, call }) => {
                    if calls.send(PipeInput { id, call }).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    let id = id_in(&line);
                    answers.failed(id, EngineError::Other(format!("not understood: {error}")));
                }
            }
        }
    });
    (
        input,
        output,
        Writer(std::thread::spawn(move || write(&lines))),
    )
}

/// So that whoever asked gets an answer, if the line has a number at all.
fn id_in(line: &[u8]) -> u64 {
    let parsed: Result<serde_json::Value, _> = serde_json::from_slice(line);
    parsed.map_or(0, |value| value["id"].as_u64().unwrap_or_default())
}

fn write(lines: &Receiver<Vec<u8>>) {
    let mut out = std::io::stdout().lock();
    while let Ok(line) = lines.recv() {
        // Who reads is gone: its end of our input is closed as well.
        if out.write_all(&line).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

impl LineOutput {
    pub fn line(&self, line: &BridgeLine) {
        if let Ok(mut bytes) = serde_json::to_vec(line) {
            bytes.push(b'\n');
            // The writer ends only with the pipe.
            drop(self.0.send(bytes));
        }
    }

    pub fn done(&self, id: u64, result: BridgeResult) {
        self.line(&BridgeLine::Done { id, result });
    }

    pub fn failed(&self, id: u64, error: EngineError) {
        self.line(&BridgeLine::Failed { id, error });
    }
}

impl Writer {
    /// Waits until everything is written, where somebody reads it.
    pub fn finish(self) {
        // The reader of our input may hold an output still; it ends with the process.
        if self.0.is_finished() {
            drop(self.0.join());
        }
    }
}
