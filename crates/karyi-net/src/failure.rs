//! Translates errors of the libraries below.

use std::error::Error;
use std::io;

use tokio_rustls::rustls;

use crate::error::{NetError, NetErrorKind};

/// Makes an error from a failed exchange with a host.
pub(crate) fn translate(error: &reqwest::Error, host: &str) -> NetError {
    NetError {
        // Looking the name up, connecting and agreeing on keys come before the first byte of a request.
        may_have_arrived: !error.is_connect(),
        ..account(error, host)
    }
}

/// Returns true when no program listens at the address.
pub(crate) fn is_refused_connection(error: &reqwest::Error) -> bool {
    // The last address that was tried may be one that the machine does not have.
    let is_refusal = |cause: &io::Error| {
        matches!(
            cause.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::AddrNotAvailable
                | io::ErrorKind::NetworkUnreachable
        )
    };
    let causes = causes(error);
    let mut causes = causes
        .iter()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    error.is_connect() && causes.any(is_refusal)
}

fn account(error: &reqwest::Error, host: &str) -> NetError {
    let chain = causes(error);
    // The text of the outer errors has the whole URL.
    let cause = chain.last().map(ToString::to_string).unwrap_or_default();
    if chain.iter().any(|error| is_encryption(*error)) {
        let message = format!("encrypting the connection to {host}: {cause}");
        return NetError::new(NetErrorKind::Encryption, message);
    }
    if error.is_timeout() {
        return NetError::new(
            NetErrorKind::Timeout,
            format!("connecting to {host}: {cause}"),
        );
    }
    if error.is_connect() {
        return NetError::new(
            NetErrorKind::Connect,
            format!("connecting to {host}: {cause}"),
        );
    }
    if chain.iter().any(|error| is_malformed(*error)) {
        let message = format!("reading the answer of {host}: {cause}");
        return NetError::new(NetErrorKind::Protocol, message);
    }
    let message = format!("the connection to {host} was cut: {cause}");
    NetError::new(NetErrorKind::Cut, message)
}

/// Returns an error and its causes, the first cause last.
pub(crate) fn causes(error: &reqwest::Error) -> Vec<&(dyn Error + 'static)> {
    let mut chain = Vec::new();
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        chain.push(cause);
        next = cause.source();
    }
    chain
}

fn is_encryption(error: &(dyn Error + 'static)) -> bool {
    // An I/O error does not list the error it wraps as its source, but that error's source.
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    error.is::<rustls::Error>() || wrapped.is_some_and(|inner| is_encryption(inner))
}

/// Tells whether bytes arrived that are not what HTTP or their encoding allows.
fn is_malformed(error: &(dyn Error + 'static)) -> bool {
    let http = error.downcast_ref::<hyper::Error>();
    let data = error.downcast_ref::<io::Error>().map(io::Error::kind);
    http.is_some_and(|error| error.is_parse() || error.is_parse_too_large())
        || matches!(
            data,
            Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
        )
}
