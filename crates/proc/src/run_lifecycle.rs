//! The course of a run: runs, is asked to end, is killed, is swept. The same for guard and direct
//! mode; it knows neither processes nor the clock, both are given to it.

use std::time::{Duration, Instant};

use crate::events::{Ending, Exit, Survivor};

/// What an agent that ended by itself leaves behind gets this long between SIGTERM and SIGKILL.
pub(crate) const LEFTOVER_GRACE: Duration = Duration::from_millis(500);
/// So long is tried to kill what is left; then it is reported as surviving.
pub(crate) const SWEEP_LIMIT: Duration = Duration::from_secs(5);
/// Killing is done again at least this often: an orphan's arrival is not always signalled.
const KILL_AGAIN: Duration = Duration::from_millis(20);

/// The processes of one run, as far as they can be reached.
pub(crate) trait Tree {
    /// Reaps the dead; the agent's exit if it is found among them (once).
    fn reap(&mut self) -> Option<Exit>;
    /// True if nothing that could be ended is left.
    fn is_empty(&mut self) -> bool;
    /// SIGTERM to everybody.
    fn ask(&mut self);
    /// SIGKILL to everybody in reach; those behind them come into reach when these are reaped.
    fn kill(&mut self);
    /// Gives up on who is left.
    fn survivors(&mut self) -> Vec<Survivor>;
    /// How many beside the agent had to be signalled.
    fn killed(&self) -> u32;
    /// How often to look again while the run is ending, for trees that are not told of deaths.
    fn watch_every(&self) -> Option<Duration>;
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Exited(Exit),
    Swept {
        survivors: Vec<Survivor>,
        killed: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    /// Asked to end; `None`: a grace beyond what the clock can say.
    Asked {
        kill_at: Option<Instant>,
    },
    Killing {
        give_up_at: Option<Instant>,
    },
    Over,
}

/// Where a run is on its way.
#[derive(Debug)]
pub(crate) struct RunLifecycle {
    stage: Stage,
    exited: bool,
    just_exited: bool,
    wake_at: Option<Instant>,
}

impl RunLifecycle {
    pub(crate) fn begin() -> Self {
        Self {
            stage: Stage::Running,
            exited: false,
            just_exited: false,
            wake_at: None,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// When `step` wants to be called even if nothing happens.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }

    /// Ends the run; said again, it can only become quicker.
    pub(crate) fn end(&mut self, how: Ending, now: Instant, tree: &mut impl Tree) {
        match (self.stage, how) {
            (Stage::Over | Stage::Killing { .. }, _) => {}
            (Stage::Running, Ending::Ask { grace }) => {
                tree.ask();
                self.stage = Stage::Asked {
                    kill_at: now.checked_add(grace),
                };
            }
            (Stage::Asked { kill_at }, Ending::Ask { grace }) => {
                self.stage = Stage::Asked {
                    kill_at: sooner(kill_at, now.checked_add(grace)),
                };
            }
            (Stage::Running | Stage::Asked { .. }, Ending::Kill) => {
                self.stage = Stage::Killing {
                    give_up_at: now.checked_add(SWEEP_LIMIT),
                };
            }
        }
    }

    /// The agent's end, once. What it left is asked to end by the next step: until then it can be told.
    pub(crate) fn exit(&mut self, tree: &mut impl Tree) -> Option<Exit> {
        let exit = tree.reap()?;
        self.exited = true;
        self.just_exited = true;
        Some(exit)
    }

    /// Looks at what has happened and does what is due. To be called after every ending, every death
    /// and at `wake_at`.
    pub(crate) fn step(&mut self, now: Instant, tree: &mut impl Tree) -> Vec<Report> {
        let mut reports = Vec::new();
        if self.stage == Stage::Over {
            return reports;
        }
        reports.extend(self.exit(tree).map(Report::Exited));
        if std::mem::take(&mut self.just_exited)
            && let Stage::Asked { kill_at } = self.stage
        {
            self.stage = Stage::Asked {
                kill_at: sooner(kill_at, now.checked_add(LEFTOVER_GRACE)),
            };
        }
        // Asked once: who comes into sight between two looks would be ended by neither of them.
        if self.exited {
            if tree.is_empty() {
                return self.over(reports, Vec::new(), tree);
            }
            if self.stage == Stage::Running {
                // The agent is gone: who is still there has a short time to follow.
                tree.ask();
                self.stage = Stage::Asked {
                    kill_at: now.checked_add(LEFTOVER_GRACE),
                };
            }
        }
        if let Stage::Asked {
            kill_at: Some(kill_at),
        } = self.stage
            && now >= kill_at
        {
            self.stage = Stage::Killing {
                give_up_at: now.checked_add(SWEEP_LIMIT),
            };
        }
        if let Stage::Killing { give_up_at } = self.stage {
            if give_up_at.is_some_and(|at| now >= at) {
                let survivors = tree.survivors();
                return self.over(reports, survivors, tree);
            }
            tree.kill();
        }
        self.wake_at = self.next_wake(now, tree);
        reports
    }

    fn over(
        &mut self,
        mut reports: Vec<Report>,
        survivors: Vec<Survivor>,
        tree: &impl Tree,
    ) -> Vec<Report> {
        self.stage = Stage::Over;
        self.wake_at = None;
        if !self.exited {
            // It would not die (another user's, stuck in the kernel); it counts as killed, and is
            // among the survivors.
            reports.push(Report::Exited(Exit::Signal(nix::libc::SIGKILL)));
        }
        reports.push(Report::Swept {
            survivors,
            killed: tree.killed(),
        });
        reports
    }

    fn next_wake(&self, now: Instant, tree: &impl Tree) -> Option<Instant> {
        let again = |every: Duration| now.checked_add(every);
        match self.stage {
            Stage::Running | Stage::Over => None,
            Stage::Asked { kill_at } => sooner(kill_at, tree.watch_every().and_then(again)),
            Stage::Killing { give_up_at } => sooner(give_up_at, again(KILL_AGAIN)),
        }
    }
}

fn sooner(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// An agent with children that die when told, or not at all.
    #[derive(Default)]
    struct Paper {
        exit: Option<Exit>,
        children: u32,
        immortal: bool,
        asked: u32,
        kills: u32,
    }

    impl Tree for Paper {
        fn reap(&mut self) -> Option<Exit> {
            self.exit.take()
        }
        fn is_empty(&mut self) -> bool {
            self.children == 0
        }
        fn ask(&mut self) {
            self.asked += 1;
        }
        fn kill(&mut self) {
            self.kills += 1;
            if !self.immortal {
                self.children = 0;
                self.exit = Some(Exit::Signal(9));
            }
        }
        fn survivors(&mut self) -> Vec<Survivor> {
            (0..self.children)
                .map(|pid| Survivor {
                    pid,
                    command: "x".into(),
                })
                .collect()
        }
        fn killed(&self) -> u32 {
            self.kills
        }
        fn watch_every(&self) -> Option<Duration> {
            None
        }
    }

    #[test]
    fn whoever_is_seen_only_at_the_second_look_is_ended_too() {
        /// Nobody is there at the first look, and one at the second.
        #[derive(Default)]
        struct Late {
            looks: u32,
            asked: u32,
        }
        impl Tree for Late {
            fn reap(&mut self) -> Option<Exit> {
                (self.looks == 0).then_some(Exit::Code(0))
            }
            fn is_empty(&mut self) -> bool {
                self.looks += 1;
                self.looks == 1
            }
            fn ask(&mut self) {
                self.asked += 1;
            }
            fn kill(&mut self) {}
            fn survivors(&mut self) -> Vec<Survivor> {
                Vec::new()
            }
            fn killed(&self) -> u32 {
                0
            }
            fn watch_every(&self) -> Option<Duration> {
                None
            }
        }
        let (mut run, mut tree) = (RunLifecycle::begin(), Late::default());
        run.step(Instant::now(), &mut tree);
        // Never a run whose agent is gone and that nothing will ever end.
        assert!(run.is_over() || run.wake_at().is_some());
    }

    fn ask(seconds: u32) -> Ending {
        Ending::Ask {
            grace: SECOND * seconds,
        }
    }

    fn swept(killed: u32) -> Report {
        Report::Swept {
            survivors: Vec::new(),
            killed,
        }
    }

    #[test]
    fn an_exit_with_nothing_left_is_over_in_one_step() {
        let (mut course, mut tree) = (RunLifecycle::begin(), Paper::default());
        assert_eq!(course.step(Instant::now(), &mut tree), []);
        assert_eq!(course.wake_at(), None);
        tree.exit = Some(Exit::Code(3));
        let reports = course.step(Instant::now(), &mut tree);
        assert_eq!(reports, [Report::Exited(Exit::Code(3)), swept(0)]);
        assert!(course.is_over());
        assert_eq!((tree.asked, tree.kills), (0, 0));
    }

    #[test]
    fn leftovers_are_asked_at_once_and_killed_after_half_a_second() {
        let now = Instant::now();
        let (mut course, mut tree) = (
            RunLifecycle::begin(),
            Paper {
                children: 2,
                ..Default::default()
            },
        );
        tree.exit = Some(Exit::Code(0));
        assert_eq!(course.step(now, &mut tree), [Report::Exited(Exit::Code(0))]);
        assert_eq!((tree.asked, tree.kills), (1, 0));
        assert_eq!(course.wake_at(), Some(now + LEFTOVER_GRACE));
        assert_eq!(course.step(now + LEFTOVER_GRACE, &mut tree), []);
        assert_eq!(tree.kills, 1);
        tree.exit = None;
        assert_eq!(course.step(now + LEFTOVER_GRACE, &mut tree), [swept(1)]);
    }

    #[test]
    fn leftovers_that_go_when_asked_are_not_killed() {
        let now = Instant::now();
        let (mut course, mut tree) = (
            RunLifecycle::begin(),
            Paper {
                children: 1,
                ..Default::default()
            },
        );
        tree.exit = Some(Exit::Code(0));
        course.step(now, &mut tree);
        tree.children = 0;
        assert_eq!(course.step(now, &mut tree), [swept(0)]);
    }

    #[test]
    fn asking_again_shortens_the_grace_and_never_lengthens_it() {
        let now = Instant::now();
        let (mut course, mut tree) = (RunLifecycle::begin(), Paper::default());
        course.end(ask(5), now, &mut tree);
        course.end(ask(60), now, &mut tree);
        course.step(now, &mut tree);
        assert_eq!(course.wake_at(), Some(now + SECOND * 5));
        course.end(ask(1), now, &mut tree);
        course.step(now, &mut tree);
        assert_eq!(
            (course.wake_at(), tree.asked, tree.kills),
            (Some(now + SECOND), 1, 0)
        );
        course.end(Ending::Kill, now, &mut tree);
        course.step(now, &mut tree);
        assert_eq!(tree.kills, 1);
    }

    #[test]
    fn an_agent_that_leaves_within_its_grace_cuts_the_grace_of_its_children() {
        let now = Instant::now();
        let (mut course, mut tree) = (
            RunLifecycle::begin(),
            Paper {
                children: 1,
                ..Default::default()
            },
        );
        course.end(ask(60), now, &mut tree);
        tree.exit = Some(Exit::Signal(15));
        course.step(now, &mut tree);
        assert_eq!(
            (course.wake_at(), tree.asked),
            (Some(now + LEFTOVER_GRACE), 1)
        );
    }

    #[test]
    fn what_cannot_be_killed_is_reported_after_the_limit() {
        let now = Instant::now();
        let (mut course, mut tree) = (
            RunLifecycle::begin(),
            Paper {
                children: 1,
                immortal: true,
                ..Default::default()
            },
        );
        course.end(Ending::Kill, now, &mut tree);
        assert_eq!(course.step(now, &mut tree), []);
        assert_eq!(course.wake_at(), Some(now + KILL_AGAIN));
        assert_eq!(course.step(now + KILL_AGAIN, &mut tree), []);
        let reports = course.step(now + SWEEP_LIMIT, &mut tree);
        let survivors = vec![Survivor {
            pid: 0,
            command: "x".into(),
        }];
        assert_eq!(
            reports,
            [
                Report::Exited(Exit::Signal(9)),
                Report::Swept {
                    survivors,
                    killed: 2
                }
            ]
        );
        assert_eq!(course.step(now + SWEEP_LIMIT * 2, &mut tree), []);
    }

    #[test]
    fn a_grace_beyond_the_clock_waits_and_does_not_panic() {
        let (mut course, mut tree) = (RunLifecycle::begin(), Paper::default());
        course.end(
            Ending::Ask {
                grace: Duration::MAX,
            },
            Instant::now(),
            &mut tree,
        );
        assert_eq!(course.step(Instant::now(), &mut tree), []);
        assert_eq!((course.wake_at(), tree.kills), (None, 0));
    }
}
