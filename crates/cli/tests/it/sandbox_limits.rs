//! Limits on processes and memory in `strict`, and the word where this machine cannot set one.

use serde_json::Value;

use crate::sandbox::{has_bwrap, world};
use crate::task_common::run;

#[test]
fn strict_limits_what_it_can_and_tells_what_it_cannot() {
    if !has_bwrap() {
        return;
    }
    let world = world("grep 'Max processes' /proc/self/limits > most.txt; echo COMPLETE");
    let flags = [
        "--command",
        "agent",
        "--prompt",
        "go",
        "--sandbox",
        "strict",
    ];
    let ended = run(&world, &[&["loop", "start"][..], &flags].concat());
    ended.assert_code(0);
    let most = world.read("most.txt");
    assert_eq!(most.split_whitespace().nth(2), Some("4096"), "{most}");
    let explained = ["sandbox", "explain", "--sandbox", "strict", "--json"];
    let told: Value = serde_json::from_str(&run(&world, &explained).stdout()).unwrap();
    let texts = |key: &str| {
        let list = told["sandbox"][key].as_array().cloned().unwrap_or_default();
        let texts = list.iter().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<Vec<String>>()
    };
    let (held, missing) = (texts("limits"), texts("unlimited"));
    let plain = run(&world, &explained[..4]).stdout();
    let doctor = run(&world, &["doctor"]).stdout();
    let said = ended.stdout() + &ended.stderr();
    for what in ["processes", "memory"] {
        // Each is limited, or it is told why not: never neither.
        let is_held = held.iter().any(|one| one.contains(what));
        let reason = missing.iter().find(|one| one.starts_with(what));
        assert_ne!(is_held, reason.is_some(), "{what}: {told}");
        if let Some(reason) = reason {
            assert!(plain.contains(&format!("no limit {reason}")), "{plain}");
            // One reason for both is told once.
            let (_, why) = reason.split_once(": ").unwrap();
            assert!(doctor.contains(what) && doctor.contains(why), "{doctor}");
            assert!(said.contains("no limit on"), "{said}");
        }
    }
    // `workspace` promises none.
    let loose = ["sandbox", "explain", "--sandbox", "workspace"];
    let loose = run(&world, &loose).stdout();
    assert!(
        !loose.contains("at most") && !loose.contains("no limit"),
        "{loose}"
    );
}

#[test]
fn a_fork_bomb_of_an_ordinary_user_ends_at_the_limit() {
    if !has_bwrap() || !nix::unistd::geteuid().is_root() {
        return;
    }
    // Root itself is bound by a control group alone.
    let world = world("");
    let mut own = world.command("chown");
    own.args(["-R", "65534:65534"]).arg(world.root());
    world.run(own).assert_code(0);
    // The limit is lowered, so that the machine is not filled.
    let bomb = "ulimit -u 60; i=0; while [ $i -lt 200 ]; do sleep 30 & i=$((i+1)); done; echo all";
    let program = descartes_testkit::descartes();
    let mut command = world.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command
        .arg(program)
        .args(["sandbox", "--sandbox", "strict"]);
    command.args(["--", "bash", "-c", bomb]);
    let ended = world.run(command);
    assert!(!ended.stdout().contains("all"), "{ended}");
    assert!(
        ended.stderr().contains("Resource temporarily unavailable"),
        "{ended}"
    );
    world.assert_no_survivors();
}
