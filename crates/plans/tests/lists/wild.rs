//! Lists as people and models leave them: mixed line ends, tabs, byte order marks, code and comments with boxes
//! in them, quotes, tables, huge lines, ids twice, digits of other scripts. What was written as a task is read
//! as one, nothing else is, and no list is taken for another tool's.

use descartes_plans::lists::{
    ListContext, ListFormat, ListOptions, Recognized, TaskList, by_content, by_place,
    read as read_list,
};
use descartes_plans::roadmap;

use crate::file;

/// Files of each format.
const FILES: u64 = 60;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

/// A task as its author meant it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Meant {
    id: String,
    title: String,
    done: bool,
}

const TITLES: [&str; 14] = [
    "Write the parser",
    "Größe prüfen und ☃ zählen",
    "Schritt ١٢ und １.２ lesen",
    "Use `- [ ] not a box` in a sentence",
    "See [the plan](docs/plan.md) first",
    "Handle [ ] and [x] inside of text",
    "Quote \"fields\" <b>and</b> tags",
    "日本語のタスク",
    "Rename a -> b; then c",
    "Trailing colon:",
    "End with a star*",
    "Add 1.2.3 to the list of versions",
    "Zero\u{200b}width and no\u{a0}break",
    "Emoji 🎯 first",
];

/// What stands between tasks and is none of them.
const NOISE: [&str; 16] = [
    "```\n- [ ] T900 in code\n- [x] 9.1 in code\n### Task 90: in code\n```",
    "~~~~md\n- [ ] in code\n~~~\nstill code\n~~~~",
    "````markdown\n```sh\n- [ ] 9.2 inside\n```\n- [ ] T901 inside\n````",
    "<!--\n- [ ] T902 a sample\n- [ ] 9.3 a sample\n-->",
    "<!-- - [ ] 9.4 in one line -->",
    "> - [ ] T903 quoted\n> - [ ] quoted",
    "| task | done |\n|---|---|\n| [ ] T904 | [x] |",
    "- [a link](b.md)\n- [another][ref]",
    "Plain words about [ ] boxes and T905.",
    "* a bullet without a box\n* another",
    "1. counted\n2. counted",
    "---",
    "**Goal**: words",
    "",
    "\n\n\n",
    "Setext\n------",
];

/// What stands under a task and belongs to it.
const BODIES: [&str; 7] = [
    "{i}more words",
    "{i}- a detail\n{i}- another",
    "{i}```\n{i}- [ ] T910 in code\n{i}```",
    "{i}- [ ] a step\n{i}- [x] a step",
    "\n{i}after a blank line",
    "{i}<!-- - [ ] 9.5 hidden -->",
    "{i}1. counted",
];

fn mark(dice: &mut Dice) -> (&'static str, bool) {
    let marks = [
        ("[ ]", false),
        ("[x]", true),
        ("[X]", true),
        ("[ x ]", true),
        ("[-]", false),
        ("[~]", false),
        ("[]", false),
    ];
    marks[dice.roll(marks.len())]
}

fn title(dice: &mut Dice) -> String {
    let title = dice.pick(&TITLES).to_owned();
    match dice.roll(40) {
        0 => format!("{title} {}", "long ".repeat(8_000).trim_end()),
        _ => title,
    }
}

/// The second of two equal ids gets a number.
fn unique(id: &str, so_far: &[Meant]) -> String {
    let taken = |id: &str| so_far.iter().any(|one| one.id == id);
    match taken(id) {
        false => id.to_owned(),
        true => (2..)
            .map(|number| format!("{id}-{number}"))
            .find(|id| !taken(id))
            .unwrap(),
    }
}

fn body(dice: &mut Dice, indent: &str, text: &mut String) {
    for _ in 0..dice.roll(3) {
        text.push_str(&dice.pick(&BODIES).replace("{i}", indent));
        text.push('\n');
    }
}

