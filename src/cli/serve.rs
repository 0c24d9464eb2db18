//! `karyi serve` and `karyi site`: the tool server and its data.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;

use crate::cli::args::{ServeArgs, SiteArgs, SiteCommand};
use crate::cli::config::{self, Settings};
use crate::cli::model_access::ConfiguredModels;
use crate::cli::runtime::{runtime, stopped};
use crate::cli::runtime_dir::runtime_dir;
use crate::cli::shell::{self, SessionUse, ShellNames};
use crate::cli::vault::{self, VaultFlags};
use crate::cli::{fail, log, print, say, state_dir, undo_journal};
use crate::http::app_state::AppState;
use crate::http::local_tools::HostResources;
use crate::http::server::{self, HostSetup, ServerOptions};
use crate::mcp;
use crate::mcp::http::Defaults;
use crate::service::caller;
use crate::service::dispatcher::InputRecording;
use crate::service::jwt::ExpectedClaims;
use crate::service::rate_limit::Rate;
use karyi_pty::{SessionOptions, StartupFiles, guard};
use karyi_store::sqlite::{ServerLock, SqliteSites, make_directory};
use karyi_vault::session::{Need, Secrets};

/// Runs `karyi serve`.
pub(super) fn serve(args: ServeArgs) -> ExitCode {
    let served = runtime(true).and_then(|runtime| {
        let defaults = Defaults {
            tenant: args.tenant.clone().map(id).transpose()?,
            site: args.site.clone().map(id).transpose()?,
            shell: match args.tools.iter().any(|tool| tool == "command") {
                true => shell_names()?.description(&shell::search_path()),
                false => String::new(),
            },
        };
        let options = options(args)?;
        runtime.block_on(async {
            let stopped = stopped()?;
            let mcp = |state: &Arc<AppState>| mcp::http::router(state, defaults);
            server::serve(options, mcp, stopped).await
        })
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Runs `karyi site`.
pub(super) fn site(args: SiteArgs) -> ExitCode {
    let SiteCommand::Import { directory, db } = args.command;
    let imported = runtime(false).and_then(|runtime| {
        let database = database(db)?;
        let _lock = ServerLock::acquire(&database)?;
        let sites = SqliteSites::open(&database)?;
        runtime.block_on(server::import_all(&sites, &directory))
    });
    match imported {
        Ok(told) => print(
            &told
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>(),
        ),
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Checks an identifier of the command line.
pub(super) fn id(text: String) -> anyhow::Result<String> {
    match caller::is_id(&text) {
        true => Ok(text),
        false => {
            anyhow::bail!("expected an identifier ([A-Za-z0-9._:-], at most 100), found {text:?}")
        }
    }
}

/// Checks that the user has switched no tool off that is to be offered.
fn check_enabled(tools: &[String]) -> anyhow::Result<()> {
    let settings = Settings::load()?;
    let mut disabled = settings.disabled_tools();
    match disabled.find(|name| tools.iter().any(|tool| tool == name)) {
        Some(name) => {
            anyhow::bail!("--tools {name}: config.toml switches it off with tools.{name}.enabled")
        }
        None => Ok(()),
    }
}

fn options(args: ServeArgs) -> anyhow::Result<ServerOptions> {
    check_enabled(&args.tools)?;
    let rate = |text: &str| match text {
        "off" => Ok(None),
        text => Rate::parse(text)
            .map(Some)
            .context("expected RATE, RATE:BURST or off for a rate"),
    };
    let jwks = match (args.jwks, args.jwt_issuer, args.jwt_audience) {
        (Some(path), Some(issuer), Some(audience)) => {
            Some((path, ExpectedClaims { issuer, audience }))
        }
        _ => None,
    };
    let database = database(args.db)?;
    let mut own = state_dir::own_dirs();
    own.extend(vault::identity_file(&args.vault));
    let keys = [&args.key_file, &args.tls_cert, &args.tls_key];
    own.extend(keys.into_iter().flatten().map(absolute));
    own.extend(jwks.iter().map(|(path, _)| absolute(path)));
    own.push(absolute(&database.with_extension("lock")));
    for file in [database.clone(), server::ledger_path(&database)] {
        own.extend(["", "-wal", "-shm"].map(|end| {
            let mut path = file.clone().into_os_string();
            path.push(end);
            absolute(&PathBuf::from(path))
        }));
    }
    let place = HostSetup {
        data: args.data,
        own,
        resources: host_resources(&args.vars, &args.vault, args.quiet)?,
        ..HostSetup::new(database, session(args.root.as_deref())?)
    };
    Ok(ServerOptions {
        addresses: addresses(args.bind, args.port),
        hosts: args.host,
        origins: args.origin,
        tls: args.tls_cert.zip(args.tls_key),
        is_behind_proxy: args.behind_proxy,
        key_file: args.key_file,
        jwks,
        tools: args.tools,
        tool_rate: rate(&args.tool_rate)?,
        tenant_rate: rate(&args.tenant_rate)?,
        input_recording: if args.ledger_input {
            InputRecording::Always
        } else {
            InputRecording::Never
        },
        collector: args.otlp_endpoint,
        is_quiet: args.quiet,
        log_file: log::file(),
        ..ServerOptions::new(HostSetup {
            root: args.root,
            ..place
        })
    })
}

/// Returns the addresses to listen on: both loopback addresses by default.
fn addresses(named: Vec<IpAddr>, port: u16) -> Vec<SocketAddr> {
    let own = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    let all = match named.is_empty() {
        true => own.to_vec(),
        false => named,
    };
    all.into_iter()
        .map(|ip| SocketAddr::new(ip, port))
        .collect()
}

/// Returns the database and data directory of a server.
pub(super) fn place(data: Option<PathBuf>, db: Option<PathBuf>) -> anyhow::Result<HostSetup> {
    Ok(HostSetup {
        data,
        own: state_dir::own_dirs(),
        ..HostSetup::new(database(db)?, session(None)?)
    })
}

/// Returns the absolute form of a path.
fn absolute(path: &PathBuf) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.clone())
}

/// Opens the store and masks all its values. It must be readable for the secrets that callers may use.
fn host_resources(
    names: &[String],
    flags: &VaultFlags,
    is_quiet: bool,
) -> anyhow::Result<HostResources> {
    let mut recorder = undo_journal::recorder();
    let secrets = Secrets::default();
    secrets.protect_memory_with(guard::protect);
    let given = match names.is_empty() {
        true => vault::GivenArgs::default(),
        false => vault::GivenArgs::store(),
    };
    let opened = vault::prepare(&secrets, flags, None, &given)?;
    // Otherwise the log has it.
    for lack in secrets.load_issues().iter().filter(|_| is_quiet) {
        say(&format!("warning: not masked: {}", lack.error.message));
    }
    if let Some(key) = &opened.journal_key {
        undo_journal::encrypt(&mut recorder, key);
    }
    if !names.is_empty() {
        secrets.refresh(Need::Used);
    }
    let known = |name: &String| {
        let name = vault::name(name)?;
        match secrets.contains(&name) {
            true => Ok(name),
            false => {
                anyhow::bail!("there is no value for {name}; `karyi var set {name}` stores one")
            }
        }
    };
    let names = names.iter().map(known).collect::<anyhow::Result<_>>()?;
    Ok(HostResources {
        models: ConfiguredModels::of_settings(&secrets),
        secrets,
        names,
        recorder,
        settings: config::tool_settings()?,
    })
}

fn session(root: Option<&Path>) -> anyhow::Result<SessionOptions> {
    let current = std::env::current_dir().context("finding the current directory")?;
    let names = shell_names()?;
    Ok(SessionOptions {
        shell: names.requested,
        preferred_shell: names.preferred,
        bootstrap: super::own_program::own_program()?,
        runtime_dir: runtime_dir(),
        cwd: root.map_or(current, Path::to_owned),
        env: std::env::vars_os().collect(),
        overrides: Vec::new(),
        rc: StartupFiles::None,
        fork_state: None,
        secrets: karyi_pty::ShellSecrets::default(),
    })
}

fn shell_names() -> anyhow::Result<ShellNames> {
    ShellNames::find(None, SessionUse::Conversation, &shell::search_path())
}

/// Returns the named database, else the user's own.
pub(super) fn database(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    match named {
        Some(path) => Ok(path),
        None => {
            let path = state_dir::data_dir().context("finding a place for the database")?;
            make_directory(&path)
                .with_context(|| format!("making the directory {}", path.display()))?;
            Ok(path.join("site.db"))
        }
    }
}
