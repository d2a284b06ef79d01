//! A headless Chromium by its driver. The protocol is JSON over HTTP: a client for it would bring more
//! crates than the server itself.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it did not run"
)]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::eventually_some;
use crate::http::{self, Ask};

const SOON: Duration = Duration::from_secs(100);

/// A browser of one test, with a profile of its own.
pub struct Browser {
    driver: Child,
    address: String,
    session: String,
    profile: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser; its driver would leave it behind.
        if !self.session.is_empty() {
            let mut bye = Ask::get(format!("/session/{}", self.session));
            bye.method = "DELETE";
            let _ = std::panic::catch_unwind(|| http::ask(&self.address, &bye));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn installed(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let all = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    all.into_iter().find(|program| program.is_file())
}

/// The source of `axe-core`, which npm installs below `target` where it is missing; says plainly where
/// that does not work.
pub fn axe() -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/axe");
    let file = folder.join("node_modules/axe-core/axe.min.js");
    if !file.is_file() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(&folder)
            .arg("axe-core@4")
            .stdin(Stdio::null());
        let installed = npm.output().is_ok_and(|output| output.status.success());
        if !installed {
            eprintln!("NOT RUN: npm is missing, or cannot install axe-core");
            return None;
        }
    }
    std::fs::read_to_string(file).ok()
}

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
}

pub const DESKTOP: Screen = Screen {
    width: 1280,
    height: 900,
    dark: false,
};
pub const DARK: Screen = Screen {
    dark: true,
    ..DESKTOP
};
pub const PHONE: Screen = Screen {
    width: 390,
    height: 844,
    dark: true,
};

pub const TABLET: Screen = Screen {
    width: 820,
    height: 1180,
    dark: false,
};

