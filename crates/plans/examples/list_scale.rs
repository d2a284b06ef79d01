//! What long task lists of other tools cost: `cargo xtask tasks scale` runs it.
//!
//! `list_scale` names the shapes; `list_scale SHAPE TASKS` reads such a list, plans it, and marks a
//! task. Prints one line of JSON.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a tool for developers"
)]

use std::fmt::Write;
use std::time::Instant;

use descartes_plans::lists::{
    By, KnownTask, ListContext, ListFile, ListFormat, ListOptions, by_content, read,
};
use serde_json::json;

/// A name, a format, and a text of so many tasks.
type Shape = (&'static str, ListFormat, fn(usize) -> Vec<String>);

const SHAPES: [Shape; 35] = [
    ("openspec", ListFormat::OpenSpec, |tasks| {
        one(tasks, |at| {
            format!(
                "{}- [ ] {}.{} Do number {at}\n",
                head(at, 10, "## Group"),
                at / 10 + 1,
                at % 10 + 1
            )
        })
    }),
    ("spec-kit-chain", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            format!(
                "{}- [ ] T{at:05} [US1] Do it in src/a{at}.rs\n",
                head(at, 100, "## Phase")
            )
        })
    }),
    ("spec-kit-wide", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            format!(
                "{}- [ ] T{at:05} [P] [US1] Do it in src/a{at}.rs\n",
                head(at, 500, "## Phase")
            )
        })
    }),
    ("spec-kit-two-phases", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            format!(
                "{}- [ ] T{at:05} [P] Do it in src/a{at}.rs\n",
                head(at, 5_000, "## Phase")
            )
        })
    }),
    ("spec-kit-deferred", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            format!("- [ ] T{at:05} {} Do it\n", ["[P]", "[DEFERRED]"][at % 2])
        })
    }),
    ("spec-kit-named", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            format!(
                "{}- [ ] T{at:05} [P] Do it (depends on T{:05}, T{:05})\n",
                head(at, 500, "## Phase"),
                at * 7 / 8,
                at / 2
            )
        })
    }),
    ("spec-kit-forward", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            format!(
                "{}- [ ] T{at:05} [P] Do it (depends on T{:05})\n",
                head(at, 500, "## Phase"),
                at + 700
            )
        })
    }),
    ("spec-kit-ranges", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            let first = at * 10;
            format!("- [ ] [P] [T{first:06}-T{:06}] Do it\n", first + 9)
        })
    }),
    ("spec-kit-after-ranges", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            let first = at.saturating_sub(50);
            format!(
                "{}- [ ] T{at:05} [P] Do it (depends on T{first:05}-T{at:05})\n",
                head(at, 500, "## Phase")
            )
        })
    }),
    ("spec-kit-after-all", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            format!("- [ ] T{at:05} [P] Do it (depends on T00000–T{at:05})\n")
        })
    }),
    ("spec-kit-before-ranges", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            let (first, last) = ((at + 1).min(tasks - 1), (at + 700).min(tasks - 1));
            format!("- [ ] T{at:05} [P] Do it (depends on T{first:05}–T{last:05})\n")
        })
    }),
    ("spec-kit-circles", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            let last = tasks - 1;
            format!("- [ ] T{at:05} [P] Do it (depends on T00000–T{last:05})\n")
        })
    }),
    ("spec-kit-downwards", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            let (id, last) = (tasks - at, (tasks - at - 1).max(2));
            format!("- [ ] T{id:05} [P] Do it (depends on T00001–T{last:05})\n")
        })
    }),
    ("spec-kit-manual", ListFormat::SpecKit, |tasks| {
        one(tasks, |at| {
            format!(
                "{}- [ ] T{at:05} [P] Do it{}\n",
                head(at, 500, "## Phase"),
                if at % 3 == 0 { "" } else { " (manual)" }
            )
        })
    }),
    ("kiro-chain", ListFormat::Kiro, |tasks| {
        one(tasks, |at| match at % 10 {
            0 => format!("- [ ] {}. Whole\n", at / 10 + 1),
            part => format!(
                "  - [ ] {}.{part} Part\n    - _Requirements: 1.{part}_\n",
                at / 10 + 1
            ),
        })
    }),
    ("kiro-parallel", ListFormat::Kiro, |tasks| {
        one(tasks, |at| match at % 500 {
            0 => format!("- [ ] {}. Whole\n", at / 500 + 1),
            part => format!("  - [ ] {}.{part} (P) Part\n", at / 500 + 1),
        })
    }),
    ("kiro-waves", ListFormat::Kiro, |tasks| kiro_waves(tasks, 1)),
    ("kiro-partly-in-waves", ListFormat::Kiro, |tasks| {
        kiro_waves(tasks, 3)
    }),
    ("kiro-deep", ListFormat::Kiro, |tasks| {
        one(tasks, |at| {
            format!(
                "- [ ] {}.{}.{}.{} Part\n",
                at / 1000 + 1,
                at / 100 % 10 + 1,
                at / 10 % 10 + 1,
                at % 10 + 1
            )
        })
    }),
    ("plan", ListFormat::Plan, |tasks| {
        one(tasks, |at| {
            format!(
                "### Task {at}: Do it\n\n- [ ] **Step 1: Write it**\n- [ ] **Step 2: Run it**\n\n"
            )
        })
    }),
    ("plan-loose", ListFormat::Plan, |tasks| {
        one(tasks, |at| {
            format!("### Task {at} Do it\n\n- [ ] Write it\n- [ ] Run it\n\n")
        })
    }),
    ("plan-numbered", ListFormat::Plan, |tasks| {
        one(tasks, |at| {
            format!("### {at}. Do it\n\n- [ ] Write it\n- [ ] Run it\n\n")
        })
    }),
    ("plan-many-steps", ListFormat::Plan, |tasks| {
        one(tasks, |at| {
            format!("{}- [ ] Step {at}\n", head(at, 5_000, "### Task"))
        })
    }),
    ("checklist", ListFormat::Checklist, |tasks| {
        one(tasks, |at| format!("- [ ] Do number {at}\n"))
    }),
    ("checklist-same-text", ListFormat::Checklist, |tasks| {
        one(tasks, |_| "- [ ] Do it\n".to_owned())
    }),
    ("checklist-nested", ListFormat::Checklist, |tasks| {
        one(tasks, |at| {
            format!("{}- [ ] Do number {at}\n", "  ".repeat(at % 40))
        })
    }),
    ("checklist-open-comments", ListFormat::Checklist, |tasks| {
        one(tasks, |at| {
            format!("<!-- note\n```sh\n- [ ] Do number {at}\n")
        })
    }),
    ("passes-json", ListFormat::PassesJson, |tasks| {
        json_list("stories", tasks, |at| {
            format!("{{\"id\":\"US-{at}\",\"title\":\"t\",\"priority\":{at},\"passes\":false}}")
        })
    }),
    ("passes-json-wide", ListFormat::PassesJson, |tasks| {
        json_list("stories", tasks, |at| {
            format!(
                "{{\"id\":\"US-{at}\",\"title\":\"t\",\"priority\":{},\"passes\":false}}",
                at / 500
            )
        })
    }),
    ("task-master", ListFormat::TaskMaster, |tasks| {
        vec![format!(
            "{{\"master\":{}}}",
            json_list("tasks", tasks / 100, task_master).remove(0)
        )]
    }),
    ("tk", ListFormat::Tk, |tasks| {
        (0..tasks)
            .map(|at| {
                format!(
                    "---\nid: t-{at}\nstatus: open\ndeps: [t-{}]\n---\n# Do number {at}\n",
                    at / 2
                )
            })
            .collect()
    }),
    ("backlog", ListFormat::Backlog, |tasks| {
        (0..tasks).map(|at| format!("---\nid: TASK-{at}\ntitle: Do number {at}\nstatus: To Do\ndependencies: [task-{}]\n---\n\n- [ ] #1 works\n", at / 2)).collect()
    }),
    ("ccpm", ListFormat::Ccpm, |tasks| {
        (0..tasks)
            .map(|at| {
                format!(
                    "---\nname: Do number {at}\nstatus: open\ndepends_on: [{}]\nparallel: true\nconflicts_with: [{}]\n---\n- [ ] works\n",
                    at / 2,
                    at / 3
                )
            })
            .collect()
    }),
    ("tickets", ListFormat::Tickets, |tasks| {
        (0..tasks)
            .map(|at| {
                format!(
                    "# Do number {at}\n\nStatus: ready-for-agent\nBlocked by: {}\n\n- [ ] works\n",
                    at / 2
                )
            })
            .collect()
    }),
    ("bmad", ListFormat::Bmad, |tasks| {
        let rows = (1..=tasks).map(|at| format!("  {at}-1-do-it: ready-for-dev\n"));
        let rows: String = rows.collect();
        let story = |at: usize| {
            format!("# Story {at}.1: Do it\n\nStatus: ready-for-dev\n\n- [ ] Task 1: Do it\n")
        };
        let stories = (1..=tasks).map(story);
        std::iter::once(format!("development_status:\n{rows}"))
            .chain(stories)
            .collect()
    }),
];

