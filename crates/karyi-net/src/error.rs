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
    /// True when the server may have got the request.
    pub may_have_arrived: bool,
    /// Redirect after which the exchange failed.
    pub redirect: Option<Box<RedirectAnswer>>,
}

/// Answer that leads elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectAnswer {
    /// Status.
    pub status: u16,
    /// Absolute URL that it leads to, if it is one with http or https.
    pub location: Option<String>,
}

impl NetError {
    /// Makes an error of an exchange in which nothing was sent.
    #[must_use]
    pub fn new(kind: NetErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            may_have_arrived: false,
            redirect: None,
        }
    }
}
