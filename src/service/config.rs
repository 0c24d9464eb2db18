//! Configuration of a [`Dispatcher`](crate::service::Dispatcher).

use std::sync::Arc;

use crate::service::authenticator::Authenticator;
use crate::service::catalog::OfferedTool;
use crate::service::local_tools::LocalTools;
use crate::service::log::Log;
use crate::service::rate_limit::Rate;
use crate::service::spans::SpanSender;
use crate::tool::Context;
use karyi_store::{Ledger, SiteStore};
use karyi_vault::redact::Redactor;

/// Stores, tools and limits of a dispatcher.
pub struct DispatcherConfig {
    /// Tools on offer.
    pub tools: Vec<OfferedTool>,
    /// Database of site data.
    pub sites: Arc<dyn SiteStore>,
    /// Ledger of all requests.
    pub ledger: Arc<dyn Ledger>,
    /// Checks credentials.
    pub authenticator: Arc<Authenticator>,
    /// Rate limit for one principal, tenant and tool.
    pub tool_rate: Option<Rate>,
    /// Rate limit for one tenant.
    pub tenant_rate: Option<Rate>,
    /// Context of site tools, without the site itself.
    pub context: Context,
    /// Runs the tools that work on this machine.
    pub local: Option<Arc<dyn LocalTools>>,
    /// Controls what the ledger stores of inputs.
    pub input_recording: InputRecording,
    /// Masks the operator's secrets in text from callers.
    pub redactor: Redactor,
    /// Destination of log lines.
    pub log: Log,
    /// Destination of spans, when a collector is configured.
    pub spans: Option<SpanSender>,
}

/// Policy for storing inputs in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRecording {
    /// Only a hash.
    Never,
    /// The whole input.
    Always,
}
