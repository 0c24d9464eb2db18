//! One exchange with a server that plays a script of raw bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::too_many_lines,
    reason = "a test that meets the unexpected stops there and says so; tables are long"
)]

#[path = "../../../tests/harness/scripted_server.rs"]
#[allow(dead_code, unreachable_pub, reason = "each package uses a part of it")]
mod scripted_server;

use std::io::Write;
use std::sync::mpsc::channel;
use std::time::Duration;

use bytes::Bytes;
use karyi_core::secret::SecretValue;
use karyi_net::{
    ClientOptions, FormPart, HttpClient, HttpRequest, NetError, NetErrorKind, ServerUrl, Timeouts,
};
use scripted_server::{Act, ScriptedServer, answer, chunked, send, signal, stream_head};

fn client(server: &ScriptedServer, options: &ClientOptions) -> HttpClient {
    HttpClient::new(ServerUrl::parse(&server.url("/v1")).unwrap(), options).unwrap()
}

async fn body_of(acts: Vec<Act>) -> Result<(u16, String), NetError> {
    let server = ScriptedServer::once(acts);
    let answer = client(&server, &ClientOptions::default())
        .send(HttpRequest::get("x"))
        .await?;
    let status = answer.status();
    let body = answer.bytes(1 << 20).await?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

#[tokio::test]
async fn a_request_is_written_as_it_is_made() {
    let server = ScriptedServer::once(vec![answer("200 OK", "", "yes")]);
    let request = HttpRequest::post("chat?alt=sse", "{}")
        .secret_header(
            "authorization",
            "Bearer ",
            &SecretValue::new("hunter2".into()),
        )
        .unwrap()
        .header("x-more", "1")
        .unwrap();
    assert!(!format!("{request:?}").contains("hunter2"), "{request:?}");
    let response = client(&server, &ClientOptions::default())
        .send(request)
        .await
        .unwrap();
    assert_eq!(response.bytes(3).await.unwrap(), "yes");
    let [received] = &server.requests()[..] else {
        unreachable!("one request")
    };
    assert_eq!(received.line(), "POST /v1/chat?alt=sse");
    assert_eq!(received.body, "{}");
    let header = |name: &str| received.header(name).unwrap_or_default().to_owned();
    assert_eq!(header("authorization"), "Bearer hunter2");
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("x-more"), "1");
    assert!(header("accept-encoding").contains("gzip") && header("accept-encoding").contains("br"));
    assert_eq!(received.header("referer"), None);
}

#[tokio::test]
async fn a_form_carries_files() {
    let server = ScriptedServer::once(vec![answer("200 OK", "", "")]);
    let part = |name: &str, file: Option<&str>, content: &'static str| FormPart {
        name: name.into(),
        file_name: file.map(Into::into),
        content: Bytes::from_static(content.as_bytes()),
    };
    let parts = vec![
        part("chat", None, "7"),
        part("document", Some("a\"b.txt"), "text"),
    ];
    let sent = HttpRequest::post_form("send", parts);
    client(&server, &ClientOptions::default())
        .send(sent)
        .await
        .unwrap();
    let received = server.requests().remove(0);
    assert!(
        received
            .header("content-type")
            .unwrap()
            .starts_with("multipart/form-data; boundary=")
    );
    for part in [
        "Content-Disposition: form-data; name=\"chat\"\r\n",
        "\r\n\r\n7\r\n",
        "name=\"document\"; filename=\"a\\\"b.txt\"\r\n",
        "\r\n\r\ntext\r\n",
    ] {
        assert!(
            received.body.contains(part),
            "{part:?} in {:?}",
            received.body
        );
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = ScriptedServer::once(vec![answer("200 OK", "", "")]);
    for status in [
        "301 Moved",
        "302 Found",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let to = format!("location: {}\r\n", other.url("/"));
        let (status, _) = body_of(vec![answer(status, &to, "")]).await.unwrap();
        assert!((300..400).contains(&status), "{status}");
    }
    assert_eq!(other.requests(), []);
}

#[tokio::test]
async fn compressed_answers_are_unpacked_within_the_limit() {
    // `printf hello | gzip -n`, and the same for brotli.
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0";
    let brotli = b"\x0b\x02\x80hello\x03";
    for (name, packed) in [("gzip", &gzip[..]), ("br", &brotli[..])] {
        let encoding = format!("content-encoding: {name}\r\n");
        let found = body_of(vec![answer("200 OK", &encoding, packed)]).await;
        assert_eq!(found, Ok((200, "hello".to_owned())), "{name}");
    }
    let broken = body_of(vec![answer("200 OK", "content-encoding: gzip\r\n", "no")]).await;
    assert_eq!(broken.unwrap_err().kind, NetErrorKind::Protocol);
}

#[tokio::test]
async fn pieces_arrive_one_by_one() {
    let server = ScriptedServer::once(vec![chunked("text/plain", &[b"a", b"bc", b"d"])]);
    let mut response = client(&server, &ClientOptions::default())
        .send(HttpRequest::get(""))
        .await
        .unwrap();
    let mut pieces = Vec::new();
    while let Some(piece) = response.chunk().await.unwrap() {
        pieces.push(piece);
    }
    assert_eq!(pieces, ["a", "bc", "d"]);
}

#[tokio::test]
async fn a_dropped_answer_closes_its_connection() {
    let (closed, is_closed) = channel();
    let server = ScriptedServer::once(vec![
        stream_head("text/plain"),
        send("a"),
        Act::UntilClosed(closed),
    ]);
    let client = client(&server, &ClientOptions::default());
    let mut response = client.send(HttpRequest::get("")).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "a");
    drop(response);
    // The connection's task ends beside this one.
    let told = tokio::task::spawn_blocking(move || is_closed.recv_timeout(Duration::from_secs(20)));
    told.await.unwrap().unwrap();
}

