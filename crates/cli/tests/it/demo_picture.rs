//! The picture at the top of the README is what `descartes demo` shows. With `DESCARTES_PICTURES=FOLDER` it is made
//! anew there.

use std::fmt::Write;
use std::time::Duration;

use descartes_testkit::World;
use descartes_testkit::pty::{Painted, Pty, Size};

const SOON: Duration = descartes_testkit::PATIENCE;
const PROMPT: &str = "$ descartes demo";
/// Stands for what the picture leaves out.
const LEFT_OUT: &str = "…";

/// The whole demo on a screen that is tall enough.
fn demo() -> Vec<Vec<Painted>> {
    let world = World::in_memory();
    let mut command = world.descartes(["demo", "--fast"]);
    command.env("LANG", "C.UTF-8");
    let size = Size {
        rows: 100,
        columns: 100,
    };
    let mut pty = Pty::spawn(&command, size);
    assert_eq!(pty.wait(SOON).code(), Some(0), "{}", pty.screen());
    let mut lines = pty.painted();
    for piece in lines.iter_mut().flatten() {
        // What was hurried for the test.
        piece.text = piece.text.replace("agent fast", "agent pleasant");
    }
    lines
}

fn words(line: &[Painted]) -> String {
    let text: String = line.iter().map(|piece| piece.text.as_str()).collect();
    text.trim_end().to_owned()
}

/// Without what is another in each run: times, numbers of demos.
fn steady(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[at..].find(|c: char| !c.is_ascii_digit() && c != '.');
        let end = end.map_or(rest.len(), |end| at + end);
        out.push_str(&rest[..at]);
        let unit = ["ms", "s"].into_iter().find(|unit| {
            let behind = rest[end..].strip_prefix(unit);
            behind.is_some_and(|behind| !behind.starts_with(char::is_alphabetic))
        });
        let number = match unit {
            _ if out.ends_with("descartes-demo-") => "N",
            Some(_) => "T",
            None => &rest[at..end],
        };
        out.push_str(number);
        rest = &rest[end + unit.map_or(0, str::len)..];
    }
    out + rest
}

/// The first refusal, and how it ended.
fn chosen(lines: Vec<Vec<Painted>>) -> Vec<Vec<Painted>> {
    let at = |what: &str| lines.iter().position(|line| words(line).contains(what));
    let refused = at("iteration 1: ").unwrap();
    let last = at(" iteration 3 of ").unwrap();
    let end = at("Everything is kept").unwrap();
    let plain = |text: &str| {
        vec![Painted {
            text: text.to_owned(),
            colour: None,
            dim: false,
            bold: true,
        }]
    };
    let mut out = vec![plain(PROMPT)];
    out.extend_from_slice(&lines[..=refused]);
    out.push(plain(LEFT_OUT));
    out.extend_from_slice(&lines[last..end]);
    while out.last().is_some_and(|line| words(line).is_empty()) {
        out.pop();
    }
    out
}

fn svg(lines: &[Vec<Painted>]) -> String {
    const TEXT: &str = "#d8dee9";
    let (width, height) = (872, 48 + 18 * lines.len());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (x, colour) in [(20, "#ff5f57"), (40, "#febc2e"), (60, "#28c840")] {
        writeln!(
            out,
            "<circle cx=\"{x}\" cy=\"18\" r=\"6\" fill=\"{colour}\"/>"
        )
        .unwrap();
    }
    for (row, line) in lines.iter().enumerate() {
        write!(out, "<text y=\"{}\" xml:space=\"preserve\">", 48 + 18 * row).unwrap();
        let mut column = 0;
        let filled = words(line).chars().count();
        for piece in line {
            let text: String = piece.text.chars().take(filled - column).collect();
            if text.is_empty() {
                break;
            }
            let fill = match piece.colour {
                Some(1 | 9) => "#ff6b6b",
                Some(2 | 10) => "#7ee787",
                Some(3 | 11) => "#fcd566",
                Some(6 | 14) => "#79c0ff",
                _ => TEXT,
            };
            let x = 16.0 + 8.4 * column as f64;
            let dim = if piece.dim { " opacity=\"0.6\"" } else { "" };
            let bold = if piece.bold {
                " font-weight=\"bold\""
            } else {
                ""
            };
            column += text.chars().count();
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            write!(
                out,
                "<tspan x=\"{x:.1}\" fill=\"{fill}\"{dim}{bold}>{text}</tspan>"
            )
            .unwrap();
        }
        out.push_str("</text>\n");
    }
    out + "</svg>\n"
}

/// The words of a picture, line by line.
fn read(svg: &str) -> Vec<String> {
    let lines = svg.lines().filter(|line| line.starts_with("<text "));
    let words = |line: &str| {
        let pieces = line.split('<').filter_map(|piece| piece.split_once('>'));
        let text: String = pieces.map(|(_, text)| text).collect();
        text.replace("&lt;", "<").replace("&amp;", "&")
    };
    lines.map(words).collect()
}

#[test]
fn the_picture_of_the_demo_shows_what_the_demo_says() {
    let shown = chosen(demo());
    let made = svg(&shown);
    if let Some(folder) = std::env::var_os("DESCARTES_PICTURES") {
        std::fs::write(std::path::Path::new(&folder).join("demo.svg"), &made).unwrap();
    }
    let picture = include_str!("../../../../docs/demo.svg");
    let steady_lines = |svg: &str| {
        read(svg)
            .iter()
            .map(|line| steady(line))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        steady_lines(picture),
        steady_lines(&made),
        "make it anew: DESCARTES_PICTURES=docs cargo nextest run -p descartes-cli demo_picture"
    );
}

#[test]
fn times_and_numbers_of_demos_are_no_words() {
    for (line, expected) in [
        (
            "agent ended after 1.3s: exit code 0",
            "agent ended after T: exit code 0",
        ),
        ("(exit code 1, 31ms)", "(exit code 1, T)"),
        (
            "loop descartes-demo-12, at most 2m",
            "loop descartes-demo-N, at most 2m",
        ),
        ("1994 is MCMXCIV", "1994 is MCMXCIV"),
    ] {
        assert_eq!(steady(line), expected);
    }
}
