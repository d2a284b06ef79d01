//! Pages: what they tell, and that nothing of a loop ever becomes markup.

use descartes_testkit::{World, eventually};

use crate::common::{SOON, Served, serve, start, until_status};

/// Texts that have broken pages before.
const NASTY: [&str; 40] = [
    "<script>nasty(1)</script>",
    "\"><script>nasty(2)</script>",
    "'><script>nasty(3)</script>",
    "<img src=x onerror=nasty(4)>",
    "<svg onload=nasty(5)>",
    "<svg><script>nasty(6)</script></svg>",
    "</pre><script>nasty(7)</script>",
    "</title><script>nasty(8)</script>",
    "</textarea><script>nasty(9)</script>",
    "</style><script>nasty(10)</script>",
    "<iframe src=javascript:nasty(11)>",
    "<a href=javascript:nasty(12)>x</a>",
    "javascript:nasty(13)",
    "<body onload=nasty(14)>",
    "<input onfocus=nasty(15) autofocus>",
    "<details open ontoggle=nasty(16)>",
    "<math><mi//xlink:href=\"data:x,<script>nasty(17)</script>\">",
    "<base href=//nasty.example/>",
    "<meta http-equiv=refresh content=0;url=//nasty.example>",
    "<link rel=stylesheet href=//nasty.example>",
    "<style>@import '//nasty.example'</style>",
    "<object data=javascript:nasty(22)>",
    "<embed src=javascript:nasty(23)>",
    "<form action=//nasty.example><button>x",
    "<template><script>nasty(25)</script></template>",
    "<noscript><p title=\"</noscript><img src=x onerror=nasty(26)>\">",
    "&lt;script&gt;nasty(27)&lt;/script&gt;",
    "&#60;script&#62;nasty(28)&#60;/script&#62;",
    "%3Cscript%3Enasty(29)%3C/script%3E",
    "\\u003cscript\\u003enasty(30)\\u003c/script\\u003e",
    "<!--><script>nasty(31)</script>-->",
    "<![CDATA[<script>nasty(32)</script>]]>",
    "]]><script>nasty(33)</script>",
    "{{constructor.constructor('nasty(34)')()}}",
    "${nasty(35)}",
    "<scr<script>ipt>nasty(36)</scr</script>ipt>",
    "<ScRiPt>nasty(37)</sCrIpT>",
    "<x onclick=nasty(38)>",
    "\u{202e}<script>nasty(39)</script>",
    "<marquee onstart=nasty(40)>",
];

/// A text as git takes it as the name of a branch: spaces and what else git refuses become slashes,
/// which separate attributes as well.
fn branch_of(text: &str) -> String {
    let refused = |c: char| c.is_whitespace() || "~^:?*[\\@{}%#.".contains(c);
    let parts = text.split(|c| refused(c) || c == '/');
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("/").replace('\u{202e}', "")
}

/// Elements and attributes that our pages never have.
#[track_caller]
fn harmless(path: &str, page: &str) {
    let lower = page.to_lowercase();
    for element in [
        "<script>",
        "<img",
        "<svg onload",
        "<iframe",
        "<object",
        "<embed",
        "<base",
        "<marquee",
        "<math",
        "<template",
        "<x ",
        "<style",
        "<body onload",
        "href=\"javascript",
        "<![cdata",
        "<!--",
    ] {
        assert!(!lower.contains(element), "{path}: {element}\n{page}");
    }
    // An attribute of an event only within a quoted text, where `<` and `>` are entities.
    let tags = page
        .split('<')
        .skip(1)
        .filter_map(|tag| tag.split('>').next());
    for tag in tags {
        let outside: String = tag.split('"').step_by(2).collect();
        assert!(!outside.contains(" on"), "{path}: <{tag}>");
    }
    assert!(
        !page.contains('\u{202e}') && !page.contains('\u{1b}'),
        "{path}"
    );
}

fn pages(served: &Served, id: &str) -> Vec<(String, String)> {
    let paths = [
        "/",
        "/loops/ID",
        "/loops/ID/iterations/1",
        "/loops/ID/output/1",
        "/loops/ID/output/1?stream=stderr",
        "/loops/ID/diff/1",
        "/loops/ID/history",
    ];
    let get = |path: &&str| {
        let path = path.replace("ID", id);
        let body = served.get(&path).assert_status(200).body;
        (path, body)
    };
    paths.iter().map(get).collect()
}

