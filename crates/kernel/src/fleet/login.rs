//! Limits that a provider told one worker, and for whom else they hold.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A login of an agent. Workers on several machines may share one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLogin {
    pub agent: String,
    pub login: String,
}

/// A login that its provider has limited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitedLogin {
    #[serde(flatten)]
    pub of: AgentLogin,
    /// When the limit is over.
    pub until: Timestamp,
}

/// Adds what was told to what is known: of two limits of one login the later end holds.
pub fn add_limit(known: &mut Vec<LimitedLogin>, told: LimitedLogin) {
    match known.iter_mut().find(|limit| limit.of == told.of) {
        Some(limit) => limit.until = limit.until.max(told.until),
        None => known.push(told),
    }
}

/// Until when an agent's login is limited; `None` where it is not, or not any more.
pub fn limit_of(known: &[LimitedLogin], of: &AgentLogin, now: Timestamp) -> Option<Timestamp> {
    let same = known.iter().filter(|limit| limit.of == *of);
    let until = same.map(|limit| limit.until).max();
    until.filter(|until| *until > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn of(agent: &str, login: &str) -> AgentLogin {
        AgentLogin {
            agent: agent.to_owned(),
            login: login.to_owned(),
        }
    }

    fn limit(agent: &str, login: &str, until: i64) -> LimitedLogin {
        LimitedLogin {
            of: of(agent, login),
            until: at(until),
        }
    }

    #[test]
    fn a_limit_holds_its_login_and_agent_alone_until_its_latest_end() {
        let mut known = Vec::new();
        for told in [
            limit("claude", "anna", 200),
            limit("claude", "anna", 100),
            limit("codex", "anna", 50),
        ] {
            add_limit(&mut known, told);
        }
        assert_eq!(known.len(), 2);
        // Agent, login, now, and until when it is limited.
        let table = [
            ("claude", "anna", 0, Some(200)),
            ("claude", "anna", 199, Some(200)),
            ("claude", "anna", 200, None),
            ("claude", "ben", 0, None),
            ("codex", "anna", 0, Some(50)),
            ("codex", "anna", 60, None),
            ("gemini", "anna", 0, None),
        ];
        for (agent, login, now, expected) in table {
            let found = limit_of(&known, &of(agent, login), at(now));
            assert_eq!(found, expected.map(at), "{agent} of {login} at {now}");
        }
    }
}
