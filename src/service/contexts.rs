//! Pool of contexts for site tools.
//!
//! A context holds a dozen reference counts. Updating them for every call on two processors costs
//! more than the search.

use crate::service::shards::Shards;
use crate::tool::{Context, SiteAccess};
use karyi_core::limits;

/// Pooled contexts without a site.
pub(super) struct Contexts {
    base: Context,
    spare: Shards<Vec<Context>>,
}

impl Contexts {
    /// Creates a pool of copies of one context.
    pub(super) fn new(base: Context) -> Self {
        Self {
            base,
            spare: Shards::default(),
        }
    }

    /// Returns a context for a call on a site.
    pub(super) fn of(&self, site: SiteAccess) -> Context {
        let spare = self.spare.own().pop();
        let mut context = spare.unwrap_or_else(|| self.base.clone());
        context.site = Some(site);
        context
    }

    /// Returns a context to the pool. The context of an abandoned call is dropped with the call.
    pub(super) fn give_back(&self, mut context: Context) {
        context.site = None;
        let mut spare = self.spare.own();
        if spare.len() < limits::SPARE_CONTEXTS {
            spare.push(context);
        }
    }
}
