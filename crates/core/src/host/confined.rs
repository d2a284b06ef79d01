//! Agents and gates of a loop in its sandbox, and what it denied them.

use std::sync::Arc;

use descartes_kernel::event::{GateEnd, GateFacts};
use descartes_kernel::fact;
use descartes_kernel::sandbox::{Denial, RunPurpose, SandboxLevel, SandboxPlan};
use descartes_proc::Launch;
use descartes_store::logs::tail;

use super::HostError;
use super::agent_loop::AgentLoop;
use super::git_look::GitLook;
use super::prompt::BuiltPrompt;
use super::sandbox::{ConfinedRun, LoopSandbox, environment_rules, named_in_tree, scrub};
use crate::worktree::git::confined::ConfinedGit;

/// What of a run's output is looked at for denials.
const LOOKED_AT: usize = 256 << 10;

impl AgentLoop {
    /// The agent's command in its sandbox, and what it may do there; as it is where there is none.
    pub(super) fn confine_agent(
        &mut self,
        agent: u32,
        prompt: &BuiltPrompt,
        launch: Launch,
    ) -> Result<(Launch, Option<SandboxPlan>), HostError> {
        let Some(sandbox) = &self.sandbox else {
            return Ok((launch, None));
        };
        let path = launch.env.iter().rev().find(|(key, _)| key == "PATH");
        let path = path.map(|(_, value)| value.as_os_str());
        let program = launch.argv.first().map(|name| {
            let found = descartes_proc::find_program(name, path, &launch.cwd)?;
            Ok::<_, HostError>(launch.cwd.join(found))
        });
        let program = program.transpose()?;
        let run = ConfinedRun {
            purpose: RunPurpose::Agent,
            profile: Some(self.agents[agent as usize].profile()),
            program: program.as_deref(),
            handed: std::slice::from_ref(&prompt.path),
        };
        let config = &self.d.state.config;
        let plan = sandbox.plan(config, &self.d.settings, run)?;
        let own_off = self.agents[agent as usize].own_sandbox_off();
        let summary = sandbox.summary(config, &plan, self.env_dropped.clone(), own_off);
        let launch = sandbox.confine(&plan, launch)?;
        let weaker = summary.weaker.clone();
        let known = self.d.state.sandbox.clone();
        if let Some(event) = fact::sandbox_started(&self.d.state, summary) {
            self.d.append(event)?;
            if let (Some(why), true) = (weaker, known.is_none()) {
                self.d.warn(format!("the sandbox is weaker here: {why}"))?;
            }
        }
        Ok((launch, Some(plan)))
    }

    /// The same for a gate, which gets no login.
    pub(super) fn confine_gate(
        &self,
        mut launch: Launch,
    ) -> Result<(Launch, Option<SandboxPlan>), HostError> {
        let config = &self.d.state.config;
        let Some(sandbox) = &self.sandbox else {
            return Ok((launch, None));
        };
        if config.sandbox.effective_for_gates() == SandboxLevel::Off {
            return Ok((launch, None));
        }
        let agent = self.d.state.run().map_or(0, |run| run.agent);
        let profile = self.agents.get(agent as usize).map(|agent| agent.profile());
        let run = ConfinedRun {
            purpose: RunPurpose::Gate,
            profile,
            program: None,
            handed: &[],
        };
        let rules = environment_rules(&self.d.settings, profile, RunPurpose::Gate);
        scrub(&mut launch.env, &rules);
        let plan = sandbox.plan(config, &self.d.settings, run)?;
        Ok((sandbox.confine(&plan, launch)?, Some(plan)))
    }

    /// What git of ours runs in, where the loop has a sandbox.
    pub(super) fn confined_git(&self) -> Result<Option<Arc<ConfinedGit>>, HostError> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(None);
        };
        let profile = self.agents.first().map(|agent| agent.profile());
        let (config, settings) = (&self.d.state.config, &self.d.settings);
        sandbox.confined_git(config, settings, profile, self.signing.clone())
    }

    /// How the user's commits are signed: asked before the first agent.
    pub(super) fn take_signing(&mut self) {
        let Some(sandbox) = &self.sandbox else {
            return;
        };
        let (config, settings) = (&self.d.state.config, &self.d.settings);
        if config.git.auto_commit {
            let profile = self.agents.first().map(|agent| agent.profile());
            let folder = self.d.dir.path().join("signing.git");
            self.signing = sandbox.signing(config, settings, profile, &folder);
        }
    }

    /// Looks before the first agent at what git finds in the work tree.
    pub(super) fn begin_git_look(&mut self) {
        let Some(project) = self.sandbox.as_ref().map(LoopSandbox::project) else {
            return;
        };
        let note = self.d.dir.path().join("git-look.json");
        let settings = &self.d.settings;
        let named = project.git().map(|git| named_in_tree(settings, git));
        let missing = named.map(|named| named.missing).unwrap_or_default();
        self.git_look = Some(GitLook::begin(settings, project, missing, &note));
    }

    /// After whatever ran code of the agent's, before the next git of ours: takes out of git's way what leads it
    /// elsewhere, and tells by what the user's next git would start programs.
    pub(super) fn look_at_git(&mut self) -> Result<(), HostError> {
        let Some(look) = &mut self.git_look else {
            return Ok(());
        };
        let moved = self.sandbox.as_ref();
        let moved = moved.and_then(|sandbox| sandbox.project().put_aside());
        let mut planted = look.news(&self.d.settings);
        planted.extend(moved);
        let run = self.d.state.run().map_or(0, |run| run.run);
        let event = fact::planted_in_git(&self.d.state, run, None, planted);
        self.d.append_all(event)
    }

    /// What a run wrote into its own objects becomes the repository's.
    pub(super) fn take_over_objects(&mut self) -> Result<(), HostError> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(());
        };
        match sandbox.take_over_objects(&self.d.settings) {
            Ok(()) => {}
            Err(why) => self
                .d
                .warn(format!("objects of the agent are lost: {why}"))?,
        }
        self.look_at_git()
    }

    /// Records what the run under way seems to have been denied: all of it where it failed, else what is
    /// not known yet.
    pub(super) fn tell_denials(
        &mut self,
        plan: &SandboxPlan,
        failed: bool,
    ) -> Result<(), HostError> {
        let Some(run) = self.d.state.run() else {
            return Ok(());
        };
        let folder = self.d.dir.run(run.run);
        let mut output = String::new();
        for log in [folder.stdout(), folder.stderr()] {
            let end = tail(&log, usize::MAX, LOOKED_AT).unwrap_or_default();
            output.push_str(&String::from_utf8_lossy(&end));
            output.push('\n');
        }
        self.record_denials(plan, &output, failed)
    }

    /// The same for a gate.
    pub(super) fn tell_gate_denials(
        &mut self,
        plan: &SandboxPlan,
        facts: &GateFacts,
    ) -> Result<(), HostError> {
        self.record_denials(
            plan,
            &facts.tail,
            !matches!(facts.end, GateEnd::Exit(status) if status.is_success()),
        )
    }

    fn record_denials(
        &mut self,
        plan: &SandboxPlan,
        output: &str,
        failed: bool,
    ) -> Result<(), HostError> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(());
        };
        let run = self.d.state.run().map_or(0, |run| run.run);
        let mut denied = sandbox.denials(plan, output);
        let known = |denial: &Denial| {
            let mut known = self.d.state.denied.iter();
            known.any(|known| known.what == denial.what)
        };
        denied.retain(|denial| failed || !known(denial));
        self.d.append_all(fact::sandbox_denied(run, denied))
    }
}
