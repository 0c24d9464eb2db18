//! Messages on a control socket: frames, each its length in four bytes, the highest first, and so many bytes.
//!
//! The session speaks first, [`Reply::Hello`] or a refusal. The other side sends one [`SetSecret`] and reads one reply.
//! Messages are JSON; a value stands behind that and a zero byte as it is, so that no part of it is copied on the way.

use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::render::paint::safe_line;
use crate::secret::{SecretName, SecretValue};
use crate::vault::policy::Policy;

/// Raised by a change that the other side would misunderstand.
pub(super) const VERSION: u32 = 1;

/// Description of a session by itself, which proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: u32,
    /// `run` or `mcp`.
    pub(super) what: String,
    /// The script, or the client.
    pub(super) source: String,
    pub(super) cwd: String,
    pub(super) since: Timestamp,
}

/// A message of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reply {
    Hello(Hello),
    Done,
    Refused(Refusal),
}

/// An error of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    code: String,
    message: String,
    hint: String,
}

impl Refusal {
    pub(super) fn into_error(self) -> ToolError {
        let mut known = ErrorCode::ALL.iter();
        let code = known.find(|known| known.as_str() == self.code);
        let code = code.copied().unwrap_or(ErrorCode::Io);
        ToolError::new(code, safe_line(&self.message)).with_hint(safe_line(&self.hint))
    }
}

impl Reply {
    pub(super) fn refused(error: ToolError) -> Self {
        Self::Refused(Refusal {
            code: error.code.as_str().to_owned(),
            message: error.message,
            hint: error.hint,
        })
    }

    /// Returns it as a frame.
    pub(super) fn frame(&self) -> io::Result<Vec<u8>> {
        let bytes = serde_json::to_vec(self)?;
        let mut frame = length_of(bytes.len())?.to_vec();
        frame.extend(bytes);
        Ok(frame)
    }

    /// Reads one.
    pub(super) async fn read(source: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        Ok(serde_json::from_slice(&read(source).await?)?)
    }
}

/// Request to take a value with its policy.
pub(in crate::cli) struct SetSecret {
    pub(in crate::cli) name: SecretName,
    pub(in crate::cli) policy: Policy,
    pub(in crate::cli) value: SecretValue,
}

/// The part before the value.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    name: String,
    policy: Policy,
}

impl SetSecret {
    /// Sends it.
    pub(super) async fn write(&self, target: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let head = serde_json::to_vec(&Head {
            version: VERSION,
            name: self.name.as_str().to_owned(),
            policy: self.policy.clone(),
        })?;
        let value = self.value.expose().as_bytes();
        let length = length_of(head.len() + 1 + value.len())?;
        for part in [&length[..], &head, &[0], value] {
            target.write_all(part).await?;
        }
        target.flush().await
    }

    /// Reads one.
    ///
    /// # Errors
    /// `bad_arguments` for what is none, and `io_error` when it does not come to its end.
    pub(super) async fn read(source: &mut (impl AsyncRead + Unpin)) -> Result<Self, ToolError> {
        let bytes = read(source).await.map_err(|error| {
            let code = match error.kind() {
                io::ErrorKind::InvalidData => ErrorCode::BadArguments,
                _ => ErrorCode::Io,
            };
            ToolError::new(code, format!("the value did not come: {error}"))
        })?;
        Self::parse(&bytes).ok_or_else(|| {
            let message = "expected a value from a karyi of the same version, found something else";
            ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("start the session again with this karyi")
        })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let end = memchr::memchr(0, bytes)?;
        let head: Head = serde_json::from_slice(bytes.get(..end)?).ok()?;
        let value = std::str::from_utf8(bytes.get(end + 1..)?).ok()?;
        Some(Self {
            name: SecretName::parse(&head.name).filter(|_| head.version == VERSION)?,
            policy: head.policy,
            value: SecretValue::new(value.to_owned()),
        })
    }
}

/// Returns the length of a frame as it stands before it.
fn length_of(bytes: usize) -> io::Result<[u8; 4]> {
    let length = u32::try_from(bytes).ok();
    let length = length.filter(|_| bytes <= limits::MAX_CONTROL_FRAME_BYTES);
    length.map(u32::to_be_bytes).ok_or_else(too_long)
}

