//! Starts and stops the server: opens stores, dispatcher and sockets, and closes them in order.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::{Context, bail};
use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::http::app_state::{AppState, Reach};
use crate::http::connection::ConnectionTimeouts;
use crate::http::listen::{self, ListenerTasks, ParseErrorHook};
use crate::http::local_tools::{self, HostResources, ShellPool};
use crate::http::otlp::Exporter;
use crate::http::{routes, tls};
use crate::service::audit::AuditTrail;
use crate::service::authenticator::{Authenticator, InternalKeys};
use crate::service::catalog;
use crate::service::dispatcher::{Dispatcher, InputRecording};
use crate::service::jwt::{ExpectedClaims, TokenVerifier};
use crate::service::log::LogWriter;
use crate::service::rate_limit::{Limiter, Rate};
use crate::service::secret_refresher::SecretRefresher;
use crate::service::spans::SpanSender;
use crate::tool;
use karyi_core::limits;
use karyi_files::root::Root;
use karyi_pty::SessionOptions;
use karyi_store::sqlite::{ServerLock, SqliteLedger, SqliteSites, make_directory};
use karyi_store::{Ledger, SiteStore, StoreError, import};
use karyi_vault::redact::Redactor;
use karyi_vault::session::Secrets;

/// Files, shells and secrets of the host.
#[derive(Debug, Clone)]
pub struct HostSetup {
    /// Directory with sites to import at the start.
    pub data: Option<PathBuf>,
    /// Database of sites; the ledger is in the same directory.
    pub database: PathBuf,
    /// karyi's own directories, which no tool reads or changes.
    pub own: Vec<PathBuf>,
    /// Options of shells.
    pub session: SessionOptions,
    /// Secrets and journal for authenticated callers of local tools.
    pub resources: HostResources,
    /// Root directory of local tools.
    pub root: Option<PathBuf>,
}

impl HostSetup {
    /// Creates a setup with only a database.
    #[must_use]
    pub fn new(database: PathBuf, session: SessionOptions) -> Self {
        Self {
            data: None,
            database,
            own: Vec::new(),
            session,
            resources: HostResources::default(),
            root: None,
        }
    }
}

/// Options of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Files, shells and secrets of the host.
    pub host: HostSetup,
    /// Addresses to listen on.
    pub addresses: Vec<SocketAddr>,
    /// Allowed names in `Host`.
    pub hosts: Vec<String>,
    /// Allowed origins.
    pub origins: Vec<String>,
    /// Certificate and key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// True if a reverse proxy may terminate TLS.
    pub is_behind_proxy: bool,
    /// File with internal keys.
    pub key_file: Option<PathBuf>,
    /// File with the keys for tokens, and the claims to expect.
    pub jwks: Option<(PathBuf, ExpectedClaims)>,
    /// Local tools to offer.
    pub tools: Vec<String>,
    /// Rate limit for one principal, tenant and tool.
    pub tool_rate: Option<Rate>,
    /// Rate limit for one tenant.
    pub tenant_rate: Option<Rate>,
    /// Controls what the ledger stores of inputs.
    pub input_recording: InputRecording,
    /// URL of the OpenTelemetry collector.
    pub collector: Option<String>,
    /// True if nothing is logged.
    pub is_quiet: bool,
    /// File of the log; without one it goes to standard error.
    pub log_file: Option<Arc<File>>,
}

impl ServerOptions {
    /// Creates options without addresses, keys, limits or log.
    #[must_use]
    pub fn new(host: HostSetup) -> Self {
        Self {
            host,
            addresses: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            tls: None,
            is_behind_proxy: false,
            key_file: None,
            jwks: None,
            tools: Vec::new(),
            tool_rate: None,
            tenant_rate: None,
            input_recording: InputRecording::Never,
            collector: None,
            is_quiet: true,
            log_file: None,
        }
    }
}

/// Returns the path of the ledger that belongs to a database of sites.
#[must_use]
pub fn ledger_path(database: &Path) -> PathBuf {
    database.with_file_name("ledger.db")
}

