//! Loops found from another one: its task loop's, its tasks'.

use std::collections::HashMap;

use descartes_views::view::Life;

use crate::{ClientError, LoopHandle, Loops, Query, Scope};

impl LoopHandle {
    /// Another loop of the same state root, by its id.
    pub fn beside(&self, id: &str) -> Result<Self, ClientError> {
        let loops = Loops::at(self.root.clone(), self.known.clone());
        loops.find(&Query::Named(id.to_owned()))
    }

    /// The loops of a task loop's tasks, newest first.
    pub fn children(&self) -> Result<Vec<Self>, ClientError> {
        let loops = Loops::at(self.root.clone(), self.known.clone());
        let mut children = loops.list(&Scope::All)?;
        children.retain(|child| child.parent() == Some(self.id()));
        Ok(children)
    }

    /// The loop of the task that a task loop works on, or worked on last; `None` before the first.
    pub fn newest_child(&self) -> Result<Option<Self>, ClientError> {
        let children = self.children()?;
        let alive = |child: &Self| child.life().is_ok_and(|life| life == Life::Alive);
        let at = children.iter().position(alive).unwrap_or(0);
        Ok(children.into_iter().nth(at))
    }
}

/// Whether the loops of tasks are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// They are part of their task loop.
    Folded,
    /// Each stands behind its task loop.
    Listed,
}

impl Loops {
    /// Loops that belong to no other, newest first; the loops of tasks stand behind their task loop,
    /// or not at all.
    pub fn heads(&self, scope: &Scope, children: Children) -> Result<Vec<LoopHandle>, ClientError> {
        let mut heads = self.list(scope)?;
        heads.retain(|found| found.parent().is_none());
        if children == Children::Folded {
            return Ok(heads);
        }
        let mut of: HashMap<String, Vec<LoopHandle>> = HashMap::new();
        for child in self.list(&Scope::All)? {
            if let Some(parent) = child.parent() {
                of.entry(parent.to_owned()).or_default().push(child);
            }
        }
        let with = |head: LoopHandle| {
            // Oldest first: in the order in which they were worked on.
            let children = of.remove(head.id()).unwrap_or_default();
            std::iter::once(head).chain(children.into_iter().rev())
        };
        Ok(heads.into_iter().flat_map(with).collect())
    }
}
