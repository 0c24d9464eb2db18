//! A server of models on loopback that plays the roles by what it is asked, many requests at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// Request to a model.
#[derive(Debug, Clone)]
pub struct Asked {
    /// System text.
    pub system: String,
    /// Texts of the messages after it.
    pub messages: Vec<String>,
}

impl Asked {
    /// Returns `teller`, `planner`, `worker` or `judge`.
    pub fn role(&self) -> &'static str {
        let heading = self.system.lines().next().unwrap_or_default();
        let roles = ["teller", "planner", "worker", "judge"];
        let mut roles = roles.into_iter();
        roles
            .find(|role| heading.to_lowercase().contains(role))
            .unwrap_or_else(|| panic!("no role in {heading:?}"))
    }

    /// Tells whether it is the first request of a session.
    pub fn is_first(&self) -> bool {
        self.messages.len() == 1
    }

    /// Returns the first message.
    pub fn told(&self) -> &str {
        &self.messages[0]
    }

    /// Returns the last message.
    pub fn last(&self) -> &str {
        self.messages.last().unwrap()
    }
}

/// Plays a role: the text of the answer, or nothing to fail with status 500.
pub type Play = Arc<dyn Fn(&Asked) -> Option<String> + Send + Sync>;

/// The server; it ends with the test process.
pub struct RoleServer {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl RoleServer {
    pub fn start(play: impl Fn(&Asked) -> Option<String> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, play): (_, Play) = (Arc::clone(&asked), Arc::new(play));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, play) = (Arc::clone(&kept), Arc::clone(&play));
                // A client that was killed leaves at any time.
                std::thread::spawn(move || serve(stream.unwrap(), &kept, &play));
            }
        });
        Self { url, asked }
    }

    /// Returns the requests of a role so far.
    pub fn asked(&self, role: &str) -> Vec<Asked> {
        let all = self.asked.lock().unwrap().clone();
        all.into_iter().filter(|one| one.role() == role).collect()
    }
}

fn serve(mut stream: TcpStream, kept: &Mutex<Vec<Asked>>, play: &Play) -> Option<()> {
    let (line, body) = request(&stream)?;
    if !line.starts_with("POST ") {
        return refuse(&mut stream, 404);
    }
    let body: Value = serde_json::from_slice(&body).ok()?;
    let messages = body["messages"].as_array()?;
    let text = |message: &Value| message["content"].as_str().unwrap().to_owned();
    let asked = Asked {
        system: text(&messages[0]),
        messages: messages[1..].iter().map(text).collect(),
    };
    kept.lock().unwrap().push(asked.clone());
    let Some(answer) = play(&asked) else {
        return refuse(&mut stream, 400);
    };
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": answer}}]});
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}});
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         data: {chunk}\n\ndata: {last}\n\ndata: {usage}\n\ndata: [DONE]\n\n"
    );
    stream.write_all(text.as_bytes()).ok()
}

fn refuse(stream: &mut TcpStream, status: u16) -> Option<()> {
    let body = "{\"error\":{\"message\":\"refused by the test\"}}";
    let text = format!(
        "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).ok()
}

/// Returns request line and body of a request.
fn request(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first, body))
}
