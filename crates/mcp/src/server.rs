//! The server: one client, over standard input and output. It ends with its input; loops go on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use descartes_agents::reader::Source;
use descartes_client::{LoopHandle, Loops};
use descartes_text::display;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode,
    Implementation, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, watch};
use tracing::{debug, info};

use crate::answer::{self, ToolFailure};
use crate::calls::{CheckCall, DiffCall, StartCall, ToolCall};
use crate::input::WatchedInput;
use crate::program::{IfGivenUp, Program};
use crate::start_rules::{self, AgentFlags, Nesting, StartLine};
use crate::transport::LineTransport;
use crate::wait::{self, GivenUp};
use crate::{look, tools};

/// Bytes of a patch.
const PATCH: usize = 64 << 10;
/// How long other servers may take to start a loop.
const STARTING: Duration = Duration::from_secs(60);
/// Bytes of what a start prints.
const STARTED: usize = 64 << 10;

/// Whether a loop may be started from where the server runs; else why not, and what to type instead.
pub type StartCheck = Arc<dyn Fn() -> Result<Nesting, (String, String)> + Send + Sync>;

/// What is served.
#[derive(Clone)]
pub struct McpOptions {
    pub loops: Loops,
    /// Where loops are started, and looked for where none is named.
    pub folder: PathBuf,
    /// How agents are started.
    pub agent: AgentFlags,
    /// A loop is started only while fewer than this run.
    pub max_loops: u32,
    pub may_start: StartCheck,
    /// The command line, for what only it can do.
    pub program: PathBuf,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("the client did not begin as MCP asks: {0}")]
    Client(String),
    #[error("the server broke off: {0}")]
    Broken(String),
}

/// Serves until the input ends.
pub fn serve(options: McpOptions) -> Result<(), McpError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().map_err(McpError::Runtime)?;
    let served = runtime.block_on(run(options));
    // A thread that still follows a loop is no reason to stay.
    runtime.shutdown_background();
    served
}

async fn run(options: McpOptions) -> Result<(), McpError> {
    info!(folder = %options.folder.display(), "serving MCP");
    let (input, ends) = WatchedInput::new();
    let handler = McpServer {
        options,
        starting: Arc::default(),
        ends,
    };
    let transport = LineTransport::new(input, tokio::io::stdout());
    let service = match handler.serve(transport).await {
        Ok(service) => service,
        // It was closed before a word.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(McpError::Client(first_words(&error.to_string()))),
    };
    let ended = service.waiting().await;
    debug!("the client is gone");
    ended
        .map(drop)
        .map_err(|error| McpError::Broken(error.to_string()))
}

/// What somebody sent may be of any length.
fn first_words(text: &str) -> String {
    display::one_line(descartes_text::units::cut_str(text, 200))
}

#[derive(Clone)]
struct McpServer {
    options: McpOptions,
    /// One start after the other: each counts what runs.
    starting: Arc<Mutex<()>>,
    /// True once the client is gone.
    ends: watch::Receiver<bool>,
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let own = Implementation::new("descartes", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(own)
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all().to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let Some(call) = ToolCall::read(&request.name, arguments) else {
            let names: Vec<&str> = tools::all().iter().map(|tool| &*tool.name).collect();
            let message = format!(
                "there is no tool `{}`; there are: {}",
                first_words(&request.name),
                names.join(", ")
            );
            return Err(ErrorData::invalid_params(message, None));
        };
        debug!(tool = %request.name, "called");
        let outcome = match call {
            Ok(call) => self.carry_out(call, context).await,
            Err(failure) => Err(failure),
        };
        Ok(answer::of(outcome).into())
    }

    /// What rmcp knows no method for, or read no parameters of.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let expected = match request.method.as_str() {
            "tools/call" => r#"{"name": "TOOL", "arguments": {}}"#,
            "tools/list" | "ping" => "an object, or none",
            method => {
                let message = format!("there is no method `{}`", first_words(method));
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
            }
        };
        let message = format!("the parameters of `{}` must be {expected}", request.method);
        Err(ErrorData::invalid_params(message, None))
    }
}

