use super::*;
use crate::agent::{Piece, UsageScope};

fn text(message: u32, text: &str) -> AgentEvent {
    AgentEvent::Text {
        message,
        piece: Piece::Block,
        text: text.into(),
    }
}

fn call(id: &str) -> AgentEvent {
    AgentEvent::ToolCall {
        id: id.into(),
        name: "Bash".into(),
        summary: format!("$ {id}"),
    }
}

fn failed(kind: FailureKind, message: &str) -> Failure {
    Failure {
        kind,
        message: message.into(),
    }
}

fn ok(text: &str) -> AgentEvent {
    AgentEvent::Result(RunResult {
        text: Some(text.into()),
        ..RunResult::default()
    })
}

fn error(kind: FailureKind, message: &str) -> AgentEvent {
    AgentEvent::Result(RunResult {
        error: Some(failed(kind, message)),
        ..RunResult::default()
    })
}

fn fold(events: &[AgentEvent]) -> RunSummary {
    let mut summary = RunSummary::default();
    for event in events {
        summary.push(event);
    }
    summary
}

fn limit(summary: &RunSummary) -> Option<(LimitKind, Option<String>)> {
    let now = "2026-11-15T03:00:00Z".parse().unwrap();
    let told = summary.limit(now, &TimeZone::UTC)?;
    Some((told.kind, told.until.map(|at| at.to_string())))
}

#[test]
fn the_final_message_is_the_last_one_with_words() {
    let table = [
        (vec![text(0, "first"), text(1, "last")], "last"),
        (vec![text(0, "one"), text(0, "two")], "one\ntwo"),
        (
            vec![text(0, "said"), call("a"), text(1, "  \n")],
            "said\n  \n",
        ),
        (vec![text(0, "said"), call("a"), ok("")], "said"),
        (vec![text(0, "said"), ok("said")], "said"),
        (vec![text(0, "one"), text(0, "two"), ok("two")], "one\ntwo"),
        (vec![ok("all there is")], "all there is"),
        (vec![text(0, "before"), ok("after")], "after"),
        (vec![text(0, "one"), text(1, "two"), ok("one\ntwo")], "two"),
        (
            vec![text(0, "said"), error(FailureKind::Other, "API Error")],
            "said",
        ),
        (vec![], ""),
    ];
    for (events, want) in table {
        assert_eq!(fold(&events).final_text(), want, "{events:?}");
    }
}

#[test]
fn a_promise_counts_only_in_a_run_that_did_not_fail() {
    let claim = "All done. <promise>COMPLETE</promise>";
    let boom = || failed(FailureKind::Other, "boom");
    let table = [
        (vec![text(0, claim), ok(claim)], claim),
        (vec![text(0, claim)], claim),
        (
            vec![text(0, claim), error(FailureKind::OwnLimit, "max turns")],
            "",
        ),
        (vec![text(0, claim), AgentEvent::Failed(boom())], ""),
        (
            vec![text(0, claim), ok(claim), AgentEvent::Failed(boom())],
            "",
        ),
        (vec![AgentEvent::Failed(boom()), text(0, claim)], claim),
    ];
    for (events, want) in table {
        assert_eq!(fold(&events).claim_text(), want, "{events:?}");
    }
}

#[test]
fn a_result_stands_until_the_agent_goes_on() {
    let done = fold(&[text(0, "x"), ok("x")]);
    assert_eq!((done.has_result(), done.result()), (true, ResultState::Ok));
    for more in [AgentEvent::Step, call("a"), text(1, "y")] {
        let on = fold(&[text(0, "x"), ok("x"), more]);
        assert_eq!(
            (on.has_result(), on.result()),
            (false, ResultState::Missing)
        );
    }
}

#[test]
fn of_two_results_the_last_one_counts() {
    let summary = fold(&[ok("done"), error(FailureKind::Other, "no")]);
    assert_eq!(
        summary.result(),
        ResultState::Error(failed(FailureKind::Other, "no"))
    );
    assert_eq!(
        fold(&[error(FailureKind::Other, "no"), ok("done")]).result(),
        ResultState::Ok
    );
}

#[test]
fn an_error_without_result_is_the_result_unless_work_follows() {
    let overload = failed(FailureKind::Provider(LimitKind::Overload), "Overloaded");
    let told = AgentEvent::Failed(overload.clone());
    assert_eq!(
        fold(std::slice::from_ref(&told)).result(),
        ResultState::Error(overload.clone())
    );
    assert_eq!(
        fold(&[told.clone(), text(0, "x")]).result(),
        ResultState::Missing
    );
    let poor = error(FailureKind::Other, "");
    assert_eq!(fold(&[told, poor]).result(), ResultState::Error(overload));
}

