//! A server of models on loopback: it streams scripted answers as `chat/completions` and keeps the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// Answer to one request.
#[derive(Clone)]
pub enum Reply {
    /// Pieces of text, then the end.
    Text(Vec<String>),
    /// A piece of text, then the end for a reason.
    Ended(&'static str, &'static str),
    /// A piece of text, then nothing until the client is gone.
    Silence(String),
    /// Pieces of text, each of them when the test says so, then the end.
    Gated(Vec<String>, Arc<Mutex<Receiver<()>>>),
    /// A status and a body.
    Status(u16, &'static str),
}

impl Reply {
    pub fn text(text: &str) -> Self {
        Self::Text(vec![text.to_owned()])
    }

    /// Returns an answer whose pieces the sender releases.
    pub fn gated(pieces: Vec<String>) -> (Self, Sender<()>) {
        let (sender, gate) = channel();
        (Self::Gated(pieces, Arc::new(Mutex::new(gate))), sender)
    }
}

/// The server; it ends with the test.
pub struct ModelServer {
    pub url: String,
    requests: Arc<Mutex<Vec<(String, String)>>>,
    /// Gets a word when a client has gone.
    pub gone: Receiver<()>,
}

impl ModelServer {
    pub fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (told, gone) = channel();
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            let mut replies = replies.into_iter();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some((head, body)) = request(&stream) else {
                    continue;
                };
                // Questions about the server itself.
                if !head.starts_with("POST ") {
                    let _ = stream.write_all(
                        b"HTTP/1.1 404 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                    );
                    continue;
                }
                kept.lock().unwrap().push((head, body));
                let Some(reply) = replies.next() else {
                    continue;
                };
                answer(&mut stream, &reply);
                if let Reply::Silence(_) = reply {
                    let _ = stream.read(&mut [0; 1]);
                    let _ = told.send(());
                }
            }
        });
        Self {
            url,
            requests,
            gone,
        }
    }

    /// Returns the heads and bodies of the requests so far.
    pub fn raw(&self) -> Vec<(String, String)> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        let raw = self.raw();
        raw.iter()
            .map(|(_, body)| serde_json::from_str(body).unwrap())
            .collect()
    }
}

/// Returns head and body of a request.
fn request(stream: &TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}

fn answer(stream: &mut TcpStream, reply: &Reply) {
    let (pieces, reason) = match reply {
        Reply::Status(status, body) => {
            let length = body.len();
            let text = format!(
                "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(text.as_bytes());
            return;
        }
        Reply::Text(pieces) | Reply::Gated(pieces, _) => (pieces.clone(), Some("stop")),
        Reply::Ended(piece, reason) => (vec![(*piece).to_owned()], Some(*reason)),
        Reply::Silence(piece) => (vec![piece.clone()], None),
    };
    let mut text =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            .to_owned();
    for piece in pieces {
        if let Reply::Gated(_, gate) = reply {
            let _ = stream.write_all(text.as_bytes());
            text.clear();
            let _ = gate.lock().unwrap().recv();
        }
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": piece}}]});
        text.push_str(&format!("data: {chunk}\n\n"));
    }
    if let Some(reason) = reason {
        let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        let usage =
            json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}});
        text.push_str(&format!(
            "data: {last}\n\ndata: {usage}\n\ndata: [DONE]\n\n"
        ));
    }
    let _ = stream.write_all(text.as_bytes());
}