/// Loops whose names, branches and gates are these texts, a few in each: both are short.
fn named_by(world: &World, texts: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for (at, texts) in texts.chunks(5).enumerate() {
        let (name, file) = (texts.concat(), format!("state-{at}.json"));
        let branch = branch_of(&format!("b{at}/{}", texts.join("/")));
        let gate = format!("false # {}", texts.join(" "));
        let id = start(
            world,
            "print done",
            &[
                "-m",
                "1",
                "--name",
                &name,
                "--verify",
                &gate,
                "--no-promise",
                "--branch",
                "--branch-template",
                &branch,
                "--state-file",
                &file,
            ],
        );
        until_status(world, &id, "ended");
        assert_eq!(world.git(["branch", "--show-current"]), branch);
        ids.push(id);
    }
    ids
}

#[test]
fn the_nastiest_names_branches_and_gates_never_become_markup() {
    let world = World::in_memory();
    world.git_init();
    let ids = named_by(&world, &NASTY);
    assert_eq!(ids.len(), 8);
    let served = serve(&world, &["--allow-start"]);
    for (id, texts) in ids.iter().zip(NASTY.chunks(5)) {
        for (path, page) in pages(&served, id) {
            harmless(&path, &page);
        }
        let page = served.get(&format!("/loops/{id}")).body;
        let shown = |text: &&&str| page.contains(&escaped(text));
        assert_eq!(texts.iter().filter(shown).count(), texts.len(), "{page}");
        let report = served.get(&format!("/loops/{id}/report"));
        harmless(
            "report",
            &report.assert_status(200).body.replace("<style", ""),
        );
        let form = served.get(&format!("/start?like={id}"));
        harmless("/start", &form.assert_status(200).body);
        let mut live = served.open(&format!("/loops/{id}/live"));
        let news = live.event().unwrap().json();
        for (name, part) in news["parts"].as_object().unwrap() {
            harmless(name, part.as_str().unwrap());
        }
    }
}

/// As a page shows it.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;").replace('"', "&quot;");
    text.replace('\u{202e}', "")
}

#[test]
fn the_nastiest_texts_never_become_markup() {
    let world = World::in_memory();
    world.git_init();
    for (at, text) in NASTY.iter().enumerate() {
        world.write(format!("texts/{at}"), format!("{text}\n"));
    }
    let script = "sh cat texts/*; cat texts/* >&2; for f in texts/*; do touch \"nasty $(tr '/' '_' < $f)\"; done";
    let prompt = NASTY.join("\n");
    let id = start(
        &world,
        script,
        &[
            "-m",
            "1",
            "--prompt",
            &prompt,
            "--verify",
            "cat texts/*; false",
            "--no-promise",
        ],
    );
    until_status(&world, &id, "ended");
    let served = serve(&world, &["--allow-start"]);
    let form = served.get(&format!("/start?like={id}")).assert_status(200);
    assert!(form.body.contains("&lt;/textarea&gt;"), "{}", form.body);
    harmless("/start", &form.body);
    let note = NASTY[3]
        .replace('&', "%26")
        .replace('%', "%25")
        .replace('+', "%2b");
    served
        .post(&format!("/api/v1/loops/{id}/say"), &format!("text={note}"))
        .assert_status(200);
    let all = pages(&served, &id);
    for (path, page) in &all {
        harmless(path, page);
    }
    let page = &all[1].1;
    assert!(
        page.contains("&lt;script&gt;nasty(1)&lt;/script&gt;"),
        "{page}"
    );
    let report = served
        .get(&format!("/loops/{id}/report"))
        .assert_status(200);
    assert!(
        report
            .header("content-security-policy")
            .unwrap()
            .contains("sandbox")
    );
    assert!(!report.body.contains("<script"));
    assert!(report.body.contains(&format!("href=\"/loops/{id}\"")));
    // The stream carries the same parts, and output as text.
    let mut live = served.open(&format!("/loops/{id}/live"));
    let news = live.event().unwrap().json();
    for (name, part) in news["parts"].as_object().unwrap() {
        harmless(name, part.as_str().unwrap());
    }
    harmless(
        "search",
        &served
            .get("/?q=%22%3E%3Cscript%3Enasty()%3C/script%3E")
            .body,
    );
    harmless(
        "nothing",
        &served
            .get("/loops/%3Cscript%3Enasty()%3C%2Fscript%3E")
            .assert_status(404)
            .body,
    );
}

