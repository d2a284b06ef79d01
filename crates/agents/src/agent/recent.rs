//! The last few of something, so that memory is bounded.

use std::collections::VecDeque;

const KEPT: usize = 64;

#[derive(Debug)]
pub(super) struct Recent<T>(VecDeque<T>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Recent<T> {
    pub fn add(&mut self, one: T) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(one);
    }

    pub fn find(&self, is: impl Fn(&T) -> bool) -> Option<&T> {
        self.0.iter().find(|one| is(one))
    }

    pub fn take(&mut self, is: impl Fn(&T) -> bool) -> Option<T> {
        let at = self.0.iter().position(is)?;
        self.0.remove(at)
    }
}