/// Serves until `stopped` completes, and then until calls in progress have ended or `stopped` completes again;
/// `extra_routes` creates the routes of other front ends.
///
/// # Errors
/// An option is not valid or unsafe, or a resource is not available.
pub async fn serve(
    options: ServerOptions,
    extra_routes: impl FnOnce(&Arc<AppState>) -> Router,
    mut stopped: impl AsyncFnMut(),
) -> anyhow::Result<()> {
    let reach = reach(&options)?;
    let authenticator = Arc::new(authenticator(&options)?);
    let tls = options.tls.as_ref();
    let tls = tls.map(|(chain, key)| tls::acceptor(chain, key));
    let tls = tls.transpose()?;
    let log = start_log(&options)?;
    let exporter = options.collector.as_deref();
    let exporter = exporter.map(Exporter::start);
    let (exporter, spans) = exporter.transpose()?.unzip();
    let lock = lock(&options.host.database, ServerLock::acquire)?;
    let guard = (lock, Arc::clone(&authenticator));
    let (dispatcher, lock) = open(&options, guard, spans).await?;
    let bound = listen::bind(&options.addresses).await;
    let listeners = bound.context("listening")?;
    let first = listeners.first().context("no address to listen on")?;
    let port = first.local_addr()?.port();
    let state = Arc::new(app_state(&options, &dispatcher, reach, port));
    log_start(&listeners, &options, &dispatcher)?;
    dispatcher.secrets.refresh().await;
    let app = routes::router(Arc::clone(&state), extra_routes(&state));
    let listening = ListenerTasks::start(
        listeners,
        &app,
        tls.as_ref(),
        &on_parse_error(&state),
        ConnectionTimeouts::default(),
    );
    let maintenance = tokio::spawn(run_maintenance(
        Arc::clone(&dispatcher),
        options.jwks.clone(),
        authenticator,
    ));
    stopped().await;
    tokio::select! {
        () = stop(&state, listening) => {}
        () = stopped() => stop_at_once(&state).await,
    }
    drop(app);
    maintenance.abort();
    let _ = maintenance.await;
    if let Some(local) = &dispatcher.local {
        local.close().await;
    }
    dispatcher.audit.flush().await;
    drop((state, dispatcher));
    if let Some(exporter) = exporter {
        exporter.end().await;
    }
    drop(lock);
    if let Some(log) = log {
        log.end().await;
    }
    Ok(())
}

/// Starts the log and its thread; a quiet server has neither.
fn start_log(options: &ServerOptions) -> anyhow::Result<Option<LogWriter>> {
    if options.is_quiet {
        return Ok(None);
    }
    let out: Box<dyn Write + Send> = match &options.log_file {
        Some(file) => Box::new(Arc::clone(file)),
        None => Box::new(std::io::stderr()),
    };
    let (log, writer) = LogWriter::start(out).context("starting the log")?;
    tracing::subscriber::set_global_default(log).context("starting the log")?;
    Ok(Some(writer))
}

/// Accepts no new work and waits, within a limit, for the work in progress.
async fn stop(state: &AppState, listening: ListenerTasks) {
    let limit = tokio::time::Instant::now() + limits::SHUTDOWN_TIMEOUT;
    state.shutdown.interrupt();
    tracing::info!(event = "stopping");
    listening.shut_down().await;
    // Calls of disconnected callers hold no connection.
    let _ = tokio::time::timeout_at(limit, state.dispatcher.wait_for_calls()).await;
}

/// Gives the calls in progress, whose connections are closed, a moment to be recorded.
async fn stop_at_once(state: &AppState) {
    state.shutdown.cancel();
    tracing::info!(event = "stopping_at_once");
    let ended = state.dispatcher.wait_for_calls();
    let _ = tokio::time::timeout(limits::CANCEL_GRACE, ended).await;
}

/// Returns the hook that counts and logs unparsable requests.
fn on_parse_error(state: &Arc<AppState>) -> ParseErrorHook {
    let state = Arc::clone(state);
    Arc::new(move |status| routes::log_unparsed(&state, status))
}

