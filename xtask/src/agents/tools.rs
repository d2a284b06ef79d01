//! The model of each real CLI calls the tools of `descartes mcp`: a loop is started, runs, and its end is
//! told. The entry in the CLI's settings is the one that `descartes install` writes.

use std::path::Path;
use std::time::Instant;

use descartes_testkit::World;
use descartes_testkit::model::ModelServer;
use descartes_testkit::real_clis::{Options, RealCli};
use serde_json::{Value, json};

use super::stage::{STARTUP_TIMEOUT, must};
use super::table::{Table, seconds};

/// Those whose settings `descartes install` knows.
pub const KNOWN: [RealCli; 4] = [
    RealCli::Claude,
    RealCli::Codex,
    RealCli::Gemini,
    RealCli::OpenCode,
];

/// Agents that are asked for nothing: what runs is the person's choice, in the config.
const CONFIG: &str = "default_agent = \"worker\"\n[agents.worker]\ncommand = \"worker\"\n";
const WORKER: &str = "#!/bin/sh\necho done >work.txt\necho '<promise>COMPLETE</promise>'\n";

/// Runs it.
pub fn run(binary: &Path, server: &ModelServer, cli: RealCli, table: &mut Table) {
    let began = Instant::now();
    let seen = called(binary, server, cli);
    let seen = seen.map(|()| format!("started, ran, told in {}", seconds(began.elapsed())));
    table.add(cli.name(), "mcp", seen);
}

fn called(binary: &Path, server: &ModelServer, cli: RealCli) -> Result<(), String> {
    let world = World::new();
    world.git_init();
    let lane = format!("{}-mcp", cli.name());
    server.lane(
        &lane,
        json!([
            {"text": "I start it.", "tool": tool(cli, "start", &json!({
                "prompt": "make work.txt", "gates": ["test -f work.txt"], "max_iterations": 3, "name": "night",
            }))},
            {"text": "I wait.", "tool": tool(cli, "wait", &json!({"loop": "night", "seconds": 40}))},
            {"text": "It is over."},
        ]),
    );
    let launch = cli.launch(&world, &server.url(&lane), &Options::default());
    let launch = launch.ok_or_else(|| format!("{} is not installed", cli.name()))?;
    world.program("worker", WORKER);
    let link = world.bin().join("descartes");
    std::os::unix::fs::symlink(binary, link).map_err(|error| error.to_string())?;
    let config = world.home().join(".config/descartes");
    std::fs::create_dir_all(&config).map_err(|error| error.to_string())?;
    std::fs::write(config.join("config.toml"), CONFIG).map_err(|error| error.to_string())?;
    let mut install = world.command(binary);
    install.args(["install", cli.name()]);
    if cli != RealCli::Claude {
        install.arg("--yes");
    }
    install.envs(launch.environment.clone());
    let installed = world.run(install);
    must(installed.code() == Some(0), || installed.to_string())?;

    let command = launch.command(&world, "Start a loop, and tell me when it is over.");
    let ran = world.watch(command, STARTUP_TIMEOUT * 2);
    let ran = ran.map_err(|so_far| format!("did not end\n{so_far}"))?;
    must(ran.code() == Some(0), || ran.to_string())?;
    let log = server.log(&lane);
    let offered = || {
        log.iter()
            .map(|entry| entry.tools.join(" "))
            .collect::<Vec<_>>()
    };
    let turns = log.iter().filter(|entry| entry.turn.is_some()).count();
    must(turns == 3, || {
        format!("{turns} turns; offered: {:?}\n{ran}", offered())
    })?;
    judge(&world, binary).map_err(|wrong| format!("{wrong}\noffered: {:?}\n{ran}", offered()))?;
    // What the server answered to `wait` went through the CLI: it knows that the loop is over.
    must(ran.stdout().contains("Completed"), || {
        format!("its end was not told\n{ran}")
    })
}

/// A call of one of our tools.
fn tool(cli: RealCli, name: &str, args: &Value) -> Value {
    match cli {
        // It offers tools of servers only once they were searched for, but takes a call by name.
        RealCli::Claude => {
            json!({"name": format!("mcp__plugin_ralph-wiggum_descartes__{name}"), "args": args})
        }
        _ => json!({"mcp": name, "args": args}),
    }
}

fn judge(world: &World, binary: &Path) -> Result<(), String> {
    let mut status = world.command(binary);
    status.args(["loop", "status", "night", "--json"]);
    let told = world.run(status);
    let state: Value = serde_json::from_str(&told.stdout()).map_err(|_| told.to_string())?;
    must(state["completed"] == true, || state.to_string())?;
    must(state["config"]["max_iterations"] == 3, || state.to_string())?;
    must(world.read("work.txt") == "done\n", || "no work".to_owned())
}