#[test]
fn a_run_without_words_and_tools_did_nothing() {
    let thought = AgentEvent::Thinking { text: "hm".into() };
    let unknown = AgentEvent::Unknown { kind: "new".into() };
    for events in [
        vec![],
        vec![ok("")],
        vec![thought, unknown],
        vec![text(0, " \n")],
    ] {
        assert!(fold(&events).did_nothing(), "{events:?}");
    }
    for events in [vec![text(0, "x")], vec![call("a")], vec![ok("x")]] {
        assert!(!fold(&events).did_nothing(), "{events:?}");
    }
}

#[test]
fn tokens_add_up_by_step_and_give_way_to_the_total() {
    let usage = |input| Usage {
        input: Some(input),
        ..Usage::default()
    };
    let step = |input, cost| AgentEvent::Usage {
        scope: UsageScope::Step,
        usage: usage(input),
        cost: Some(MicroUsd(cost)),
    };
    let steps = fold(&[step(3, 10), step(4, 20)]);
    assert_eq!(steps.usage(), usage(7));
    assert_eq!(steps.cost(), Some(MicroUsd(30)));
    let total = AgentEvent::Result(RunResult {
        usage: Some(usage(9)),
        ..RunResult::default()
    });
    let run = fold(&[step(3, 10), total]);
    assert_eq!(run.usage(), usage(9));
    assert_eq!(run.cost(), Some(MicroUsd(10)));
    assert_eq!(fold(&[ok("x")]).usage(), Usage::default());
    assert_eq!(fold(&[ok("x")]).cost(), None);
}

#[test]
fn limits_come_from_structure_first_then_from_the_error() {
    let told = |until: Option<&str>| AgentEvent::Limit {
        told: ReportedLimit {
            kind: LimitKind::Usage,
            until: until.map(|at| at.parse().unwrap()),
            words: "limit".into(),
        },
    };
    let words = "You've hit your limit · resets 4am (UTC)";
    let rate = FailureKind::Provider(LimitKind::Rate);
    let five = Some("2026-11-15T05:00:00Z");
    let table = [
        (
            vec![told(five), error(rate, words)],
            Some((LimitKind::Usage, five)),
        ),
        (
            vec![told(None), error(rate, words)],
            Some((LimitKind::Usage, Some("2026-11-15T04:00:00Z"))),
        ),
        (vec![told(five)], Some((LimitKind::Usage, five))),
        // The limit was of another window: the run ended well.
        (vec![told(five), ok("done")], None),
        // The agent was let on.
        (
            vec![
                told(five),
                text(0, "going on"),
                error(FailureKind::MaxTokens, "cut"),
            ],
            None,
        ),
        (
            vec![error(rate, "slow down, try again in 5s")],
            Some((LimitKind::Rate, Some("2026-11-15T03:00:05Z"))),
        ),
        (vec![error(FailureKind::Other, "boom")], None),
        // An answer that is nothing but the limit.
        (
            vec![ok("Claude AI usage limit reached|1794716358")],
            Some((LimitKind::Usage, Some("2026-11-15T04:19:18Z"))),
        ),
        (vec![ok("I handled the usage limit reached case.")], None),
        (vec![], None),
    ];
    for (events, want) in table {
        let want = want.map(|(kind, until)| (kind, until.map(str::to_owned)));
        assert_eq!(limit(&fold(&events)), want, "{events:?}");
    }
}

#[test]
fn requests_that_bring_nothing_are_counted() {
    let steps = vec![AgentEvent::Step; 40];
    assert_eq!(fold(&steps).empty_steps, 40);
    let mut working = steps;
    working.push(call("a"));
    assert_eq!(fold(&working).empty_steps, 0);
}

#[test]
fn requests_that_bring_the_same_words_are_counted() {
    let mut steps = Vec::new();
    for message in 0..30 {
        steps.extend([AgentEvent::Step, text(message, "a partial answer tha")]);
    }
    assert_eq!(fold(&steps).same_steps, 28, "the last one is still open");
    assert_eq!(fold(&steps).empty_steps, 0);
    steps.push(call("a"));
    assert_eq!(fold(&steps).same_steps, 0);
    let different: Vec<AgentEvent> = (0..30)
        .flat_map(|message| [AgentEvent::Step, text(message, &message.to_string())])
        .collect();
    assert_eq!(fold(&different).same_steps, 0);
}

#[test]
fn a_conversation_that_stays_too_long_is_counted_until_there_is_work() {
    let overflow = AgentEvent::Failed(failed(FailureKind::ContextTooLong, "too long"));
    let mut events = Vec::new();
    for message in 0..5 {
        events.extend([
            AgentEvent::Step,
            text(message, "compacted"),
            overflow.clone(),
        ]);
    }
    assert_eq!(fold(&events).overflows, 5);
    events.push(call("a"));
    assert_eq!(fold(&events).overflows, 0);
}
