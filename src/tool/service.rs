//! Properties of a tool for the callers of a server.

use std::time::Duration;

use karyi_core::limits;

/// Properties of a tool for the callers of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// Its category; a caller needs the scope `tools:call:CATEGORY`.
    pub category: &'static str,
    /// Version of its input and output.
    pub version: &'static str,
    /// Read or write access.
    pub access: Access,
    /// Callers that may use it.
    pub audience: Audience,
    /// Further scopes a caller needs.
    pub scopes: &'static [&'static str],
    /// Hints about a call for clients.
    pub hints: Hints,
}

/// Hints about a call for clients, as in MCP tool annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// The call changes nothing.
    pub is_read_only: bool,
    /// The call may destroy data.
    pub is_destructive: bool,
    /// Repeating the call has no further effect.
    pub is_idempotent: bool,
    /// The call may reach anything outside karyi.
    pub is_open_world: bool,
}

impl Hints {
    /// A call that only reads.
    pub const READ_ONLY: Self = Self {
        is_read_only: true,
        is_destructive: false,
        is_idempotent: true,
        is_open_world: false,
    };
    /// A call that adds data.
    pub const ADDITIVE: Self = Self {
        is_read_only: false,
        is_destructive: false,
        is_idempotent: false,
        is_open_world: false,
    };
    /// A call that changes existing data.
    pub const DESTRUCTIVE: Self = Self {
        is_destructive: true,
        ..Self::ADDITIVE
    };
    /// A call that may do anything.
    pub const OPEN_WORLD: Self = Self {
        is_open_world: true,
        ..Self::DESTRUCTIVE
    };
}

/// Access of a tool to data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only reads; may be retried after any failure.
    Read,
    /// Changes something with every call.
    Write,
}

/// Callers that may use a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Everyone, including models.
    Anyone,
    /// Only services with the scope `tools:call:internal`.
    Internal,
}

impl Service {
    /// A tool that works on this machine; a server offers it only when configured to.
    pub const LOCAL: Self = Self {
        category: "local",
        version: env!("CARGO_PKG_VERSION"),
        access: Access::Write,
        audience: Audience::Anyone,
        scopes: &[],
        hints: Hints::OPEN_WORLD,
    };

    /// Returns the properties of a site tool that only reads.
    #[must_use]
    pub const fn reading(category: &'static str) -> Self {
        Self {
            category,
            version: "1.0.0",
            access: Access::Read,
            audience: Audience::Anyone,
            scopes: &[],
            hints: Hints::READ_ONLY,
        }
    }

    /// Returns the properties of a site tool that changes something.
    #[must_use]
    pub const fn writing(category: &'static str) -> Self {
        Self {
            access: Access::Write,
            hints: Hints::ADDITIVE,
            ..Self::reading(category)
        }
    }

    /// Adds scopes that a caller needs.
    #[must_use]
    pub const fn with_scopes(self, scopes: &'static [&'static str]) -> Self {
        Self { scopes, ..self }
    }

    /// Sets the hints for clients.
    #[must_use]
    pub const fn with_hints(self, hints: Hints) -> Self {
        Self { hints, ..self }
    }

    /// Returns the time limit of a call.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        match (self.category, self.access) {
            ("local", _) => limits::MAX_CALL_TIMEOUT,
            (_, Access::Read) => limits::READ_CALL_TIMEOUT,
            (_, Access::Write) => limits::WRITE_CALL_TIMEOUT,
        }
    }
}
