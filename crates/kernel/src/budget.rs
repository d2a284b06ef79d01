//! Whether a budget of a loop is used up: the one rule, for a loop of one prompt and for a task loop
//! with several agents at work.

use std::time::Duration;

use crate::config::IterativeLoopConfig;
use crate::outcome::{Budget, IterativeExitReason};
use crate::state::{LoopState, Phase, Spent};
use descartes_text::units::Secs;

/// A budget that is used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    pub budget: Budget,
    /// What was allowed, in seconds, dollars or tokens.
    pub limit: f64,
    /// What was used.
    pub used: f64,
}

impl Reached {
    /// The end that it means.
    pub fn exit_reason(self) -> IterativeExitReason {
        let Self {
            budget,
            limit,
            used,
        } = self;
        IterativeExitReason::BudgetExhausted {
            budget,
            limit,
            used,
        }
    }
}

/// The first budget that is used up. What is unknown never reaches a limit.
pub fn reached(config: &IterativeLoopConfig, spent: &Spent) -> Option<Reached> {
    let over = |budget, limit: f64, used: f64| Reached {
        budget,
        limit,
        used,
    };
    if let Some(reached) = time_reached(config, spent) {
        return Some(reached);
    }
    if let (Some(limit), Some(used)) = (config.max_cost_usd, spent.cost_micros)
        && used as f64 >= limit * 1e6
    {
        return Some(over(Budget::Cost, limit, used as f64 / 1e6));
    }
    match (config.max_tokens, spent.tokens) {
        (Some(limit), Some(used)) if used >= limit => {
            Some(over(Budget::Tokens, limit as f64, used as f64))
        }
        _ => None,
    }
}

/// Whether the time is used up.
pub fn time_reached(config: &IterativeLoopConfig, spent: &Spent) -> Option<Reached> {
    let limit = config.max_duration_secs?.0;
    (u128::from(spent.ms) >= limit.as_millis()).then(|| Reached {
        budget: Budget::Duration,
        limit: limit.as_secs_f64(),
        used: spent.ms as f64 / 1e3,
    })
}

/// What is left of budgets; `None` is no limit. What is unknown counts as nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    pub time: Option<Duration>,
    pub tokens: Option<u64>,
    /// Millionths of a dollar.
    pub cost_micros: Option<u64>,
}

/// What is left when so much is spent.
pub fn left(config: &IterativeLoopConfig, spent: &Spent) -> Left {
    let time = |limit: Secs| limit.0.saturating_sub(Duration::from_millis(spent.ms));
    let tokens = |limit: u64| limit.saturating_sub(spent.tokens.unwrap_or(0));
    let cost = |limit: f64| {
        let micros = (limit * 1e6).round().max(0.0) as u64;
        micros.saturating_sub(spent.cost_micros.unwrap_or(0))
    };
    Left {
        time: config.max_duration_secs.map(time),
        tokens: config.max_tokens.map(tokens),
        cost_micros: config.max_cost_usd.map(cost),
    }
}

impl Left {
    /// The budgets of a loop that has used so much already and may use this much more.
    pub fn on_top_of(self, spent: &Spent) -> Limits {
        let cost = |left: u64| left.saturating_add(spent.cost_micros.unwrap_or(0)) as f64 / 1e6;
        Limits {
            max_duration_secs: (self.time)
                .map(|left| Secs(left.saturating_add(Duration::from_millis(spent.ms)))),
            max_tokens: (self.tokens).map(|left| left.saturating_add(spent.tokens.unwrap_or(0))),
            max_cost_usd: self.cost_micros.map(cost),
        }
    }
}

/// Budgets as they stand in a config.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    pub max_duration_secs: Option<Secs>,
    pub max_tokens: Option<u64>,
    pub max_cost_usd: Option<f64>,
}

/// What is left of the time while an iteration is being judged: its agent and its gates count.
pub fn time_left_to_close(state: &LoopState) -> Option<Duration> {
    let mut spent = state.spent;
    if let Phase::Judging { facts, gates, .. } = &state.phase {
        let gates: u64 = gates.iter().map(|gate| gate.duration_ms).sum();
        spent.ms += facts.duration_ms + gates;
    }
    left(&state.config, &spent).time
}

/// What is left of the time to bring proven work together, after so much of it. Such work lands although the
/// budget is used up, as a gate under way is finished: it may take as long as its gates may.
pub fn time_left_to_land(
    config: &IterativeLoopConfig,
    spent: &Spent,
    busy: Duration,
) -> Option<Duration> {
    let left = left(config, &with_time(spent, busy)).time?;
    let gates = u32::try_from(config.verify.len().max(1)).unwrap_or(u32::MAX);
    let bound = config.verify_timeout_secs.0.saturating_mul(gates);
    Some(left.max(bound.saturating_sub(busy)))
}

