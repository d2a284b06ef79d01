//! Watchdog of one run, and the lengths of waits. Time is a value: `Mono` is a duration
//! since some fixed instant, so that clock jumps never end an agent.

use std::time::Duration;

use jiff::SignedDuration;

use crate::event::EndedBy;
use crate::outcome::Budget;

/// Monotonic time since the host began.
pub type Mono = Duration;

/// Time a final result event leaves the agent to exit by itself.
pub const RESULT_GRACE: Duration = Duration::from_secs(10);

/// Under this share of one core a silent tree is not working, unless its profile says otherwise.
const IDLE_SHARE: f64 = 0.01;

/// How often in a grace a claim's agent is looked at.
const GRACE_LOOKS: u32 = 4;

/// Looks at an agent are no closer together than this.
const SHORTEST_LOOK: Duration = Duration::from_millis(50);

/// What one run is held to.
#[derive(Clone, Copy, Debug)]
pub struct WatchLimits {
    /// Wall limit.
    pub timeout: Option<Duration>,
    /// Silence that counts as hung; zero turns it off.
    pub idle: Duration,
    /// Silence without work after a promise in plain text.
    pub promise_grace: Duration,
    /// What is left of the loop's time budget.
    pub time_left: Option<Duration>,
    /// What is left of the loop's tokens.
    pub tokens_left: Option<u64>,
    /// What is left of the loop's dollars, in millionths.
    pub cost_left: Option<u64>,
}

/// Watches one run.
#[derive(Clone, Debug)]
pub struct Watch {
    limits: WatchLimits,
    started: Mono,
    last_output: Mono,
    claimed: bool,
    result: Option<Mono>,
    sample: Option<(Mono, Duration)>,
    /// Since when, and from what use of the processors on, a claim has stood in silence.
    claim_sample: Option<(Mono, Duration)>,
    /// Under this share of one core a silent tree is not working.
    idle_share: f64,
}

/// What the watchdog says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchVerdict {
    /// Go on; look again then (or never).
    Keep(Option<Mono>),
    /// End the run.
    End(EndedBy),
}

impl Watch {
    /// Begins at the agent's start.
    pub fn new(limits: WatchLimits, now: Mono) -> Self {
        Self {
            limits,
            started: now,
            last_output: now,
            claimed: false,
            result: None,
            sample: None,
            claim_sample: None,
            idle_share: IDLE_SHARE,
        }
    }

    /// An agent that uses so much of a core while it merely waits.
    pub fn idles_at(&mut self, share: f64) {
        self.idle_share = share.max(IDLE_SHARE);
    }

    /// Other limits, from the run's start on.
    pub fn change(&mut self, limits: WatchLimits) {
        self.limits = limits;
        (self.sample, self.claim_sample) = (None, None);
    }

    /// The agent printed something then. Said again of the same output, it changes nothing.
    pub fn output(&mut self, at: Mono) {
        if at > self.last_output {
            self.last_output = at;
            (self.sample, self.claim_sample) = (None, None);
        }
    }

    /// The promise stands in plain text.
    pub fn claim(&mut self) {
        self.claimed = true;
    }

    /// What stood was no promise after all.
    pub fn claim_void(&mut self) {
        self.claimed = false;
        self.claim_sample = None;
    }

    /// The agent sent its final result.
    pub fn result(&mut self, now: Mono) {
        self.result.get_or_insert(now);
    }

    /// The agent goes on after a result (a further turn).
    pub fn result_void(&mut self) {
        self.result = None;
    }

    /// Whether the agent has told its final result: it spends no more.
    pub fn has_result(&self) -> bool {
        self.result.is_some()
    }

