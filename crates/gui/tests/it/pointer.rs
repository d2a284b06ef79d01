//! A pointer at the places where the real window is clicked.
use descartes_gui::message::{Effect, Message};
use descartes_gui::model::{Dialog, Page, Tab};
use descartes_gui::theme::Mode;
use descartes_kernel::control::Command;
use iced::Point;
use iced_test::simulator::click;

use crate::common::{Tale, Window, at_work, config};
use crate::places::*;

fn point((x, y): (u32, u32)) -> Point {
    Point::new(x as f32, y as f32)
}

fn click_at(window: &mut Window, place: (u32, u32)) {
    window.screen(|screen| {
        screen.point_at(point(place));
        let _ = screen.simulate(click());
    });
}

fn last_sent(window: &Window) -> Option<&Command> {
    match window.effects.back() {
        Some(Effect::Send { command, .. }) => Some(command),
        _ => None,
    }
}

#[test]
fn buttons_stand_where_the_real_window_is_clicked() {
    let mut window = Window::showing(&at_work(), Mode::Light);
    click_at(&mut window, PAUSE);
    assert_eq!(last_sent(&window), Some(&Command::Pause));

    let mut window = Window::showing(&at_work(), Mode::Light);
    click_at(&mut window, VIEW_LOGS);
    assert_eq!(window.model.chosen.as_ref().unwrap().tab, Tab::Output);
    click_at(&mut window, THEME);
    assert_eq!(window.model.mode, Mode::Dark);
    click_at(&mut window, CANCEL);
    assert_eq!(window.model.dialog, Some(Dialog::Cancel));
    click_at(&mut window, REALLY_CANCEL);
    assert!(matches!(last_sent(&window), Some(Command::Cancel { .. })));

    click_at(&mut window, NEW_LOOP);
    assert_eq!(window.model.page, Page::NewLoop);
}

#[test]
fn loops_and_the_note_stand_where_the_real_window_is_clicked() {
    let (first, second) = (at_work(), Tale::new("second", config()));
    let mut window = Window::showing(&first, Mode::Light);
    let briefs = vec![first.brief(), second.brief()];
    window.tell(Message::Fleet(Ok(briefs)));
    let id = |window: &Window, at: usize| window.model.fleet[at].id.clone();
    let chosen = |window: &Window| window.model.chosen.as_ref().unwrap().id.clone();
    for (place, at) in [(SECOND_LOOP, 1), (FIRST_LOOP, 0)] {
        click_at(&mut window, place);
        assert_eq!(chosen(&window), id(&window, at));
    }
    let mut window = Window::showing(&first, Mode::Light);
    window.screen(|screen| {
        screen.point_at(point(NOTE));
        let _ = screen.simulate(click());
        let _ = screen.typewrite("x");
    });
    assert_eq!(window.model.chosen.as_ref().unwrap().note, "x");
}