fn one(tasks: usize, line: impl Fn(usize) -> String) -> Vec<String> {
    let mut text = String::from("# Tasks\n\n");
    (0..tasks).for_each(|at| text.push_str(&line(at)));
    vec![text]
}

/// A heading before every so many tasks.
fn head(at: usize, every: usize, words: &str) -> String {
    match at % every {
        0 => format!("\n{words} {}: part\n\n", at / every + 1),
        _ => String::new(),
    }
}

fn kiro_waves(tasks: usize, every: usize) -> Vec<String> {
    let mut text = one(tasks, |at| {
        let star = if at % every == 1 { "*" } else { "" };
        format!("- [ ]{star} {}.{} Part\n", at / 500 + 1, at % 500 + 1)
    })
    .remove(0);
    let ids = (0..tasks).map(|at| format!("\"{}.{}\"", at / 500 + 1, at % 500 + 1));
    let ids: Vec<String> = ids.step_by(every).collect();
    let waves = ids.chunks(500).map(|wave| format!("[{}]", wave.join(",")));
    let waves: Vec<String> = waves.collect();
    let waves = waves.join(",");
    writeln!(
        text,
        "## Task Dependency Graph\n```json\n{{\"waves\":[{waves}]}}\n```"
    )
    .unwrap();
    vec![text]
}

