//! `descartes report` on real loops: ended, running, interrupted, damaged, task loops.

use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::common::{claude_result, descartes, loop_dir, prints, start};
use crate::task_common::{repository, roadmap};

const SOON: Duration = descartes_testkit::PATIENCE;

/// The page of the world's loop.
#[track_caller]
fn report(world: &World) -> String {
    let run = descartes(world, &["report"]);
    run.assert_code(0);
    let path = run.stdout();
    let page = std::fs::read_to_string(path.trim()).unwrap();
    well_formed(&page);
    page
}

/// Nothing from outside, no script, and every element that is opened is closed.
#[track_caller]
fn well_formed(page: &str) {
    assert!(page.starts_with("<!doctype html>"));
    for outside in [
        "<script", "<link", "<img", "<iframe", "<a ", "@import", "url(",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    for name in [
        "section", "details", "summary", "table", "tr", "td", "pre", "code", "svg", "div",
    ] {
        let open =
            page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
        let closed = page.matches(&format!("</{name}>")).count();
        assert_eq!(open, closed, "<{name}>");
    }
}

#[test]
fn a_page_tells_what_was_asked_how_it_ended_and_on_what_evidence() {
    let world = World::in_memory();
    world.git_init();
    let gate = "echo checked; test -e done-2";
    let script = format!(
        "append done-${{ITERATION}} x\n{}",
        prints(&claude_result("<promise>COMPLETE</promise>"))
    );
    start(
        &world,
        &script,
        &[
            "--backend",
            "claude",
            "--permissions",
            "edit",
            "--prompt",
            "Mend the parser",
            "--name",
            "auth",
            "--verify",
            gate,
            "--max-cost",
            "10",
        ],
    )
    .assert_code(0);
    let page = report(&world);
    for words in [
        "Mend the parser",
        "Completed (promise)",
        "All gates passed when last run (iteration 2)",
        "test -e done-2",
        "green",
        "exit code 1",
        "checked",
        "budget $10.00",
        "$1.00",
        "iteration 2 of at most 20",
        "descartes loop diff",
        "Over time",
    ] {
        assert!(page.contains(words), "{words}:\n{page}");
    }
    // Beside the loop's journal, and never in the work tree.
    assert!(loop_dir(&world).join("report.html").is_file());
    let own = descartes(&world, &["report", "auth", "--output", "-"]);
    assert!(own.stdout().starts_with("<!doctype html>"));
    descartes(&world, &["report", "auth", "--output", "morning.html"]).assert_code(0);
    assert!(world.has("morning.html"));
    descartes(&world, &["report", "nobody"]).assert_code(65);
}

/// The lines of each iteration, as the page has them.
fn lines(page: &str) -> Vec<String> {
    let rows = page.split("<details class=\"iteration\"><summary>").skip(1);
    let cell = |row: &str| {
        let cell = row.split("<span>").nth(5).unwrap_or_default();
        cell.split('<').next().unwrap_or_default().to_owned()
    };
    rows.map(cell).collect()
}

#[test]
fn each_iteration_tells_how_many_lines_it_changed_where_git_knows() {
    let world = World::in_memory();
    world.git_init();
    let script = "@1 write README.md new\n@1 write notes.txt one\n@2 write notes.txt two\n\
                  @4 append notes.txt more";
    start(&world, script, &["-m", "4", "--name", "auth"]).assert_code(2);
    let page = report(&world);
    assert_eq!(lines(&page)[..3], ["+2 −1", "+1 −1", "+0 −0"], "{page}");
    assert!(lines(&page)[3].starts_with('+'), "{page}");
    assert!(
        page.contains("<dt>lines changed</dt><dd>+2 −1</dd>"),
        "{page}"
    );
    // Without git, and where its objects are gone, nothing is made up.
    std::fs::remove_dir_all(loop_dir(&world).join("objects")).unwrap();
    assert_eq!(lines(&report(&world))[1], "–");
    let plain = World::in_memory();
    start(&plain, "append seen x", &["-m", "1"]).assert_code(2);
    assert_eq!(lines(&report(&plain)), ["–"]);
}

#[test]
fn a_roadmap_tells_the_commit_of_the_branch_and_the_gates_of_its_tasks() {
    let tasks = "- [ ] **a**: First\n  - check: test -e a.txt\n- [ ] **b**: Second\n  - check: test -e b.txt\n  - depends: a\n";
    let world = repository("ROADMAP.md", format!("# Roadmap: R\n\n## Tasks\n{tasks}"));
    roadmap(&world, "write ${DESCARTES_TASK_ID}.txt x", &[]).assert_code(0);
    let page = report(&world);
    let commits = world.git(["log", "--format=%H %s", "-4"]);
    let mut commits: Vec<&str> = commits.lines().collect();
    let head = commits[0].split(' ').next().unwrap();
    assert!(commits[0].contains("mark task"), "{commits:?}");
    assert!(
        page.contains(&format!("Your branch is at <code>{head}</code>")),
        "{page}"
    );
    // In the order of the branch.
    commits.reverse();
    let mut from = page.find("Commits").unwrap();
    for commit in commits {
        let at = page[from..].find(&commit[..12]);
        from += at.unwrap_or_else(|| panic!("{commit}: {page}"));
    }
    for words in [
        "gate of a task",
        "test -e a.txt",
        "test -e b.txt",
        "All gates passed",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("only the agent"), "{page}");
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(status.contains("  State: Done\n"), "{status}");
    assert_eq!(status.matches("  Marks: ").count(), 2, "{status}");
}

#[test]
fn a_hostile_prompt_and_agent_stay_words_and_secrets_stay_secret() {
    let world = World::in_memory();
    let key = format!("sk-ant-{}", "a1B2c3D4".repeat(5));
    let evil =
        "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\"'>&lt; \u{1b}[31m\u{202e}";
    let prompt = format!("{evil} {key}");
    let gate = format!("echo '<b>{key}</b>'; exit 1");
    start(
        &world,
        &format!("print <script>{key}</script>\npromise"),
        &[
            "--prompt", &prompt, "--verify", &gate, "-m", "1", "--name", "<i>x</i>",
        ],
    )
    .assert_code(2);
    let page = report(&world);
    assert!(!page.contains(&key) && !page.contains("a1B2c3D4"), "{page}");
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<i>x"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    assert!(page.contains("sk-ant-***"));
}

#[test]
fn a_running_a_killed_and_a_damaged_loop_are_told_as_far_as_they_can_be_read() {
    let world = World::in_memory();
    let script = "append seen x\nwait-file go-${ITERATION}";
    let run = start(&world, script, &["--detach", "-m", "3", "--name", "auth"]);
    run.assert_code(0);
    eventually("the agent", SOON, || world.has("seen"));
    let page = report(&world);
    assert!(
        page.contains("<span class=\"pill work\">Running</span>"),
        "{page}"
    );
    assert!(page.contains("descartes loop cancel"), "{page}");
    world.write("go-1", "");
    eventually("iteration 2", SOON, || {
        world.read("seen").lines().count() >= 2
    });
    let status = descartes(&world, &["loop", "status", "--json"]).stdout();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let pid = i32::try_from(status["pid"].as_u64().unwrap()).unwrap();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    eventually("the end of the host", SOON, || {
        report(&world).contains("Interrupted")
    });
    let page = report(&world);
    assert!(page.contains("descartes loop resume"), "{page}");
    assert!(page.contains("lost"), "{page}");
    // A bad byte in the middle: what stands before it is told, and where it ends.
    let journal = loop_dir(&world).join("journal.jsonl");
    let mut bytes = std::fs::read(&journal).unwrap();
    let lines: Vec<usize> = bytes
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'\n')
        .map(|(i, _)| i)
        .collect();
    let last = lines[lines.len() - 2];
    bytes[last + 20] ^= 1;
    std::fs::write(&journal, bytes).unwrap();
    let page = report(&world);
    assert!(page.contains("is damaged at byte"), "{page}");
    assert!(page.contains("class=\"notice\""));
    assert!(
        page.contains("details class=\"iteration\""),
        "iteration 1 is told"
    );
}

