//! Whether a budget of a loop is used up: the one rule, for a loop of one prompt and for a task loop
//! with several agents at work.

use crate::config::IterativeLoopConfig;
use crate::outcome::{Budget, IterativeExitReason};
use crate::state::Spent;

/// A budget that is used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Which.
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
    if let Some(limit) = config.max_duration_secs
        && u128::from(spent.ms) >= limit.0.as_millis()
    {
        let (limit, used) = (limit.0.as_secs_f64(), spent.ms as f64 / 1e3);
        return Some(over(Budget::Duration, limit, used));
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

/// What a loop has used, with what the runs under way have told so far: of all slots together.
pub fn with_live<'a>(told: &Spent, live: impl IntoIterator<Item = &'a Spent>) -> Spent {
    live.into_iter().fold(*told, |sum, run| sum.plus(run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Secs;

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
