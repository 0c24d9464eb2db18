//! Timeouts of slow clients over real sockets.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
/// Shorter than any test, and longer than a client that reads takes.
const SHORT: Duration = Duration::from_millis(30);
/// Timeouts that no test reaches.
const NEVER: ConnectionTimeouts = ConnectionTimeouts {
    head: Duration::from_secs(3600),
    answer: Duration::from_secs(3600),
    last_answer: Duration::from_secs(3600),
};

/// Responds to every request with many bytes.
fn large() -> Router {
    Router::new().fallback(|| async { vec![b'x'; 1 << 20] })
}

async fn started(timeouts: ConnectionTimeouts) -> (ListenerTasks, TcpStream) {
    let listeners = bind(&[([127, 0, 0, 1], 0).into()]).await.unwrap();
    let address = listeners[0].local_addr().unwrap();
    let on_parse_error: ParseErrorHook = Arc::new(|_| ());
    let listening = ListenerTasks::start(listeners, &large(), None, &on_parse_error, timeouts);
    (listening, TcpStream::connect(address).await.unwrap())
}

/// Sends requests and reads nothing until the server closes the connection.
async fn flood(stream: &mut TcpStream) -> std::io::Error {
    loop {
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        if let Err(error) = stream.write_all(request).await {
            return error;
        }
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let (_listening, mut stream) = started(ConnectionTimeouts {
        answer: SHORT,
        ..NEVER
    })
    .await;
    // The server has closed the connection.
    let error = flood(&mut stream).await;
    let kind = error.kind();
    assert!(
        [
            std::io::ErrorKind::ConnectionReset,
            std::io::ErrorKind::BrokenPipe
        ]
        .contains(&kind),
        "{error}"
    );
}

#[tokio::test]
async fn a_client_that_does_not_finish_the_head_is_disconnected() {
    let (_listening, mut stream) = started(ConnectionTimeouts {
        head: SHORT,
        ..NEVER
    })
    .await;
    stream.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_client_that_reads_gets_the_whole_response() {
    let (listening, mut stream) = started(NEVER).await;
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.len() > 1 << 20);
    listening.shut_down().await;
}

#[tokio::test]
async fn shutdown_does_not_wait_for_idle_clients() {
    let (listening, mut stream) = started(ConnectionTimeouts {
        last_answer: SHORT,
        ..NEVER
    })
    .await;
    let flooding = tokio::spawn(async move { flood(&mut stream).await });
    listening.shut_down().await;
    // The connection's own limit ended it, not the limit for the whole shutdown.
    assert!(flooding.await.unwrap().kind() != std::io::ErrorKind::TimedOut);
}
