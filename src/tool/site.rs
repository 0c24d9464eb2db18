//! The site that a call of the server is about, and what its caller may see of it.

use std::sync::Arc;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_store::SiteStore;
use karyi_store::site::Scope;

/// The site that a call is about.
#[derive(Clone)]
pub struct SiteAccess {
    /// The data of sites.
    pub store: Arc<dyn SiteStore>,
    /// Which site, and until when.
    pub scope: Scope,
    /// The user the call is made for.
    pub user_id: Option<String>,
    /// The user's session.
    pub session_id: Option<String>,
    /// The trace of the call.
    pub trace_id: String,
    /// Which contents the caller may see.
    pub sight: Sight,
}

/// Which contents a caller may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Published ones.
    Published,
    /// Also drafts and what is offline.
    Drafts,
}

/// Makes the error of something that a site does not have.
#[must_use]
pub fn not_found(what: &str, id: &str) -> ToolError {
    ToolError::new(ErrorCode::NotFound, format!("{what} not found: {id}"))
        .with_hint("check the identifier, tenant and site")
}
