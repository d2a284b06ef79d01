//! The pages in a real browser: how soon a line is on the screen, and seven windows at once.

use std::time::{Duration, Instant};

use descartes_testkit::browser::{Browser, DESKTOP};
use serde_json::{Value, json};

use super::MEASURE;
use super::served::Served;
use crate::lab::stats::quantile;
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

/// What a person may have to wait for.
const BAR_MS: f64 = 150.0;
/// Longer than any line takes.
const LONG: Duration = Duration::from_secs(60);
/// Windows of one browser that are seen at the same time; HTTP has six connections for them.
const WINDOWS: usize = 7;

/// Notes for each line with the time of its writing how old it is when it is drawn.
const OBSERVE: &str = "
window.seen = [];
new MutationObserver((changes) => {
  const marks = changes.flatMap((one) => [...one.addedNodes]).map((one) => one.textContent)
    .filter((text) => text.startsWith('mark ')).map((text) => Number(text.slice(5)));
  requestAnimationFrame(() => {
    const now = performance.timeOrigin + performance.now();
    for (const mark of marks) window.seen.push(now - mark);
  });
}).observe(document.getElementById('output'), { childList: true });";

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let Some(browser) = Browser::start(DESKTOP) else {
        let why = "Chromium and its driver are not installed";
        return Ok(vec![Row::cannot(MEASURE, "pages in a real browser", why)]);
    };
    Ok(vec![latency(lab, &browser)?, windows(lab, &browser)?])
}

fn started(trial: &Trial<'_>, script: &str, file: &str) -> Result<String, Trouble> {
    let flags = ["--detach", "--max-iterations", "1", "--state-file", file];
    let ended = trial.run(trial.start(script, &flags))?;
    match ended.code() {
        Some(0) => Ok(ended.stdout().trim().to_owned()),
        _ => Err(format!("no loop: {ended}")),
    }
}

/// Waits until a script gives true.
fn until(browser: &Browser, what: &str, script: &str) -> Result<(), Trouble> {
    let begun = Instant::now();
    while browser.run(script) != Value::Bool(true) {
        if begun.elapsed() > LONG {
            return Err(format!("{what}: not within {LONG:?}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// From the write of an agent to the frame in which its line is drawn.
fn latency(lab: &Lab, browser: &Browser) -> Result<Row, Trouble> {
    let trial = Trial::new(lab);
    let lines = lab.form.pick(30, 200);
    // A pace that no pace of ours divides.
    let script = format!("print up\nwait-file go\ndrip {lines} 173ms\nwait-file end");
    let id = started(&trial, &script, "loop.json")?;
    let served = Served::start(&trial)?;
    browser.go(&served.entrance());
    browser.go(&served.url(&format!("/loops/{id}")));
    let live = "return document.getElementById('link').innerText === 'live'";
    until(browser, "a live page", live)?;
    browser.run(OBSERVE);
    trial.world.write("go", "");
    let all = format!("return window.seen.length >= {lines}");
    until(browser, "all lines", &all)?;
    let seen = browser.run("return window.seen");
    let times: Vec<f64> = seen
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect();
    trial.world.write("end", "");
    trial.world.end_all();
    let p95 = (quantile(&times, 0.95), "ms");
    let what = format!("a line of an agent to the screen of Chromium ×{lines}, p95");
    let mut row = Row::at_most(lab.form, MEASURE, what, p95, BAR_MS);
    row.raw = json!({ "ours_ms": times });
    Ok(row)
}

/// Each window shows another loop, and each must show its last line.
fn windows(lab: &Lab, browser: &Browser) -> Result<Row, Trouble> {
    let trial = Trial::new(lab);
    let script = "print one\nwait-file go\nprint two\nwait-file end";
    let ids: Vec<String> = (0..WINDOWS)
        .map(|number| started(&trial, script, &format!("{number}.json")))
        .collect::<Result<_, _>>()?;
    let served = Served::start(&trial)?;
    browser.go(&served.entrance());
    let has = |words: &str| {
        format!("return document.getElementById('output').innerText.includes('{words}')")
    };
    let mut handles = Vec::new();
    for id in &ids {
        handles.push(browser.new_window());
        browser.go(&served.url(&format!("/loops/{id}")));
        until(browser, "a page", &has("one"))?;
    }
    trial.world.write("go", "");
    let mut lost = Vec::new();
    for (number, handle) in handles.iter().enumerate() {
        browser.look_at(handle);
        if browser.run("return document.hidden") != Value::Bool(false) {
            lost.push(format!("window {number} is hidden"));
        } else if let Err(trouble) = until(browser, "the last line", &has("two")) {
            lost.push(format!("window {number}: {trouble}"));
        }
    }
    trial.world.write("end", "");
    trial.world.end_all();
    let what =
        format!("{WINDOWS} windows of one browser on {WINDOWS} loops: windows that stand still");
    Ok(Row::count(MEASURE, what, WINDOWS as u64, &lost))
}