/// What was spent, and time that is in no record yet.
pub fn with_time(spent: &Spent, more: Duration) -> Spent {
    let ms = u64::try_from(more.as_millis()).unwrap_or(u64::MAX);
    spent.plus(&Spent {
        ms,
        ..Spent::default()
    })
}

/// What a loop has used, with what the runs under way have told so far: of all slots together.
pub fn with_live<'a>(told: &Spent, live: impl IntoIterator<Item = &'a Spent>) -> Spent {
    live.into_iter().fold(*told, |sum, run| sum.plus(run))
}

/// The part of the time of one run that counts where `slots` agents are at work at the same time.
pub fn shared_ms(ms: u64, slots: u32) -> u64 {
    ms / u64::from(slots.max(1))
}

/// The time of a run that counts beside what this host has seen of it: it began under an earlier host, or
/// went on while there was none.
pub fn unseen_ms(run_ms: u64, seen: Duration, slots: u32) -> u64 {
    let seen = u64::try_from(seen.as_millis()).unwrap_or(u64::MAX);
    shared_ms(run_ms.saturating_sub(seen), slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_no_host_saw_counts_once_for_agents_that_share_it() {
        let seen = Duration::from_millis;
        for (run, seen, slots, unseen) in [
            (60_000, seen(60_000), 1, 0),
            // Its host took it up while it was being made ready.
            (60_000, seen(61_000), 1, 0),
            (60_000, seen(12_000), 1, 48_000),
            (60_000, seen(0), 1, 60_000),
            (60_000, seen(12_000), 4, 12_000),
            (60_000, seen(12_000), 0, 48_000),
        ] {
            assert_eq!(
                unseen_ms(run, seen, slots),
                unseen,
                "{run} {seen:?} {slots}"
            );
        }
    }

    fn spent(ms: u64, tokens: Option<u64>, cost_micros: Option<u64>) -> Spent {
        Spent {
            ms,
            tokens,
            cost_micros,
            estimated: false,
        }
    }

    /// What is allowed, what is over, what the runs under way told, what is reached.
    type Case<'a> = (
        &'a IterativeLoopConfig,
        Spent,
        Vec<Spent>,
        Option<(Budget, f64)>,
    );

    #[test]
    fn what_all_slots_have_spent_together_reaches_the_limit() {
        let cost = |dollars: f64| IterativeLoopConfig {
            max_cost_usd: Some(dollars),
            ..Default::default()
        };
        let tokens = |tokens| IterativeLoopConfig {
            max_tokens: Some(tokens),
            ..Default::default()
        };
        let time = |secs| IterativeLoopConfig {
            max_duration_secs: Some(Secs::new(secs)),
            ..Default::default()
        };
        let none = IterativeLoopConfig::default();
        let run = |tokens, micros| spent(0, tokens, micros);
        let dollar = Some(1_000_000);
        let table: [Case<'_>; 12] = [
            (
                &none,
                spent(9, Some(9), Some(9)),
                vec![run(Some(9), dollar)],
                None,
            ),
            (
                &cost(4.0),
                Spent::default(),
                vec![run(None, dollar); 3],
                None,
            ),
            (
                &cost(4.0),
                Spent::default(),
                vec![run(None, dollar); 4],
                Some((Budget::Cost, 4.0)),
            ),
            (
                &cost(4.0),
                run(None, dollar),
                vec![run(None, dollar); 3],
                Some((Budget::Cost, 4.0)),
            ),
            (
                &cost(4.0),
                run(None, Some(5_000_000)),
                vec![],
                Some((Budget::Cost, 5.0)),
            ),
            // Agents that tell their cost only at the end: nothing is known until then.
            (
                &cost(4.0),
                run(Some(10), None),
                vec![run(Some(1_000), None); 4],
                None,
            ),
            (
                &cost(4.0),
                run(None, None),
                vec![run(None, None), run(None, Some(4_000_000))],
                Some((Budget::Cost, 4.0)),
            ),
            (
                &tokens(100),
                run(Some(40), None),
                vec![run(Some(59), None)],
                None,
            ),
            (
                &tokens(100),
                run(Some(40), None),
                vec![run(Some(30), None); 2],
                Some((Budget::Tokens, 100.0)),
            ),
            (
                &tokens(100),
                Spent::default(),
                vec![run(None, dollar)],
                None,
            ),
            (&time(60), spent(59_999, None, None), vec![], None),
            (
                &time(60),
                spent(60_000, None, None),
                vec![],
                Some((Budget::Duration, 60.0)),
            ),
        ];
        for (row, (config, told, live, wanted)) in table.iter().enumerate() {
            let got = reached(config, &with_live(told, live));
            let got = got.map(|reached| (reached.budget, reached.used));
            assert_eq!(got, *wanted, "row {row}");
        }
    }
}
