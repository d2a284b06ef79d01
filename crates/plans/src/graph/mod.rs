//! Task graphs: checks, waves, ready set, pictures.
//!
//! A graph is built from tasks in the order of their file, checked as a whole, and then planned:
//!
//! ```
//! use descartes_plans::graph::{TaskGraph, TaskNode};
//!
//! let graph = TaskGraph::new(vec![
//!     TaskNode::new("schema", "table layout"),
//!     TaskNode::new("worker", "claims jobs").after(["schema"]),
//! ]);
//! let plan = graph.plan().expect("no cycle, no unknown dependency");
//! assert_eq!(plan.waves().len(), 2);
//! ```

mod advice;
mod build;
mod check;
pub(crate) mod edges;
mod frontier;
pub mod hash;
mod id;
mod joint;
mod node;
mod plan;
mod problem;
pub mod render;

pub use build::{TaskGraph, TaskIx};
pub use frontier::{Frontier, Mark};
pub use id::{TaskId, natural_cmp};
pub use node::{Dependency, Joint, OnFail, Origin, Priority, Proof, Rules, TaskNode, TaskStatus};
pub use plan::Plan;
pub use problem::Problem;
