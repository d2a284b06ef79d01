//! Task lists of other tools are run in place: their order, their spec, their own done marks.

use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::world::Finished;
use descartes_testkit::{World, eventually};
use serde_json::Value;

use crate::task_common::{kill_when, left, repository, run, said};

/// Works, claims, and ticks every box that it finds, as other tools' instructions order it to.
const TICKS: &str = "sh git ls-files -z '*.md' | xargs -0 sed -i 's/\\[ \\]/[x]/' ;; \
    append ../../../ran ${DESCARTES_TASK_ID} ;; write work-${DESCARTES_TASK_ID} x ;; promise";
const WORKS: &str =
    "append ../../../ran ${DESCARTES_TASK_ID} ;; write work-${DESCARTES_TASK_ID} x ;; promise";

#[track_caller]
fn run_list(world: &World, path: &str, script: &str, flags: &[&str]) -> Finished {
    let agent = world.agent(script);
    let words = [
        "roadmap",
        "run",
        path,
        "--command",
        &agent,
        "--verify",
        "true",
    ];
    run(world, &[&words[..], flags].concat())
}

fn check(world: &World, path: &str, flags: &[&str]) -> Value {
    let words = ["roadmap", "check", path, "--json"];
    let checked = run(world, &[&words[..], flags].concat());
    serde_json::from_str(&checked.stdout()).expect("JSON")
}

/// Tasks in the order in which their agents ran.
fn ran(world: &World) -> Vec<String> {
    left(world, "ran").lines().map(str::to_owned).collect()
}

fn waves(checked: &Value) -> String {
    let waves = checked["waves"].as_array().expect("waves").iter();
    let wave = |wave: &Value| {
        let ids = wave.as_array().expect("ids").iter();
        let ids: Vec<&str> = ids.filter_map(Value::as_str).collect();
        ids.join(" ")
    };
    waves.map(wave).collect::<Vec<_>>().join(" | ")
}

const FEATURE: &str = "\
# Tasks: Harbour

## Phase 1: Setup
- [X] T001 Create the folders
- [ ] T002 [P] Configure the linter
- [ ] T003 [P] Configure the tests

## Phase 2: User Story 1 - Tides
- [ ] T004 [US1] Predict (depends on T002)

## Phase 3: User Story 2 - Warnings
- [ ] T005 [US2] Warn
";

fn feature() -> World {
    let world = repository("specs/001-harbour/tasks.md", FEATURE);
    world.write(
        "specs/001-harbour/spec.md",
        "# Spec\n### User Story 1 - Tides\nHigh water.\n",
    );
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "spec"]);
    world
}

#[test]
fn a_spec_kit_feature_is_run_and_only_proven_tasks_are_ticked() {
    let world = feature();
    let done = run_list(&world, "specs/001-harbour", TICKS, &["--parallel", "2"]);
    done.assert_code(0);
    assert!(said(&done).contains("is a spec-kit feature"), "{done}");
    let expected = FEATURE.replace("[ ]", "[x]");
    assert_eq!(world.read("specs/001-harbour/tasks.md"), expected);
    assert_eq!(
        world.git(["status", "--porcelain"]).trim(),
        "",
        "ticks are committed"
    );
    let mut order = ran(&world);
    order[..2].sort();
    assert_eq!(order, ["T002", "T003", "T004", "T005"]);
    let again = run_list(&world, "specs/001-harbour", TICKS, &["--force"]);
    again.assert_code(0);
    assert_eq!(ran(&world).len(), 4, "nothing is left to do");
}