fn json_list(name: &str, tasks: usize, row: impl Fn(usize) -> String) -> Vec<String> {
    let rows: Vec<String> = (0..tasks).map(row).collect();
    vec![format!("{{\"{name}\":[\n{}\n]}}", rows.join(",\n"))]
}

/// A task of a hundred parts, which waits for the one before it.
fn task_master(at: usize) -> String {
    let parts = (1..=100).map(|part| {
        format!("{{\"id\":{part},\"title\":\"p\",\"status\":\"pending\",\"dependencies\":[]}}")
    });
    let parts: Vec<String> = parts.collect();
    let parts = parts.join(",");
    let before = if at == 0 {
        String::new()
    } else {
        at.to_string()
    };
    let id = at + 1;
    format!(
        "{{\"id\":{id},\"title\":\"t\",\"status\":\"pending\",\"dependencies\":[{before}],\"subtasks\":[{parts}]}}"
    )
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let shape = |name: &str| SHAPES.into_iter().find(|shape| shape.0 == name).unwrap();
    match words[..] {
        [name, tasks] => println!("{}", measured(shape(name), tasks.parse().unwrap())),
        _ => SHAPES.iter().for_each(|shape| println!("{}", shape.0)),
    }
}

fn measured((name, format, text): Shape, tasks: usize) -> serde_json::Value {
    let texts = text(tasks).into_iter().zip(0..);
    let files: Vec<ListFile> = texts
        .map(|(text, at)| ListFile {
            path: match format {
                ListFormat::Ccpm => format!("{at}.md"),
                ListFormat::Tickets => format!("{at}-do-it.md"),
                ListFormat::Bmad => format!("{at}-1-do-it.md"),
                _ => format!("tasks/task-{at}.md"),
            },
            text,
        })
        .collect();
    let before = peak_kib();
    let mut spent = Vec::new();
    let mut report = json!({"shape": name, "tasks": tasks});
    for by in [By::Task, By::Section] {
        let options = ListOptions {
            by,
            skip_human: true,
            ..ListOptions::default()
        };
        let since = busy_ms();
        let _ = by_content(name, &files[0].text);
        let list = read(format, &files, &ListContext::default(), options);
        let plan = list.graph(options).plan().unwrap();
        spent.push(busy_ms() - since);
        if by == By::Task {
            report["peak_kib"] = (peak_kib() - before).into();
            report["waves"] = plan.waves().len().into();
            let known: Vec<KnownTask> = list.tasks.iter().map(KnownTask::of).collect();
            let id = &list.tasks[list.tasks.len() / 2].id;
            let context = ListContext {
                known: &known,
                ..ListContext::default()
            };
            let mut ticks: Vec<f64> = (0..9)
                .map(|_| {
                    let mut list = read(format, &files, &context, options);
                    // Too short for the processor's own clock, which goes on by whole ticks.
                    let since = Instant::now();
                    let changed = list.set_done(&files, id, true).unwrap();
                    list.was_set_done(id);
                    let spent = since.elapsed().as_secs_f64() * 1e3;
                    assert!(!changed.is_empty());
                    spent
                })
                .collect();
            ticks.sort_by(f64::total_cmp);
            report["tick_ms"] = ticks[4].into();
            // One line was inserted: every task is recognised by its text.
            let since = busy_ms();
            read(
                format,
                &files,
                &ListContext {
                    known: &known[1..],
                    ..context
                },
                options,
            );
            report["renumbered_ms"] = (busy_ms() - since).into();
        }
    }
    report["ms"] = spent[0].into();
    report["by_section_ms"] = spent[1].into();
    report
}

/// Time on a processor, which is what others beside it do not change much.
fn busy_ms() -> f64 {
    let spent = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    spent.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
    number.unwrap_or(0)
}
