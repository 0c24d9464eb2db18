//! `karyi mcp`: serves the tools to an MCP client that starts the program.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;

#[cfg(feature = "serve")]
use crate::cli::args::SiteFlags;
use crate::cli::args::{McpApprove, McpArgs, SessionArgs};
#[cfg(feature = "serve")]
use crate::cli::serve;
use crate::cli::shell::{self, SessionUse, ShellNames};
use crate::cli::{control_socket, fail, policy, run, runtime, say, undo_journal, vault};
use crate::exec::cancel::Cancel;
use crate::exec::session_context::SessionContext;
#[cfg(feature = "serve")]
use crate::http::server;
use crate::mcp::executor::PrepareSession;
#[cfg(feature = "serve")]
use crate::mcp::site_tools::{OfferedSite, SiteOptions};
#[cfg(feature = "serve")]
use crate::mcp::stdio::SiteTools;
use crate::mcp::stdio::{self, StdioOptions};
#[cfg(feature = "serve")]
use crate::service::authenticator::Authenticator;
use crate::tool::context::Nobody;
use crate::tools::offer::Offer;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::head_tail::Cap;
use karyi_core::limits;
use karyi_pty::{guard, inherited};
#[cfg(feature = "serve")]
use karyi_store::sqlite::ServerLock;
use karyi_vault::redact::Redactor;
use karyi_vault::session::Secrets;

/// Runs `karyi mcp`.
pub(super) fn mcp(args: McpArgs) -> ExitCode {
    if std::io::stdin().is_terminal() {
        say("this is for an MCP client, which speaks on standard input; see `karyi mcp --help`");
    }
    let runtime = match runtime::runtime(false) {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("{error:#}")),
    };
    let used = Arc::new(OnceLock::new());
    let served = runtime.block_on(async {
        let mut stopped = runtime::stopped()?;
        stdio::serve(options(args, &used)?, stopped()).await
    });
    if let Some(secrets) = used.get() {
        vault::record_use(secrets);
    }
    // A thread may still be blocked on standard input; do not wait for it.
    runtime.shutdown_background();
    match served {
        Ok(0) => ExitCode::SUCCESS,
        Ok(lost) => {
            say(&format!(
                "{lost} records could not be written before the end: the ledger is locked or the disk is full"
            ));
            ExitCode::SUCCESS
        }
        Err(error) => fail(&format!("{error:#}")),
    }
}

fn options(args: McpArgs, used: &Arc<OnceLock<Secrets>>) -> anyhow::Result<StdioOptions> {
    let session = args.session;
    // The writer of a descriptor waits for its reader, and a required store must fail at once.
    let is_eager = session.given.vars_fd.is_some()
        || session.given.require_vault
        || session.vault.age_passphrase_fd.is_some();
    let search_path = shell::search_path();
    let names = ShellNames::find(
        session.shell.as_deref(),
        SessionUse::Conversation,
        &search_path,
    )?;
    let shell = names.description(&search_path);
    // A client shows a plan of its own.
    let offer = session.offer.offer_or(Offer::default().without("plan"))?;
    let (prepare, cwd, report_bytes) = prepare((session, args.approve), used)?;
    #[cfg(feature = "serve")]
    let site = site_tools(args.site, report_bytes)?;
    #[cfg(not(feature = "serve"))]
    let (site, _) = (None, report_bytes);
    let client = inherited::name_of_parent().unwrap_or_default();
    Ok(StdioOptions {
        offer,
        prepare,
        shell,
        is_eager,
        site,
        background: Box::new(move |secrets| {
            Box::new(control_socket::open(("mcp", client), &cwd, secrets))
        }),
    })
}

/// Returns the tools of the site that was named.
#[cfg(feature = "serve")]
fn site_tools(flags: SiteFlags, report_bytes: usize) -> anyhow::Result<Option<Box<dyn SiteTools>>> {
    let Some((tenant, site)) = flags.tenant.zip(flags.site) else {
        return Ok(None);
    };
    let place = serve::place(flags.data, flags.db)?;
    let options = SiteOptions {
        tenant: serve::id(tenant)?,
        site: serve::id(site)?,
        report_bytes,
        open: Box::new(move |secrets| {
            let mut place = place.clone();
            place.resources.secrets = secrets;
            Box::pin(async move {
                let guard = Arc::new(Authenticator::new(None, None));
                let options = server::ServerOptions::new(place);
                let lock = server::lock(&options.host.database, ServerLock::share)?;
                server::open(&options, (lock, guard), None).await
            })
        }),
    };
    Ok(Some(Box::new(OfferedSite::new(options))))
}

/// Returns the function that creates the session, its start directory and the bytes of a result. Checks the options
/// now.
fn prepare(
    (args, approve): (SessionArgs, McpApprove),
    used: &Arc<OnceLock<Secrets>>,
) -> anyhow::Result<(PrepareSession, PathBuf, usize)> {
    let context = run::context(
        &args,
        SessionUse::Conversation,
        &Cancel::default(),
        Arc::new(Nobody),
    )?;
    run::policy_gate(&args, &context).context("reading the options")?;
    let used = Arc::clone(used);
    let prepare = move || {
        let work = begin(&args, approve)?;
        let _ = used.set(work.context.secrets.clone());
        Ok(work)
    };
    Ok((
        Arc::new(prepare),
        context.sessions.cwd(),
        context.shown.report_bytes,
    ))
}

fn begin(args: &SessionArgs, approve: McpApprove) -> Result<SessionContext, ToolError> {
    let broken = |error: anyhow::Error| ToolError::new(ErrorCode::Io, format!("{error:#}"));
    let mut context = run::context(
        args,
        SessionUse::Conversation,
        &Cancel::default(),
        Arc::new(Nobody),
    )
    .map_err(broken)?;
    context.secrets.protect_memory_with(guard::protect);
    context
        .command_timeout
        .get_or_insert(limits::COMMAND_TIMEOUT);
    let opened = vault::prepare(&context.secrets, &args.vault, None, &args.given)?;
    context.saver = opened.saver;
    if let Some(key) = &opened.journal_key {
        undo_journal::encrypt(&mut context.recorder, key);
    }
    let mut policy_gate = run::policy_gate(args, &context).map_err(broken)?;
    policy_gate.compare_names(&vault::known_names(&context.secrets))?;
    if approve == McpApprove::Ask {
        let approvals = policy::approvals(&context.sessions.cwd(), None, None).map_err(broken)?;
        policy_gate = policy_gate.with_approvals(approvals);
    }
    let redactor = Redactor::new(&context.secrets);
    for unknown in policy_gate.unknown() {
        // A misplaced argument may be a value.
        say(&redactor.redact_str(&format!("warning: {unknown}")));
    }
    let logs = run::logs(args, SessionUse::Conversation, &context);
    let cap = Cap::total(context.shown.output_bytes);
    Ok(SessionContext::new(context, policy_gate, logs, cap))
}