#[test]
fn the_spec_of_a_task_has_its_story_and_the_documents_of_the_list() {
    let world = feature();
    let path = "specs/001-harbour";
    let spec = run(&world, &["spec", "T004", "--roadmap", path]);
    spec.assert_code(0);
    let out = spec.stdout();
    for words in [
        "Predict",
        "High water.",
        "Do not edit that list",
        "T002: Configure the linter",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let checked = check(&world, path, &[]);
    assert_eq!(checked["format"], "spec-kit");
    assert_eq!(waves(&checked), "T001 | T002 T003 | T004 | T005");
    assert_eq!(checked["tasks"][0]["status"], "done");
    assert_eq!(
        checked["tasks"][3]["depends"],
        serde_json::json!(["T002", "T003"])
    );
    let tokens = checked["spec_files"][0]["tokens"].as_u64();
    assert!(tokens.is_some_and(|tokens| tokens > 3), "{checked}");
}

#[test]
fn check_lists_of_spec_kit_are_answered_by_a_person_first() {
    let world = feature();
    let path = "specs/001-harbour";
    world.write(
        "specs/001-harbour/checklists/ux.md",
        "- [x] Clear\n- [ ] Measurable\n",
    );
    let refused = run_list(&world, path, WORKS, &[]);
    refused.assert_code(65);
    assert!(
        refused.stderr().contains("ux.md: 1 item not ticked"),
        "{refused}"
    );
    assert!(refused.stderr().contains("--skip-human"), "{refused}");
    let checked = run(&world, &["roadmap", "check", path]);
    assert!(checked.stdout().contains("1 item not ticked"), "{checked}");
    run_list(&world, path, WORKS, &["--skip-human"]).assert_code(0);
    assert_eq!(
        world.read("specs/001-harbour/checklists/ux.md"),
        "- [x] Clear\n- [ ] Measurable\n",
        "never ours to tick"
    );
}

#[test]
fn the_context_of_an_openspec_project_is_told() {
    let world = repository("openspec/changes/add-login/tasks.md", "- [ ] 1.1 Form\n");
    world.write(
        "openspec/config.yaml",
        "schema: spec-driven\ncontext: |\n  Tech stack: Rust.\n\n  No unsafe.\nrules: {}\n",
    );
    let words = ["spec", "1.1", "--roadmap", "openspec/changes/add-login"];
    let spec = run(&world, &words);
    assert!(
        spec.stdout().contains("Tech stack: Rust.\n\nNo unsafe."),
        "{spec}"
    );
    assert!(!spec.stdout().contains("spec-driven"), "{spec}");
}

#[test]
fn a_plan_that_may_have_been_done_is_said() {
    let plan = "# Plan\n### Task 1: Cache\n- [ ] **Step 1: write it**\n";
    let world = repository("docs/superpowers/plans/2026-01-01-cache.md", plan);
    let path = world.path("docs/superpowers/plans/2026-01-01-cache.md");
    let old = std::time::SystemTime::now() - Duration::from_secs(30 * 24 * 60 * 60);
    let file = std::fs::File::options()
        .append(true)
        .open(&path)
        .expect("open");
    file.set_modified(old).expect("make it old");
    let done = run_list(
        &world,
        "docs/superpowers/plans/2026-01-01-cache.md",
        WORKS,
        &[],
    );
    done.assert_code(0);
    assert!(
        said(&done).contains("superpowers does not tick boxes"),
        "{done}"
    );
}

#[test]
fn stories_of_spec_kit_run_side_by_side_when_asked() {
    let world = feature();
    let path = "specs/001-harbour/tasks.md";
    assert_eq!(
        waves(&check(&world, path, &["--stories"])),
        "T001 | T002 T003 | T004 T005"
    );
    run_list(&world, path, WORKS, &["--stories", "--parallel", "2"]).assert_code(0);
    assert_eq!(ran(&world).len(), 4);
    let status = run(&world, &["roadmap", "status", path, "--stories"]);
    assert!(status.stdout().contains("5 of 5 tasks done"), "{status}");
}

/// Tasks without ids of their own are counted, and one that is gone moves all others up.
#[test]
fn the_status_of_a_task_stays_its_own_when_a_line_above_it_is_gone() {
    let world = repository("TODO.md", "- [ ] First\n- [ ] Second\n- [ ] Third\n");
    let agent =
        "sh [ $DESCARTES_TASK_ID = 2 ] || { echo x > work-$DESCARTES_TASK_ID; echo COMPLETE; }";
    let flags = ["--max-iterations-per-task", "1"];
    run_list(&world, "TODO.md", agent, &flags).assert_code(6);
    let blocked = || {
        let status = run(&world, &["roadmap", "status", "TODO.md", "--json"]);
        let status: Value = serde_json::from_str(&status.stdout()).unwrap();
        let tasks = status["tasks"].as_array().unwrap().clone();
        let is_blocked = |task: &Value| task["status"] == "blocked";
        tasks.iter().map(is_blocked).collect::<Vec<_>>()
    };
    assert_eq!(blocked(), [false, true, false]);
    let text = world.read("TODO.md");
    let (_, rest) = text.split_once('\n').unwrap();
    world.write("TODO.md", rest);
    assert_eq!(blocked(), [true, false], "{rest}");
}

#[test]
fn a_phase_is_given_to_one_agent_and_ticked_as_a_whole() {
    let world = feature();
    let path = "specs/001-harbour";
    let by = ["--by", "section"];
    run_list(&world, path, WORKS, &by).assert_code(0);
    let phases = [
        "phase-1-setup",
        "phase-2-user-story-1-tides",
        "phase-3-user-story-2-warnings",
    ];
    assert_eq!(ran(&world), phases);
    assert_eq!(
        world.read("specs/001-harbour/tasks.md"),
        FEATURE.replace("[ ]", "[x]")
    );
    let status = run(&world, &["roadmap", "status", path, "--by", "section"]);
    assert!(status.stdout().contains("3 of 3 tasks done"), "{status}");
    assert_eq!(
        check(&world, path, &by)["tasks"].as_array().map(Vec::len),
        Some(3)
    );
}

const KIRO: &str = "\
# Implementation Plan

- [ ] 1. Store
  - [ ] 1.1 Write it
    - _Requirements: 1.1_
  - [ ]* 1.2 Property test
- [ ] 2. Checkpoint
  - Ensure all tests pass, ask the user if questions arise.
- [ ] 3. Wire it in
";

#[test]
fn a_task_for_a_person_holds_what_follows_unless_it_is_passed_over() {
    let path = ".kiro/specs/theme";
    let file = ".kiro/specs/theme/tasks.md";
    let world = repository(file, KIRO);
    let blocked = run_list(&world, path, WORKS, &[]);
    blocked.assert_code(6);
    assert!(said(&blocked).contains("it is for a person"), "{blocked}");
    assert_eq!(ran(&world), ["1.1"]);
    let expected = KIRO
        .replace("[ ] 1.1", "[x] 1.1")
        .replace("[ ] 1. ", "[x] 1. ");
    assert_eq!(world.read(file), expected, "the parent with its last part");
    assert_eq!(waves(&check(&world, path, &["--skip-human"])), "1.1 | 3");
    let rest = run_list(&world, path, WORKS, &["--skip-human", "--force"]);
    rest.assert_code(0);
    assert_eq!(world.read(file), expected.replace("[ ] 3", "[x] 3"));
    let status = run(&world, &["roadmap", "status", path, "--skip-human"]);
    assert!(status.stdout().contains("left out"), "{status}");
}

#[test]
fn optional_tasks_are_run_when_asked() {
    let path = ".kiro/specs/theme/tasks.md";
    let world = repository(path, KIRO);
    let flags = ["--optional", "--skip-human"];
    assert_eq!(waves(&check(&world, path, &flags)), "1.1 | 1.2 3");
    run_list(&world, path, WORKS, &flags).assert_code(0);
    assert!(world.read(path).contains("- [x]* 1.2"));
    let status = run(&world, &["roadmap", "status", path, "--optional"]);
    assert!(status.stdout().contains("done        1.2"), "{status}");
}

#[test]
fn where_two_formats_fit_the_person_decides() {
    let world = repository(
        "prd.json",
        r#"{"userStories":[{"id":"A","title":"a","passes":false}]}"#,
    );
    world.write("openspec/changes/add/tasks.md", "- [ ] 1.1 a\n");
    let refused = run_list(&world, ".", WORKS, &[]);
    refused.assert_code(65);
    let words = said(&refused);
    assert!(
        words.contains("prd.json (passes-json)") && words.contains("(openspec)"),
        "{words}"
    );
    let json = ["--source", "passes-json"];
    assert_eq!(check(&world, ".", &json)["format"], "passes-json");
    run_list(&world, ".", WORKS, &json).assert_code(0);
    assert!(world.read("prd.json").contains("\"passes\":true"));
    assert_eq!(world.read("openspec/changes/add/tasks.md"), "- [ ] 1.1 a\n");
    let status = run(
        &world,
        &["roadmap", "status", ".", "--source", "passes-json"],
    );
    assert!(status.stdout().contains("1 of 1 task done"), "{status}");
    let reset = run(
        &world,
        &["roadmap", "reset", ".", "--source", "passes-json"],
    );
    reset.assert_code(0);
    assert!(reset.stdout().contains("forgotten"), "{reset}");
    let wrong = run(&world, &["roadmap", "check", ".", "--source", "openspc"]);
    wrong.assert_code(65);
    assert!(
        said(&wrong).contains("did you mean --source openspec?"),
        "{wrong}"
    );
}

#[test]
fn attempts_at_a_task_of_a_list_are_limited() {
    let world = repository("TODO.md", "- [ ] read it\n");
    let agent = "append ../../../ran x ;; write f-${ITERATION} x";
    let flags = ["--max-iterations-per-task", "2"];
    let agent = world.agent(agent);
    let words = [
        "roadmap",
        "run",
        "TODO.md",
        "--command",
        &agent,
        "--verify",
        "false",
    ];
    run(&world, &[&words[..], &flags].concat()).assert_code(6);
    assert_eq!(ran(&world).len(), 2);
    assert_eq!(world.read("TODO.md"), "- [ ] read it\n");
}

#[test]
fn boxes_that_are_inserted_while_agents_work_are_run_and_no_other_is_ticked() {
    let world = repository("TODO.md", "# TODO\n- [ ] first\n- [ ] second\n");
    let agent = world.agent("append ../../../ran ${DESCARTES_TASK_ID}\nwait-file ../../../go\nwrite w-${DESCARTES_TASK_ID} x ;; promise");
    let words = [
        "roadmap",
        "run",
        "TODO.md",
        "--command",
        &agent,
        "--verify",
        "true",
    ];
    let mut host = world.descartes(words);
    let mut host = host
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let soon = Duration::from_secs(60);
    eventually("the first agent runs", soon, || ran(&world).len() == 1);
    world.write(
        "TODO.md",
        "# TODO\n- [ ] zeroth\n- [ ] first\n- [ ] second\n",
    );
    std::fs::write(world.state().join("go"), "").unwrap();
    assert!(host.wait().unwrap().success());
    assert_eq!(
        world.read("TODO.md"),
        "# TODO\n- [x] zeroth\n- [x] first\n- [x] second\n"
    );
    let mut tasks = ran(&world);
    assert_eq!(tasks.remove(0), "1");
    tasks.sort();
    assert_eq!(tasks, ["1-2", "2"]);
}

const BACKLOG: &str = "---\nid: TASK-1\ntitle: Read\nstatus: To Do\ndependencies: []\n---\n\n<!-- AC:BEGIN -->\n- [ ] #1 reads\n<!-- AC:END -->\n";

#[test]
fn a_box_that_was_ticked_before_the_run_and_is_opened_meanwhile_is_done_again() {
    for (path, before, opened, after) in [
        (
            "TODO.md",
            "- [x] earlier\n- [ ] one\n- [ ] two\n",
            "- [ ] earlier\n- [ ] one\n- [ ] two\n",
            "- [x] earlier\n- [x] one\n- [x] two\n",
        ),
        (
            "ROADMAP.md",
            "# Roadmap: X\n\n## Tasks\n- [x] **a**: earlier\n- [ ] **b**: one\n",
            "# Roadmap: X\n\n## Tasks\n- [ ] **a**: earlier\n- [ ] **b**: one\n",
            "# Roadmap: X\n\n## Tasks\n- [x] **a**: earlier\n- [x] **b**: one\n",
        ),
    ] {
        let world = repository(path, before);
        let agent = world.agent(&format!(
            "append ../../../ran ${{DESCARTES_TASK_ID}}\nwait-file {}\nwrite work-${{DESCARTES_TASK_ID}} x\npromise",
            world.root().join("go").display()
        ));
        let mut host = world.descartes(["roadmap", "run", path, "--verify", "true"]);
        let host = host.args(["--command", &agent]);
        let host = host.stdout(Stdio::piped()).stderr(Stdio::piped());
        let host = host.spawn().unwrap();
        eventually("the agent", Duration::from_secs(60), || {
            !ran(&world).is_empty()
        });
        world.write(path, opened);
        std::fs::write(world.root().join("go"), "").unwrap();
        let ended = host.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stdout).into_owned()
            + &String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{told}");
        assert!(told.contains("is to be done again"), "{told}");
        assert_eq!(world.read(path), after, "{told}");
        let mut tasks = ran(&world);
        tasks.sort();
        let all: &[&str] = match path {
            "TODO.md" => &["1", "2", "3"],
            _ => &["a", "b"],
        };
        assert_eq!(tasks, all, "{told}");
    }
}

