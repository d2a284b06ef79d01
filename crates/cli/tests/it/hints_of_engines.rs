//! Suggestions about the engine of workers on other machines, each typed where it is printed. What speaks to the
//! engine answers by a script here; `engine.rs` runs the real one.

use descartes_testkit::World;

use crate::docs_commands::Situation;
use crate::hint_rows::{row, try_rows};
use crate::verb_snapshots::with_scripted_fleet;

fn world() -> World {
    let world = Situation::Project.world();
    with_scripted_fleet(&world);
    world
}

#[test]
fn what_is_suggested_about_an_engine() {
    try_rows(
        world,
        &[
            row(
                "descartes engine check nonsense",
                "descartes engine check nats://127.0.0.1:4222",
            )
            .says("left a marker"),
            row(
                "descartes engine check",
                "descartes engine check nats://HOST:4222",
            )
            .fill("HOST", "127.0.0.1")
            .says("left a marker"),
            row("descartes engine check", "descartes engine start").says("the engine runs"),
            row(
                "descartes engine join-token worker-7",
                "descartes engine stop",
            )
            .says("stopped"),
            row(
                "descartes engine join-token worker-7",
                "descartes engine start --listen 0.0.0.0:4222",
            )
            .says("the engine runs"),
            row("descartes worker", "descartes engine join-token NAME")
                .fill("NAME", "worker-7")
                .says("descartes worker --engine"),
            row(
                "descartes worker --engine nats://127.0.0.1:4222",
                "descartes engine check {url}",
            )
            .says("left a marker"),
        ],
    );
}
