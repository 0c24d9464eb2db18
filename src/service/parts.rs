//! What a desk is made of.

use std::sync::Arc;

use crate::service::guard::Guard;
use crate::service::log::Log;
use crate::service::offer::Offered;
use crate::service::rates::Rate;
use crate::service::running::Local;
use crate::service::spans::Spans;
use crate::tool::Context;
use karyi_store::{Ledger, SiteStore};
use karyi_vault::redact::Redactor;

/// What a desk is made of.
pub struct Parts {
    /// The tools it offers.
    pub tools: Vec<Offered>,
    /// The data of sites.
    pub sites: Arc<dyn SiteStore>,
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// Who callers are.
    pub guard: Arc<Guard>,
    /// How often one principal may call one tool for one tenant.
    pub tool_rate: Option<Rate>,
    /// How often may be called for one tenant.
    pub tenant_rate: Option<Rate>,
    /// What tools of sites may use beside their site.
    pub context: Context,
    /// The tools that work on this machine.
    pub local: Local,
    /// Whether the ledger keeps inputs.
    pub keep: KeepInput,
    /// Masks the secrets of the one who runs the server in what callers wrote.
    pub redactor: Redactor,
    /// Where log lines go.
    pub log: Log,
    /// Where spans go, when somebody wants them.
    pub spans: Option<Spans>,
}

/// Whether the ledger keeps inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepInput {
    /// Only their hash.
    Never,
    /// Every one.
    Always,
}