/// How a format is written: a head, and one task after the other.
struct Writer {
    format: ListFormat,
    head: &'static str,
    /// Writes the task of that number; answers what was meant.
    write: fn(&mut Dice, usize, &[Meant], &mut String) -> Vec<Meant>,
}

const WRITERS: [Writer; 5] = [
    Writer {
        format: ListFormat::SpecKit,
        head: "# Tasks: x\n\n## Format: `[ID] [P?] [Story]`\n- **[P]**: in parallel\n\n## Phase 1: Setup\n\n",
        write: |dice, at, so_far, text| {
            let number = if at > 1 && dice.roll(12) == 0 {
                at - 1
            } else {
                at
            };
            let id = format!("T{:03}{}", number + 1, dice.pick(&["", "", "", "a"]));
            let ((mark, done), title) = (mark(dice), title(dice));
            let named = match dice.roll(4) {
                0 => format!("**{id}**"),
                1 => format!("**{id}**:"),
                2 => format!("{id}:"),
                _ => id.clone(),
            };
            let labels = dice.pick(&["", "[P] ", "[US1] ", "[P] [US2] ", "`[SETUP]` "]);
            let bullet = dice.pick(&["- ", "* ", "+ "]);
            if at % 5 == 4 {
                text.push_str(&format!("\n## Phase {}: More\n\n", at));
            }
            text.push_str(&format!("{bullet}{mark} {named} {labels}{title}\n"));
            let id = unique(&id, so_far);
            vec![Meant { id, title, done }]
        },
    },
    Writer {
        format: ListFormat::OpenSpec,
        head: "# Change\n\n## 1. Group\n\n",
        write: |dice, at, so_far, text| {
            let id = format!("{}.{}", at / 4 + 1, at % 4 + 1);
            let ((mark, done), title) = (mark(dice), title(dice));
            let named = match dice.roll(3) {
                0 => format!("**{id}**"),
                1 => format!("{id}."),
                _ => id.clone(),
            };
            if at > 0 && at % 4 == 0 {
                text.push_str(&format!("\n## {}. Group\n\n", at / 4 + 1));
            }
            text.push_str(&format!("- {mark} {named} {title}\n"));
            let id = unique(&id, so_far);
            vec![Meant { id, title, done }]
        },
    },
    Writer {
        format: ListFormat::Kiro,
        head: "# Implementation Plan: x\n\n## Overview\n\nwords\n\n## Tasks\n\n",
        write: |dice, at, so_far, text| {
            let ((mark, done), title) = (mark(dice), title(dice));
            if at % 3 == 0 {
                let id = format!("{}", at / 3 + 1);
                text.push_str(&format!("- {mark} {id}. {title}\n"));
                return vec![Meant { id, title, done }];
            }
            let id = format!("{}.{}", at / 3 + 1, at % 3);
            // cc-sdd writes parts at the first column.
            let indent = dice.pick(&["  ", "    ", "\t", ""]);
            text.push_str(&format!("{indent}- {mark} {id} {title}\n"));
            text.push_str(&format!("{indent}    - _Requirements: 1.1, 1.2_\n"));
            let id = unique(&id, so_far);
            vec![Meant { id, title, done }]
        },
    },
    Writer {
        format: ListFormat::Plan,
        head: "# Plan\n\n**Goal:** words\n\n",
        write: |dice, at, so_far, text| {
            let title = title(dice);
            let word = dice.pick(&["Task", "Iteration"]);
            let word = if at == 0 { "Task" } else { word };
            text.push_str(&format!("\n### {word} {}: {title}\n\n", at + 1));
            let steps = 1 + dice.roll(3);
            let done = dice.roll(3) == 0;
            for step in 1..=steps {
                let mark = if done { "[x]" } else { "[ ]" };
                text.push_str(&format!("- {mark} **Step {step}: do it**\n"));
            }
            let id = unique(&(at + 1).to_string(), so_far);
            vec![Meant { id, title, done }]
        },
    },
    Writer {
        format: ListFormat::Checklist,
        head: "# TODO\n\n",
        write: |dice, at, _, text| {
            let ((mark, done), title) = (mark(dice), title(dice));
            let bullet = dice.pick(&["- ", "* ", "+ ", "1. ", "2) ", "-"]);
            text.push_str(&format!("{bullet}{mark} {title}\n"));
            vec![Meant {
                id: (at + 1).to_string(),
                title,
                done,
            }]
        },
    },
];

