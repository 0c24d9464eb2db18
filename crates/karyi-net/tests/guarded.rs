//! Requests to any URL, with servers on the loopback and names that lead where a test wants.

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

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use karyi_core::secret::SecretValue;
use karyi_net::{
    Guard, HttpResponse, Lookup, NameSource, NetError, NetErrorKind, Redirects, UrlRule, WebClient,
    WebOptions, WebRequest, WebUrl,
};
use scripted_server::{Act, ScriptedServer, answer, send, stream_head};

/// Names that have other addresses at each lookup.
#[derive(Debug, Default)]
struct TurningNames {
    answers: Vec<Vec<IpAddr>>,
    lookups: AtomicUsize,
}

impl NameSource for TurningNames {
    fn lookup<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        let turn = self.lookups.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers[turn % self.answers.len()].clone();
        Box::pin(async move { Ok(answer) })
    }
}

fn names(answers: &[&[&str]]) -> Arc<TurningNames> {
    let parsed = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
    let answers = answers.iter().map(parsed).collect();
    Arc::new(TurningNames {
        answers,
        lookups: AtomicUsize::new(0),
    })
}

fn client(names: &Arc<TurningNames>) -> WebClient {
    let names = Arc::clone(names) as Arc<dyn NameSource>;
    WebClient::new(WebOptions {
        names,
        ..WebOptions::default()
    })
}

fn guard(rules: &[&str]) -> Guard {
    let rules = rules
        .iter()
        .map(|rule| UrlRule::parse(rule).unwrap())
        .collect();
    Guard {
        rules,
        ..Guard::default()
    }
}

fn request(url: &str) -> WebRequest {
    WebRequest::new("GET", WebUrl::parse(url).unwrap()).unwrap()
}

/// Fetches from a server with a rule that names it.
async fn fetch(server: &ScriptedServer, redirects: Redirects) -> Result<HttpResponse, NetError> {
    let guard = guard(&[&server.url("")]);
    WebClient::default()
        .send(request(&server.url("/a")), &guard, redirects)
        .await
}

fn moved(to: &str) -> Vec<Act> {
    vec![answer("302 Found", &format!("location: {to}\r\n"), "")]
}

#[tokio::test]
async fn no_connection_goes_to_an_address_that_is_not_public() {
    let server = ScriptedServer::once(vec![]);
    let port = server.address().rsplit(':').next().unwrap();
    let names = names(&[
        &["8.8.8.8", "127.0.0.1"],
        &["127.0.0.1"],
        &["::ffff:127.0.0.1"],
        &["10.0.0.1", "1.1.1.1"],
    ]);
    let client = client(&names);
    for _ in 0..1000 {
        let sent = request(&format!("http://turning.example:{port}/"));
        let error = client
            .send(sent, &guard(&["http://"]), Redirects::Followed)
            .await
            .unwrap_err();
        assert_eq!(error.kind, NetErrorKind::Refused, "{error}");
        assert_eq!(
            error.message,
            "private ip/localhost is not allowed by guard"
        );
    }
    assert_eq!(server.requests(), []);
    // The addresses that were judged are the ones that a connection gets.
    assert_eq!(names.lookups.load(Ordering::SeqCst), 1000);
}

#[tokio::test]
async fn a_rule_that_names_a_host_reaches_it_where_it_is() {
    let server = ScriptedServer::once(vec![answer("200 OK", "", "page")]);
    let port = server.address().rsplit(':').next().unwrap();
    let host = format!("http://named.example:{port}");
    let names = names(&[&["127.0.0.1"]]);
    let sent = client(&names)
        .send(
            request(&host),
            &guard(&["http://", &host]),
            Redirects::Returned,
        )
        .await;
    assert_eq!(sent.unwrap().bytes(9).await.unwrap(), "page");
    assert_eq!(
        server.requests()[0].header("host"),
        Some(host.trim_start_matches("http://"))
    );
}

#[tokio::test]
async fn redirects_are_returned_unless_they_are_to_be_followed() {
    let server = ScriptedServer::once(moved("/b"));
    let response = fetch(&server, Redirects::Returned).await.unwrap();
    assert_eq!(
        (response.status(), response.url()),
        (302, &*server.url("/a"))
    );
    let server = ScriptedServer::start(vec![moved("b?c#d"), vec![answer("200 OK", "", "there")]]);
    let response = fetch(&server, Redirects::Followed).await.unwrap();
    assert_eq!(
        (response.status(), response.url()),
        (200, &*server.url("/b?c"))
    );
    assert_eq!(server.requests()[1].line(), "GET /b?c");
}