#[test]
fn a_check_that_cannot_be_run_costs_its_task_alone() {
    let world = repository(
        "ROADMAP.md",
        "# Roadmap: X\n\n## Tasks\n- [ ] **a**: first\n  - check: nosuchprog --x\n- [ ] **b**: second\n  \
         - check: echo \"\n- [ ] **c**: third\n  - check: true\n",
    );
    let agent = world.agent(WORKS);
    let ended = run(
        &world,
        &["roadmap", "run", "--command", &agent, "ROADMAP.md"],
    );
    ended.assert_code(6);
    let told = said(&ended);
    assert!(
        told.contains("task c: done") && told.contains("nosuchprog: not found"),
        "{ended}"
    );
    let list = world.read("ROADMAP.md");
    assert!(
        list.contains("[x] **c**") && list.contains("[ ] **a**"),
        "{list}"
    );
    // A gate of the whole loop is looked at before anything is paid for.
    let refused = run(
        &world,
        &[
            "roadmap",
            "run",
            "--force",
            "--command",
            &agent,
            "--verify",
            "nosuchprog",
            "ROADMAP.md",
        ],
    );
    refused.assert_code(64);
}

/// Whoever opens a named pipe waits for its writer, which may never come.
#[test]
fn a_list_that_is_a_named_pipe_for_a_while_holds_nothing_up() {
    let world = repository("TODO.md", "- [ ] one\n- [ ] two\n");
    let at = |name: &str| world.root().join(name);
    let told = || std::fs::read_to_string(at("log")).unwrap_or_default();
    let (list, kept) = (world.path("TODO.md"), at("kept"));
    let gate = format!(
        "[ -e {once} ] || {{ : > {once}; mv {list} {kept}; mkfifo {list}; }}",
        once = at("once").display(),
        list = list.display(),
        kept = kept.display()
    );
    let agent = world.agent(WORKS);
    let mut host = world.descartes(["roadmap", "run", "TODO.md", "--verify", &gate]);
    let log = std::fs::File::create(at("log")).unwrap();
    let host = host.args(["--command", &agent, "--sandbox", "off"]);
    let host = host.stdout(log.try_clone().unwrap()).stderr(log);
    let mut host = host.spawn().unwrap();
    eventually("a word on it", Duration::from_secs(60), || {
        told().contains("FIFO")
    });
    std::fs::rename(&kept, &list).unwrap();
    eventually("the end", Duration::from_secs(120), || {
        host.try_wait().unwrap().is_some()
    });
    let told = told();
    assert_eq!(host.wait().unwrap().code(), Some(0), "{told}");
    assert_eq!(world.read("TODO.md"), "- [x] one\n- [x] two\n", "{told}");
}