/// A file of a format, and what its author meant.
fn wild(writer: &Writer, seed: u64) -> (String, Vec<Meant>) {
    let mut dice = Dice(seed.wrapping_mul(77_777) + 5);
    let (mut text, mut meant) = (String::from(writer.head), Vec::new());
    let indent = dice.pick(&["  ", "    ", "\t", "      "]);
    for at in 0..2 + dice.roll(9) {
        let more = (writer.write)(&mut dice, at, &meant, &mut text);
        meant.extend(more);
        // Steps of a plan are boxes of the first column.
        if writer.format != ListFormat::Plan && writer.format != ListFormat::Kiro {
            body(&mut dice, indent, &mut text);
        }
        if dice.roll(2) == 0 {
            text.push('\n');
            text.push_str(dice.pick(&NOISE));
            text.push_str("\n\n");
        }
    }
    if dice.roll(3) == 0 {
        text = text.trim_end().to_owned();
    }
    match dice.roll(4) {
        0 => text = text.replace('\n', "\r\n"),
        1 => text.insert(0, '\u{feff}'),
        _ => {}
    }
    (text, meant)
}

fn seen(list: &TaskList) -> Vec<Meant> {
    let tasks = list.tasks.iter();
    tasks
        .map(|task| Meant {
            id: task.id.clone(),
            title: task.title.clone(),
            done: task.is_done(),
        })
        .collect()
}

#[test]
fn wild_lists_lose_no_task_and_invent_none() {
    for writer in &WRITERS {
        for seed in 0..FILES {
            let (text, meant) = wild(writer, seed);
            let files = [file("tasks.md", &text)];
            let options = ListOptions::default();
            let list = read_list(writer.format, &files, &ListContext::default(), options);
            let place = format!("{} {seed}:\n{text}", writer.format.as_str());
            assert_eq!(seen(&list), meant, "{place}");
            let problems = list.graph(options).check();
            assert!(problems.is_empty(), "{problems:?} in {place}");
            for one in &meant {
                let changed = list.set_done(&files, &one.id, true).unwrap();
                let new = changed.first().map_or(&text, |file| &file.text);
                let files = [file("tasks.md", new)];
                let again = read_list(writer.format, &files, &ListContext::default(), options);
                assert!(
                    again.task(&one.id).unwrap().is_done(),
                    "{} in {place}",
                    one.id
                );
                assert_eq!(again.tasks.len(), meant.len(), "{place}");
                let differs = text
                    .bytes()
                    .zip(new.bytes())
                    .filter(|(a, b)| a != b)
                    .count();
                let grown = new.len() - text.len();
                assert!(grown > 0 || differs <= 8, "{differs} bytes in {place}");
            }
        }
    }
}

#[test]
fn wild_lists_are_taken_for_what_they_are() {
    for writer in &WRITERS {
        for seed in 0..FILES {
            let (text, _) = wild(writer, seed);
            let path = match writer.format {
                ListFormat::OpenSpec => "/p/openspec/changes/x/tasks.md",
                ListFormat::Kiro => "/p/.kiro/specs/x/tasks.md",
                ListFormat::SpecKit => "/p/specs/001-x/tasks.md",
                _ => "/p/docs/list.md",
            };
            let found = by_place(path).map_or_else(|| by_content(path, &text), Recognized::List);
            let place = format!("{} {seed}:\n{text}", writer.format.as_str());
            assert_eq!(found, Recognized::List(writer.format), "{place}");
            // These two are known by their folders: elsewhere numbers in bold letters are ids of ours, too.
            if !matches!(writer.format, ListFormat::OpenSpec | ListFormat::Kiro) {
                let elsewhere = by_content("/p/notes/list.md", &text);
                assert_eq!(elsewhere, Recognized::List(writer.format), "{place}");
            }
        }
    }
}

