//! Events: from any number on, nothing lost, nothing twice.

use descartes_testkit::World;

use crate::common::{Served, serve, start, until_status};
use descartes_testkit::http::{self, Ask, Event, Stream};

fn records(served: &Served, id: &str, query: &str) -> Vec<u64> {
    let mut stream = served.open(&format!("/api/v1/loops/{id}/events?follow=false{query}"));
    std::iter::from_fn(|| stream.event())
        .map(|event| event.id.parse().unwrap())
        .collect()
}

#[test]
fn records_come_from_any_number_on_and_a_client_that_comes_back_misses_none() {
    let world = World::in_memory();
    let script = "print at work ${ITERATION}\nwait-file go-${ITERATION}";
    let id = start(&world, script, &["-m", "4"]);
    let served = serve(&world, &[]);
    let path = format!("/api/v1/loops/{id}/events");
    let mut seen: Vec<u64> = Vec::new();
    let read = |stream: &mut Stream, seen: &mut Vec<u64>, until: &str| {
        loop {
            let event: Event = stream.event().unwrap();
            assert_eq!(event.name, "record");
            let record = event.json();
            assert_eq!(record["seq"], event.id.parse::<u64>().unwrap());
            seen.push(event.id.parse().unwrap());
            if record["kind"] == until {
                return;
            }
        }
    };
    let mut stream = served.open(&path);
    read(&mut stream, &mut seen, "run_started");
    drop(stream);
    // What happens while nobody listens is not lost.
    world.write("go-1", "");
    world.write("go-2", "");
    for _ in 0..2 {
        let ask = Ask::get(&path)
            .bearer(&served.full)
            .with("Last-Event-ID", &seen.last().unwrap().to_string());
        let mut stream = http::open(&served.address, &ask);
        read(&mut stream, &mut seen, "iteration_finished");
        drop(stream);
    }
    world.write("go-3", "");
    world.write("go-4", "");
    until_status(&world, &id, "ended");
    let from = format!("&from={}", seen.last().unwrap() + 1);
    seen.extend(records(&served, &id, &from));
    assert_eq!(seen, records(&served, &id, ""));
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
    let tail = records(&served, &id, "&from=5");
    assert_eq!(tail.first(), Some(&5));
}

/// Puts the news of a page together as the script does.
#[derive(Default)]
struct Screen {
    first: u64,
    lines: Vec<String>,
    at: String,
}

impl Screen {
    fn take(&mut self, event: &Event) {
        self.at.clone_from(&event.id);
        let news = event.json();
        let output = &news["output"];
        let from = output["from"].as_u64().unwrap();
        if output["anew"] == true {
            self.lines.clear();
            self.first = from;
        }
        self.lines.truncate((from - self.first) as usize);
        for line in output["lines"].as_array().unwrap() {
            self.lines.push(line[1].as_str().unwrap().to_owned());
        }
    }

    fn has(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }
}

#[test]
fn a_page_that_loses_its_stream_goes_on_with_the_next_line() {
    let world = World::in_memory();
    let script = "repeat 30 print before\nprint one\nwait-file go\nprint two\nprint three\n\
                  wait-file end\nprint four";
    let id = start(&world, script, &["-m", "1"]);
    let served = serve(&world, &[]);
    let path = format!("/loops/{id}/live");
    let mut screen = Screen::default();
    let mut stream = served.open(&path);
    while !screen.has("one") {
        screen.take(&stream.event().unwrap());
    }
    drop(stream);
    world.write("go", "");
    world.write("end", "");
    until_status(&world, &id, "ended");
    let ask = Ask::get(&path)
        .bearer(&served.full)
        .with("Last-Event-ID", &screen.at);
    let mut stream = http::open(&served.address, &ask);
    while !screen.has("four") {
        let event = stream.event().unwrap();
        // Only what is missing is sent.
        assert!(event.json()["output"]["lines"].as_array().unwrap().len() < 10);
        screen.take(&event);
    }
    let said: Vec<&str> = screen.lines.iter().map(String::as_str).skip(31).collect();
    assert_eq!(said, ["one", "two", "three", "four"]);
}

#[test]
fn the_list_tells_what_changes_and_what_is_new() {
    let world = World::in_memory();
    let served = serve(&world, &[]);
    let mut page = served.open("/live");
    let mut api = served.open("/api/v1/events");
    let first = page.event().unwrap().json();
    assert!(
        first["parts"]["count"]
            .as_str()
            .unwrap()
            .contains("no loops yet")
    );
    let id = start(&world, "wait-file go", &["-m", "1", "--name", "auth"]);
    let row = format!("row-{id}");
    loop {
        let news = page.event().unwrap().json();
        if news["parts"]["rows"]
            .as_str()
            .is_some_and(|rows| rows.contains(&row))
        {
            break;
        }
    }
    world.write("go", "");
    loop {
        let news = page.event().unwrap().json();
        if news["rows"][&row]
            .as_str()
            .is_some_and(|row| row.contains("1/1"))
        {
            break;
        }
    }
    loop {
        let event = api.event().unwrap();
        assert_eq!(event.name, "loop");
        let entry = event.json();
        assert_eq!(entry["loop_id"], id.as_str());
        if entry["status"] == "ended" {
            break;
        }
    }
}

#[test]
fn a_killed_server_does_nothing_to_a_loop() {
    let world = World::in_memory();
    let id = start(&world, "print at work\nwait-file go", &["-m", "1"]);
    let served = serve(&world, &[]);
    let mut streams: Vec<Stream> = (0..20)
        .map(|_| served.open(&format!("/loops/{id}/live")))
        .collect();
    assert!(streams.iter_mut().all(|stream| stream.event().is_some()));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(served.pid()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(streams.iter_mut().all(|stream| loop {
        if stream.event().is_none() {
            break true;
        }
    }));
    assert_eq!(crate::common::status(&world, &id)["status"], "running");
    world.write("go", "");
    until_status(&world, &id, "ended");
}