impl McpServer {
    async fn carry_out(
        &self,
        call: ToolCall,
        context: RequestContext<RoleServer>,
    ) -> Result<Value, ToolFailure> {
        match call {
            ToolCall::Start(call) => self.start(*call).await,
            ToolCall::Status(one) => self.of_loop(one.target, |found| look::status(&found)).await,
            ToolCall::List(call) => {
                let McpOptions { loops, folder, .. } = self.options.clone();
                blocking(move || look::list(&loops, &folder, call)).await
            }
            ToolCall::History { target, last } => {
                self.of_loop(target, move |found| look::history(&found, last))
                    .await
            }
            ToolCall::Logs {
                target,
                iteration,
                lines,
                stderr,
            } => {
                let source = if stderr {
                    Source::Stderr
                } else {
                    Source::Stdout
                };
                let read = move |found: LoopHandle| look::logs(&found, iteration, lines, source);
                self.of_loop(target, read).await
            }
            ToolCall::Diff(call) => self.diff(call).await,
            ToolCall::Say { target, text } => {
                self.steer(target, &["say", "--json", "--", &text]).await
            }
            ToolCall::Pause(one) => self.steer(one.target, &["pause", "--json"]).await,
            ToolCall::Unpause(one) => self.steer(one.target, &["unpause", "--json"]).await,
            ToolCall::Cancel(call) => {
                let words: &[&str] = match call.now {
                    true => &["cancel", "--json", "--now"],
                    false => &["cancel", "--json"],
                };
                self.steer(call.target, words).await
            }
            ToolCall::Report(one) => self.report(one.target).await,
            ToolCall::RoadmapCheck(call) => self.check(call).await,
            ToolCall::Wait { target, seconds } => self.wait(target, seconds, context).await,
        }
    }