/// Creates the state of the routes.
fn app_state(
    options: &ServerOptions,
    dispatcher: &Arc<Dispatcher>,
    reach: Reach,
    port: u16,
) -> AppState {
    let (hosts, origins) = (options.hosts.clone(), options.origins.clone());
    let mut state = AppState::new(Arc::clone(dispatcher), reach, port, hosts, origins);
    state.schemes = match (&options.tls, options.is_behind_proxy) {
        (Some(_), _) => &["https"],
        (None, false) => &["http"],
        // Only the proxy knows whether it encrypts.
        (None, true) => &["http", "https"],
    };
    state
}

/// Logs where the server listens, and which tools no caller can use.
fn log_start(
    listeners: &[TcpListener],
    options: &ServerOptions,
    dispatcher: &Dispatcher,
) -> anyhow::Result<()> {
    let scheme = if options.tls.is_some() {
        "https"
    } else {
        "http"
    };
    for listener in listeners {
        let address = listener.local_addr()?;
        tracing::info!(
            event = "listening",
            message = format_args!("{scheme}://{address}")
        );
    }
    if !options.tools.is_empty() && !dispatcher.authenticator.requires_credentials() {
        let message = format!(
            "no caller can use {}: without --key-file or --jwks no caller is authenticated",
            options.tools.join(", ")
        );
        tracing::info!(event = "tools_without_keys", message);
    }
    log_skipped_keys(dispatcher);
    Ok(())
}

/// Logs the token keys that were skipped.
fn log_skipped_keys(dispatcher: &Dispatcher) {
    for problem in dispatcher.authenticator.skipped_keys() {
        tracing::info!(event = "key_left_out", message = problem);
    }
}

/// Returns the reach of the server, and refuses unsafe combinations of options.
fn reach(options: &ServerOptions) -> anyhow::Result<Reach> {
    let is_local = options
        .addresses
        .iter()
        .all(|address| address.ip().is_loopback());
    if is_local && !options.is_behind_proxy {
        return Ok(Reach::Loopback);
    }
    if options.tls.is_none() && !options.is_behind_proxy {
        bail!(
            "an address that other machines can reach needs --tls-cert and --tls-key, or --behind-proxy"
        );
    }
    if options.key_file.is_none() && options.jwks.is_none() {
        bail!("an address that other machines can reach needs --key-file or --jwks");
    }
    Ok(Reach::Public)
}