#[test]
fn a_list_of_the_same_name_in_another_folder_is_another_list() {
    let world = repository("api/TODO.md", "- [ ] build api\n");
    world.write("web/TODO.md", "- [ ] build web\n");
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "web"]);
    let agent = world.agent("append ../../../ran x\nhang");
    let words = ["roadmap", "run", "api/TODO.md", "--command", &agent];
    let words = [&words[..], &["--verify", "true"]].concat();
    kill_when(&world, &words, "the agent", || !ran(&world).is_empty());
    run(&world, &["roadmap", "reset", "web/TODO.md"]).assert_code(0);
    let status = run(&world, &["roadmap", "status", "web/TODO.md"]);
    assert!(status.stdout().contains("not run yet"), "{status}");
    run_list(&world, "web/TODO.md", WORKS, &[]).assert_code(0);
    assert_eq!(world.read("web/TODO.md"), "- [x] build web\n");
    assert_eq!(world.read("api/TODO.md"), "- [ ] build api\n");
    let status = run(&world, &["roadmap", "status", "api/TODO.md"]);
    assert!(status.stdout().contains("interrupted"), "{status}");
    // The next run of each goes on with its own.
    let again = run_list(&world, "web/TODO.md", WORKS, &[]);
    assert!(!said(&again).contains("continuing the run"), "{again}");
    let on = run(
        &world,
        &[
            "roadmap",
            "run",
            "api/TODO.md",
            "--command",
            &agent,
            "--max-duration",
            "1s",
        ],
    );
    assert!(said(&on).contains("continuing the run"), "{on}");
    world.assert_no_survivors();
}

