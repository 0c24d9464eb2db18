//! The cost of a guarded request beside reqwest alone, and of making text of pages.
//!
//! Both clients open one connection per request and take turns, so that noise meets both.

#![allow(clippy::print_stdout, reason = "a bench tells its figures")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot run stops there")]

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use karyi::net::{Guard, Redirects, UrlRule, WebClient, WebRequest, WebUrl};
use karyi::web::page;

mod gate;

const REQUESTS: usize = 2000;
const RUNS: usize = 25;
/// Most times as long as reqwest alone a guarded request may take.
const MOST_OF_REQWEST: f64 = 1.3;
/// Most times as long as a page of half its size a page may take.
const MOST_OF_HALF: f64 = 2.2;
/// Most milliseconds for a page of 512 KiB.
const MOST_MS: f64 = 40.0;

fn main() {
    let mut gate = gate::Gate::default();
    let (guarded, bare) = requests();
    println!("guarded request of 10 kB {:>8.3} ms", ms(guarded));
    println!("the same by reqwest      {:>8.3} ms", ms(bare));
    gate.check(
        "a guarded request / reqwest",
        ms(guarded) / ms(bare),
        ..=MOST_OF_REQWEST,
    );
    let unit = "<div><h2>Title</h2><p>Some <b>bold</b> text with <a href=\"/x\">a link</a> and more words to read \
                here.</p><ul><li>one<li>two</ul></div>";
    let attributes = |count: usize| format!("<p {}>x", "a=1 ".repeat(count));
    let pages: [(&str, String, String); 3] = [
        ("512 KiB of markup", unit.repeat(3300), unit.repeat(6600)),
        (
            "100,000 nested elements",
            "<div>".repeat(100_000),
            "<div>".repeat(200_000),
        ),
        (
            "a tag of 10 MB",
            attributes(2_500_000),
            attributes(5_000_000),
        ),
    ];
    for (name, one, two) in &pages {
        let (short, long) = read(one, two);
        println!("{name:<24} {:>8.2} ms", ms(short));
        gate.check(
            &format!("{name}: twice as much"),
            ms(long) / ms(short),
            ..=MOST_OF_HALF,
        );
        gate.check(&format!("{name}: ms"), ms(short), ..=MOST_MS);
    }
    gate.close();
}

/// Returns the times of a request by the guarded client and by reqwest alone.
fn requests() -> (Duration, Duration) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let body = "x".repeat(10_000);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        let answer = head + &body;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let guard = Guard {
            rules: vec![UrlRule::parse(&url).unwrap()],
            ..Guard::default()
        };
        let client = WebClient::default();
        // The first request also installs the provider of encryption, which reqwest needs.
        fetch(&client, &guard, &url).await;
        let peer = reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .build()
            .unwrap();
        let (mut guarded, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..REQUESTS {
            let start = Instant::now();
            fetch(&client, &guard, &url).await;
            guarded.push(start.elapsed());
            let start = Instant::now();
            let response = peer.get(&url).send().await.unwrap();
            assert_eq!(response.bytes().await.unwrap().len(), 10_000);
            bare.push(start.elapsed());
        }
        (median(guarded), median(bare))
    })
}

async fn fetch(client: &WebClient, guard: &Guard, url: &str) {
    let request = WebRequest::new("GET", WebUrl::parse(url).unwrap()).unwrap();
    let response = client
        .send(request, guard, Redirects::Returned)
        .await
        .unwrap();
    assert_eq!(response.body_up_to(1 << 20).await.unwrap().0.len(), 10_000);
}

/// Returns the least times of making text of two pages, which take turns: noise only adds to them.
fn read(one: &str, two: &str) -> (Duration, Duration) {
    let url = WebUrl::parse("https://h/").unwrap();
    let time = |html: &str| {
        let start = Instant::now();
        black_box(page::read(html, &url));
        start.elapsed()
    };
    let times = (0..RUNS).map(|_| (time(one), time(two)));
    times.fold((Duration::MAX, Duration::MAX), |least, (one, two)| {
        (least.0.min(one), least.1.min(two))
    })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
