//! What a dispatcher is made of.

use std::sync::Arc;

use crate::service::authenticator::Authenticator;
use crate::service::catalog::OfferedTool;
use crate::service::deadline::LocalTools;
use crate::service::log::Log;
use crate::service::rate_limit::Rate;
use crate::service::spans::SpanSender;
use crate::tool::Context;
use karyi_store::{Ledger, SiteStore};
use karyi_vault::redact::Redactor;

/// What a dispatcher is made of.
pub struct DispatcherConfig {
    /// The tools it offers.
    pub tools: Vec<OfferedTool>,
    /// The data of sites.
    pub sites: Arc<dyn SiteStore>,
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// Who callers are.
    pub authenticator: Arc<Authenticator>,
    /// How often one principal may call one tool for one tenant.
    pub tool_rate: Option<Rate>,
    /// How often may be called for one tenant.
    pub tenant_rate: Option<Rate>,
    /// What tools of sites may use beside their site.
    pub context: Context,
    /// The tools that work on this machine.
    pub local: Option<Arc<dyn LocalTools>>,
    /// Whether the ledger keeps inputs.
    pub input_recording: InputRecording,
    /// Masks the secrets of the one who runs the server in what callers wrote.
    pub redactor: Redactor,
    /// Where log lines go.
    pub log: Log,
    /// Where spans go, when somebody wants them.
    pub spans: Option<SpanSender>,
}

/// Whether the ledger keeps inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRecording {
    /// Only their hash.
    Never,
    /// Every one.
    Always,
}
