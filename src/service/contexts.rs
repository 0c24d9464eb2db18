//! What tools of sites work with, used again by the next call.
//!
//! A context holds a dozen shared things; to count their users up and down for every call on two
//! processors at a time costs more than the search.

use crate::service::shards::Shards;
use crate::tool::{Context, SiteAccess};
use karyi_core::limits;

/// Contexts without a site.
pub(super) struct Contexts {
    base: Context,
    spare: Shards<Vec<Context>>,
}

impl Contexts {
    /// Makes them of one.
    pub(super) fn new(base: Context) -> Self {
        Self {
            base,
            spare: Shards::default(),
        }
    }

    /// Returns one for a call that is about a site.
    pub(super) fn of(&self, site: SiteAccess) -> Context {
        let spare = self.spare.own().pop();
        let mut context = spare.unwrap_or_else(|| self.base.clone());
        context.site = Some(site);
        context
    }

    /// Takes one back; of a call that was given up it is gone with the call.
    pub(super) fn give_back(&self, mut context: Context) {
        context.site = None;
        let mut spare = self.spare.own();
        if spare.len() < limits::SPARE_CONTEXTS {
            spare.push(context);
        }
    }
}
