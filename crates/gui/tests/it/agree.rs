//! The three views of one journal agree: the window, the terminal and the page of the report.

use std::time::Duration;

use crate::common::Window;
use descartes_client::{LoopHandle, Loops, Output, Query};
use descartes_gui::message::{Followed, Message};
use descartes_gui::model::KnownLoop;
use descartes_gui::theme::Mode;
use descartes_testkit::pty::Size;
use descartes_testkit::{Pty, World};
use descartes_views::view::{Head, Story};

const SOON: Duration = descartes_testkit::PATIENCE;

/// Loops as they really end: proven after a refused claim, at their limit, failed.
const RECORDED: [(&str, &[&str]); 3] = [
    (
        "@1 print first words\npromise\n@2 print second words\n   touch proof\n   promise",
        &["--verify", "test -f proof"],
    ),
    ("print never done", &["--max-iterations", "2"]),
    ("stderr no key\nexit 3", &["--max-failures", "1"]),
];

fn record(script: &str, flags: &[&str]) -> World {
    let world = World::new();
    let agent = world.agent(script);
    let mut command = world.descartes(["loop", "start", "--command", &agent, "--prompt", "go"]);
    command.args(["--name", "auth"]).args(flags);
    world.run(command);
    world
}

fn handle(world: &World) -> LoopHandle {
    let paths = descartes_client::EnvPaths::from_lookup(|name| {
        let mut all = world.environment().into_iter();
        all.find(|(key, _)| *key == name)
            .map(|(_, value)| value.into())
    });
    let loops = Loops::new(&paths, &world.project());
    loops.find(&Query::Named("auth".into())).unwrap()
}

/// What the window's thread would tell of it.
fn stands(handle: &LoopHandle) -> KnownLoop {
    let (state, follower) = handle.follow(Output::No).unwrap();
    let mut story = Story::new(100);
    handle.records(|record| story.push(&record)).unwrap();
    KnownLoop {
        life: follower.life(),
        state,
        story,
        lanes: Default::default(),
    }
}

#[test]
fn window_terminal_and_report_say_the_same() {
    for (script, flags) in RECORDED {
        let world = record(script, flags);
        let handle = handle(&world);
        let stands = stands(&handle);
        let head = Head::of(&stands.state, stands.life);
        let (label, progress) = (head.status.label(), head.progress());
        let previews: Vec<String> = stands
            .story
            .rows()
            .iter()
            .map(|row| row.preview.clone())
            .collect();

        let mut window = Window::new(Mode::Light);
        let id = handle.id().to_owned();
        window.tell(Message::Choose(id.clone()));
        window.tell(Message::Followed(id, Followed::KnownLoop(Box::new(stands))));
        window.assert_sees(label);
        window.assert_sees(&progress);

        let mut command = world.descartes(["watch"]);
        command.env("LC_ALL", "C.UTF-8");
        let mut terminal = Pty::spawn(
            &command,
            Size {
                rows: 40,
                columns: 160,
            },
        );
        terminal.wait_screen(SOON, |screen| {
            screen.contains(label) && screen.contains(&progress)
        });

        let page = world.project().join("report.html");
        let mut command = world.descartes(["report", "auth", "--output"]);
        command.arg(&page);
        world.run(command).assert_code(0);
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(
            html.contains(label) && html.contains(&progress),
            "{label}, {progress}"
        );

        for preview in previews
            .iter()
            .map(|text| text.trim())
            .filter(|text| !text.is_empty())
        {
            let words = preview.lines().next().unwrap_or_default();
            let in_window = descartes_gui::view::words::one_line(preview, 200);
            window.assert_sees(&in_window);
            terminal.wait_screen(SOON, |screen| screen.contains(words));
            assert!(html.contains(words), "{words}");
        }
        terminal.send("q");
        assert_eq!(terminal.wait(SOON).code(), Some(0));
    }
}
