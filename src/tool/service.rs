//! What callers of a server must know of a tool, beyond its declaration.

use std::time::Duration;

use karyi_core::limits;

/// What callers of a server must know of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// The category it is listed under; a caller needs the scope `tools:call:CATEGORY`.
    pub category: &'static str,
    /// Version of its input and output.
    pub version: &'static str,
    /// Whether it changes anything.
    pub access: Access,
    /// Whether a model may decide to call it.
    pub audience: Audience,
    /// Scopes a caller needs beside that of the category.
    pub scopes: &'static [&'static str],
    /// What a client may tell its user before a call.
    pub hints: Hints,
}

/// What a call does, as far as a client may tell its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub is_read_only: bool,
    /// What it changes may be lost.
    pub is_destructive: bool,
    /// To call it again with the same arguments changes nothing more.
    pub is_idempotent: bool,
    /// It may reach whatever there is, beyond what karyi keeps.
    pub is_open_world: bool,
}

impl Hints {
    /// It only looks.
    pub const LOOKS: Self = Self {
        is_read_only: true,
        is_destructive: false,
        is_idempotent: true,
        is_open_world: false,
    };
    /// It adds something.
    pub const ADDS: Self = Self {
        is_read_only: false,
        is_destructive: false,
        is_idempotent: false,
        is_open_world: false,
    };
    /// It changes what is there.
    pub const CHANGES: Self = Self {
        is_destructive: true,
        ..Self::ADDS
    };
    /// It does whatever it is told.
    pub const ACTS: Self = Self {
        is_open_world: true,
        ..Self::CHANGES
    };
}

/// Whether a tool changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It only looks; it may be called again after any failure.
    Read,
    /// It changes something every time it is called.
    Write,
}

/// Who may call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Models too.
    Anyone,
    /// Only services with the scope `tools:call:internal`.
    Internal,
}

impl Service {
    /// A tool that works on this machine; a server offers it only when told to.
    pub const LOCAL: Self = Self {
        category: "local",
        version: env!("CARGO_PKG_VERSION"),
        access: Access::Write,
        audience: Audience::Anyone,
        scopes: &[],
        hints: Hints::ACTS,
    };

    /// Makes a tool of a site that only looks.
    #[must_use]
    pub const fn reads(category: &'static str) -> Self {
        Self {
            category,
            version: "1.0.0",
            access: Access::Read,
            audience: Audience::Anyone,
            scopes: &[],
            hints: Hints::LOOKS,
        }
    }

    /// Makes a tool of a site that changes something.
    #[must_use]
    pub const fn writes(category: &'static str) -> Self {
        Self {
            access: Access::Write,
            hints: Hints::ADDS,
            ..Self::reads(category)
        }
    }

    /// Adds scopes that a caller needs.
    #[must_use]
    pub const fn needing(self, scopes: &'static [&'static str]) -> Self {
        Self { scopes, ..self }
    }

    /// Says what a client may tell its user.
    #[must_use]
    pub const fn hinting(self, hints: Hints) -> Self {
        Self { hints, ..self }
    }

    /// Returns how long a call may take.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        match (self.category, self.access) {
            ("local", _) => limits::MAX_CALL_TIMEOUT,
            (_, Access::Read) => limits::READ_CALL_TIMEOUT,
            (_, Access::Write) => limits::WRITE_CALL_TIMEOUT,
        }
    }
}
