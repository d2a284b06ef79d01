//! The home directory behind a sandbox: caches from which programs outside run something, keys and logins.

use descartes_testkit::World;

use crate::sandbox::{has_bwrap, world};
use crate::task_common::run;

/// A shell script in a sandbox.
#[track_caller]
fn confined(world: &World, level: &str, script: &str) -> String {
    let words = ["sandbox", "--backend", "generic", "--sandbox", level, "--"];
    let ended = run(world, &[&words[..], &["sh", "-c", script]].concat());
    ended.assert_code(0);
    ended.stdout()
}

fn write(world: &World, file: &str, text: &str) {
    let path = world.home().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.home().join(file)).unwrap_or_default()
}

const PROMPT: &str = ".cache/p10k-instant-prompt-me.zsh";

/// What shells and programs outside would run, and a cache that stays warm all the same.
#[test]
fn what_an_agent_writes_into_a_cache_nobody_outside_runs() {
    if !has_bwrap() {
        return;
    }
    let world = world("");
    write(&world, PROMPT, "# mine\n");
    write(&world, ".cache/gitstatus/gitstatusd", "mine\n");
    write(&world, ".cache/ms-playwright/chrome", "a browser\n");
    let attack = format!(
        "echo evil > ~/{PROMPT}; mkdir -p ~/.cache/gitstatus ~/.cache/go-build
         echo evil > ~/.cache/gitstatus/gitstatusd; echo evil > ~/.cache/new.zsh
         echo warm > ~/.cache/go-build/object; echo evil > ~/.cache/ms-playwright/chrome
         cat ~/.cache/ms-playwright/chrome"
    );
    for level in ["workspace", "strict"] {
        assert_eq!(confined(&world, level, &attack), "a browser\n", "{level}");
        assert_eq!(read(&world, PROMPT), "# mine\n", "{level}");
        assert_eq!(read(&world, ".cache/gitstatus/gitstatusd"), "mine\n");
        assert_eq!(read(&world, ".cache/ms-playwright/chrome"), "a browser\n");
        assert!(!world.home().join(".cache/new.zsh").exists(), "{level}");
    }
    let look = "cat ~/.cache/go-build/object; true";
    assert_eq!(
        confined(&world, "workspace", look),
        "warm\n",
        "from run to run"
    );
    assert_eq!(confined(&world, "strict", look), "", "thrown away");
}

#[test]
fn caches_that_are_missing_stop_no_toolchain_and_asked_for_they_are_the_users() {
    if !has_bwrap() {
        return;
    }
    let world = world("");
    for tool in ["go", "cargo", "npm"] {
        world.program(tool, "#!/bin/sh\n");
    }
    let builds = "set -e; mkdir -p ~/.cache/go-build/aa ~/go/pkg/mod/example@v1 ~/.npm/_cacache/tmp
         mkdir -p ~/.cargo/registry/cache/index ~/.cargo/registry/src/index ~/.cargo/git/db
         echo x > ~/.cargo/registry/cache/index/a.crate; echo x > ~/.cargo/registry/src/index/a";
    confined(&world, "workspace", builds);
    assert_eq!(read(&world, ".cargo/registry/cache/index/a.crate"), "x\n");
    assert!(!world.home().join(".cargo/registry/src/index").exists());
    assert!(!world.home().join(".gradle").exists(), "there is no gradle");
    world.write(
        ".descartes/config.toml",
        "sandbox_caches = [\"~/.cache\"]\n",
    );
    let script = "echo mine > ~/.cache/asked";
    run(&world, &["trust", "--yes"]).assert_code(0);
    confined(&world, "workspace", script);
    assert_eq!(read(&world, ".cache/asked"), "mine\n");
}

#[test]
fn keys_and_logins_that_scanners_look_for_are_not_there() {
    if !has_bwrap() {
        return;
    }
    let world = world("");
    let places = [
        ".config/sops/age/keys.txt",
        ".config/github-copilot/hosts.json",
        ".huggingface/token",
        ".cache/huggingface/token",
        ".s3cfg",
        ".boto",
        ".config/stripe/config.toml",
        ".config/heroku/token",
        ".config/netlify/config.json",
        ".config/configstore/firebase.json",
        ".config/solana/id.json",
        ".config/.wrangler/config",
        ".composer/auth.json",
        ".nuget/NuGet/NuGet.Config",
        ".ngrok2/ngrok.yml",
        ".bitcoin/wallet.dat",
        ".ethereum/keystore",
        ".electrum/wallets",
        ".Xauthority",
        ".viminfo",
        ".lesshst",
    ];
    for place in places {
        write(&world, place, "a key\n");
    }
    for level in ["workspace", "strict"] {
        for place in places {
            let seen = confined(&world, level, &format!("cat ~/{place}; true"));
            assert!(!seen.contains("a key"), "{level}: {place}");
        }
    }
    let settings = "cat ~/.nuget/NuGet/NuGet.Config ~/.composer/auth.json";
    let seen = confined(&world, "workspace", settings);
    assert_eq!(
        seen, "<configuration/>\n{}\n",
        "and can be read as settings"
    );
}
