//! Response of a server, read whole or piece by piece.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;

use crate::error::{NetError, NetErrorKind};
use crate::failure::translate;

/// Response of a server. Dropping it before its end closes the connection.
#[derive(Debug)]
pub struct HttpResponse {
    pub(crate) inner: reqwest::Response,
    pub(crate) host: String,
    pub(crate) idle: Option<Duration>,
}

impl HttpResponse {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// Returns true for a status that means success.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.inner.status().is_success()
    }

    /// Returns the headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Returns a header that is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// Returns the next piece of the body; nothing at its end. A call that is dropped before it returns loses
    /// nothing.
    ///
    /// # Errors
    /// The connection is cut, or nothing arrives in time.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        let next = self.inner.chunk();
        let next = match self.idle {
            Some(idle) => match tokio::time::timeout(idle, next).await {
                Ok(next) => next,
                Err(_) => {
                    let seconds = idle.as_secs_f64();
                    let message = format!("{} sent nothing for {seconds} s", self.host);
                    return Err(NetError::new(NetErrorKind::Timeout, message));
                }
            },
            None => next.await,
        };
        next.map_err(|error| translate(&error, &self.host))
    }

    /// Returns the URL that answered.
    #[must_use]
    pub fn url(&self) -> &str {
        self.inner.url().as_str()
    }

    /// Returns the body up to `most` bytes, and true when there is more of it.
    ///
    /// # Errors
    /// As [`Self::chunk`].
    pub async fn body_up_to(mut self, most: usize) -> Result<(Vec<u8>, bool), NetError> {
        let mut body = Vec::new();
        while body.len() <= most
            && let Some(piece) = self.chunk().await?
        {
            body.extend_from_slice(&piece);
        }
        let is_cut = body.len() > most;
        body.truncate(most);
        Ok((body, is_cut))
    }

    /// Returns the whole body.
    ///
    /// # Errors
    /// As [`Self::chunk`], or the body is longer than `most` bytes.
    pub async fn bytes(mut self, most: usize) -> Result<Bytes, NetError> {
        let mut body = BytesMut::new();
        while let Some(piece) = self.chunk().await? {
            if body.len() + piece.len() > most {
                let message = format!("the answer of {} is longer than {most} bytes", self.host);
                return Err(NetError::new(NetErrorKind::Protocol, message));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }

    /// Returns the start of the body, as far as it arrives and up to `most` bytes: the account of an error is of use
    /// without its end, too.
    pub async fn start(mut self, most: usize) -> Bytes {
        let mut body = BytesMut::new();
        while body.len() < most
            && let Ok(Some(piece)) = self.chunk().await
        {
            body.extend_from_slice(&piece);
        }
        body.truncate(most);
        body.freeze()
    }
}