fn authenticator(options: &ServerOptions) -> anyhow::Result<Authenticator> {
    let keys = options.key_file.as_deref().map(|path| {
        let text = read(path)?;
        InternalKeys::parse(&text)
            .map_err(|problem| anyhow::anyhow!("{}: {problem}", path.display()))
    });
    let tokens = options
        .jwks
        .as_ref()
        .map(|(path, expected)| tokens(path, expected));
    Ok(Authenticator::new(keys.transpose()?, tokens.transpose()?))
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn tokens(path: &Path, expected: &ExpectedClaims) -> anyhow::Result<TokenVerifier> {
    TokenVerifier::new(&read(path)?, expected.clone())
        .map_err(|problem| anyhow::anyhow!("{}: {problem}", path.display()))
}

/// Takes a lock of a database, and makes its directory.
///
/// # Errors
/// The directory cannot be made, or the lock is not free.
pub fn lock(
    database: &Path,
    acquire: fn(&Path) -> Result<ServerLock, StoreError>,
) -> anyhow::Result<ServerLock> {
    if let Some(directory) = database.parent() {
        make_directory(directory)
            .with_context(|| format!("making the directory {}", directory.display()))?;
    }
    Ok(acquire(database)?)
}

/// Opens the stores and creates a dispatcher.
///
/// # Errors
/// Data cannot be opened or imported.
pub async fn open(
    options: &ServerOptions,
    (mut lock, authenticator): (ServerLock, Arc<Authenticator>),
    spans: Option<SpanSender>,
) -> anyhow::Result<(Arc<Dispatcher>, ServerLock)> {
    let host = &options.host;
    let sites = SqliteSites::open(&host.database)?;
    if let Some(directory) = &host.data {
        import_all(&sites, directory).await?;
    }
    let ledger = SqliteLedger::open(&ledger_path(&host.database))?;
    let lost = match lock.is_first() {
        true => ledger.settle_interrupted().await?,
        false => 0,
    };
    lock.admit_others()?;
    if lost > 0 {
        let message = format!("{lost} calls were interrupted when the server last stopped");
        tracing::info!(event = "interrupted_calls", message);
    }
    let tools = catalog::offered_tools(&options.tools).map_err(|names| {
        anyhow::anyhow!(
            "these tools cannot be offered over HTTP: {}",
            names.join(", ")
        )
    })?;
    let root = match &host.root {
        Some(root) => Root::confined(root).context("opening the root directory")?,
        None => Root::unconfined(),
    };
    let output = host.database.with_file_name("output");
    let root = Arc::new(root.with_private(&host.own, std::slice::from_ref(&output)));
    let shells = ShellPool::new(
        host.session.clone(),
        Arc::clone(&root),
        output,
        host.resources.clone(),
    );
    let redactor = Redactor::new(&host.resources.secrets);
    let dispatcher = Dispatcher {
        tools,
        sites: Arc::new(sites),
        authenticator,
        // Tools of sites use no secrets, and show none.
        context: tool::Context {
            redactor: redactor.clone(),
            ..local_tools::context(&host.session, &root, Secrets::default())
        },
        local: Some(Arc::new(shells)),
        input_recording: options.input_recording,
        secrets: SecretRefresher::new(redactor.secrets()),
        audit: AuditTrail::new(Arc::new(ledger), spans, redactor),
        tool_limit: options.tool_rate.map(Limiter::new),
        tenant_limit: options.tenant_rate.map(Limiter::new),
        places: Semaphore::new(limits::MAX_CALLS_IN_FLIGHT),
    };
    Ok((Arc::new(dispatcher), lock))
}

/// Imports every changed site in a directory.
///
/// # Errors
/// A file is not valid, or the database cannot be written.
pub async fn import_all(sites: &dyn SiteStore, directory: &Path) -> anyhow::Result<Vec<String>> {
    let mut messages = Vec::new();
    for bundle in import::read(directory)? {
        let name = format!("{}/{}", bundle.site.tenant_id, bundle.site.site_id);
        let counts = (
            bundle.profiles.len(),
            bundle.contents.len(),
            bundle.prompts.len(),
        );
        let deadline = Instant::now() + limits::IMPORT_TIMEOUT;
        let what = match sites.import(bundle, deadline).await? {
            true => "imported",
            false => "unchanged",
        };
        let message = format!(
            "{name} {what}: {} profiles, {} contents, {} prompts",
            counts.0, counts.1, counts.2
        );
        tracing::info!(event = "site_imported", message);
        messages.push(message);
    }
    Ok(messages)
}

/// Periodic work: reloads token keys, writes suppressed rejections and late records, refreshes
/// secrets.
async fn run_maintenance(
    dispatcher: Arc<Dispatcher>,
    jwks: Option<(PathBuf, ExpectedClaims)>,
    authenticator: Arc<Authenticator>,
) {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    let mut modified: Option<SystemTime> = jwks.as_ref().and_then(|(path, _)| changed(path));
    loop {
        tokio::time::sleep(limits::KEYS_POLL).await;
        let audit = &dispatcher.audit;
        audit.record_suppressed(Instant::now()).await;
        audit.catch_up().await;
        dispatcher.secrets.refresh().await;
        dispatcher.sweep();
        let Some((path, expected)) = &jwks else {
            continue;
        };
        let now = changed(path);
        if now == modified {
            continue;
        }
        modified = now;
        // If the file cannot be read, the old keys stay in force until its next change.
        match tokens(path, expected) {
            Ok(tokens) => {
                authenticator.replace_tokens(tokens);
                tracing::info!(event = "keys_renewed");
                log_skipped_keys(&dispatcher);
            }
            Err(error) => {
                let message = format!("{error:#}");
                tracing::info!(event = "keys_not_renewed", message);
            }
        }
    }
}