#[test]
fn wild_roadmaps_of_ours_stay_ours() {
    for seed in 0..FILES {
        let mut dice = Dice(seed * 31 + 7);
        let (mut text, mut ids) = (String::from("# Roadmap: x\n\n## Tasks\n\n"), Vec::new());
        for at in 0..2 + dice.roll(9) {
            let id = match dice.roll(3) {
                0 => format!("T{:03}", at + 1),
                1 => format!("{}.{}", at / 3 + 1, at % 3 + 1),
                _ => format!("task-{at}"),
            };
            let mark = dice.pick(&["[ ]", "[x]", "[X]"]);
            text.push_str(&format!("- {mark} **{id}**: {}\n", title(&mut dice)));
            if dice.roll(2) == 0 {
                text.push_str("  - timeout: 20min\n");
            }
            if dice.roll(3) == 0 {
                text.push_str(dice.pick(&NOISE[..5]));
                text.push('\n');
            }
            ids.push(id);
        }
        match dice.roll(4) {
            0 => text = text.replace('\n', "\r\n"),
            1 => text.insert(0, '\u{feff}'),
            _ => {}
        }
        for path in [
            "/p/ROADMAP.md",
            "/p/docs/plans/x.md",
            "/p/specs/001-x/tasks.md",
        ] {
            assert_eq!(
                by_content(path, &text),
                Recognized::Roadmap,
                "{path}\n{text}"
            );
        }
        let read = roadmap::parse(&text);
        let read: Vec<&str> = read.tasks.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(read, ids, "{text}");
    }
}

#[test]
fn wild_json_loses_no_story_and_invents_none() {
    for seed in 0..FILES {
        let mut dice = Dice(seed * 131 + 3);
        let mut meant = Vec::new();
        let stories: Vec<serde_json::Value> = (0..1 + dice.roll(9))
            .map(|at| {
                let (title, done) = (title(&mut dice), dice.roll(2) == 0);
                let (own, id) = match dice.roll(3) {
                    0 => (serde_json::json!(at + 1), (at + 1).to_string()),
                    1 => (
                        serde_json::json!(format!("US-{at:03}")),
                        format!("US-{at:03}"),
                    ),
                    _ => (serde_json::Value::Null, (at + 1).to_string()),
                };
                let id = unique(&id, &meant);
                meant.push(Meant {
                    id,
                    title: title.clone(),
                    done,
                });
                let mut story = serde_json::json!({
                    "title": title, "passes": done, "notes": "\"passes\": false, {[",
                    "acceptanceCriteria": ["passes: true", "[ ] x"], "other": {"passes": true},
                });
                if !own.is_null() {
                    story["id"] = own;
                }
                story
            })
            .collect();
        let value = match dice.roll(3) {
            0 => serde_json::json!(stories),
            1 => serde_json::json!({"project": "x", "userStories": stories}),
            _ => serde_json::json!({"features": stories, "metadata": {"passes": false}}),
        };
        let mut text = match dice.roll(2) {
            0 => value.to_string(),
            _ => serde_json::to_string_pretty(&value).unwrap(),
        };
        match dice.roll(4) {
            0 => text = text.replace('\n', "\r\n"),
            1 => text.insert(0, '\u{feff}'),
            2 => text.push_str("\n\n"),
            _ => {}
        }
        let found = by_content("/p/prd.json", &text);
        assert_eq!(found, Recognized::List(ListFormat::PassesJson), "{text}");
        let list = read_list(
            ListFormat::PassesJson,
            &[file("prd.json", &text)],
            &ListContext::default(),
            ListOptions::default(),
        );
        assert_eq!(seen(&list), meant, "{text}");
    }
}
