//! Merge trains: proven work of several tasks is stacked in order and gated at once. Where the gates
//! fail, shorter stacks of the same members find the one that they fail with.

use descartes_plans::graph::TaskId;

/// Work that is merged together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Train<T = TaskId> {
    /// Which train of the loop, from 1.
    pub(super) number: u32,
    /// In the order in which they are stacked. They may have left the file since.
    pub(super) members: Vec<T>,
    /// Whether they are known to fit onto each other.
    is_stacked: bool,
    /// So many members from the first on are proven, and merged.
    green: usize,
    /// Stacks that failed, as numbers of members from the first on; the shortest last.
    failed: Vec<usize>,
    /// The member whose own check failed last.
    suspect: Option<usize>,
    /// The member that the gates fail with.
    culprit: Option<usize>,
}

/// What is to be done with a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Find out which members fit onto each other.
    Stack,
    /// Run the gates on so many members from the first on.
    Gate(usize),
    /// This member goes back to its agent.
    Culprit(usize),
    /// Every member is merged.
    Over,
}

/// What the gates said about a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gated {
    Green,
    Red {
        /// The member whose own check failed.
        suspect: Option<usize>,
    },
}

impl<T: Clone + PartialEq> Train<T> {
    pub(super) fn new(number: u32, members: Vec<T>) -> Self {
        Self {
            number,
            members,
            is_stacked: false,
            green: 0,
            failed: Vec::new(),
            suspect: None,
            culprit: None,
        }
    }

    /// These members fit onto each other.
    pub(super) fn stacked(&mut self, members: Vec<T>) {
        self.members = members;
        self.is_stacked = true;
    }

    pub(super) fn step(&self) -> Step {
        if !self.is_stacked {
            return Step::Stack;
        }
        if let Some(culprit) = self.culprit {
            return Step::Culprit(culprit);
        }
        if let Some(suspect) = self.suspect {
            return Step::Gate(suspect + 1);
        }
        match self.failed.last() {
            None if self.green == self.members.len() => Step::Over,
            None => Step::Gate(self.members.len()),
            // One that fails alone on top of green work is asked once more: gates may be flaky.
            Some(failed) if failed - self.green == 1 => Step::Gate(*failed),
            Some(failed) => Step::Gate(self.green + (failed - self.green) / 2),
        }
    }

    /// Members that are merged so far.
    pub(super) fn merged(&self) -> &[T] {
        &self.members[..self.green]
    }

    /// Members that wait, the culprit aside.
    pub(super) fn left(&self) -> impl DoubleEndedIterator<Item = &T> {
        let culprit = self.culprit.map(|at| &self.members[at]);
        let left = self.members[self.green..].iter();
        left.filter(move |task| Some(*task) != culprit)
    }

    /// Whether the task is one of those.
    pub(super) fn waits(&self, id: &T) -> bool {
        self.left().any(|task| task == id)
    }

    /// Whether a stack that failed before is green now.
    pub(super) fn is_flaky(&self, members: usize, gated: Gated) -> bool {
        gated == Gated::Green && self.failed.contains(&members)
    }

    /// Whether any stack of it failed.
    pub(super) fn has_failed(&self) -> bool {
        !self.failed.is_empty() || self.culprit.is_some()
    }

