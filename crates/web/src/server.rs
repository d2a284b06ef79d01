//! Binding, the address that is printed, and the connections.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use crate::access::{Access, Gatekeeper, OneTimeLink, Sessions, TokenFile, Transport};
use crate::guests::{Guest, Guests};
use crate::stall::StallGuard;
use crate::state::{ConnectionEnds, WebState};
use crate::{ServeOptions, WebError, routes, tls};

/// Connections at the same time.
const CONNECTIONS: usize = 512;
/// Within this a client has to send the head of a request, and to finish a handshake.
const HEAD: Duration = Duration::from_secs(10);
/// Bytes of a head.
const HEAD_BYTES: usize = 32 << 10;
const HEADERS: usize = 64;
/// Threads that read disks and wait for loops.
const BLOCKING_THREADS: usize = 24;
/// How often it is looked whether the tokens are still the same, and whether another server signed somebody out.
const TOKENS: Duration = Duration::from_secs(1);
/// Where the system has no file descriptors left, it is tried again after this.
const AGAIN: Duration = Duration::from_millis(100);

/// A server that has its port and serves nobody yet.
pub struct Server {
    listener: StdListener,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    app: Arc<WebState>,
    code: String,
}

/// Takes the port and makes everything ready. What is wrong is said before anybody is served.
pub fn bind(options: &ServeOptions) -> Result<Server, WebError> {
    let encrypts = options.tls.is_some() || options.behind_proxy;
    if !options.listen.ip().is_loopback() && !encrypts {
        return Err(WebError::Exposed(options.listen));
    }
    let acceptor = options.tls.as_ref().map(tls::acceptor).transpose()?;
    let (listener, address) = listen(options.listen)?;
    if options.new_token {
        // Other servers let everybody go by this.
        TokenFile::replace(options.loops.root())?;
        Sessions::end_all(options.loops.root());
    }
    let tokens = TokenFile::open(options.loops.root())?;
    let transport = match (&acceptor, options.behind_proxy) {
        (Some(_), _) => Transport::Tls,
        (None, true) => Transport::Proxy,
        (None, false) => Transport::Plain,
    };
    let most = match options.read_only {
        true => Access::Read,
        false => Access::Steer,
    };
    let gate = Gatekeeper::new(address.port(), transport, options.hosts.clone(), most);
    let (link, code) = OneTimeLink::new()?;
    let app = WebState::new(options, (gate, address.port()), tokens, link);
    Ok(Server {
        listener,
        address,
        acceptor,
        app: Arc::new(app),
        code,
    })
}

fn listen(address: SocketAddr) -> Result<(StdListener, SocketAddr), WebError> {
    let refused = |source| WebError::Listen { address, source };
    let listener = StdListener::bind(address).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}

impl Server {
    /// The address to open, with a code that works once.
    pub fn url(&self) -> String {
        let gate = &self.app.gate;
        let here = match self.address {
            // It listens everywhere; nobody can go there.
            SocketAddr::V4(all) if all.ip().is_unspecified() => {
                format!("127.0.0.1:{}", all.port())
            }
            SocketAddr::V6(all) if all.ip().is_unspecified() => format!("[::1]:{}", all.port()),
            address => address.to_string(),
        };
        let (scheme, host) = match (gate.transport(), gate.names()) {
            (Transport::Proxy, [name, ..]) => ("https", name),
            (Transport::Tls, _) => ("https", &here),
            _ => ("http", &here),
        };
        format!("{scheme}://{host}/?code={}", self.code)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the tokens lie.
    pub fn token_file(&self) -> &std::path::Path {
        self.app.tokens.path()
    }

    /// Serves until it is interrupted or asked to end.
    pub fn run(self) -> Result<(), WebError> {
        let runtime = runtime()?;
        let served = runtime.block_on(async move {
            let listener = TcpListener::from_std(self.listener);
            let listener = listener.map_err(|source| WebError::System {
                what: "use the socket",
                source,
            })?;
            tokio::spawn(watch_tokens(Arc::clone(&self.app)));
            tokio::select! {
                () = accept(listener, self.acceptor, routes::router(self.app)) => {}
                ended = ended() => ended?,
            }
            Ok(())
        });
        // Threads that wait for a loop or a disk are not waited for.
        runtime.shutdown_background();
        served
    }
}

/// Ctrl-C or SIGTERM. Loops and what was started for them go on.
async fn ended() -> Result<(), WebError> {
    let failed = |source| WebError::System {
        what: "wait for signals",
        source,
    };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

fn runtime() -> Result<Runtime, WebError> {
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(Duration::from_secs(5))
        .build()
        .map_err(|source| WebError::System {
            what: "start the server",
            source,
        })
}

/// Somebody may make new tokens while this serves, or sign out elsewhere.
async fn watch_tokens(app: Arc<WebState>) {
    loop {
        tokio::time::sleep(TOKENS).await;
        app.tokens.refresh();
        app.sessions.refresh();
        let now = app.tokens.generation();
        app.generation
            .send_if_modified(|known| std::mem::replace(known, now) != now);
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let guests = Guests::default();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            debug!("too many connections: one is closed");
            continue;
        };
        let (acceptor, router) = (acceptor.clone(), router.clone());
        let guest = Arc::new(guests.enter());
        tokio::spawn(async move {
            tokio::select! {
                () = connection(stream, acceptor, router, &guest) => {}
                () = guest.sent_away() => debug!("a connection without a token made room"),
            }
            drop(place);
        });
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    guest: &Arc<Guest>,
) {
    // Lines of output are small, and waited for.
    let _ = stream.set_nodelay(true);
    let (Ok(here), Ok(there)) = (stream.local_addr(), stream.peer_addr()) else {
        return debug!("a connection was closed before it was served");
    };
    let ends = (ConnectionEnds { here, there }, guest);
    match acceptor {
        None => serve(stream, router, ends).await,
        Some(acceptor) => match tokio::time::timeout(HEAD, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => serve(stream, router, ends).await,
            Ok(Err(error)) => debug!(%error, "no TLS handshake"),
            Err(_) => debug!("a TLS handshake took too long"),
        },
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    router: Router,
    (ends, guest): (ConnectionEnds, &Arc<Guest>),
) {
    let router = TowerToHyperService::new(router);
    let with_ends = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ends);
        request.extensions_mut().insert(Arc::clone(guest));
        router.call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(StallGuard::new(stream)), with_ends)
        .await;
    if let Err(error) = served {
        debug!(%error, "a connection broke off");
    }
}
