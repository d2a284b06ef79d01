//! `descartes query`: the history of all loops in SQL.

mod shape;

use std::io::Read;

use descartes_query::{Index, QueryError, SCHEMA};

use crate::args::query::QueryArgs;
use crate::error::CliError;
use crate::settings::command_context::CommandContext;

pub fn run(args: &QueryArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    if args.schema {
        drop(ctx.printer.exact(SCHEMA.as_bytes()));
        return Ok(0);
    }
    let sql = question(args)?;
    let root = ctx.root(&ctx.here);
    let (index, trouble) = Index::open(&root).map_err(|error| told(error, &sql))?;
    for words in trouble {
        ctx.printer.warning(&words);
    }
    let answer = index.ask(&sql).map_err(|error| told(error, &sql))?;
    match (args.json, args.csv) {
        (true, _) => drop(ctx.printer.json_text(&shape::json(&answer))),
        (_, true) => ctx.printer.data(&shape::csv(&answer)),
        _ => ctx.printer.data(&shape::table(&answer)),
    }
    Ok(0)
}

fn question(args: &QueryArgs) -> Result<String, CliError> {
    let mut sql = args.sql.clone().unwrap_or_default();
    if sql == "-" {
        sql.clear();
        std::io::stdin()
            .read_to_string(&mut sql)
            .map_err(|error| CliError::system("read standard input", error))?;
    }
    Ok(sql)
}

fn told(error: QueryError, sql: &str) -> CliError {
    let schema = "see the tables with: descartes query --schema";
    match error {
        QueryError::Sql { message, offset } => {
            let place = offset.and_then(|offset| Some((sql.get(..offset)?, sql.get(offset..)?)));
            let place = place.map_or_else(String::new, |(before, after)| {
                let word: String = after.chars().take_while(|c| !c.is_whitespace()).collect();
                let line = before.matches('\n').count() + 1;
                let column = before.lines().next_back().map_or(0, |l| l.chars().count()) + 1;
                match word.as_str() {
                    "" => String::new(),
                    word => format!(" (line {line}, column {column}: `{word}`)"),
                }
            });
            CliError::usage(format!("cannot run the SQL: {message}{place}"), schema)
        }
        error @ (QueryError::Changes | QueryError::NoQuestion) => {
            CliError::usage(error.to_string(), "for example: select … from loops")
        }
        QueryError::Disk(error) => error.into(),
        error @ QueryError::Index { .. } => CliError::failed(
            error.to_string(),
            "it can be deleted at any time and is then rebuilt",
        ),
    }
}