#[test]
fn a_task_loop_is_told_with_its_waves_blocked_tasks_commits_and_pictures() {
    let world = World::in_memory();
    world.git_init();
    world.write(
        ".scud/tasks/tasks.scg",
        "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | Model <b> | P | 3 | H\n2 | Store | P | 2 | M\n\
         3 | Wire up | P | 5 | M\n\n@edges\n3 -> 2\n",
    );
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    let agent = world.agent("write work-${DESCARTES_TASK_ID}.txt done ;; promise");
    let flags = [
        "loop",
        "start",
        "--scud-tag",
        "auth",
        "--command",
        &agent,
        "--verify",
        "test ! -e work-2.txt",
        "--max-iterations-per-task",
        "1",
    ];
    world
        .run_within(world.descartes(flags), Duration::from_secs(120))
        .assert_code(6);
    let page = report(&world);
    for words in [
        "Tasks blocked",
        "Model &lt;b&gt;",
        "verification failed",
        "Blocked (1/2 tasks)",
        "<h2>Blocked</h2>",
        "<h2>Commits</h2>",
        "Tasks by wave",
        "Tasks over time",
        ">Wave 2</text>",
        "attempt 1: green",
        // Without it, a resume would end at once with the same tasks blocked.
        " --retry-blocked</code>",
        "descartes work",
    ] {
        assert!(page.contains(words), "{words}:\n{page}");
    }
    // Each attempt wrote one line, in a worktree that is gone by now.
    assert_eq!(lines(&page), ["+1 −0", "+1 −0"]);
    // Task 3 stands behind task 2: one edge.
    let graph = page.split("aria-label=\"Tasks by wave\"").nth(1).unwrap();
    let graph = graph.split("</svg>").next().unwrap();
    assert_eq!(graph.matches("<polyline").count(), 1, "{graph}");
}
