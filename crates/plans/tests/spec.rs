//! Task specs: their parts, their budget, their order of being cut.

use descartes_plans::scud::ScudTask;
use descartes_plans::spec::{
    Delivered, LoopSpecConfig, Part, SpecFile, SpecSources, TaskText, build, estimate_tokens,
};
use descartes_plans::{roadmap, spec};
use proptest::prelude::*;

const PLAN: &str = "# Plan\n\n## Task 2: the curve\nUse a spline.\n\n## Task 3\nNot this.\n";

fn curve() -> TaskText {
    TaskText {
        id: "2".to_owned(),
        title: "Draw the curve".to_owned(),
        description: "One line for each hour.".to_owned(),
        details: Some("Keep the ratio.".to_owned()),
        test_strategy: Some("cargo test curve".to_owned()),
        dependencies: vec![Delivered {
            id: "1".to_owned(),
            title: "Read the table".to_owned(),
            delivered: Some("src/table.rs\ncommit 3f2a".to_owned()),
        }],
        ..TaskText::default()
    }
}

fn file(name: &str, text: &str) -> SpecFile {
    SpecFile {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn a_spec_tells_the_task_its_plan_the_files_and_the_gates() {
    let task = curve();
    let files = [file("style.md", "Short functions.\n")];
    let gates = ["cargo test".to_owned()];
    let sources = SpecSources {
        task: Some(&task),
        plan: Some(PLAN),
        handoff: Some("Axes are done."),
        files: &files,
        verification: &gates,
    };
    let spec = build(&LoopSpecConfig::default(), &sources);
    insta::assert_snapshot!(spec.text, @r"
    # Task 2: Draw the curve

    One line for each hour.

    ## Details

    Keep the ratio.

    ## How to test it

    cargo test curve

    ## Done before

    - 1: Read the table
      src/table.rs
      commit 3f2a

    # From the plan

    ## Task 2: the curve
    Use a spline.

    # Notes from an earlier run

    Axes are done.

    # style.md

    Short functions.

    # How it is checked

    These commands run when you finish, and must succeed:

        cargo test
    ");
    assert_eq!(spec.warnings, [""; 0]);
    assert_eq!(spec.tokens, estimate_tokens(&spec.text));
    let parts: Vec<(&Part, bool)> = spec
        .parts
        .iter()
        .map(|part| (&part.part, part.kept == part.tokens))
        .collect();
    let style = Part::File("style.md".to_owned());
    assert_eq!(
        parts,
        [
            (&Part::Task, true),
            (&Part::Plan, true),
            (&Part::Handoff, true),
            (&style, true),
            (&Part::Frame, true)
        ]
    );
}

#[test]
fn files_are_cut_first_then_the_plan_and_the_task_never() {
    let task = curve();
    let plan = format!("## Task 2\n{}", "a line of the plan\n".repeat(40));
    let files = [
        file("one.md", &"first file\n".repeat(40)),
        file("two.md", &"second file\n".repeat(40)),
    ];
    let sources = SpecSources {
        task: Some(&task),
        plan: Some(&plan),
        files: &files,
        ..SpecSources::default()
    };
    let at = |tokens| {
        let config = LoopSpecConfig {
            max_spec_tokens: Some(tokens),
            ..LoopSpecConfig::default()
        };
        build(&config, &sources)
    };
    let kept = |spec: &spec::Spec| -> Vec<(u32, u32)> {
        spec.parts.iter().map(|p| (p.kept, p.tokens)).collect()
    };

    let whole = at(5000);
    assert!(whole.warnings.is_empty());
    let some = at(450);
    let sizes = kept(&some);
    assert_eq!(sizes[0].0, sizes[0].1, "the task is whole");
    assert_eq!(sizes[1].0, sizes[1].1, "the plan is whole");
    assert_eq!(sizes[2].0, sizes[2].1, "the first file is whole");
    assert!(sizes[3].0 < sizes[3].1, "the last file is cut first");
    assert!(some.tokens <= 450);
    let less = at(200);
    let sizes = kept(&less);
    assert!(
        0 < sizes[1].0 && sizes[1].0 < sizes[1].1,
        "the plan is cut next"
    );
    assert_eq!((sizes[2].0, sizes[3].0), (0, 0));
    assert!(less.tokens <= 200);
    assert!(less.text.contains("[cut here:"));
    let least = at(5);
    assert_eq!(least.text, task.render(), "the task is never cut");
    assert!(
        least.warnings[0].contains("exceeds its budget of 5 tokens (task "),
        "{:?}",
        least.warnings
    );
    assert!(
        least.warnings[0].contains("two.md 0 of "),
        "{:?}",
        least.warnings
    );
}

#[test]
fn a_template_arranges_the_parts() {
    let task = curve();
    let config = LoopSpecConfig {
        spec_template: Some("PLAN:{plan}\nDO:\n{task}\n{custom}{verification}".to_owned()),
        ..LoopSpecConfig::default()
    };
    let sources = SpecSources {
        task: Some(&task),
        plan: Some(PLAN),
        ..SpecSources::default()
    };
    let spec = build(&config, &sources);
    assert!(
        spec.text.starts_with(
            "PLAN:# From the plan\n\n## Task 2: the curve\nUse a spline.\nDO:\n# Task 2"
        )
    );
}

#[test]
fn parts_may_be_left_out() {
    let task = curve();
    let config = LoopSpecConfig {
        include_task: false,
        include_plan_section: false,
        ..LoopSpecConfig::default()
    };
    let files = [file("only.md", "text")];
    let sources = SpecSources {
        task: Some(&task),
        plan: Some(PLAN),
        files: &files,
        ..SpecSources::default()
    };
    assert_eq!(build(&config, &sources).text, "# only.md\n\ntext");
}

#[test]
fn a_plan_without_the_section_is_told() {
    let task = TaskText {
        id: "77".to_owned(),
        title: "zzz".to_owned(),
        ..TaskText::default()
    };
    let sources = SpecSources {
        task: Some(&task),
        plan: Some(PLAN),
        ..SpecSources::default()
    };
    let spec = build(&LoopSpecConfig::default(), &sources);
    assert_eq!(spec.text, "# Task 77: zzz");
    assert!(spec.warnings[0].contains("no section for task `77`"));
}

#[test]
fn tasks_of_both_kinds_of_files_become_texts() {
    let scud = ScudTask {
        id: "1".to_owned(),
        title: "t".to_owned(),
        description: "d".to_owned(),
        ..ScudTask::default()
    };
    assert_eq!(TaskText::from(&scud).render(), "# Task 1: t\n\nd");
    let roadmap =
        roadmap::parse("## Tasks\n- [ ] **a**: Do it\n  - success: it works\n\n  More words.\n");
    assert_eq!(
        TaskText::from(&roadmap.tasks[0]).render(),
        "# Task a: Do it\n\nMore words.\n\n## Success\n\nit works"
    );
}

#[test]
fn a_config_with_few_words_has_the_defaults() {
    let config: LoopSpecConfig =
        serde_json::from_str(r#"{"include_plan_section": false}"#).unwrap();
    assert!(config.include_task && !config.include_plan_section);
    assert_eq!(config.max_spec_tokens, Some(5000));
}

proptest! {
    #[test]
    fn a_spec_is_within_its_budget_whenever_the_task_is(
        plan in "(## Task 2\n)?[a-z \n]{0,200}", files in prop::collection::vec("[a-z \n]{0,120}", 0..4),
        budget in 0_u32..200, handoff in prop::option::of("[a-z \n]{0,60}"),
    ) {
        let task = curve();
        let files: Vec<SpecFile> = files.iter().map(|text| file("f.md", text)).collect();
        let sources = SpecSources {
            task: Some(&task), plan: Some(&plan), files: &files, handoff: handoff.as_deref(),
            ..SpecSources::default()
        };
        let config = LoopSpecConfig { max_spec_tokens: Some(budget), ..LoopSpecConfig::default() };
        let spec = build(&config, &sources);
        prop_assert!(spec.text.starts_with(&task.render()));
        prop_assert!(spec.tokens <= budget.max(estimate_tokens(&task.render())));
        let is_cut = spec.parts.iter().any(|part| part.kept < part.tokens);
        let told = spec.warnings.iter().any(|warning| warning.contains("budget"));
        prop_assert_eq!(told, is_cut || spec.tokens > budget);
        prop_assert_eq!(&build(&config, &sources), &spec);
    }
}
