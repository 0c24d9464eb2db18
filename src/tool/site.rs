//! The site of a server call and the caller's access to it.

use std::sync::Arc;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_store::SiteStore;
use karyi_store::site::Scope;

/// The site of a call.
#[derive(Clone)]
pub struct SiteAccess {
    /// The data of sites.
    pub store: Arc<dyn SiteStore>,
    /// The site, with the deadline of the call.
    pub scope: Scope,
    /// The user the call is made for.
    pub user_id: Option<String>,
    /// The user's session.
    pub session_id: Option<String>,
    /// The trace of the call.
    pub trace_id: String,
    /// Contents the caller may see.
    pub visibility: ContentVisibility,
}

/// Contents a caller may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentVisibility {
    /// Published content.
    Published,
    /// Drafts and offline content as well.
    Drafts,
}

/// Returns the error of something a site does not have.
#[must_use]
pub fn not_found(what: &str, id: &str) -> ToolError {
    ToolError::new(ErrorCode::NotFound, format!("{what} not found: {id}"))
        .with_hint("check the identifier, tenant and site")
}