/// Reads the bytes of one frame.
async fn read(source: &mut (impl AsyncRead + Unpin)) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut length = [0; 4];
    source.read_exact(&mut length).await?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > limits::MAX_CONTROL_FRAME_BYTES {
        return Err(too_long());
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    source.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn too_long() -> io::Error {
    let most = limits::MAX_CONTROL_FRAME_BYTES;
    let message = format!("expected at most {most} bytes with the policy, found more");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> SetSecret {
        SetSecret {
            name: SecretName::parse("TOKEN").unwrap(),
            policy: Policy {
                write: true,
                ..Policy::default()
            },
            value: SecretValue::new("v\u{e4}lue\n\"of 12".into()),
        }
    }

    async fn bytes(request: &SetSecret) -> Vec<u8> {
        let mut bytes = Vec::new();
        request.write(&mut bytes).await.unwrap();
        bytes
    }

    /// Gives the bytes in two parts and reads a request of them.
    async fn read_in_parts(bytes: &[u8], at: usize) -> Result<SetSecret, ToolError> {
        let (first, second) = bytes.split_at(at);
        let (mut near, mut far) = tokio::io::duplex(bytes.len().max(1));
        let (request, ()) = tokio::join!(SetSecret::read(&mut near), async {
            far.write_all(first).await.unwrap();
            tokio::task::yield_now().await;
            far.write_all(second).await.unwrap();
            drop(far);
        });
        request
    }

    #[tokio::test]
    async fn a_gift_comes_whole_in_any_two_parts() {
        let (sent, bytes) = (request(), bytes(&request()).await);
        for at in 0..=bytes.len() {
            let request = read_in_parts(&bytes, at).await.ok().unwrap();
            assert_eq!(
                (request.name, request.policy, request.value.expose()),
                (sent.name.clone(), sent.policy.clone(), sent.value.expose())
            );
        }
        // What is cut off is none, wherever that is.
        for end in 0..bytes.len() {
            let cut = read_in_parts(&bytes[..end], end / 2).await.err().unwrap();
            assert_eq!(cut.code, ErrorCode::Io, "{end}");
        }
    }

    #[tokio::test]
    async fn a_reply_comes_whole_in_any_two_parts() {
        let hello = Reply::Hello(Hello {
            version: VERSION,
            what: "run".into(),
            source: "a.xml".into(),
            cwd: "/w".into(),
            since: Timestamp::UNIX_EPOCH,
        });
        let refused = Reply::refused(ToolError::new(ErrorCode::BadValue, "m"));
        for reply in [hello, Reply::Done, refused] {
            let bytes = reply.frame().unwrap();
            for at in 0..=bytes.len() {
                let mut source = (&bytes[..at]).chain(&bytes[at..]);
                assert_eq!(Reply::read(&mut source).await.unwrap(), reply);
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_gift_is_refused() {
        let other = |text: &str| {
            let mut bytes = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
            bytes.extend(text.as_bytes());
            bytes
        };
        let good = bytes(&request()).await;
        let good = std::str::from_utf8(&good[4..]).unwrap();
        let later = good.replace("\"version\":1", "\"version\":2");
        let most = u32::try_from(limits::MAX_CONTROL_FRAME_BYTES).unwrap();
        let mut latin = other(good);
        *latin.last_mut().unwrap() = 0xe4;
        for bytes in [
            (most + 1).to_be_bytes().to_vec(),
            u32::MAX.to_be_bytes().to_vec(),
            other(""),
            other("GET / HTTP/1.1\r\n\r\n"),
            other(&good.replace('\0', "")),
            other(&good.replace("TOKEN", "a b")),
            other(&good.replace("\"write\":true", "\"write\":1")),
            other(&later),
            latin,
        ] {
            let error = SetSecret::read(&mut &bytes[..]).await.err().unwrap();
            assert_eq!(error.code, ErrorCode::BadArguments, "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn what_is_too_long_is_not_sent() {
        let long = SetSecret {
            value: SecretValue::new("x".repeat(limits::MAX_CONTROL_FRAME_BYTES)),
            ..request()
        };
        let mut sent = Vec::new();
        let error = long.write(&mut sent).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(sent, b"");
    }
}