    /// Tokens and cost of this run so far. Many tell them with their result alone: then there is
    /// nothing left to end.
    pub fn spent(&self, tokens: Option<u64>, cost_micros: Option<u64>) -> Option<EndedBy> {
        let over = |used: Option<u64>, left: Option<u64>| matches!((used, left), (Some(u), Some(l)) if u >= l);
        if self.has_result() {
            return None;
        }
        if over(cost_micros, self.limits.cost_left) {
            return Some(EndedBy::Budget(Budget::Cost));
        }
        over(tokens, self.limits.tokens_left).then_some(EndedBy::Budget(Budget::Tokens))
    }

    /// Looks at the clock. `cpu` is asked only when silence has to be judged; `None`
    /// means that it cannot be known.
    pub fn check(&mut self, now: Mono, cpu: &mut dyn FnMut() -> Option<Duration>) -> WatchVerdict {
        for (deadline, by) in self.fixed_deadlines() {
            if now >= deadline {
                return WatchVerdict::End(by);
            }
        }
        let claim_next = match self.check_claim(now, cpu) {
            WatchVerdict::End(by) => return WatchVerdict::End(by),
            WatchVerdict::Keep(next) => next,
        };
        let idle_next = match self.check_idle(now, cpu) {
            WatchVerdict::End(by) => return WatchVerdict::End(by),
            WatchVerdict::Keep(next) => next,
        };
        let next = self
            .fixed_deadlines()
            .into_iter()
            .map(|(at, _)| at)
            .chain(claim_next)
            .chain(idle_next)
            .min();
        WatchVerdict::Keep(next)
    }

    fn fixed_deadlines(&self) -> Vec<(Mono, EndedBy)> {
        let mut all = Vec::with_capacity(4);
        if let Some(at) = self.result {
            all.push((at + RESULT_GRACE, EndedBy::Result));
        }
        if let Some(timeout) = self.limits.timeout {
            all.push((self.started + timeout, EndedBy::Timeout));
        }
        if let Some(left) = self.limits.time_left {
            all.push((self.started + left, EndedBy::Budget(Budget::Duration)));
        }
        all
    }

    /// A promise that stands ends the run once nothing was printed and nothing worked on for
    /// the grace: an agent that goes on working is let finish.
    fn check_claim(
        &mut self,
        now: Mono,
        cpu: &mut dyn FnMut() -> Option<Duration>,
    ) -> WatchVerdict {
        if !self.claimed {
            return WatchVerdict::Keep(None);
        }
        let grace = self.limits.promise_grace;
        let look_again = |since: Mono| {
            let soon = (now + grace / GRACE_LOOKS).max(now + SHORTEST_LOOK);
            WatchVerdict::Keep(Some(soon.min(since + grace).max(now + SHORTEST_LOOK)))
        };
        match (self.claim_sample, cpu()) {
            _ if grace.is_zero() => WatchVerdict::End(EndedBy::Promise),
            // What it works cannot be known (any more: it may be about to exit). Silence alone tells.
            (sample, None) => {
                let since = sample.map_or(self.last_output, |(since, _)| since);
                if now >= since + grace {
                    WatchVerdict::End(EndedBy::Promise)
                } else {
                    WatchVerdict::Keep(Some(since + grace))
                }
            }
            (None, Some(used)) => {
                self.claim_sample = Some((now, used));
                look_again(now)
            }
            (Some((_, before)), Some(used)) if self.works(used.saturating_sub(before), grace) => {
                self.claim_sample = Some((now, used));
                look_again(now)
            }
            (Some((since, _)), Some(_)) if now >= since + grace => {
                WatchVerdict::End(EndedBy::Promise)
            }
            (Some((since, _)), Some(_)) => look_again(since),
        }
    }