    /// Takes what the gates said about so many members from the first on.
    pub(super) fn gated(&mut self, members: usize, gated: Gated) {
        match gated {
            Gated::Green => {
                self.green = self.green.max(members);
                self.failed.retain(|failed| *failed > members);
                self.suspect = None;
            }
            Gated::Red { suspect } => {
                let again = self.failed.last() == Some(&members);
                if !again {
                    self.failed.push(members);
                }
                let last = members.checked_sub(1);
                let alone = again && members - self.green == 1;
                let pointed_at = last.is_some() && self.suspect == last && suspect == last;
                self.culprit = last.filter(|_| alone || pointed_at);
                let unproven = self.green..members;
                self.suspect = suspect.filter(|at| unproven.contains(at));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends tasks through trains until all are merged or sent back; gives both, and the gate runs.
    fn run(
        tasks: u32,
        batch: usize,
        is_red: impl Fn(&[u32]) -> Gated,
    ) -> (Vec<u32>, Vec<u32>, u32) {
        let (mut merged, mut sent_back, mut runs) = (Vec::new(), Vec::new(), 0);
        let mut queue: Vec<u32> = (0..tasks).collect();
        let mut length = batch;
        while !queue.is_empty() {
            let rest = queue.split_off(length.min(queue.len()));
            let mut train = Train::new(1, Vec::new());
            train.stacked(std::mem::replace(&mut queue, rest));
            loop {
                match train.step() {
                    Step::Stack => unreachable!("it is stacked"),
                    Step::Gate(members) => {
                        runs += 1;
                        let tree: Vec<u32> = merged
                            .iter()
                            .chain(&train.members[..members])
                            .copied()
                            .collect();
                        train.gated(members, is_red(&tree));
                    }
                    Step::Culprit(at) => {
                        sent_back.push(train.members[at]);
                        break;
                    }
                    Step::Over => break,
                }
            }
            merged.extend_from_slice(train.merged());
            queue.splice(0..0, train.left().copied().collect::<Vec<_>>());
            length = match train.has_failed() {
                true => (train.members.len() / 2).max(1),
                false => (length * 2).min(batch),
            };
        }
        (merged, sent_back, runs)
    }

    fn with_culprits(culprits: &[u32]) -> impl Fn(&[u32]) -> Gated + use<'_> {
        |tree| match tree.iter().any(|task| culprits.contains(task)) {
            true => Gated::Red { suspect: None },
            false => Gated::Green,
        }
    }

    #[test]
    fn green_work_is_gated_once_for_a_train() {
        let (merged, sent_back, runs) = run(64, 16, with_culprits(&[]));
        assert_eq!(merged, (0..64).collect::<Vec<_>>());
        assert!(sent_back.is_empty());
        assert_eq!(runs, 4);
    }

    #[test]
    fn exactly_the_culprits_are_sent_back_in_few_runs() {
        let mut seed = 7_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let mut culprits: Vec<u32> = (0..3).map(|_| random(64) as u32).collect();
            culprits.sort_unstable();
            culprits.dedup();
            let (merged, sent_back, runs) = run(64, 16, with_culprits(&culprits));
            assert_eq!(sent_back, culprits);
            let good: Vec<u32> = (0..64).filter(|task| !culprits.contains(task)).collect();
            assert_eq!(merged, good, "each once, in order");
            assert!(runs <= 24, "{culprits:?}: {runs} runs");
        }
    }

    #[test]
    fn a_member_whose_own_check_fails_is_found_at_once() {
        let points_at_nine = |tree: &[u32]| match tree.iter().position(|task| *task == 9) {
            None => Gated::Green,
            // The suspect counts from the train's first member.
            Some(_) => Gated::Red { suspect: Some(9) },
        };
        let mut train = Train::new(1, Vec::new());
        train.stacked((0..16).collect());
        let mut runs = Vec::new();
        let culprit = loop {
            match train.step() {
                Step::Gate(members) => {
                    runs.push(members);
                    train.gated(members, points_at_nine(&train.members[..members]));
                }
                Step::Culprit(at) => break at,
                step => panic!("{step:?}"),
            }
        };
        assert_eq!((culprit, runs), (9, vec![16, 10]));
        assert_eq!(train.left().count(), 15);
    }

    #[test]
    fn a_gate_that_fails_once_sends_nobody_back() {
        // The stack of 5 fails at first, and so does the whole.
        let failures = std::cell::RefCell::new(vec![8_usize, 4, 6, 5]);
        let flaky = |tree: &[u32]| {
            let mut left = failures.borrow_mut();
            match left.iter().position(|members| *members == tree.len()) {
                Some(at) if tree.len() != 4 => {
                    left.remove(at);
                    Gated::Red { suspect: None }
                }
                _ => Gated::Green,
            }
        };
        let (merged, sent_back, _) = run(8, 8, flaky);
        assert_eq!(merged, (0..8).collect::<Vec<_>>());
        assert!(sent_back.is_empty());
    }

    #[test]
    fn whatever_the_gates_say_every_member_is_merged_or_sent_back_once() {
        for pattern in 0..4096_u32 {
            let calls = std::cell::Cell::new(0);
            let (mut merged, sent_back, runs) = run(6, 4, |_| {
                let call = calls.replace(calls.get() + 1);
                match call < 12 && pattern >> call & 1 == 1 {
                    true => Gated::Red { suspect: None },
                    false => Gated::Green,
                }
            });
            merged.extend(sent_back);
            merged.sort_unstable();
            assert_eq!(merged, [0, 1, 2, 3, 4, 5], "{pattern:b}");
            assert!(runs < 60);
        }
    }
}
