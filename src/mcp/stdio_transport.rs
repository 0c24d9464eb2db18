//! Transport for JSON-RPC on standard input and output, one message per line.
//!
//! rmcp ignores lines that are not JSON, hangs on duplicate ids, and ends if the first message is
//! not a request. This transport answers such messages with an error.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::exec::cancel::Cancel;
use crate::tool::json_text;
use karyi_core::limits;

/// Line of input, or the error that it was too long.
pub type InputLine = Result<Vec<u8>, LineTooLong>;

/// The line exceeds the limit of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineTooLong {
    /// Id of the message, if its start shows it.
    id: Option<RequestId>,
}

type WriteAck = oneshot::Sender<io::Result<()>>;

/// Both directions of a connection; clones share it.
#[derive(Clone)]
pub struct StdioTransport {
    input: Arc<tokio::sync::Mutex<mpsc::Receiver<InputLine>>>,
    output: mpsc::Sender<(Vec<u8>, WriteAck)>,
    in_flight: Arc<Mutex<HashSet<RequestId>>>,
    /// Error response that waits for space in the output; input stops meanwhile.
    queued_error: Arc<Mutex<Option<Vec<u8>>>>,
    /// Cancelled when output can no longer be written.
    disconnected: Cancel,
    /// Cancelled at the end of input.
    ended: Cancel,
}

impl StdioTransport {
    /// Creates a transport from a channel of lines and an output; the task ends when all clones are
    /// dropped.
    pub fn new(
        input: mpsc::Receiver<InputLine>,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(limits::MAX_MCP_MESSAGES);
        let disconnected = Cancel::default();
        let writer = tokio::spawn(write(output, receiver, disconnected.clone()));
        let transport = Self {
            input: Arc::new(tokio::sync::Mutex::new(input)),
            output: sender,
            in_flight: Arc::default(),
            queued_error: Arc::default(),
            disconnected,
            ended: Cancel::default(),
        };
        (transport, writer)
    }

    /// Returns the token that is cancelled at the end of input.
    #[must_use]
    pub fn ended(&self) -> Cancel {
        self.ended.clone()
    }

    /// Queues an error response to a malformed message.
    fn queue_error(&self, error: ErrorData, id: Option<RequestId>) {
        let message = MessageError { error, id }.answer();
        *lock(&self.queued_error) = Some(line(&message));
    }

    /// Sends the queued error response. A client that sends malformed messages and does not read
    /// the errors is disconnected.
    async fn send_queued_error(&self) {
        if lock(&self.queued_error).is_none() {
            return;
        }
        match tokio::time::timeout(limits::MCP_REFUSAL_WAIT, self.output.reserve()).await {
            Ok(Ok(permit)) => {
                if let Some(line) = lock(&self.queued_error).take() {
                    let (ack, _) = oneshot::channel();
                    permit.send((line, ack));
                }
            }
            Ok(Err(_)) | Err(_) => self.disconnected.cancel(),
        }
    }

    /// Parses a line; none if it was answered here or needs no answer.
    fn read(&self, line: InputLine) -> Option<ClientJsonRpcMessage> {
        let line = match line {
            Ok(line) => line,
            Err(LineTooLong { id }) => {
                let most = limits::MAX_MCP_LINE_BYTES;
                let message = format!("a message is limited to {most} bytes");
                self.queue_error(ErrorData::invalid_request(message, None), id);
                return None;
            }
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let text = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line);
        match parse_message(text) {
            Ok(parsed) => self.admit(parsed.message),
            Err(error) => {
                self.queue_error(error.error, error.id);
                None
            }
        }
    }