    fn check_idle(&mut self, now: Mono, cpu: &mut dyn FnMut() -> Option<Duration>) -> WatchVerdict {
        let idle = self.limits.idle;
        if idle.is_zero() {
            return WatchVerdict::Keep(None);
        }
        let silent = now.saturating_sub(self.last_output);
        if silent >= idle * 4 {
            return WatchVerdict::End(EndedBy::Idle);
        }
        if silent < idle / 2 {
            return WatchVerdict::Keep(Some(self.last_output + idle / 2));
        }
        let give_up = self.last_output + idle * 4;
        match self.sample {
            None => {
                self.sample = cpu().map(|used| (now, used));
                let next = (self.last_output + idle).max(now + idle / 2);
                WatchVerdict::Keep(Some(next.min(give_up)))
            }
            Some((at, _)) if silent < idle || now < at + idle / 2 => {
                let next = (self.last_output + idle).max(at + idle / 2);
                WatchVerdict::Keep(Some(next.min(give_up)))
            }
            Some((at, before)) => match cpu() {
                Some(used) if self.works(used.saturating_sub(before), now - at) => {
                    self.sample = Some((now, used));
                    WatchVerdict::Keep(Some((now + idle / 2).min(give_up)))
                }
                Some(_) => WatchVerdict::End(EndedBy::Idle),
                None => WatchVerdict::Keep(Some(give_up)),
            },
        }
    }

    fn works(&self, used: Duration, over: Duration) -> bool {
        used.as_secs_f64() >= self.idle_share * over.as_secs_f64()
    }
}

/// Wait after the n-th failure in a row (from 1): doubles, at most five minutes.
pub fn failure_wait(first: Duration, failures: u32) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(20));
    (first.saturating_mul(factor))
        .min(Duration::from_secs(300))
        .max(first.min(Duration::from_secs(300)))
}

/// So many iterations in a row that did nothing are made as fast as they end.
const QUICK_NOTHINGS: u32 = 5;

/// The longest wait after them: a script may look for work that comes from elsewhere.
const LONGEST_NOTHING_WAIT: Duration = Duration::from_secs(60);

/// Wait after so many iterations in a row whose agent ended at once and did nothing. Where nothing else ends such
/// a loop, it would start its agent for ever, as fast as it ends.
pub fn nothing_wait(in_a_row: u32) -> Duration {
    match (in_a_row + 1).checked_sub(QUICK_NOTHINGS) {
        None | Some(0) => Duration::ZERO,
        Some(more) => failure_wait(Duration::from_secs(1), more).min(LONGEST_NOTHING_WAIT),
    }
}

/// A limit whose end is nearer than this is short.
const SHORT_LIMIT: SignedDuration = SignedDuration::from_mins(1);

/// So many short limits in a row are taken as they are told.
const SHORT_LIMITS: u32 = 5;

/// Whether an agent that is told to wait for so long is told to come again soon.
pub(crate) fn is_short(wait: SignedDuration) -> bool {
    wait < SHORT_LIMIT
}

/// The shortest wait for a limit whose end was told, after so many short ones in a row. An agent that always
/// ends with "try again in a second" gets nowhere, and no run of it counts: without this it would be started
/// again for ever, as fast as it ends.
pub fn shortest_limit_wait(short_limits: u32) -> Duration {
    match (short_limits + 1).checked_sub(SHORT_LIMITS) {
        None | Some(0) => Duration::ZERO,
        Some(more) => limit_wait(more),
    }
}