#[tokio::test]
async fn redirects_stay_at_their_origin_and_end() {
    let other = ScriptedServer::once(vec![]);
    for target in [
        &*other.url("/"),
        "http://localhost/",
        "http://10.0.0.1/",
        "//evil.example/",
    ] {
        let server = ScriptedServer::once(moved(target));
        let error = fetch(&server, Redirects::Followed).await.unwrap_err();
        assert_eq!(
            error.message, "redirect to different origin is not allowed",
            "{target}"
        );
    }
    assert_eq!(other.requests(), []);
    let server = ScriptedServer::start((0..4).map(|_| moved("/loop")).collect());
    let error = fetch(&server, Redirects::Followed).await.unwrap_err();
    assert_eq!(error.message, "stopped after 3 redirects");
    assert_eq!(server.requests().len(), 4);
    for target in ["javascript:alert(1)", "file:///etc/passwd", "http://u@h/"] {
        let server = ScriptedServer::once(moved(target));
        let error = fetch(&server, Redirects::Followed).await.unwrap_err();
        assert_eq!(error.kind, NetErrorKind::Address, "{target}");
    }
}

#[tokio::test]
async fn each_hop_is_judged_anew() {
    let server = ScriptedServer::once(moved("/private"));
    let guard = guard(&[&server.url("/a")]);
    let client = WebClient::default();
    let sent = client.send(request(&server.url("/a")), &guard, Redirects::Followed);
    assert_eq!(
        sent.await.unwrap_err().message,
        "url is not allowed by guard"
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_body_and_headers_are_sent_as_they_are() {
    let server = ScriptedServer::start(vec![moved("/b"), vec![answer("200 OK", "", "")]]);
    let url = WebUrl::parse(&server.url("/a")).unwrap();
    let key = SecretValue::new("Bearer hunter2".to_owned());
    let sent = WebRequest::new("POST", url)
        .unwrap()
        .body("{ }")
        .header("x-more", "1")
        .unwrap();
    let sent = sent.secret_header("authorization", &key).unwrap();
    assert!(!format!("{sent:?}").contains("hunter2"));
    let client = WebClient::default();
    client
        .send(sent, &guard(&[&server.url("")]), Redirects::Followed)
        .await
        .unwrap();
    let [first, second] = &server.requests()[..] else {
        unreachable!("two requests")
    };
    assert_eq!((first.line(), &*first.body), ("POST /a", "{ }"));
    assert_eq!((second.line(), &*second.body), ("GET /b", ""));
    for request in [first, second] {
        assert_eq!(request.header("authorization"), Some("Bearer hunter2"));
        assert_eq!(request.header("x-more"), Some("1"));
    }
}

#[tokio::test]
async fn a_secret_travels_encrypted() {
    let sent = request("http://192.0.2.1:9/")
        .secret_header("x-key", &SecretValue::new("hunter2".to_owned()));
    let client = WebClient::default();
    let error = client
        .send(
            sent.unwrap(),
            &guard(&["http://192.0.2.1:9"]),
            Redirects::Returned,
        )
        .await
        .unwrap_err();
    assert_eq!(error.kind, NetErrorKind::Plain);
}

#[tokio::test]
async fn headers_with_line_breaks_are_refused() {
    for (name, value) in [
        ("x", "a\r\nhost: evil"),
        ("x", "a\0"),
        ("a\r\nb", "1"),
        ("a b", "1"),
        ("", "1"),
    ] {
        let error = request("http://h/").header(name, value).unwrap_err();
        assert_eq!(error.kind, NetErrorKind::Settings, "{name:?} {value:?}");
    }
}

#[tokio::test]
async fn a_long_body_is_cut_after_it_is_unpacked() {
    // `head -c 10000000 /dev/zero | gzip -n -9`
    let server = ScriptedServer::once(vec![answer(
        "200 OK",
        "content-encoding: gzip\r\n",
        include_bytes!("zeros.gz"),
    )]);
    let response = fetch(&server, Redirects::Returned).await.unwrap();
    let (body, is_cut) = response.body_up_to(1000).await.unwrap();
    assert_eq!((&body[..], is_cut), (&[0; 1000][..], true));
    let server = ScriptedServer::once(vec![
        stream_head("text/plain"),
        Act::Flood(vec![b'y'; 4096]),
    ]);
    let response = fetch(&server, Redirects::Returned).await.unwrap();
    assert_eq!(
        response.body_up_to(10).await.unwrap(),
        ("yyyyyyyyyy".into(), true)
    );
    let server = ScriptedServer::once(vec![answer("200 OK", "", "exact")]);
    let response = fetch(&server, Redirects::Returned).await.unwrap();
    assert_eq!(
        response.body_up_to(5).await.unwrap(),
        ("exact".into(), false)
    );
    let server = ScriptedServer::once(vec![send(
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
    )]);
    let response = fetch(&server, Redirects::Returned).await.unwrap();
    assert_eq!(
        response.body_up_to(100).await.unwrap_err().kind,
        NetErrorKind::Cut
    );
}