#[test]
fn secrets_are_masked_on_every_page() {
    let world = World::in_memory();
    world.git_init();
    let key = format!("sk-ant-{}", "a1B2".repeat(10));
    let script = format!("print my key is {key}\nerr and {key}");
    let gate = format!("echo {key}; false");
    let id = start(
        &world,
        &script,
        &[
            "-m",
            "1",
            "--prompt",
            &format!("use {key}"),
            "--verify",
            &gate,
            "--no-promise",
        ],
    );
    until_status(&world, &id, "ended");
    let served = serve(&world, &[]);
    for (path, page) in pages(&served, &id) {
        assert!(!page.contains(&key), "{path}: {page}");
    }
    let mut live = served.open(&format!("/loops/{id}/live"));
    assert!(!live.event().unwrap().data.contains(&key));
}

#[test]
fn a_page_tells_how_a_loop_stands_and_what_each_iteration_did() {
    let world = World::in_memory();
    world.git_init();
    let script = "append notes.txt line ${ITERATION}\nprint I changed the parser\n@2 promise";
    let id = start(
        &world,
        script,
        &[
            "-m",
            "5",
            "--name",
            "auth",
            "--verify",
            "echo checked; test -e notes.txt",
            "--max-duration",
            "1h",
        ],
    );
    until_status(&world, &id, "ended");
    let served = serve(&world, &[]);
    let page = served.get("/loops/auth").assert_status(200).body;
    for words in [
        "auth",
        "Completed (promise)",
        "of at most 1h",
        "iteration 2 of at most 5",
        "checked",
        "green",
        "I changed the parser",
        "Over time",
        "<svg",
        "/iterations/2",
        "project",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
    let first = served.get(&format!("/loops/{id}/iterations/1")).body;
    assert!(first.contains("rel=\"next\""), "{first}");
    let iteration = served.get(&format!("/loops/{id}/iterations/2")).body;
    assert!(!iteration.contains("rel=\"next\""), "{iteration}");
    for words in [
        "Iteration 2",
        "claimed",
        "green",
        "files changed",
        "/diff/2",
        "/output/2",
    ] {
        assert!(iteration.contains(words), "{words}\n{iteration}");
    }
    let diff = served
        .get(&format!("/loops/{id}/diff/2"))
        .assert_status(200)
        .body;
    assert!(
        diff.contains("<div class=\"added\">+line 2</div>"),
        "{diff}"
    );
    let output = served.get(&format!("/loops/{id}/output/1")).body;
    assert!(output.contains("I changed the parser"), "{output}");
    served
        .get(&format!("/loops/{id}/iterations/9"))
        .assert_status(404);
    served
        .get(&format!("/loops/{id}/output/9"))
        .assert_status(404);
    let history = served.get(&format!("/loops/{id}/history")).body;
    assert!(history.contains("/iterations/1") && history.contains("/iterations/2"));
}

#[test]
fn the_list_is_searched_and_filtered() {
    let world = World::in_memory();
    let done = start(
        &world,
        "promise",
        &["--name", "alpha", "--state-file", "a.json"],
    );
    let open = start(
        &world,
        "wait-file go",
        &["--name", "beta", "--state-file", "b.json"],
    );
    until_status(&world, &done, "ended");
    until_status(&world, &open, "running");
    let served = serve(&world, &[]);
    let rows = |query: &str| {
        let page = served.get(&format!("/?{query}")).assert_status(200).body;
        (
            page.contains(&format!("row-{done}")),
            page.contains(&format!("row-{open}")),
        )
    };
    eventually("both", SOON, || rows("") == (true, true));
    assert_eq!(rows("q=ALPHA"), (true, false));
    assert_eq!(rows(&format!("q={}", &open[..20])), (false, true));
    assert_eq!(rows("state=done"), (true, false));
    eventually("running", SOON, || rows("state=running") == (false, true));
    assert_eq!(rows("q=alpha&state=running"), (false, false));
    assert_eq!(rows("page=7"), (true, true));
    assert_eq!(rows("state=%3Cscript%3E"), (false, false));
}
