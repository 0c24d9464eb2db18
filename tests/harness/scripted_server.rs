//! HTTP server on the loopback that plays a script of raw bytes, with cuts and pauses by signals.
//!
//! Each connection plays the next script, after it has read one request. The server keeps every byte it received.
//! Packages of the workspace include this file by its path.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval at which a script that waits looks for the end of the test.
const GLANCE: Duration = Duration::from_millis(20);

/// Step of a script.
pub enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes again and again until the client closes the connection.
    Flood(Vec<u8>),
    /// Waits for a signal, or for the end of its sender.
    Wait(Receiver<()>),
    /// Waits until the client closes the connection, then tells so.
    UntilClosed(Sender<()>),
    /// Cuts the connection without a proper end.
    Reset,
}

/// Sends a text.
pub fn send(text: impl AsRef<[u8]>) -> Act {
    Act::Send(text.as_ref().to_vec())
}

/// Sends a whole answer with a length.
pub fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Act {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    Act::Send([head.as_bytes(), body].concat())
}

/// Sends the head of an answer that ends with the connection.
pub fn stream_head(kind: &str) -> Act {
    send(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
    ))
}

/// Sends an answer in pieces that arrive one by one, also when the network joins them.
pub fn chunked(kind: &str, pieces: &[&[u8]]) -> Act {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    );
    let mut bytes = head.into_bytes();
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    Act::Send(bytes)
}

/// Request as the server received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Request line and headers.
    pub head: String,
    /// Body.
    pub body: String,
}

impl Received {
    /// Returns the request line without the version.
    pub fn line(&self) -> &str {
        let line = self.head.lines().next().unwrap_or_default();
        line.trim_end_matches(" HTTP/1.1")
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

#[derive(Default)]
struct Log {
    requests: Mutex<Vec<Received>>,
    arrived: Condvar,
    /// The connection that is served now.
    open: Mutex<Option<TcpStream>>,
    is_ending: AtomicBool,
}

/// Server that plays a script. It ends with its value, once its scripts are played.
pub struct ScriptedServer {
    address: String,
    log: Arc<Log>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    /// Starts a server that plays one script for each connection.
    pub fn start(scripts: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let log = Arc::new(Log::default());
        let kept = Arc::clone(&log);
        let play_all = move || {
            for script in scripts {
                let (stream, _) = listener.accept().unwrap();
                if kept.is_ending.load(Ordering::SeqCst) {
                    return;
                }
                // The client may leave at any time.
                let _ = play(stream, script, &kept);
            }
        };
        Self {
            address,
            log,
            thread: Some(std::thread::spawn(play_all)),
        }
    }

    /// Starts a server that gives these acts to its one connection.
    pub fn once(acts: Vec<Act>) -> Self {
        Self::start(vec![acts])
    }

    /// Returns the URL of the server with a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Received> {
        self.log.requests.lock().unwrap().clone()
    }

    /// Waits until so many requests have arrived, and returns them.
    pub fn wait_for(&self, count: usize) -> Vec<Received> {
        let mut requests = self.log.requests.lock().unwrap();
        while requests.len() < count {
            requests = self.log.arrived.wait(requests).unwrap();
        }
        requests.clone()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        // A thread that waits for one more connection gets it, and ends.
        self.log.is_ending.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(&self.address));
        // The client may need this thread to close its side.
        if let Some(stream) = self.log.open.lock().unwrap().take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            let _ = thread.join();
        }
    }
}

fn play(mut stream: TcpStream, script: Vec<Act>, log: &Log) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    *log.open.lock().unwrap() = Some(stream.try_clone()?);
    let Some(request) = received(&mut stream)? else {
        return Ok(());
    };
    log.requests.lock().unwrap().push(request);
    log.arrived.notify_all();
    for act in script {
        match act {
            Act::Send(bytes) => stream.write_all(&bytes)?,
            Act::Flood(bytes) => loop {
                stream.write_all(&bytes)?;
            },
            // The test may end before it gives the signal.
            Act::Wait(signal) => {
                while signal.recv_timeout(GLANCE) == Err(RecvTimeoutError::Timeout)
                    && !log.is_ending.load(Ordering::SeqCst)
                {}
            }
            Act::UntilClosed(closed) => {
                // The client sends nothing more, so this returns at the end only.
                while !matches!(stream.read(&mut [0; 256]), Ok(0) | Err(_)) {}
                let _ = closed.send(());
            }
            Act::Reset => {
                // Unread bytes or not, the client sees the connection end inside its answer.
                return stream.shutdown(Shutdown::Both);
            }
        }
    }
    stream.shutdown(Shutdown::Write)?;
    // A close with unread bytes would reset the connection, and the client lose the answer.
    while !matches!(stream.read(&mut [0; 4096]), Ok(0) | Err(_)) {}
    Ok(())
}

/// First byte of a connection that wants to be encrypted.
const TLS_HANDSHAKE: u8 = 0x16;

fn received(stream: &mut TcpStream) -> std::io::Result<Option<Received>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        if bytes.first() == Some(&TLS_HANDSHAKE) {
            let (head, body) = ("TLS".to_owned(), String::new());
            return Ok(Some(Received { head, body }));
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let (head, body) = (head.to_owned(), body.to_owned());
            let request = Received { head, body };
            let length = request.header("content-length").unwrap_or("0");
            if request.body.len() >= length.parse().unwrap() {
                return Ok(Some(request));
            }
        }
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(piece.get(..count).unwrap()),
        }
    }
}

/// Makes a signal for [`Act::Wait`].
pub fn signal() -> (Sender<()>, Receiver<()>) {
    channel()
}
