//! Plans as pictures.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_plans::graph::{Joint, Plan, TaskGraph, TaskNode, TaskStatus};
use descartes_views::picture::plan_svg;

fn task(id: &str) -> TaskNode {
    TaskNode::new(id, format!("task {id}"))
}

fn expanded() -> Vec<TaskNode> {
    let mut whole = task("2").after(["1"]);
    whole.status = TaskStatus::Expanded;
    vec![
        task("1"),
        whole,
        task("2.1").part_of("2"),
        task("2.2").part_of("2").after(["2.1"]),
        task("3").after(["2"]),
    ]
}

fn pictured() -> Plan {
    let mut nodes = expanded();
    nodes[0].status = TaskStatus::Done;
    nodes[2].title = "say \"<b>hi</b>\" & #1".to_owned();
    nodes[2].status = TaskStatus::InProgress;
    TaskGraph::new(nodes).plan().unwrap()
}

#[test]
fn a_plan_is_drawn_with_a_column_for_each_wave() {
    let plan = pictured();
    let svg = plan_svg(&plan, &plan.effective_statuses());
    for wave in 1..=4 {
        assert!(svg.contains(&format!(">Wave {wave}</text>")));
    }
    assert_eq!(svg.matches("<rect x=").count(), 5);
    assert_eq!(svg.matches("<polyline ").count(), 6);
    let (last_edge, first_box) = (svg.rfind("<polyline "), svg.find("<rect x="));
    assert!(last_edge < first_box, "long edges pass behind boxes");
    assert!(svg.contains("say &quot;&lt;b&gt;hi&lt;/b&gt;&quot; &amp; #1"));
    assert!(
        svg.contains("class=\"f-good-soft s-good\""),
        "done has its colour"
    );
    let column_of_wave_4 = 24 + 3 * 290;
    assert!(svg.contains(&format!("<text x=\"{column_of_wave_4}\" y=\"40\"")));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}

#[test]
fn lines_of_a_large_phase_meet_in_one_point() {
    let lines = |tasks: u32| {
        let mut nodes: Vec<TaskNode> = (0..2 * tasks).map(|at| task(&format!("t{at}"))).collect();
        for node in &mut nodes[tasks as usize..] {
            node.joints.push(0);
        }
        let joint = Joint {
            tasks: (0..tasks).collect(),
            joints: Vec::new(),
        };
        let plan = TaskGraph::with_joints(nodes, vec![joint]).plan().unwrap();
        plan_svg(&plan, &[]).matches("<polyline").count()
    };
    assert_eq!((lines(3), lines(100)), (9, 200));
}
