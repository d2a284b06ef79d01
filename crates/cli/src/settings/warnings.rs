//! What makes sense and yet may not be what a person meant.

use std::path::Path;

use descartes_agents::agent::AgentNotice;
use descartes_agents::promise::PromiseMatch;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_store::config::{Layers, Settings, Source};

use super::agent::Agent;

/// Words that agents write without meaning to claim anything.
const WEAK: &str = "complete done end finish finished good ok okay pass passed ready success \
    successful successfully true yes";

/// All of them.
pub fn all(
    config: &IterativeLoopConfig,
    layers: &Layers,
    agent: &Agent,
    dir: &Path,
) -> Vec<String> {
    let mut out = layers.unknown();
    let notices = agent.invocation.notices.iter();
    let told = notices.filter(|notice| !granted_for_others(notice, &layers.settings));
    out.extend(told.map(ToString::to_string));
    out.extend(weak_promise(config, agent));
    out.extend(endless(config));
    out.extend(idle_templates(config, &layers.settings));
    out.extend(
        config
            .verify
            .iter()
            .filter_map(|gate| missing_script(gate, dir)),
    );
    if config.git.tag_green && config.verify.is_empty() {
        out.push("--tag-green never tags: there is no gate (add --verify)".to_owned());
    }
    out
}

/// A project's file grants for whichever agent can be granted something: that this one cannot
/// is no news. A flag was meant for this agent.
fn granted_for_others(notice: &AgentNotice, settings: &Settings) -> bool {
    let permissions = matches!(
        notice,
        AgentNotice::NoPermissionFlag { .. } | AgentNotice::PermissionsGiven { .. }
    );
    permissions && settings.permissions.from_flag().is_none()
}

fn idle_templates(
    config: &IterativeLoopConfig,
    settings: &Settings,
) -> impl Iterator<Item = String> {
    let git = &config.git;
    let pairs = [
        (&settings.branch_template, "--branch", git.create_branch),
        (&settings.commit_template, "--auto-commit", git.auto_commit),
    ];
    let idle = pairs.map(|(template, needs, used)| match &template.source {
        Source::Flag(flag) if !used => Some(format!("{flag} has no effect without {needs}")),
        _ => None,
    });
    idle.into_iter().flatten()
}

fn weak_promise(config: &IterativeLoopConfig, agent: &Agent) -> Option<String> {
    let promise = config.completion_promise.as_deref()?;
    let by_backend = if agent.invocation.stream.is_understood() {
        PromiseMatch::Tagged
    } else {
        PromiseMatch::Line
    };
    let how = match config.promise_match.unwrap_or(by_backend) {
        PromiseMatch::Tagged => return None,
        // The default promise alone on a line is rarely an accident.
        PromiseMatch::Line | PromiseMatch::LineAnyCase if promise == "COMPLETE" => return None,
        PromiseMatch::Line | PromiseMatch::LineAnyCase => "line",
        PromiseMatch::Anywhere => "anywhere",
    };
    let promise_word = promise.trim().to_ascii_lowercase();
    let is_weak = WEAK.split_whitespace().any(|weak| weak == promise_word);
    is_weak.then(|| {
        format!(
            "the promise `{promise}` is a word that agents may also print by accident, and with \
             --promise-match {how} that ends the loop; choose a more distinctive one, or use \
             --promise-match tagged"
        )
    })
}

fn endless(config: &IterativeLoopConfig) -> Option<String> {
    // Each task has its own number of attempts.
    let bounded = config.tasks.is_some()
        || config.max_iterations.is_some()
        || config.max_duration_secs.is_some()
        || config.max_cost_usd.is_some()
        || config.max_tokens.is_some();
    (!bounded).then(|| {
        "no limit at all: with unlimited iterations, set one of --max-duration, --max-cost or \
         --max-tokens"
            .to_owned()
    })
}

/// A gate that is a script which is not there: the agent may be asked to write it.
fn missing_script(gate: &str, dir: &Path) -> Option<String> {
    let word = gate.split_whitespace().next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let missing = word.contains('/') && word.chars().all(plain) && !dir.join(word).exists();
    missing.then(|| format!("the gate `{gate}` fails until {word} exists"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_agents::agent::{Choices, Profiles, build};
    use descartes_store::config::ConfigPlaces;

    fn warned(config: &IterativeLoopConfig) -> Vec<String> {
        let layers = Layers::load(&ConfigPlaces::default()).unwrap();
        let profile = Profiles::builtin().get("generic").unwrap().clone();
        let invocation = build(&profile, &["x".to_owned()], &Choices::default());
        all(
            config,
            &layers,
            &Agent {
                profile,
                invocation,
            },
            Path::new("/nowhere"),
        )
    }

    fn with_promise(promise: &str, how: Option<PromiseMatch>) -> IterativeLoopConfig {
        IterativeLoopConfig {
            completion_promise: Some(promise.into()),
            promise_match: how,
            ..Default::default()
        }
    }

    #[test]
    fn a_weak_promise_is_warned_of_unless_it_must_be_tagged() {
        assert_eq!(
            warned(&with_promise("COMPLETE", None)),
            Vec::<String>::new()
        );
        assert_eq!(
            warned(&with_promise("AUTH_MIGRATED", None)),
            Vec::<String>::new()
        );
        assert_eq!(
            warned(&with_promise("DONE", Some(PromiseMatch::Tagged))),
            Vec::<String>::new()
        );
        assert!(warned(&with_promise("DONE", None))[0].contains("--promise-match line"));
        assert!(
            warned(&with_promise("Success", Some(PromiseMatch::Anywhere)))[0].contains("anywhere")
        );
    }

    #[test]
    fn endless_loops_and_gates_to_come_are_warned_of() {
        let endless = IterativeLoopConfig {
            max_iterations: None,
            ..Default::default()
        };
        assert!(warned(&endless)[0].contains("no limit"));
        let gate = IterativeLoopConfig {
            verify: vec!["./check.sh -v".into()],
            ..Default::default()
        };
        assert_eq!(
            warned(&gate),
            ["the gate `./check.sh -v` fails until ./check.sh exists"]
        );
        let tag = IterativeLoopConfig {
            git: descartes_kernel::config::LoopGitConfig {
                tag_green: true,
                ..Default::default()
            },
            ..Default::default()
        };
        assert!(warned(&tag)[0].contains("--tag-green"));
    }
}