#[test]
fn a_folder_with_a_file_for_each_task_is_marked_file_by_file() {
    let world = repository("backlog/tasks/task-1 - Read.md", BACKLOG);
    let second = "---\nid: TASK-2\ntitle: Print\nstatus: 'To Do'\ndependencies:\n  - task-1\n---\n";
    world.write("backlog/tasks/task-2 - Print.md", second);
    world.write(
        "backlog/config.yml",
        "statuses: [\"To Do\", \"In Progress\", \"Done\"]\n",
    );
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "backlog"]);
    run_list(&world, "backlog", TICKS, &[]).assert_code(0);
    assert_eq!(ran(&world), ["TASK-1", "TASK-2"]);
    let first = BACKLOG
        .replace("status: To Do", "status: Done")
        .replace("[ ]", "[x]");
    assert_eq!(world.read("backlog/tasks/task-1 - Read.md"), first);
    assert_eq!(
        world.read("backlog/tasks/task-2 - Print.md"),
        second.replace("'To Do'", "'Done'")
    );
    assert_eq!(
        world.git(["status", "--porcelain"]).trim(),
        "",
        "and committed"
    );
}

#[test]
fn a_lock_of_task_master_is_waited_for_and_taken_over_when_it_is_stale() {
    let text =
        r#"{"master":{"tasks":[{"id":1,"title":"a","status":"pending","dependencies":[]}]}}"#;
    let world = repository(".taskmaster/tasks/tasks.json", text);
    let lock = world.project().join(".taskmaster/tasks/tasks.json.lock");
    std::fs::create_dir(&lock).unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(60);
    std::fs::File::open(&lock)
        .unwrap()
        .set_modified(old)
        .unwrap();
    run_list(&world, ".taskmaster", WORKS, &[]).assert_code(0);
    let expected = text.replace("\"pending\"", "\"done\"");
    assert_eq!(world.read(".taskmaster/tasks/tasks.json"), expected);
    assert!(!lock.exists());
}

