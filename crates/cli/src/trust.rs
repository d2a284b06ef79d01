//! What a project's own files can start or widen holds only once the user has trusted it: asked on
//! a terminal, refused without one, kept outside of the project.

use std::path::{Path, PathBuf};

use descartes_core::tasks::scud_gates;
use descartes_kernel::trust::{Powers, Standing, diff, listed};
use descartes_store::config::{Layers, Use};
use descartes_store::layout::canonical;
use descartes_store::trust::{Digest, Subject, TrustBook, TrustError};

use crate::args::TRUST_CONFIG;
use crate::args::start::StartArgs;
use crate::error::CliError;
use crate::settings::agent::profiles;
use crate::settings::command_context::{CommandContext, ProjectConfig, project_config};
use crate::within::refuse_from_within;

/// Whether SCUD's own gates are among what is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScudGates {
    /// They would be run.
    Used,
    /// They would not.
    Unused,
}

/// How the person is asked.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// `--trust-config` was given.
    pub trust_config: bool,
    /// Nobody reads along: `--json`.
    pub silent: bool,
}

/// One file of a project, with what needs trust in it.
#[derive(Debug)]
pub struct Part {
    pub subject: Subject,
    /// Where it lies.
    pub file: PathBuf,
    /// What needs trust.
    pub keys: Powers,
    /// What was trusted before.
    pub before: Option<Powers>,
    /// How that stands.
    pub standing: Standing,
    /// The hash of it.
    pub digest: Digest,
}

impl Part {
    fn of(book: &TrustBook, subject: Subject, file: PathBuf, keys: Powers) -> Self {
        Self {
            standing: book.standing(subject, &keys),
            before: book.trusted(subject).map(|trusted| trusted.keys),
            digest: book.digest(subject, &keys),
            subject,
            file,
            keys,
        }
    }

    /// What differs from what was trusted.
    pub fn changes(&self) -> Vec<String> {
        match self.standing {
            Standing::Nothing | Standing::Trusted => Vec::new(),
            Standing::New | Standing::Changed => diff(self.before.as_ref(), &self.keys),
        }
    }

    /// Everything in it that needs trust.
    pub fn all(&self) -> Vec<String> {
        listed(&self.keys)
    }
}

/// What of a project needs trust.
#[derive(Debug)]
pub struct Project {
    /// Where its trust is kept.
    pub book: TrustBook,
    /// Its files that hold something that needs trust.
    pub parts: Vec<Part>,
}

impl Project {
    /// Looks at the project in `dir`.
    pub fn look(dir: &Path, scud: ScudGates, ctx: &CommandContext) -> Result<Self, CliError> {
        let written = ctx.with(ProjectConfig::AsWritten).layers(dir)?;
        Self::of_layers(dir, &written, scud, ctx)
    }

    fn of_layers(
        dir: &Path,
        layers: &Layers,
        scud: ScudGates,
        ctx: &CommandContext,
    ) -> Result<Self, CliError> {
        let book = ctx.trust_book(dir)?;
        let mut parts = Vec::new();
        if !layers.powers().is_empty() {
            parts.push(Part::of(
                &book,
                Subject::Config,
                project_config(dir),
                layers.powers().clone(),
            ));
        }
        if scud == ScudGates::Used
            && let Some(found) = scud_gates(dir)?
        {
            let keys = scud_powers(&found.commands);
            parts.push(Part::of(&book, Subject::ScudGates, found.file, keys));
        }
        Ok(Self { book, parts })
    }

    /// The files that may not be used yet.
    pub fn untrusted(&self) -> impl Iterator<Item = &Part> {
        let parts = self.parts.iter();
        parts.filter(|part| !part.standing.may_be_used())
    }

    /// Keeps that the user trusts all of it.
    pub fn trust(&self) -> Result<(), TrustError> {
        let now = jiff::Timestamp::now();
        self.untrusted()
            .try_for_each(|part| self.book.keep(part.subject, &part.keys, now))
    }

    /// What is to be trusted, in words.
    pub fn question(&self) -> String {
        let changed = |part: &Part| part.standing == Standing::Changed;
        let head = match self.untrusted().any(changed) {
            true => "this project's own config has changed since you trusted it",
            false => {
                "this project's own config can start programs or widen what agents may do, \
                 and you have not trusted it yet"
            }
        };
        let files: Vec<String> = self
            .untrusted()
            .map(|part| part.file.display().to_string())
            .collect();
        let changes = self.untrusted().flat_map(Part::changes);
        let lines: Vec<String> = changes.map(|line| format!("\n  {line}")).collect();
        format!("{head}: {}{}", files.join(", "), lines.concat())
    }

    /// Asks the person at the terminal; `None` where nobody is there.
    pub fn ask(&self, ctx: &CommandContext) -> Option<bool> {
        let question = format!("{}\ntrust it as it is?", self.question());
        ctx.printer.ask_if_there(&question)
    }

    fn digests(&self) -> Vec<Digest> {
        self.untrusted().map(|part| part.digest.clone()).collect()
    }
}

/// SCUD's gates in the form that is shown and hashed.
pub fn scud_powers(commands: &[String]) -> Powers {
    let key = "swarm.backpressure.commands".to_owned();
    let value = format!("{commands:?}");
    [(key, value)].into()
}

