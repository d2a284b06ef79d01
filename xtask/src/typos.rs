//! Misspelt words, by `typos` and its `typos.toml`.

use std::path::Path;

use crate::shell::{Step, answers, root, run};

/// Its dictionary grows with every version, so that another one would find other words.
const VERSION: &str = "1.51.1";

/// Looks through all files that git knows.
pub fn check() -> Step {
    match program() {
        Some(program) => run(&program, &["--config", "typos.toml"]),
        None => {
            println!(
                "skipped: typos is not installed, and pip did not install it (python3 -m pip install typos=={VERSION})"
            );
            Ok(())
        }
    }
}

/// The version above, installed below `target/` where it is missing; else the one that is there.
fn program() -> Option<String> {
    let folder = root().join("target/tools").join(format!("typos-{VERSION}"));
    let kept = folder.join("bin/typos").display().to_string();
    if !answers(&kept, &["--version"]) {
        install(&folder);
    }
    [kept, "typos".to_owned()]
        .into_iter()
        .find(|program| answers(program, &["--version"]))
}

fn install(folder: &Path) {
    let (folder, wanted) = (folder.display().to_string(), format!("typos=={VERSION}"));
    let words = [
        "-m", "pip", "install", "--quiet", "--target", &folder, &wanted,
    ];
    // What came of it is seen by whether it answers.
    if let Err(error) = run("python3", &words) {
        println!("{error}");
    }
}