#[test]
fn what_is_no_list_is_named_with_what_to_do() {
    for (name, text, words) in [
        ("PLAN.md", "# Plan\n\nOnly prose.\n", "without checkboxes"),
        ("ROADMAP.md", "- [ ] **Phase 1: Data** - read\n", "GSD"),
        ("tracks.md", "- [ ] **Track: Login**\n", "conductor"),
        ("prd.json", "{\"prd\": {}}", "its keys are: prd"),
        ("prd.json", "{\"prd\": ", "not valid JSON"),
    ] {
        let world = repository(name, text);
        let refused = run_list(&world, name, WORKS, &[]);
        refused.assert_code(65);
        assert!(said(&refused).contains(words), "{refused}");
        assert!(!world.has(".descartes"), "nothing is begun");
        let checked = check(&world, name, &[]);
        let severity = &checked["findings"][0]["severity"];
        assert_eq!(severity, "error", "{checked}");
    }
    let world = World::in_memory();
    let refused = run_list(&world, ".", WORKS, &[]);
    refused.assert_code(65);
    assert!(
        said(&refused).contains("there is no task list"),
        "{refused}"
    );
}

#[test]
fn flags_of_lists_are_refused_for_a_roadmap_and_the_other_way_round() {
    let world = repository("ROADMAP.md", "## Tasks\n- [ ] **a**: One\n");
    world.write("TODO.md", "- [ ] one\n");
    for (path, flag) in [("ROADMAP.md", "--stories"), ("TODO.md", "--growth=1")] {
        let refused = run_list(&world, path, WORKS, &[flag]);
        refused.assert_code(64);
        assert!(said(&refused).contains("hint: omit"), "{refused}");
    }
}

