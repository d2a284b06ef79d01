//! `descartes serve`: the loops in a browser.

use std::sync::Arc;

use descartes_client::{Children, Scope};
use descartes_text::units::plural;
use descartes_web::{ServeOptions, TlsFiles, WebError, bind};

use super::loops::which;
use crate::args::serve::ServeArgs;
use crate::error::CliError;
use crate::session::program::this_program;
use crate::settings::command_context::CommandContext;
use crate::within;

pub fn run(args: &ServeArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    // An agent would steer its own loop by way of it.
    within::refuse_from_within("descartes serve")?;
    if let Some(folder) = args.project.iter().find(|one| !ctx.absolute(one).is_dir()) {
        return Err(CliError::usage(
            format!("--project {}: there is no such folder", folder.display()),
            "name an existing one",
        ));
    }
    let loops = which::loops(ctx, &ctx.here)?;
    let count = loops.heads(&Scope::All, Children::Folded)?.len();
    let options = ServeOptions {
        loops,
        listen: args.listen,
        hosts: args.host.iter().map(|host| host.0.clone()).collect(),
        tls: files(args, ctx),
        behind_proxy: args.behind_proxy,
        read_only: args.read_only,
        start_below: args.allow_start.then(|| {
            let folders = args.project.iter();
            folders.map(|folder| ctx.absolute(folder)).collect()
        }),
        new_token: args.new_token,
        program: this_program(),
        may_steer: Arc::new(|found| {
            within::refuse_steering(found)
                .map_err(|error| (error.to_string(), error.hints().join("; ")))
        }),
        may_ask: Arc::new(|ends| {
            within::refuse_requests(ends.here, ends.there).map_err(|why| (why.message, why.hint))
        }),
    };
    let server = bind(&options)?;
    let line = format!(
        "serving {} on {}   ({})\n",
        plural(count as u64, "loop"),
        server.url(),
        match args.behind_proxy {
            true => format!(
                "{}; the proxy finds it at {}",
                reach(args),
                server.address()
            ),
            false => reach(args).to_owned(),
        }
    );
    // The code in it would be masked.
    drop(ctx.printer.exact(line.as_bytes()));
    if !args.listen.ip().is_loopback() {
        ctx.printer.warning(&format!(
            "other machines can reach {}: whoever has a token can {} your loops",
            args.listen,
            if args.read_only { "read" } else { "steer" }
        ));
    }
    let tokens = server.token_file().display().to_string();
    ctx.printer
        .note(&format!("the address works once; tokens: {tokens}"));
    server.run()?;
    Ok(0)
}

fn files(args: &ServeArgs, ctx: &CommandContext) -> Option<TlsFiles> {
    Some(TlsFiles {
        certificate: ctx.absolute(args.tls_cert.as_deref()?),
        key: ctx.absolute(args.tls_key.as_deref()?),
    })
}

/// Who can see it.
fn reach(args: &ServeArgs) -> &'static str {
    match (args.listen.ip().is_loopback(), args.read_only) {
        (true, false) => "only this machine; --listen to change, --read-only to look but not touch",
        (true, true) => "only this machine, read only; --listen to change",
        (false, false) => "other machines, too; --read-only to look but not touch",
        (false, true) => "other machines, too; read only",
    }
}

impl From<WebError> for CliError {
    fn from(error: WebError) -> Self {
        Self::of_server(error.to_string(), error.hint(), error.exit_code())
    }
}
