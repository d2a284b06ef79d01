//! A GitHub of our own on loopback: it answers what `gh` asks about the issues of one repository.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::Trouble;

/// The repository that every world has as its remote.
pub const REMOTE: &str = "http://github.localhost/owner/project.git";
/// Somebody who hangs up is noticed so often.
const LOOK: Duration = Duration::from_millis(50);

/// What it does with questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    #[default]
    Answers,
    /// It takes questions for the list and never answers them.
    Hangs,
}

struct Issue {
    number: u64,
    title: &'static str,
    body: &'static str,
    is_open: bool,
    assigned: bool,
}

/// What it knows, and what it was told.
#[derive(Default)]
pub struct Told {
    issues: Vec<Issue>,
    /// Changes, in order: `assign 31`, `close 31`.
    pub changes: Vec<String>,
    /// Claims that it refuses before it accepts one.
    pub refuses: u32,
    pub mood: Mood,
    /// Questions that it let hang.
    pub hung: u32,
    /// Questions that it does not know.
    pub unknown: Vec<String>,
}

/// The server; it ends with the process.
pub struct Forge {
    port: u16,
    told: Arc<Mutex<Told>>,
}

impl Forge {
    /// With two issues, the second of which waits for the first.
    pub fn start() -> Result<Self, Trouble> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?;
        let issue = |number, title, body| Issue {
            number,
            title,
            body,
            is_open: true,
            assigned: false,
        };
        let issues = vec![
            issue(
                32,
                "Quote fields",
                "Quote them.\n\n## Blocked by\n\n- #31\n",
            ),
            issue(31, "Write the header", "One line with the columns."),
        ];
        let told = Arc::new(Mutex::new(Told {
            issues,
            ..Told::default()
        }));
        let forge = Self {
            port: port.port(),
            told: Arc::clone(&told),
        };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = Arc::clone(&told);
                std::thread::spawn(move || serve(&stream, &told));
            }
        });
        Ok(forge)
    }

    pub fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What leads `gh` here and nowhere else.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let proxy = format!("http://127.0.0.1:{}", self.port);
        let mut all = vec![
            ("HTTP_PROXY", proxy.clone()),
            ("http_proxy", proxy.clone()),
            ("HTTPS_PROXY", proxy.clone()),
            ("https_proxy", proxy),
        ];
        let plain = [
            ("NO_PROXY", ""),
            ("no_proxy", ""),
            ("GH_HOST", "github.localhost"),
            ("GH_TOKEN", "scripted"),
            ("GH_ENTERPRISE_TOKEN", "scripted"),
            ("GH_PROMPT_DISABLED", "1"),
            ("GH_NO_UPDATE_NOTIFIER", "1"),
        ];
        all.extend(plain.map(|(name, value)| (name, value.to_owned())));
        all
    }
}

/// One question: one answer, and the connection is over.
fn serve(stream: &TcpStream, told: &Mutex<Told>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.trim().is_empty() => break,
            Ok(_) => {}
        }
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let question: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let hangs = {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let hangs = told.mood == Mood::Hangs && text(&question).contains("IssueSearch");
        told.hung += u32::from(hangs);
        hangs
    };
    if hangs {
        return hang(stream, told);
    }
    let answer = {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.answer(path, &question).to_string()
    };
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         X-Oauth-Scopes: repo, read:org\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    );
    // Who has gone needs no answer.
    let _ = (&mut &*stream).write_all(answer.as_bytes());
}

/// Until the other side hangs up, or it is to answer again.
fn hang(mut stream: &TcpStream, told: &Mutex<Told>) {
    let _ = stream.set_read_timeout(Some(LOOK));
    loop {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return,
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return,
            _ => {}
        }
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.mood == Mood::Answers {
            return;
        }
    }
}

fn text(question: &Value) -> &str {
    question["query"].as_str().unwrap_or_default()
}

impl Told {
    fn answer(&mut self, path: &str, question: &Value) -> Value {
        let (text, of) = (text(question), &question["variables"]);
        let data = if path.ends_with("/user") {
            return json!({"login": "me"});
        } else if text.contains("query IssueSearch") {
            let open = self.issues.iter().filter(|issue| issue.is_open);
            let nodes: Vec<Value> = open.map(shown).collect();
            json!({
                "repository": {"hasIssuesEnabled": true},
                "search": {"issueCount": nodes.len(), "nodes": nodes, "pageInfo": {"hasNextPage": false}},
            })
        } else if text.contains("query IssueByNumber") {
            let mut found = self
                .issues
                .iter()
                .filter(|issue| of["number"] == issue.number);
            let mut issue = found.next().map(shown).unwrap_or_default();
            issue["__typename"] = "Issue".into();
            json!({"repository": {"hasIssuesEnabled": true, "issue": issue}})
        } else if text.contains("query RepositoryAssignableUsers") {
            let users = json!({"nodes": [{"id": "U1", "login": "me", "name": "Me"}],
                               "pageInfo": {"hasNextPage": false}});
            json!({"repository": {"assignableUsers": users}})
        } else if text.contains("query UserCurrent") {
            json!({"viewer": {"login": "me"}})
        } else if text.contains("mutation") {
            return self.change(text, &of["input"]);
        } else {
            self.unknown.push(text.chars().take(80).collect());
            json!({})
        };
        json!({ "data": data })
    }

    fn change(&mut self, text: &str, input: &Value) -> Value {
        let id = input["issueId"].as_str().or(input["id"].as_str());
        let number = id.and_then(|id| id.strip_prefix('I')?.parse::<u64>().ok());
        let issue = self
            .issues
            .iter_mut()
            .find(|issue| Some(issue.number) == number);
        let Some(issue) = issue else {
            return json!({"errors": [{"message": "no such issue"}]});
        };
        let word = if text.contains("closeIssue") {
            issue.is_open = false;
            "close"
        } else if text.contains("reopenIssue") {
            issue.is_open = true;
            "reopen"
        } else {
            let assigned = input["assigneeIds"]
                .as_array()
                .is_some_and(|ids| !ids.is_empty());
            if assigned && self.refuses > 0 {
                self.refuses -= 1;
                self.changes.push(format!("refuse {}", issue.number));
                return json!({"errors": [{"message": "must have push access"}]});
            }
            issue.assigned = assigned;
            match assigned {
                true => "assign",
                false => "unassign",
            }
        };
        self.changes.push(format!("{word} {}", issue.number));
        let issue = json!({"issue": {"id": id}});
        // gh refuses an answer with more in it than it asked for.
        json!({"data": match word {
            "close" => json!({"closeIssue": issue}),
            "reopen" => json!({"reopenIssue": issue}),
            _ => json!({"updateIssue": {"__typename": "UpdateIssuePayload"}}),
        }})
    }
}

fn shown(issue: &Issue) -> Value {
    let number = issue.number;
    let state = if issue.is_open { "OPEN" } else { "CLOSED" };
    let me = json!({"id": "U1", "login": "me", "name": "Me"});
    let assigned: Vec<Value> = issue.assigned.then_some(me).into_iter().collect();
    json!({
        "id": format!("I{number}"), "number": number, "title": issue.title, "body": issue.body, "state": state,
        "url": format!("http://github.localhost/owner/project/issues/{number}"),
        "assignees": {"nodes": assigned, "totalCount": assigned.len()},
        "labels": {"nodes": [{"name": "agent"}], "totalCount": 1},
        "comments": {"nodes": [], "pageInfo": {"hasNextPage": false}, "totalCount": 0},
    })
}