#[test]
fn a_plan_in_prose_becomes_a_roadmap_once() {
    let world = repository(
        "PLAN.md",
        "# Plan\n## Now\n- Parser: weeks are wrong\n- Printer\n",
    );
    let shown = run(&world, &["import", "PLAN.md", "--output", "-"]);
    shown.assert_code(0);
    assert!(
        shown.stdout().contains("- [ ] **parser**: Parser: weeks"),
        "{shown}"
    );
    let made = run(&world, &["import", "PLAN.md"]);
    made.assert_code(0);
    assert_eq!(world.read("ROADMAP-plan.md"), shown.stdout());
    assert!(
        said(&made).contains("descartes roadmap check ROADMAP-plan.md"),
        "{made}"
    );
    let again = run(&world, &["import", "PLAN.md"]);
    again.assert_code(65);
    assert_eq!(world.read("ROADMAP-plan.md"), shown.stdout(), "kept");
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "roadmap"]);
    run_list(&world, "ROADMAP-plan.md", WORKS, &[]).assert_code(0);
    assert_eq!(ran(&world), ["parser", "printer"]);
    // What can be run in place is not copied.
    world.write("TODO.md", "- [ ] a\n");
    let refused = run(&world, &["import", "TODO.md"]);
    refused.assert_code(65);
    assert!(
        said(&refused).contains("descartes roadmap run TODO.md"),
        "{refused}"
    );
}

#[test]
fn the_plans_of_a_phase_are_found_from_the_roadmap_beside_them() {
    let world = repository(".planning/ROADMAP.md", "- [ ] **Phase 1: Data** - read\n");
    let plan = "---\ndepends_on: []\n---\n<objective>Read it</objective>\n";
    world.write(".planning/phases/01-data/01-01-PLAN.md", plan);
    for path in [".planning/ROADMAP.md", ".planning"] {
        let made = run(&world, &["import", path, "--output", "-"]);
        made.assert_code(0);
        assert!(made.stdout().contains("**01-01**: Read it"), "{made}");
    }
}