#[tokio::test]
async fn failures_have_kinds_and_name_the_host_only() {
    let head = "HTTP/1.1 200 OK\r\n";
    let cases: Vec<(Vec<Act>, NetErrorKind)> = vec![
        (vec![Act::Reset], NetErrorKind::Cut),
        (vec![], NetErrorKind::Cut),
        (vec![send(head)], NetErrorKind::Cut),
        (
            vec![send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")],
            NetErrorKind::Cut,
        ),
        (
            vec![send("SSH-2.0-OpenSSH\r\n\r\n")],
            NetErrorKind::Protocol,
        ),
        (
            vec![
                send(head),
                Act::Flood(b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".to_vec()),
            ],
            NetErrorKind::Protocol,
        ),
        (
            vec![send("HTTP/1.1 200 OK\r\nx: "), Act::Flood(vec![b'y'; 4096])],
            NetErrorKind::Protocol,
        ),
        (
            vec![stream_head("text/html"), Act::Flood(vec![b'y'; 4096])],
            NetErrorKind::Protocol,
        ),
        (
            vec![send(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            )],
            NetErrorKind::Protocol,
        ),
    ];
    for (number, (acts, expected)) in cases.into_iter().enumerate() {
        let error = body_of(acts).await.unwrap_err();
        assert_eq!(error.kind, expected, "case {number}: {error}");
        assert!(
            error.message.contains("127.0.0.1:"),
            "case {number}: {error}"
        );
        assert!(!error.message.contains("/v1"), "case {number}: {error}");
    }
}

#[tokio::test]
async fn no_server_is_named_with_the_reason() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for host in ["127.0.0.1", "localhost"] {
        let url = ServerUrl::parse(&format!("http://{host}:{}", gone.port())).unwrap();
        let client = HttpClient::new(url, &ClientOptions::default()).unwrap();
        let error = client.send(HttpRequest::get("")).await.unwrap_err();
        assert_eq!(error.kind, NetErrorKind::Connect);
        let expected = format!("connecting to {host}:{}: ", gone.port());
        assert!(error.message.starts_with(&expected), "{error}");
        assert!(error.message.contains("refused"), "{error}");
    }
}

#[tokio::test]
async fn silence_ends_at_its_limit() {
    let timeouts = |head, idle| ClientOptions {
        timeouts: Timeouts { head, idle },
        ..ClientOptions::default()
    };
    let short = Some(Duration::from_millis(50));
    let (keep, wait) = signal();
    let server = ScriptedServer::once(vec![Act::Wait(wait)]);
    let sent = client(&server, &timeouts(short, None))
        .send(HttpRequest::get(""))
        .await;
    assert_eq!(sent.unwrap_err().kind, NetErrorKind::Timeout);
    drop(keep);

    let (keep, wait) = signal();
    let server = ScriptedServer::once(vec![stream_head("text/plain"), send("a"), Act::Wait(wait)]);
    let mut response = client(&server, &timeouts(None, short))
        .send(HttpRequest::get(""))
        .await
        .unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "a");
    let error = response.chunk().await.unwrap_err();
    assert_eq!(error.kind, NetErrorKind::Timeout);
    assert!(
        error.message.ends_with("sent nothing for 0.05 s"),
        "{error}"
    );
    drop(keep);
}

#[tokio::test]
async fn a_key_travels_encrypted_or_stays_on_this_machine() {
    let key = SecretValue::new("hunter2".to_owned());
    let request = || {
        HttpRequest::get("")
            .secret_header("x-api-key", "", &key)
            .unwrap()
    };
    // The address is of the block for documentation, which nobody has.
    let url = || ServerUrl::parse("http://192.0.2.1:9").unwrap();
    let refused = HttpClient::new(url(), &ClientOptions::default()).unwrap();
    let error = refused.send(request()).await.unwrap_err();
    assert_eq!(error.kind, NetErrorKind::Plain);
    assert_eq!(
        error.message,
        "a key or token would travel unencrypted to 192.0.2.1; use https"
    );
    let bad = HttpRequest::get("").secret_header(
        "x-api-key",
        "",
        &SecretValue::new("hunter\n2".to_owned()),
    );
    let error = bad.unwrap_err();
    assert_eq!(error.kind, NetErrorKind::Settings);
    assert!(
        error.message.contains("x-api-key") && !error.message.contains("hunter"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_without_encryption_is_told_apart() {
    let server = ScriptedServer::once(vec![send("HTTP/1.1 400 Bad Request\r\n\r\n")]);
    let authority = tempfile_of(CERTIFICATE);
    let options = ClientOptions {
        authority: Some(authority.clone()),
        ..ClientOptions::default()
    };
    let url = ServerUrl::parse(&server.url("").replace("http:", "https:")).unwrap();
    let client = HttpClient::new(url.clone(), &options).unwrap();
    let error = client.send(HttpRequest::get("")).await.unwrap_err();
    assert_eq!(error.kind, NetErrorKind::Encryption, "{error}");
    std::fs::remove_file(&authority).unwrap();
    let error = HttpClient::new(url, &options).unwrap_err();
    assert_eq!(error.kind, NetErrorKind::Settings);
    assert!(
        error.message.starts_with("reading the certificate "),
        "{error}"
    );
}

fn tempfile_of(text: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("karyi-net-{}.pem", std::process::id()));
    std::fs::File::create(&path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    path
}

/// Certificate of an authority that signs nothing.
const CERTIFICATE: &str = include_str!("authority.pem");
