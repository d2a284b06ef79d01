//! How fast the promise detector reads: `cargo run --release --example promise_speed`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement prints what its clock says"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use descartes_agents::promise::{Detector, PromiseMatch, PromiseSpec};

/// What a pipe gives at once.
const CHUNK: usize = 64 * 1024;

/// Small enough to be read between two interruptions on a busy machine.
const SIZE: usize = 4 << 20;

/// A stream is read again and again for so long, and the best time counts.
const TIME_PER_STREAM: Duration = Duration::from_millis(800);

fn main() {
    let streams = [
        ("plain log lines", filled(plain_lines())),
        ("build output", filled(build_lines())),
        ("markdown with code", filled(markdown_lines())),
        ("ANSI colours", filled(colour_lines())),
        ("one huge line", filled(b"words without an end, ".to_vec())),
        (
            "one huge coloured line",
            filled(b"\x1b[32mok\x1b[0m words without an end, ".to_vec()),
        ),
        (
            "claims only",
            filled(b"<promise>COMPLETE</promise>\n".to_vec()),
        ),
    ];
    println!(
        "{:24}{:>10}{:>10}{:>10}   GB/s",
        "", "tagged", "line", "anywhere"
    );
    for (name, stream) in &streams {
        let modes = [
            PromiseMatch::Tagged,
            PromiseMatch::Line,
            PromiseMatch::Anywhere,
        ];
        let [tagged, line, anywhere] = modes.map(|mode| speed(stream, mode));
        println!("{name:24}{tagged:>10.3}{line:>10.3}{anywhere:>10.3}");
    }
}

fn speed(stream: &[u8], mode: PromiseMatch) -> f64 {
    let spec = PromiseSpec {
        done: Some("COMPLETE".into()),
        abort: Some("BLOCKED".into()),
        mode,
    };
    let prompt = "Fix the tests.\nThen print\n<promise>COMPLETE</promise>";
    let mut best = f64::INFINITY;
    let patience = Instant::now();
    while patience.elapsed() < TIME_PER_STREAM {
        let begin = Instant::now();
        let mut detector = Detector::new(&spec, prompt);
        let mut claims = Vec::new();
        for chunk in stream.chunks(CHUNK) {
            detector.push(chunk, &mut claims);
            black_box(&claims);
            claims.clear();
        }
        detector.finish(&mut claims);
        best = best.min(begin.elapsed().as_secs_f64());
    }
    stream.len() as f64 / best / 1e9
}

fn filled(pattern: Vec<u8>) -> Vec<u8> {
    pattern.iter().copied().cycle().take(SIZE).collect()
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> Vec<u8> {
    (0..count).map(line).collect::<String>().into_bytes()
}

fn plain_lines() -> Vec<u8> {
    lines(10_000, |n| {
        format!(
            "2026-11-15T10:{:02}:{:02}Z INFO worker-{} handled request {n} in {} ms\n",
            n / 60 % 60,
            n % 60,
            n % 7,
            n % 311
        )
    })
}

fn build_lines() -> Vec<u8> {
    lines(10_000, |n| {
        format!(
            "   Compiling crate-{n} v1.{}.0 (compiled from <source>)\n",
            n % 50
        )
    })
}

fn markdown_lines() -> Vec<u8> {
    lines(1_000, |n| {
        format!(
            "I changed the `parser` in step {n}:\n```rust\nfn step() -> usize {{\n    {n}\n}}\n```\nIt **works** now.\n\n"
        )
    })
}

fn colour_lines() -> Vec<u8> {
    lines(10_000, |n| {
        format!(
            "\x1b[2m10:{:02}\x1b[0m \x1b[1;32mINFO\x1b[0m \x1b[36mworker\x1b[0m did \x1b[1m{n}\x1b[22m things\x1b[K\n",
            n % 60
        )
    })
}
