//! Who calls, and what they may do.

use std::collections::BTreeSet;
use std::sync::Arc;

/// May list the tools.
pub const LIST: &str = "tools:list";
/// What stands before a category in the scope to call its tools.
pub const CALL: &str = "tools:call:";
/// May call tools that models may not.
pub const INTERNAL: &str = "tools:call:internal";
/// May see contents that are not published.
pub const DRAFT_READ: &str = "content:draft:read";
/// May write drafts.
pub const DRAFT_WRITE: &str = "content:draft:write";

/// The scopes of every tool of a site, without seeing drafts.
const SITE: &[&str] = &[
    LIST,
    "tools:call:npc",
    "tools:call:content",
    "tools:call:site",
    "tools:call:analytics",
    "tools:call:prompt",
    DRAFT_WRITE,
];

/// Some names, or all there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameSet {
    /// All.
    All,
    /// These.
    Only(Arc<BTreeSet<String>>),
}

impl NameSet {
    /// Makes them of a list, in which `*` stands for all.
    #[must_use]
    pub fn of(names: impl IntoIterator<Item = String>) -> Self {
        let names: BTreeSet<String> = names.into_iter().collect();
        match names.contains("*") {
            true => Self::All,
            false => Self::Only(Arc::new(names)),
        }
    }

    /// Whether a name is among them.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
        }
    }
}

/// How somebody proved who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Not at all: they are on this machine.
    Local,
    /// With a key or a token.
    Authenticated,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Their name in the ledger.
    pub id: String,
    /// How they proved it.
    pub proof: Proof,
    /// The tenants they may act for.
    pub tenants: NameSet,
    /// The sites they may act for.
    pub sites: NameSet,
    /// What they may do.
    pub scopes: NameSet,
}

impl Principal {
    /// Returns the caller on this machine, where no key is configured.
    #[must_use]
    pub fn local() -> Self {
        Self {
            id: "local".into(),
            proof: Proof::Local,
            tenants: NameSet::All,
            sites: NameSet::All,
            scopes: NameSet::of(SITE.iter().map(|scope| (*scope).to_owned())),
        }
    }

    /// Whether they may do something.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.has(scope)
    }
}
