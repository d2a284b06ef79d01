//! Loops found from another one: its task loop's, its tasks'.

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