impl Browser {
    /// Starts one; says plainly where none is installed.
    pub fn start(screen: Screen) -> Option<Self> {
        let chromium = installed(&["chromium", "chromium-browser", "google-chrome"]);
        let driver = installed(&["chromedriver"]);
        let (Some(chromium), Some(driver)) = (chromium, driver) else {
            eprintln!(
                "NOT RUN: no Chromium here (Debian: apt-get install chromium chromium-driver)"
            );
            return None;
        };
        // The port is free a moment later, too; the driver has no other way to be told.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut child = Command::new(driver)
            .arg(format!("--port={port}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.find(|line| line.as_ref().unwrap().contains("started successfully"));
        assert!(ready.is_some(), "chromedriver did not start");
        std::thread::spawn(move || lines.for_each(drop));
        let address = format!("127.0.0.1:{port}");
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Self {
            driver: child,
            address,
            session: String::new(),
            profile,
        };
        let folder = browser.profile.path();
        browser.session = new_session(&browser.address, &chromium, folder, screen);
        Some(browser)
    }

    fn call(&self, method: &'static str, path: &str, body: &Value) -> Result<Value, Value> {
        let path = format!("/session/{}{path}", self.session);
        let mut ask = Ask::post(path, &body.to_string()).with("Content-Type", "application/json");
        ask.method = method;
        let reply = http::ask(&self.address, &ask);
        let value = reply.json()["value"].clone();
        match reply.status {
            200 => Ok(value),
            _ => Err(value),
        }
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.call("POST", path, body)
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[track_caller]
    pub fn go(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// The same page on another screen, as the tools for developers show it: a browser takes longer to start
    /// than all that is looked at in it.
    #[track_caller]
    pub fn show_on(&self, screen: Screen) {
        let tell = |command: &str, params: Value| {
            let body = json!({ "cmd": command, "params": params });
            self.post("/goog/cdp/execute", &body);
        };
        let (width, height, is_phone) = (screen.width, screen.height, screen.width < 500);
        tell(
            "Emulation.setDeviceMetricsOverride",
            json!({
                "width": width,
                "height": height,
                "deviceScaleFactor": if is_phone { 2 } else { 1 },
                "mobile": is_phone,
            }),
        );
        let scheme = if screen.dark { "dark" } else { "light" };
        let scheme = json!({ "name": "prefers-color-scheme", "value": scheme });
        tell(
            "Emulation.setEmulatedMedia",
            json!({ "features": [scheme] }),
        );
        let seen = format!(
            "return matchMedia('(width: {width}px)').matches
             && matchMedia('(prefers-color-scheme: dark)').matches === {}",
            screen.dark
        );
        self.until("the other screen", &seen);
    }

    /// Opens a window beside the others, which stay visible, and looks at it; gives its handle.
    #[track_caller]
    pub fn new_window(&self) -> String {
        let window = self.post("/window/new", &json!({ "type": "window" }));
        let handle = window["handle"].as_str().unwrap().to_owned();
        self.look_at(&handle);
        handle
    }

    /// Goes to another window.
    #[track_caller]
    pub fn look_at(&self, handle: &str) {
        self.post("/window", &json!({ "handle": handle }));
    }

    pub fn url(&self) -> String {
        let value = self.call("GET", "/url", &json!({})).unwrap();
        value.as_str().unwrap().to_owned()
    }

    /// What a script in the page gives back.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a script gives something true.
    #[track_caller]
    pub fn until(&self, what: &str, script: &str) -> Value {
        eventually_some(what, SOON, || {
            let body = json!({ "script": script, "args": [] });
            let value = self.call("POST", "/execute/sync", &body).ok()?;
            let is_true = !matches!(&value, Value::Null | Value::Bool(false));
            is_true.then_some(value)
        })
    }

    /// Waits for a text in an element.
    #[track_caller]
    pub fn until_text(&self, selector: &str, text: &str) {
        let script = format!(
            "return (document.querySelector({})?.innerText || '').includes({})",
            json!(selector),
            json!(text)
        );
        self.until(&format!("{text} in {selector}"), &script);
    }

    #[track_caller]
    fn element(&self, selector: &str) -> String {
        let found = json!({ "using": "css selector", "value": selector });
        let value = self.post("/element", &found);
        let mut ids = value.as_object().unwrap().values();
        ids.next().unwrap().as_str().unwrap().to_owned()
    }

    /// Clicks as a person does.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let element = self.element(selector);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// Types into an element; `\n` is Enter.
    #[track_caller]
    pub fn keys(&self, selector: &str, text: &str) {
        let text = text.replace('\n', "\u{e007}");
        let element = self.element(selector);
        self.post(
            &format!("/element/{element}/value"),
            &json!({ "text": text }),
        );
    }

    /// Presses keys one after the other, wherever the focus is; nothing is pointed at.
    #[track_caller]
    pub fn press(&self, keys: &str) {
        let presses: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|edge| json!({ "type": edge, "value": key })))
            .collect();
        let hand = json!({ "type": "key", "id": "keyboard", "actions": presses });
        self.post("/actions", &json!({ "actions": [hand] }));
    }

    /// What `axe-core` finds serious or critical on this page, each with the element.
    #[track_caller]
    pub fn serious_violations(&self, axe: &str) -> Vec<String> {
        let run = "const done = arguments[arguments.length - 1];
            axe.run(document).then(
              (seen) => done(seen.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
                .flatMap((one) => one.nodes.map((node) => one.id + ': ' + node.html + ': ' + node.failureSummary))),
              (error) => done(['axe failed: ' + error]));";
        // As the script itself: what a page evaluates is subject to its own policy.
        let body = json!({ "script": format!("{axe}\n{run}"), "args": [] });
        let found = self.post("/execute/async", &body);
        let found = found.as_array().unwrap().iter();
        found
            .map(|one| one.as_str().unwrap_or_default().to_owned())
            .collect()
    }

    #[track_caller]
    pub fn accept_question(&self) -> String {
        let asked = self.call("GET", "/alert/text", &json!({})).unwrap();
        self.post("/alert/accept", &json!({}));
        asked.as_str().unwrap().to_owned()
    }

    /// What the browser complained of: refused scripts and styles, errors.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({ "type": "browser" }));
        let all = log.as_array().unwrap().iter();
        all.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Keeps a picture where `DESCARTES_PICTURES` names a folder.
    pub fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("DESCARTES_PICTURES") else {
            return;
        };
        use base64::Engine;
        let shot = self.call("GET", "/screenshot", &json!({})).unwrap();
        let bytes = base64::engine::general_purpose::STANDARD.decode(shot.as_str().unwrap());
        let path = Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(path, bytes.unwrap()).unwrap();
    }
}

fn new_session(address: &str, chromium: &Path, profile: &Path, screen: Screen) -> String {
    let mut flags = vec![
        "--headless=new".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        "--no-first-run".to_owned(),
        "--disable-background-networking".to_owned(),
        "--disable-component-update".to_owned(),
        "--disable-sync".to_owned(),
        "--disable-dev-shm-usage".to_owned(),
        "--hide-scrollbars".to_owned(),
        format!("--user-data-dir={}", profile.display()),
        format!("--window-size={},{}", screen.width, screen.height),
    ];
    if screen.dark {
        flags.push("--blink-settings=preferredColorScheme=0".to_owned());
    }
    let mut chrome = json!({ "binary": chromium, "args": flags });
    if screen.width < 500 {
        // Windows are never that narrow.
        chrome["mobileEmulation"] = json!({
            "deviceMetrics": { "width": screen.width, "height": screen.height, "pixelRatio": 2.0 }
        });
    }
    let wanted = json!({ "capabilities": { "alwaysMatch": {
        "goog:chromeOptions": chrome,
        "goog:loggingPrefs": { "browser": "ALL" },
        "unhandledPromptBehavior": "ignore",
    } } });
    let ask = Ask::post("/session", &wanted.to_string()).with("Content-Type", "application/json");
    let reply = http::ask(address, &ask).assert_status(200);
    reply.json()["value"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned()
}
