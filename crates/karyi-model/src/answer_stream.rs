//! Stream of one answer: bytes of the response to events, within the time limits.

use std::time::{Duration, Instant};

use crate::answer::ModelEvent;
use crate::error::{ModelError, ModelErrorKind};
use crate::exchange::{Exchange, ModelLimits, network};
use crate::frame::Frame;
use crate::protocol::{DecodeError, Decoder, Progress, Reader};
use crate::{server_error, server_json};
use karyi_core::limits;
use karyi_net::HttpResponse;

/// Stream of one answer.
pub(crate) struct AnswerStream {
    response: HttpResponse,
    reader: Reader,
    decoder: Box<dyn Decoder>,
    limits: ModelLimits,
    /// Start of a body that is perhaps no stream; empty once it is one.
    start: Vec<u8>,
    kind: BodyKind,
    progress: Progress,
    /// Time of the last event, or of the reason for the end.
    last_event: Instant,
}

/// Kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    /// Nothing but white space has arrived.
    Unknown,
    /// A stream.
    Stream,
    /// Something else: one JSON value, or a web page.
    Foreign,
}

impl AnswerStream {
    /// Makes the stream of a response.
    pub(crate) fn new(
        response: HttpResponse,
        reader: Reader,
        decoder: Box<dyn Decoder>,
        limits: ModelLimits,
    ) -> Self {
        let is_page = response
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/html"));
        Self {
            response,
            reader,
            decoder,
            limits,
            start: Vec::new(),
            kind: if is_page {
                BodyKind::Foreign
            } else {
                BodyKind::Unknown
            },
            progress: Progress::More,
            last_event: Instant::now(),
        }
    }

    /// Reads one piece, and adds its events; returns false after the last one.
    pub(crate) async fn read(
        &mut self,
        exchange: &Exchange,
        events: &mut Vec<ModelEvent>,
    ) -> Result<bool, ModelError> {
        let piece = match self.remaining() {
            Some(left) => tokio::time::timeout(left, self.response.chunk()).await,
            None => Ok(self.response.chunk().await),
        };
        let mut frames = Vec::new();
        let fed = match piece {
            Ok(Ok(Some(bytes))) => self.feed(&bytes, &mut frames).map(|()| true),
            Ok(Ok(None)) => {
                self.reader.finish(&mut frames);
                Ok(false)
            }
            // The answer is complete without the counts that could have followed.
            _ if self.progress == Progress::Tail => Ok(false),
            Ok(Err(error)) => Err(network(&error)),
            Err(_) => Err(self.no_progress(exchange)),
        };
        let goes_on = match (self.decode(exchange, &frames, events), fed) {
            (Err(error), _) => Err(error),
            (Ok(Progress::Done), _) => Ok(false),
            // What cannot be read behind the end is of no concern.
            (Ok(Progress::Tail), Err(_)) => Ok(false),
            (Ok(_), fed) => fed,
        };
        match goes_on {
            Ok(true)
                if self.kind == BodyKind::Foreign
                    && self.start.len() >= limits::MODEL_ERROR_BYTES =>
            {
                Err(self.incomplete(exchange))
            }
            Ok(true) => Ok(true),
            Ok(false) => self.end(exchange, events),
            Err(error) => {
                // What was held back belongs to the answer.
                let _ = self.decoder.finish(events);
                Err(exchange.hidden(error))
            }
        }
    }

    /// Returns the time that is left until the next event.
    fn remaining(&self) -> Option<Duration> {
        let limit = match self.progress {
            Progress::Tail => Some(self.limits.tail),
            Progress::More | Progress::Done => self.limits.progress,
        };
        limit.map(|limit| limit.saturating_sub(self.last_event.elapsed()))
    }

    fn feed(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), ModelError> {
        if self.kind == BodyKind::Unknown {
            let text = bytes
                .strip_prefix(b"\xef\xbb\xbf")
                .unwrap_or(bytes)
                .trim_ascii_start();
            self.kind = match text.first() {
                None => BodyKind::Unknown,
                Some(first) if self.reader.is_foreign(*first) => BodyKind::Foreign,
                Some(_) => BodyKind::Stream,
            };
        }
        if self.kind == BodyKind::Foreign {
            self.start.extend_from_slice(bytes);
            return Ok(());
        }
        self.reader.feed(bytes, frames)
    }

    fn decode(
        &mut self,
        exchange: &Exchange,
        frames: &[Frame],
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError> {
        // Some servers send empty events as signs of life.
        let full = |frame: &&Frame| !frame.data.trim_ascii().is_empty();
        for frame in frames.iter().filter(full) {
            self.last_event = match self.progress {
                // Counts do not extend the time for counts.
                Progress::Tail => self.last_event,
                Progress::More | Progress::Done => Instant::now(),
            };
            let read = self.decoder.read(frame, events);
            let progress = match read {
                Ok(progress) => progress,
                // The answer is complete; a failure behind it concerns the counts.
                Err(_) if self.progress == Progress::Tail => Progress::Done,
                Err(error) => return Err(reported(exchange, error)),
            };
            self.progress = self.progress.max(progress);
            if self.progress == Progress::Done {
                break;
            }
        }
        Ok(self.progress)
    }

    /// Ends the answer with its reason, or an error without one.
    fn end(
        &mut self,
        exchange: &Exchange,
        events: &mut Vec<ModelEvent>,
    ) -> Result<bool, ModelError> {
        match self.decoder.finish(events) {
            Some(stop) => {
                events.push(ModelEvent::Stop(stop));
                Ok(false)
            }
            None => Err(exchange.hidden(self.incomplete(exchange))),
        }
    }

    /// Makes the error of a body that ended without a reason.
    fn incomplete(&self, exchange: &Exchange) -> ModelError {
        let host = &exchange.subject.host;
        if self.kind != BodyKind::Foreign {
            let message = format!("the answer of {host} broke off: it has no reason for its end");
            return ModelError::new(ModelErrorKind::Protocol, message).with_hint("ask again");
        }
        let status = self.response.status();
        let value = server_json::parse_bytes(&self.start).ok();
        if let Some(account) = value.as_ref().and_then(server_error::account) {
            return exchange.reported(Some(status), &account);
        }
        let found = match value {
            Some(_) => "one JSON value instead of a stream",
            None => "a web page or text instead of a stream",
        };
        let message = format!("{host} answers with {found} (status {status})");
        let mut error = ModelError::new(ModelErrorKind::Protocol, message);
        error.status = Some(status);
        error
    }

    fn no_progress(&self, exchange: &Exchange) -> ModelError {
        let seconds = self.limits.progress.unwrap_or_default().as_secs_f64();
        let message = format!(
            "{} sent nothing of an answer for {seconds} s",
            exchange.subject.host
        );
        ModelError::new(ModelErrorKind::Timeout, message)
    }
}

/// Makes the error of a failure inside of a stream.
fn reported(exchange: &Exchange, error: DecodeError) -> ModelError {
    match error {
        DecodeError::Malformed(error) | DecodeError::Known(error) => error,
        DecodeError::Reported(value) => {
            let account = server_error::account(&value).unwrap_or_default();
            exchange.reported(None, &account)
        }
    }
}
