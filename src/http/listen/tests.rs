//! Clients who take too long, over real sockets, by a clock that goes faster.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::http::wire::{Patience, Peer};

const TICK: Duration = Duration::from_millis(10);
/// Never, as far as these tests go.
const LONG: u64 = u64::MAX;

/// Answers every request with many bytes.
#[derive(Clone)]
struct Large;

impl App for Large {
    type Answering = std::future::Ready<Response<Body>>;

    fn answer(&self, _: Request<Incoming>, _: &Peer) -> Self::Answering {
        std::future::ready(Response::new(Body::from(vec![b'x'; 1 << 20])))
    }

    fn is_stream(&self, _: &Request<Incoming>) -> bool {
        false
    }
}

async fn started(patience: Patience, patience_at_end: Patience) -> (Listening, TcpStream) {
    let listeners = bind(&[([127, 0, 0, 1], 0).into()]).await.unwrap();
    let address = listeners[0].local_addr().unwrap();
    let times = Times {
        tick: TICK,
        patience,
        patience_at_end,
    };
    let unread: Unread = Arc::new(|_| ());
    let listening = Listening::start(listeners, &Large, None, &unread, times);
    (listening, TcpStream::connect(address).await.unwrap())
}

/// Sends requests and reads nothing until the server takes no more.
async fn flood(stream: &mut TcpStream) -> std::io::Error {
    loop {
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        if let Err(error) = stream.write_all(request).await {
            return error;
        }
    }
}

#[tokio::test]
async fn who_does_not_read_the_answer_is_left() {
    let patience = Patience {
        head: LONG,
        answer: 3,
    };
    let (_listening, mut stream) = started(patience, patience).await;
    // It ends because the server has closed the connection.
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
async fn who_does_not_end_the_head_is_left() {
    let patience = Patience {
        head: 3,
        answer: LONG,
    };
    let (_listening, mut stream) = started(patience, patience).await;
    stream.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn whoever_reads_has_the_whole_answer() {
    let patience = Patience {
        head: LONG,
        answer: LONG,
    };
    let (listening, mut stream) = started(patience, patience).await;
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.len() > 1 << 20);
    listening.end().await;
}

#[tokio::test]
async fn the_end_waits_for_nobody_who_sends_or_reads_nothing() {
    let patience = Patience {
        head: LONG,
        answer: LONG,
    };
    let at_end = Patience {
        answer: 3,
        ..patience
    };
    let (listening, mut stream) = started(patience, at_end).await;
    let flooding = tokio::spawn(async move { flood(&mut stream).await });
    listening.end().await;
    // The end of the connection, and not of the time for all of them.
    assert!(flooding.await.unwrap().kind() != std::io::ErrorKind::TimedOut);
}
