//! Whether what agents said could be read: a CLI that changed its stream shows here first.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use descartes_agents::agent::Profiles;
use descartes_client::{From, Known, LoopHandle, Loops, Scope};
use descartes_store::layout::StateRoot;
use descartes_text::units::plural;

use super::finding::{Finding, note};

/// The newest loops are looked at, the last iterations of each.
const LOOPS: usize = 10;
const ITERATIONS: u64 = 20;

/// Agents whose streams could not be understood of late.
pub fn look(root: &StateRoot, profiles: &Profiles) -> Vec<Finding> {
    let known = Known {
        profiles: Arc::new(profiles.clone()),
        prices: Arc::default(),
    };
    let loops = Loops::at(root.clone(), known).list(&Scope::All);
    // By agent: how many lines, and the newest loop that had them.
    let mut troubled: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for found in loops.unwrap_or_default().iter().take(LOOPS) {
        let lines = trouble(found);
        if let (1.., Ok(state)) = (lines, found.state()) {
            let agent = state.config.backend.backend_type;
            let entry = troubled.entry(agent);
            entry.or_insert((0, found.name().to_owned())).0 += lines;
        }
    }
    let tell = |(agent, (lines, name)): (String, (u64, String))| {
        let lines = plural(lines, "line");
        let message =
            format!("{agent}: {lines} of its recent output not understood, in loop {name}");
        let hint = format!(
            "check its version: descartes agents; see its output: descartes loop logs --raw {}",
            descartes_text::shell::word(&name)
        );
        note("streams", message, &hint)
    };
    troubled.into_iter().map(tell).collect()
}

fn trouble(found: &LoopHandle) -> u64 {
    let mut lines = 0;
    let read = found.history(From::Last(ITERATIONS), |row| {
        lines += row.trouble;
        ControlFlow::Continue(())
    });
    // A loop that cannot be read is told of elsewhere.
    drop(read);
    lines
}
