//! Task lists of other tools are recognised and never run as roadmaps; roadmaps of ours always are.

use descartes_plans::roadmap::{self, ForeignFormat};
use descartes_text::finding::Severity;

fn format_of(text: &str) -> Option<ForeignFormat> {
    roadmap::parse(text).foreign
}

fn is_refused(text: &str) -> bool {
    let findings = roadmap::check(text);
    findings
        .iter()
        .any(|finding| finding.severity == Severity::Error)
}

#[test]
fn lists_of_other_tools_are_refused_by_name() {
    let cases: [(&str, ForeignFormat); 9] = [
        (
            "# Import Implementation Plan\n\n### Task 1: Reader\n\n- [ ] **Step 1: Write the failing test**\n- [ ] **Step 2: Implement**\n",
            ForeignFormat::Plan,
        ),
        (
            "# Plan\n\n## Tasks\n\n### Task 1: Reader\n\n- [ ] **Step 1: Test**\n",
            ForeignFormat::Plan,
        ),
        (
            "# Plan: a cache\n\n### Task 1: Map with expiry\n- [x] type\n- [ ] tests\n",
            ForeignFormat::Plan,
        ),
        (
            "# Tasks\n\n## Phase 1: Setup\n- [ ] **T001**: Create folders\n- [ ] **T002**: Lint (depends on T001)\n",
            ForeignFormat::SpecKit,
        ),
        (
            "# Tasks\n- [ ] T001 [P] [US1] Quoting in src/quote.rs\n- [ ] T002a Header\n",
            ForeignFormat::SpecKit,
        ),
        (
            "# Roadmap: Tides\n\n## Phases\n\n- [ ] **Phase 1: Data** - read\n- [ ] **Phase 2: Output** - print\n",
            ForeignFormat::Gsd,
        ),
        (
            "# Project Tracks\n\n- [ ] **Track: Add login**\n",
            ForeignFormat::Conductor,
        ),
        (
            "# Implementation Plan\n\n## Tasks\n\n- [ ] 1. Theme\n  - [ ] 1.1 Switch\n    - _Requirements: 1.1_\n",
            ForeignFormat::Kiro,
        ),
        (
            "# Plan\n- [ ] 1. Theme\n\n## Task Dependency Graph\n\n```json\n{\"waves\": []}\n```\n",
            ForeignFormat::Kiro,
        ),
    ];
    for (text, format) in cases {
        assert_eq!(format_of(text), Some(format), "{text}");
        assert!(is_refused(text), "{text}");
    }
}

#[test]
fn what_stands_in_code_and_comments_tells_nothing() {
    let text = "## Tasks\n- [ ] **a**: Do it\n\n```\n### Task 1: x\n- [ ] **Step 1: y**\n```\n<!--\n- [ ] **Track: z**\n-->\n";
    assert_eq!(format_of(text), None);
    assert!(!is_refused(text));
}

#[test]
fn roadmaps_of_ours_are_run_as_before() {
    for text in [
        "# Roadmap: Tides\n## Tasks\n- [ ] **fetch**: Read the table\n",
        // Ids such as those of spec-kit.
        "## Tasks\n\n### Phase 1: Setup\n- [ ] **T001**: Folders\n- [ ] **T002**: Lint\n",
        "# Plan\n- [ ] **T001**: Folders\n- [ ] **T002**: Lint\n",
        "# Plan\n\n## Phase 1\n- [ ] **T001**: Folders\n- [ ] **T002**: Lint\n  - depends: T001\n",
        // Tasks anywhere, with phases of ours.
        "# Plan\n\n## Phase 1: Base\n- [ ] **base**: Do it\n\n## Phase 2: Top\n- [ ] **top**: Do more\n",
        // Properties tell, whatever the headings say.
        "### Task 1: Base\n- [ ] **base**: Do it\n  - check: make test\n",
        "## Tasks\n- [ ] **Phase 1**: Base\n- [ ] **Step 1**: More\n",
    ] {
        assert_eq!(format_of(text), None, "{text}");
        assert!(!is_refused(text), "{text}");
    }
}

#[test]
fn a_list_without_boxes_of_ours_says_that_there_are_no_tasks() {
    let text = "# TODO\n- [ ] first thing\n- [ ] second thing\n";
    assert_eq!(format_of(text), None);
    assert!(is_refused(text));
}
