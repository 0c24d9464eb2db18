//! Failures of an exchange.

/// Kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetErrorKind {
    /// The address is not valid.
    Address,
    /// A header cannot be written, or a file of certificates cannot be read.
    Settings,
    /// The guard does not admit the URL, one of its addresses or a redirect.
    Refused,
    /// A key would travel unencrypted.
    Plain,
    /// The server cannot be reached.
    Connect,
    /// The server's certificate is not trusted, or encryption fails.
    Encryption,
    /// The connection was cut.
    Cut,
    /// Nothing arrived in time.
    Timeout,
    /// The server speaks no HTTP, or more than a limit permits.
    Protocol,
}

/// Failure of an exchange. The message names the host, never a header or the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NetError {
    /// Kind.
    pub kind: NetErrorKind,
    /// Account of the failure.
    pub message: String,
}

impl NetError {
    /// Makes an error.
    #[must_use]
    pub fn new(kind: NetErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message }
    }
}