    /// Passes a message on unless its id is in use.
    fn admit(&self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        match &message {
            JsonRpcMessage::Request(request) => {
                let mut in_flight = lock(&self.in_flight);
                let is_full = in_flight.len() >= limits::MAX_MCP_REQUESTS;
                if is_full || !in_flight.insert(request.id.clone()) {
                    drop(in_flight);
                    let MessageError { error, id } = match is_full {
                        true => MessageError::too_many(&request.id),
                        false => MessageError::id_in_use(&request.id),
                    };
                    self.queue_error(error, id);
                    return None;
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // A cancelled request gets no response.
                    lock(&self.in_flight).remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        match &item {
            JsonRpcMessage::Response(response) => {
                lock(&self.in_flight).remove(&response.id);
            }
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    lock(&self.in_flight).remove(id);
                }
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        let (output, line) = (self.output.clone(), line(&json!(item)));
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let (ack, result) = oneshot::channel();
            output.send((line, ack)).await.map_err(|_| closed())?;
            result.await.map_err(|_| closed())?
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let input = Arc::clone(&self.input);
            let mut input = input.lock().await;
            self.send_queued_error().await;
            let line = tokio::select! {
                biased;
                () = self.disconnected.cancelled() => None,
                line = input.recv() => line,
            };
            let Some(line) = line else {
                self.ended.cancel();
                return None;
            };
            if let Some(message) = self.read(line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        Ok(())
    }
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Writes whole lines, even if the sender no longer waits.
async fn write(
    mut output: impl AsyncWrite + Send + Unpin,
    mut lines: mpsc::Receiver<(Vec<u8>, WriteAck)>,
    disconnected: Cancel,
) {
    while let Some((line, ack)) = lines.recv().await {
        let result = match output.write_all(&line).await {
            Ok(()) => output.flush().await,
            Err(error) => Err(error),
        };
        if result.is_err() {
            disconnected.cancel();
        }
        let _ = ack.send(result);
    }
}

/// Error for a malformed message, with the id to answer.
#[derive(Debug)]
pub struct MessageError {
    /// Error to send.
    pub error: ErrorData,
    id: Option<RequestId>,
}

impl MessageError {
    fn too_many(id: &RequestId) -> Self {
        let message = "too many requests are in progress";
        Self {
            error: ErrorData::invalid_request(message, Some(json!({"id": id}))),
            id: Some(id.clone()),
        }
    }

    /// Creates the error of a request whose id is in use. With this id, the client would take it for the response
    /// to the first request.
    #[must_use]
    pub fn id_in_use(id: &RequestId) -> Self {
        let message = "a request with this id is in progress";
        Self {
            error: ErrorData::invalid_request(message, Some(json!({"id": id}))),
            id: None,
        }
    }

    /// Builds the error response.
    #[must_use]
    pub fn answer(self) -> Value {
        let Self { error, id } = self;
        // rmcp omits a missing id; JSON-RPC requires null.
        match id {
            Some(id) => json!(ServerJsonRpcMessage::error(error, Some(id))),
            None => json!({"jsonrpc": "2.0", "id": null, "error": error}),
        }
    }
}

/// Parses JSON without duplicate keys, because another parser could pick the other value.
fn parse_json(text: &[u8]) -> Result<Value, Box<MessageError>> {
    let parsed = match std::str::from_utf8(text) {
        Ok(text) => json_text::parse(text),
        Err(error) => Err(error.to_string()),
    };
    parsed.map_err(|problem| {
        let id = find_id(text);
        // The text may be JSON with duplicate keys.
        let error = match serde_json::from_slice::<IgnoredAny>(text).is_ok() {
            true => ErrorData::invalid_request(problem, None),
            false => ErrorData::parse_error(format!("the message is not JSON: {problem}"), None),
        };
        Box::new(MessageError { error, id })
    })
}

/// Returns the id at the top level of a text that is not JSON as a whole, if it stands before the fault.
fn find_id(text: &[u8]) -> Option<RequestId> {
    struct TopLevel<'a>(&'a mut Option<RequestId>);
    impl<'de> Visitor<'de> for TopLevel<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
            while let Some(key) = entries.next_key::<String>()? {
                match key.as_str() {
                    "id" => *self.0 = Some(entries.next_value()?),
                    _ => drop(entries.next_value::<IgnoredAny>()?),
                }
            }
            Ok(())
        }
    }
    let mut id = None;
    let mut parser = serde_json::Deserializer::from_slice(text);
    // The fault is reported already.
    let _ = parser.deserialize_map(TopLevel(&mut id));
    id
}

/// Message of a client.
pub struct ParsedMessage {
    /// The message.
    pub message: ClientJsonRpcMessage,
    /// Its text with arguments as an object, if they came as the text of one.
    pub rewritten: Option<String>,
}

/// Parses a message.
///
/// # Errors
/// The error response.
pub fn parse_message(text: &[u8]) -> Result<ParsedMessage, Box<MessageError>> {
    let refuse = |error, id| Box::new(MessageError { error, id });
    let value = parse_json(text)?;
    let invalid = |message: &'static str| ErrorData::invalid_request(message, None);
    let Value::Object(map) = &value else {
        let message = match value.is_array() {
            true => "batches are not supported; send one message per line",
            false => "a message must be a JSON object",
        };
        return Err(refuse(invalid(message), None));
    };
    let id = map.get("id").cloned();
    let id = id.map(serde_json::from_value::<RequestId>).transpose();
    let id = id.map_err(|_| refuse(invalid("an id must be a string or an integer"), None))?;
    if map.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(refuse(invalid("expected \"jsonrpc\": \"2.0\""), id));
    }
    let is_answer = map.contains_key("result") || map.contains_key("error");
    if !is_answer && !map.get("method").is_some_and(Value::is_string) {
        return Err(refuse(invalid("a message needs a method"), id));
    }
    if map.get("params").is_some_and(|params| !params.is_object()) {
        let message = "params must be an object";
        return Err(refuse(ErrorData::invalid_params(message, None), id));
    }
    let mut value = value;
    let rewritten = spread_arguments(&mut value).then(|| value.to_string());
    let message = serde_json::from_value(value).map_err(|_| {
        let error = match is_answer {
            true => invalid("the message is not a valid response"),
            false => ErrorData::invalid_params("the params do not fit the method", None),
        };
        refuse(error, id)
    })?;
    Ok(ParsedMessage { message, rewritten })
}

/// Replaces arguments of a call that are the text of a JSON object by that object; returns false if there are none.
fn spread_arguments(message: &mut Value) -> bool {
    let arguments = message.pointer_mut("/params/arguments");
    if let Some(arguments @ Value::String(_)) = arguments
        && let Some(text) = arguments.as_str()
        && let Ok(object @ Value::Object(_)) = json_text::parse(text)
    {
        *arguments = object;
        return true;
    }
    false
}

/// Reads lines until the end of input, on the calling thread. An incomplete last line is dropped.
pub fn read_lines(input: impl Read, lines: &mpsc::Sender<InputLine>) {
    let mut input = BufReader::new(input);
    let most = limits::MAX_MCP_LINE_BYTES as u64;
    loop {
        let mut line = Vec::new();
        let read = (&mut input).take(most + 1).read_until(b'\n', &mut line);
        let whole = match read {
            Ok(_) if line.ends_with(b"\n") => Ok(line),
            Ok(length) if length as u64 > most => {
                if skip_line(&mut input).is_err() {
                    return;
                }
                Err(LineTooLong { id: find_id(&line) })
            }
            Ok(_) | Err(_) => return,
        };
        if lines.blocking_send(whole).is_err() {
            return;
        }
    }
}

/// Skips the rest of a line.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let available = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let length = available.len();
        if length == 0 {
            return Ok(());
        }
        match memchr::memchr(b'\n', available) {
            Some(end) => {
                input.consume(end + 1);
                return Ok(());
            }
            None => input.consume(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt, BufReader};

    fn connection(
        room: usize,
    ) -> (
        mpsc::Sender<InputLine>,
        StdioTransport,
        tokio::io::DuplexStream,
    ) {
        let (sender, input) = mpsc::channel(4);
        let (output, theirs) = tokio::io::duplex(room);
        (sender, StdioTransport::new(input, output).0, theirs)
    }

    #[tokio::test]
    async fn malformed_lines_are_answered_in_order() {
        let (sender, mut lines, theirs) = connection(1 << 20);
        let ids = 0..200;
        let bad = ids
            .clone()
            .map(|id| format!("{{\"jsonrpc\":\"1.0\",\"id\":{id}}}"));
        let writing = tokio::spawn(async move {
            for line in bad {
                sender.send(Ok(line.into_bytes())).await.unwrap();
            }
        });
        assert!(lines.receive().await.is_none());
        writing.await.unwrap();
        let mut answers = BufReader::new(theirs).lines();
        for id in ids {
            let line = answers.next_line().await.unwrap().unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&json!(id), &json!(-32600))
            );
        }
    }

    #[tokio::test]
    async fn input_stops_when_errors_are_not_read() {
        let (sender, mut lines, theirs) = connection(1);
        let sent = Arc::new(Mutex::new(0));
        let count = Arc::clone(&sent);
        let flooding = tokio::spawn(async move {
            while sender.send(Ok(b"nonsense".to_vec())).await.is_ok() {
                *lock(&count) += 1;
            }
        });
        let reading = tokio::spawn(async move { lines.receive().await });
        let metrics = tokio::runtime::Handle::current().metrics();
        // All tasks share this thread, so each has advanced as far as it can.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let held = *lock(&sent);
        assert!(held <= 2 * limits::MAX_MCP_MESSAGES, "{held}");
        assert!(metrics.num_alive_tasks() <= 3);
        drop(theirs);
        assert!(reading.await.unwrap().is_none());
        flooding.await.unwrap();
    }
}