    fn program(&self) -> Program<'_> {
        Program {
            program: &self.options.program,
            folder: &self.options.folder,
            input: None,
        }
    }

    async fn find(&self, target: Option<String>) -> Result<LoopHandle, ToolFailure> {
        let McpOptions { loops, folder, .. } = self.options.clone();
        blocking(move || look::find(&loops, &folder, target.as_deref())).await
    }

    /// Looks at a loop on a thread: disks are slow.
    async fn of_loop(
        &self,
        target: Option<String>,
        read: impl FnOnce(LoopHandle) -> Result<Value, ToolFailure> + Send + 'static,
    ) -> Result<Value, ToolFailure> {
        let McpOptions { loops, folder, .. } = self.options.clone();
        blocking(move || read(look::find(&loops, &folder, target.as_deref())?)).await
    }

    async fn start(&self, call: StartCall) -> Result<Value, ToolFailure> {
        let McpOptions {
            loops,
            folder,
            agent,
            max_loops,
            may_start,
            ..
        } = self.options.clone();
        let _turn = self.starting.lock().await;
        let all = loops.clone();
        let turn = blocking(move || Ok(all.turn_to_start(STARTING)?)).await?;
        let Some(_turn_of_all) = turn else {
            let message = "another MCP server has been starting a loop for a minute";
            return Err(ToolFailure::new(message, "try again"));
        };
        let line = blocking(move || {
            let nesting = may_start().map_err(|(message, hint)| ToolFailure::new(message, hint))?;
            let line = start_rules::start_line(&call, &agent, &folder, &nesting)?;
            start_rules::check_room(look::running(&loops)?, max_loops)?;
            Ok(line)
        });
        let StartLine { words, input } = line.await?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let printed = self
            .program()
            .with_input(input.as_deref())
            .run(&words, STARTED, IfGivenUp::LetFinish)
            .await?;
        let text = String::from_utf8_lossy(&printed.bytes).into_owned();
        let id = text.lines().last().unwrap_or_default().trim().to_owned();
        let found = self.find(Some(id)).await?;
        Ok(json!({
            "loop_id": found.id(),
            "name": found.name(),
            "answer": "effective",
            "message": "started in the background; follow it with `wait`",
        }))
    }

    /// A command to a loop, by its id: the name that a model gave never becomes a flag.
    async fn steer(&self, target: Option<String>, words: &[&str]) -> Result<Value, ToolFailure> {
        let found = self.find(target).await?;
        let mut all = vec!["loop"];
        all.extend(words);
        all.push(found.id());
        self.program().json(&all, IfGivenUp::LetFinish).await
    }

    async fn diff(&self, call: DiffCall) -> Result<Value, ToolFailure> {
        let found = self.find(call.target).await?;
        let iteration = call.iteration.map(|number| number.to_string());
        let words = |flag: &'static str| {
            let mut words = vec!["loop", "diff"];
            words.extend((!flag.is_empty()).then_some(flag));
            words.extend(iteration.as_deref());
            words.push(found.id());
            words
        };
        let mut value = self
            .program()
            .json(&words("--json"), IfGivenUp::Kill)
            .await?;
        value["loop_id"] = found.id().into();
        if !call.files_only {
            let patch = self
                .program()
                .run(&words(""), PATCH, IfGivenUp::Kill)
                .await?;
            value["patch"] = String::from_utf8_lossy(&patch.bytes).into();
            value["cut"] = patch.cut.into();
        }
        Ok(value)
    }

    async fn report(&self, target: Option<String>) -> Result<Value, ToolFailure> {
        let found = self.find(target).await?;
        let words = ["report", found.id()];
        let printed = self
            .program()
            .run(&words, STARTED, IfGivenUp::LetFinish)
            .await?;
        let path = String::from_utf8_lossy(&printed.bytes).trim().to_owned();
        let id = found.id().to_owned();
        let summary = blocking(move || look::summary(&found)).await?;
        Ok(json!({ "loop_id": id, "path": path, "summary": summary }))
    }

    async fn check(&self, call: CheckCall) -> Result<Value, ToolFailure> {
        let path = start_rules::inside(&self.options.folder, "path", &call.path)?;
        let source = call.source.map(|name| format!("--source={name}"));
        // Named from its folder, as it was asked for.
        let near = path.strip_prefix(&self.options.folder).unwrap_or(&path);
        let near = near.display().to_string();
        let mut words = vec!["roadmap", "check", "--json"];
        words.extend(source.as_deref());
        words.extend(["--", &near]);
        self.program().json(&words, IfGivenUp::Kill).await
    }

    async fn wait(
        &self,
        target: Option<String>,
        seconds: u32,
        context: RequestContext<RoleServer>,
    ) -> Result<Value, ToolFailure> {
        let found = self.find(target).await?;
        let (tell, mut lines) = mpsc::unbounded_channel();
        let given_up = GivenUp::default();
        let flag = given_up.flag();
        let limit = Duration::from_secs(seconds.into());
        let waited = blocking(move || wait::until_over(&found, limit, &flag, &tell));
        let token = context.meta.get_progress_token();
        let telling = async {
            let mut count = 0.0;
            while let Some(line) = lines.recv().await {
                let Some(token) = token.clone() else { continue };
                count += 1.0;
                let told = ProgressNotificationParam::new(token, count).with_message(line);
                // Where it cannot be told, the answer will not be either.
                drop(context.peer.notify_progress(told).await);
            }
        };
        let mut ends = self.ends.clone();
        tokio::select! {
            (waited, ()) = async { tokio::join!(waited, telling) } => waited,
            _ = ends.wait_for(|over| *over) => Err(ToolFailure::new("the client is gone", "")),
            () = context.ct.cancelled() => Err(ToolFailure::new("the wait was cancelled", "")),
        }
    }
}

/// Does what waits for a disk or a loop on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(ToolFailure::new(format!("it broke off: {error}"), "")),
    }
}