/// The same for a start; a dry run only looks, and says so.
pub fn settle_start(
    dir: &Path,
    scud: ScudGates,
    args: &StartArgs,
    ctx: &CommandContext,
) -> Result<CommandContext, CliError> {
    if args.show.dry_run {
        if let Some(notice) = notice(dir, ctx) {
            ctx.printer.note(&notice);
        }
        return Ok(ctx.with(ProjectConfig::AsWritten));
    }
    let asking = Asking {
        trust_config: args.place.trust_config,
        silent: args.show.json,
    };
    settle(dir, scud, asking, ctx)
}

/// Makes sure that all of a project's config may be used, before anything of it is: it is trusted
/// already, or the person says so now, or said so with `--trust-config`. What is given back uses it.
pub fn settle(
    dir: &Path,
    scud: ScudGates,
    asking: Asking,
    ctx: &CommandContext,
) -> Result<CommandContext, CliError> {
    if asking.trust_config {
        refuse_from_within(TRUST_CONFIG)?;
    }
    let project = Project::look(dir, scud, ctx)?;
    // Nobody is asked to trust what cannot be used.
    profiles(&ctx.with(ProjectConfig::AsWritten).layers(dir)?.settings)?;
    if project.untrusted().next().is_none() {
        return Ok(ctx.clone());
    }
    let accepted = ctx.with(ProjectConfig::Trusted(project.digests()));
    if asking.trust_config {
        return Ok(accepted);
    }
    let may_ask = !asking.silent && refuse_from_within("descartes trust").is_ok();
    let answer = may_ask.then(|| project.ask(ctx)).flatten();
    match answer {
        Some(true) => {}
        Some(false) => return Err(declined(dir, ctx)),
        None => return Err(refusal(&project, dir, ctx, Some(TRUST_CONFIG))),
    }
    if let Err(error) = project.trust() {
        ctx.printer
            .warning(&format!("it is trusted for this run only: {error}"));
    }
    Ok(accepted)
}

/// The refusal after a `no`: the person has just read what it is about.
pub fn declined(dir: &Path, ctx: &CommandContext) -> CliError {
    let place = place(dir, ctx);
    CliError::refused(
        "this project's config is not trusted: nothing was started",
        format!("if you want it after all: descartes trust{place}"),
    )
}

/// The refusal of what is not trusted, with what to type.
pub fn refusal(
    project: &Project,
    dir: &Path,
    ctx: &CommandContext,
    flag: Option<&str>,
) -> CliError {
    let place = place(dir, ctx);
    let command = format!("descartes trust --yes{place}");
    let inside = refuse_from_within("descartes trust").is_err();
    let hint = match inside {
        true => format!(
            "nobody can be asked from inside a loop; a person has to type, outside the loop: \
             {command}"
        ),
        false => format!("see it with `descartes trust --show{place}`; if you want it: {command}"),
    };
    let error = CliError::refused(project.question(), hint);
    match flag.filter(|_| !inside) {
        Some(flag) => error.hinted(format!("for this run only, for example in CI: add {flag}")),
        None => error,
    }
}

/// The same for whoever loads settings that were not settled before.
fn refusal_of(dir: &Path, layers: &Layers, ctx: &CommandContext) -> CliError {
    match Project::of_layers(dir, layers, ScudGates::Unused, ctx) {
        Ok(project) => refusal(&project, dir, ctx, None),
        Err(error) => error,
    }
}

impl CommandContext {
    /// All settings but the flags, for a loop that works in `dir`. Refused where the project's own
    /// config needs trust and has none, unless less than all of it is asked for.
    pub fn layers(&self, dir: &Path) -> Result<Layers, CliError> {
        let mut trusted = true;
        let layers = Layers::load_judged(&self.places(dir), |keys| {
            trusted = self.trusts(dir, Subject::Config, keys);
            match trusted {
                true => Use::All,
                false => Use::OnlyHarmless,
            }
        })?;
        match (trusted, &self.project_config) {
            (false, ProjectConfig::Trusted(_)) => Err(refusal_of(dir, &layers, self)),
            _ => Ok(layers),
        }
    }
}

/// What a command that only looks says of a config that is not trusted.
pub fn notice(dir: &Path, ctx: &CommandContext) -> Option<String> {
    let project = Project::look(dir, ScudGates::Unused, ctx).ok()?;
    let part = project.untrusted().next()?;
    let head = match part.standing {
        Standing::Changed => "has changed since you trusted it",
        _ => "is not trusted yet",
    };
    Some(format!(
        "{} {head}: nothing in it is started; see: descartes trust --show{}",
        part.file.display(),
        place(dir, ctx)
    ))
}

/// How a command names the project, where it is not the one that it is typed in.
fn place(dir: &Path, ctx: &CommandContext) -> String {
    let (there, here) = (canonical(dir), canonical(&ctx.here));
    match there.is_ok_and(|there| here.is_ok_and(|here| there == here)) {
        true => String::new(),
        false => format!(
            " --working-dir {}",
            shell_words::quote(&dir.display().to_string())
        ),
    }
}
