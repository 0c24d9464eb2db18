//! Authenticated callers and their scopes.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

/// Scope to list the tools.
pub const LIST: &str = "tools:list";
/// Prefix of a scope to call the tools of a category.
pub const CALL: &str = "tools:call:";
/// Scope to call tools that models may not call.
pub const INTERNAL: &str = "tools:call:internal";
/// Scope to see drafts.
pub const DRAFT_READ: &str = "content:draft:read";
/// Scope to write drafts.
pub const DRAFT_WRITE: &str = "content:draft:write";

/// Scopes of all site tools, without seeing drafts.
const SITE: &[&str] = &[
    LIST,
    "tools:call:npc",
    "tools:call:content",
    "tools:call:site",
    "tools:call:analytics",
    "tools:call:prompt",
    DRAFT_WRITE,
];

/// Set of names, or all names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameSet {
    /// All names.
    All,
    /// These names.
    Only(Arc<BTreeSet<String>>),
}

impl NameSet {
    /// Builds a set; `*` stands for all names.
    #[must_use]
    pub fn of(names: impl IntoIterator<Item = String>) -> Self {
        let names: BTreeSet<String> = names.into_iter().collect();
        match names.contains("*") {
            true => Self::All,
            false => Self::Only(Arc::new(names)),
        }
    }

    /// Tells whether the set contains a name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
        }
    }
}

/// Strength of authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// None: the caller is on this machine.
    Local,
    /// A key or a token.
    Authenticated,
}

/// Authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Name in the ledger.
    pub id: String,
    /// Strength of the authentication.
    pub proof: Proof,
    /// Tenants the caller may act for.
    pub tenants: NameSet,
    /// Sites the caller may act for.
    pub sites: NameSet,
    /// Scopes.
    pub scopes: NameSet,
}

impl Principal {
    /// Returns the principal of a caller who is not authenticated yet.
    #[must_use]
    pub fn nobody() -> Arc<Self> {
        static NOBODY: LazyLock<Arc<Principal>> = LazyLock::new(|| {
            let none = || NameSet::of([]);
            Arc::new(Principal {
                id: String::new(),
                proof: Proof::Local,
                tenants: none(),
                sites: none(),
                scopes: none(),
            })
        });
        Arc::clone(&NOBODY)
    }

    /// Returns the name in the ledger, if the caller is authenticated.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        (!self.id.is_empty()).then_some(&*self.id)
    }

    /// Returns the principal of local callers, when no key is configured.
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

    /// Tells whether the caller has a scope.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.has(scope)
    }
}