/// Wait for a limit whose end nobody told (n-th in a row, from 1): one minute to one hour.
pub fn limit_wait(runs: u32) -> Duration {
    let minutes = 2_u64.saturating_pow(runs.saturating_sub(1).min(6));
    Duration::from_secs(60 * minutes).min(Duration::from_secs(3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn limits() -> WatchLimits {
        WatchLimits {
            timeout: None,
            idle: s(1800),
            promise_grace: s(10),
            time_left: None,
            tokens_left: None,
            cost_left: None,
        }
    }

    /// Drives a watch the way the host does, with a tree that burns `share` of a core.
    fn end_of(mut watch: Watch, share: f64) -> (Mono, EndedBy) {
        let mut now = s(0);
        for _ in 0..1000 {
            let verdict = watch.check(now, &mut || Some(now.mul_f64(share)));
            match verdict {
                WatchVerdict::End(by) => return (now, by),
                WatchVerdict::Keep(Some(next)) => {
                    assert!(
                        next > now,
                        "the watchdog must not spin: {next:?} at {now:?}"
                    );
                    now = next;
                }
                WatchVerdict::Keep(None) => panic!("nothing would ever end this run"),
            }
        }
        panic!("too many looks");
    }

    #[test]
    fn a_silent_tree_without_work_is_hung_and_a_working_one_gets_four_times_as_long() {
        let watch = Watch::new(limits(), s(0));
        assert_eq!(end_of(watch.clone(), 0.0), (s(1800), EndedBy::Idle));
        assert_eq!(end_of(watch.clone(), 0.009), (s(1800), EndedBy::Idle));
        assert_eq!(end_of(watch, 0.5), (s(7200), EndedBy::Idle));
    }

    #[test]
    fn an_agent_that_is_known_to_tick_while_it_waits_is_hung_all_the_same() {
        let mut watch = Watch::new(limits(), s(0));
        watch.idles_at(0.03);
        assert_eq!(end_of(watch.clone(), 0.029), (s(1800), EndedBy::Idle));
        assert_eq!(end_of(watch.clone(), 0.04), (s(7200), EndedBy::Idle));
        // Less than what counts for everybody is not asked of anybody.
        watch.idles_at(0.0);
        assert_eq!(end_of(watch, 0.009), (s(1800), EndedBy::Idle));
    }

    #[test]
    fn unknown_cpu_is_not_taken_for_a_hang() {
        let mut watch = Watch::new(limits(), s(0));
        assert!(matches!(
            watch.check(s(1801), &mut || None),
            WatchVerdict::Keep(Some(_))
        ));
        assert_eq!(
            watch.check(s(7200), &mut || None),
            WatchVerdict::End(EndedBy::Idle)
        );
    }

    #[test]
    fn limits_changed_on_the_way_count_from_the_start() {
        let mut watch = Watch::new(limits(), s(0));
        watch.change(WatchLimits {
            timeout: Some(s(60)),
            ..limits()
        });
        assert_eq!(end_of(watch.clone(), 0.0), (s(60), EndedBy::Timeout));
        watch.change(WatchLimits {
            idle: s(100),
            ..limits()
        });
        assert_eq!(end_of(watch, 0.0), (s(100), EndedBy::Idle));
    }

    #[test]
    fn output_told_again_at_every_look_does_not_hide_a_hang() {
        let mut watch = Watch::new(limits(), s(0));
        let mut now = s(0);
        let ended = loop {
            watch.output(s(3));
            match watch.check(now, &mut || Some(s(1))) {
                WatchVerdict::Keep(next) => now = next.unwrap(),
                WatchVerdict::End(by) => break (now, by),
            }
        };
        assert_eq!(ended, (s(1803), EndedBy::Idle));
    }

    #[test]
    fn output_starts_the_silence_anew() {
        let mut watch = Watch::new(limits(), s(0));
        watch.output(s(1000));
        assert_eq!(
            watch.check(s(1799), &mut || Some(s(0))),
            WatchVerdict::Keep(Some(s(1900)))
        );
        assert_eq!(end_of(watch, 0.0), (s(2800), EndedBy::Idle));
    }

    #[test]
    fn a_promise_followed_by_silence_ends_and_one_followed_by_work_waits() {
        let mut watch = Watch::new(limits(), s(0));
        watch.output(s(5));
        watch.claim();
        assert_eq!(
            watch.check(s(6), &mut || None),
            WatchVerdict::Keep(Some(s(15)))
        );
        watch.output(s(14));
        assert_eq!(
            watch.check(s(15), &mut || None),
            WatchVerdict::Keep(Some(s(24)))
        );
        assert_eq!(
            watch.check(s(24), &mut || None),
            WatchVerdict::End(EndedBy::Promise)
        );
    }

    #[test]
    fn an_agent_that_works_on_after_its_promise_is_let_finish() {
        let mut watch = Watch::new(limits(), s(0));
        watch.output(s(0));
        watch.claim();
        assert_eq!(end_of(watch.clone(), 0.0), (s(10), EndedBy::Promise));
        assert_eq!(end_of(watch.clone(), 0.009), (s(10), EndedBy::Promise));
        // It works for good: only the idle timeout looks at it in the end.
        let soon = WatchLimits {
            idle: s(100),
            ..limits()
        };
        let mut busy = watch.clone();
        busy.change(soon);
        assert_eq!(end_of(busy, 0.5), (s(400), EndedBy::Idle));
        // It works for twelve seconds, and is silent and at rest from then on.
        let mut now = s(0);
        let ended = loop {
            let used = now.min(s(12));
            match watch.check(now, &mut || Some(used)) {
                WatchVerdict::End(by) => break (now, by),
                WatchVerdict::Keep(next) => now = next.unwrap(),
            }
        };
        assert_eq!(ended.1, EndedBy::Promise);
        assert!(ended.0 >= s(22) && ended.0 <= s(26), "{ended:?}");
        // One that worked to its end is not taken for silent while it exits.
        let mut exits = Watch::new(limits(), s(0));
        exits.claim();
        for now in [0, 5, 10, 15] {
            let verdict = exits.check(s(now), &mut || Some(s(now)));
            assert!(matches!(verdict, WatchVerdict::Keep(_)));
        }
        assert!(matches!(
            exits.check(s(16), &mut || None),
            WatchVerdict::Keep(_)
        ));
        // Output begins the grace anew.
        watch = Watch::new(limits(), s(0));
        watch.claim();
        watch.check(s(1), &mut || Some(s(0)));
        watch.output(s(8));
        assert!(matches!(
            watch.check(s(11), &mut || Some(s(0))),
            WatchVerdict::Keep(_)
        ));
        watch.claim_void();
        assert_eq!(end_of(watch, 0.0).1, EndedBy::Idle);
    }

    #[test]
    fn a_promise_that_was_none_ends_nothing() {
        let mut watch = Watch::new(limits(), s(0));
        watch.claim();
        watch.claim_void();
        assert_eq!(end_of(watch, 0.0), (s(1800), EndedBy::Idle));
    }

    #[test]
    fn result_timeout_and_budgets_end_a_run() {
        let mut watch = Watch::new(limits(), s(0));
        watch.result(s(3));
        watch.output(s(9));
        assert_eq!(
            watch.check(s(13), &mut || None),
            WatchVerdict::End(EndedBy::Result)
        );
        let timed = WatchLimits {
            timeout: Some(s(60)),
            ..limits()
        };
        assert_eq!(
            end_of(Watch::new(timed, s(0)), 1.0),
            (s(60), EndedBy::Timeout)
        );
        let short = WatchLimits {
            time_left: Some(s(5)),
            ..limits()
        };
        let by = EndedBy::Budget(Budget::Duration);
        assert_eq!(end_of(Watch::new(short, s(0)), 1.0), (s(5), by));
        let priced = WatchLimits {
            cost_left: Some(100),
            tokens_left: Some(10),
            ..limits()
        };
        let watch = Watch::new(priced, s(0));
        assert_eq!(watch.spent(Some(9), Some(99)), None);
        assert_eq!(
            watch.spent(Some(10), None),
            Some(EndedBy::Budget(Budget::Tokens))
        );
        assert_eq!(
            watch.spent(None, Some(100)),
            Some(EndedBy::Budget(Budget::Cost))
        );
    }

    #[test]
    fn waits_grow_and_are_bounded() {
        let failures: Vec<u64> = (1..12).map(|n| failure_wait(s(1), n).as_secs()).collect();
        assert_eq!(failures, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(failure_wait(s(0), 5), s(0));
        let limits: Vec<u64> = (1..9).map(|n| limit_wait(n).as_secs() / 60).collect();
        assert_eq!(limits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
