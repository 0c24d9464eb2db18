//! `search_content` with checks and ledger: calls per second beside FastAPI and beside bare axum.

use std::path::Path;

use crate::load::{self, Load, SentCounts};
use crate::report::Report;
use crate::servers;

/// Least calls per second beside those of FastAPI, and beside those of an axum that only says hello.
const LEAST_OF_FASTAPI: f64 = 5.0;
const LEAST_OF_AXUM: f64 = 0.10;

/// Body of a call.
const BODY: &str = r#"{"tool_name": "search_content", "input": {"query": "严氏家训", "limit": 5}, "context": {"tenant_id": "yantian", "site_id": "yantian-main", "trace_id": "trace-1"}}"#;

/// The query, and the same one so that every call has another text with the same words.
const QUERY: &str = "严氏家训";
const OTHERS: &str = "严氏家训????????";

/// Turns each contestant has, after one that does not count.
const TURNS: usize = 9;

/// Connections that call at once.
const CONNECTIONS: u64 = 256;

const KARYI: Load = Load {
    calls: 20_000,
    connections: CONNECTIONS,
};
const FASTAPI: Load = Load {
    calls: 2_000,
    ..KARYI
};
const BARE: Load = Load {
    calls: 80_000,
    ..KARYI
};

/// Measures and reports.
pub(crate) fn measure(report: &mut Report) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [call, other, hello] = ["call", "other", "hello"].map(|name| dir.path().join(name));
    std::fs::write(&call, request(BODY)).unwrap();
    std::fs::write(&other, request(&BODY.replace(QUERY, OTHERS))).unwrap();
    std::fs::write(&hello, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let karyi = servers::karyi(&servers::village(), dir.path());
    let fastapi = servers::fastapi(dir.path());
    let bare = servers::bare();
    let mut sent = [const { Vec::new() }; 4];
    for turn in 0..=TURNS {
        let is_warm = turn > 0;
        let mut keep = |place: usize, one: SentCounts| sent[place].extend(is_warm.then_some(one));
        // Those that are compared come one right after the other, and neither always first.
        let mut beside = [0, 2];
        beside.rotate_left(turn % 2);
        for place in beside {
            keep(
                place,
                match place {
                    0 => load::send(&karyi, &other, KARYI),
                    _ => load::send(&bare, &hello, BARE),
                },
            );
        }
        keep(3, load::send(&karyi, &call, KARYI));
        if let Some(fastapi) = &fastapi {
            keep(1, load::send(fastapi, &call, FASTAPI));
        }
    }
    let calls = 2 * KARYI.calls * (TURNS as u64 + 1);
    let missing = rows(dir.path()).abs_diff(calls);
    let script = dir.path().join("call.lua");
    std::fs::write(&script, lua()).unwrap();
    let wrk = load::wrk(karyi.port, Some(&script), CONNECTIONS).zip(load::wrk(
        bare.port,
        None,
        CONNECTIONS,
    ));
    drop((karyi, fastapi, bare));
    tell(report, &sent);
    if let Some((karyi, bare)) = wrk {
        report.note(&format!(
            "Called by wrk: karyi {karyi:.0} calls/s, axum that says hello {bare:.0}, ratio {:.2}.",
            karyi / bare
        ));
    }
    #[allow(clippy::cast_precision_loss)]
    report.check("calls without a row of the ledger", missing as f64, ..=0.0);
}

/// Returns the bytes of a call with this body.
pub(crate) fn request(body: &str) -> String {
    format!(
        "POST /api/tools/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        X-Tenant-ID: yantian\r\nX-Site-ID: yantian-main\r\nX-Trace-ID: trace-1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The same request for wrk, which says the same again and again.
fn lua() -> String {
    let headers = [
        ("Host", "localhost"),
        ("Content-Type", "application/json"),
        ("X-Tenant-ID", "yantian"),
        ("X-Site-ID", "yantian-main"),
        ("X-Trace-ID", "trace-1"),
    ];
    let headers = headers.map(|(name, value)| format!("wrk.headers[\"{name}\"] = \"{value}\"\n"));
    format!(
        "wrk.method = \"POST\"\nwrk.body = [[{BODY}]]\n{}",
        headers.concat()
    )
}

/// Counts the rows of the ledger.
fn rows(dir: &Path) -> u64 {
    let ledger = rusqlite::Connection::open(dir.join("ledger.db")).unwrap();
    let sql = "SELECT count(*) FROM trace_ledger WHERE status = 'success'";
    ledger.query_row(sql, (), |row| row.get(0)).unwrap()
}

/// Returns the turn in the middle, by its rate.
fn middle(turns: &[SentCounts]) -> Option<SentCounts> {
    let mut turns = turns.to_vec();
    turns.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    turns.get(turns.len() / 2).copied()
}

/// Returns the rates of karyi by those of another contestant, turn by turn, in their order: the speed of a
/// machine changes less between two turns than between many.
fn ratios(karyi: &[SentCounts], other: &[SentCounts]) -> Vec<f64> {
    let turns = karyi.iter().zip(other);
    let mut ratios: Vec<f64> = turns
        .map(|(karyi, other)| karyi.rate / other.rate)
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// The row of one contestant beside karyi.
fn row(name: &str, turns: &[SentCounts], karyi: &[SentCounts]) -> Vec<String> {
    let cell = |value: &dyn Fn(SentCounts) -> f64, places: usize| {
        middle(turns).map_or("not installed".into(), |sent| {
            format!("{:.places$}", value(sent))
        })
    };
    vec![
        name.to_owned(),
        cell(&|sent| sent.rate, 0),
        cell(&|_| crate::median(ratios(karyi, turns)), 2),
        cell(&|sent| sent.server, 1),
        cell(&|sent| sent.caller, 1),
        cell(&|sent| sent.caller * sent.rate / 10_000.0, 0),
    ]
}

fn tell(report: &mut Report, [karyi, fastapi, bare, again]: &[Vec<SentCounts>; 4]) {
    let head = [
        "",
        "calls/s",
        "karyi ÷",
        "server, µs a call",
        "caller, µs a call",
        "caller busy, %",
    ];
    let rows = [
        head.map(str::to_owned).to_vec(),
        row("karyi, every call another query", karyi, karyi),
        row("karyi, the same query", again, karyi),
        row("FastAPI, pydantic, uvicorn, SQLite", fastapi, karyi),
        row("axum that says hello", bare, karyi),
    ];
    let title = format!("`search_content`, {CONNECTIONS} connections");
    report.table(&title, &rows);
    report.note(
        "Every query has the same words with other signs after them; the peer is asked the same query, of which it \
        finds something. Both search their database each time.",
    );
    report.note(
        "karyi writes its log and waits for the disk; the FastAPI server has no log and does not wait.",
    );
    let beside = ratios(karyi, bare);
    let (least, most) = (beside[0], beside[beside.len() - 1]);
    report.note(&format!(
        "A ratio is that of the turn in the middle of {TURNS}; those to axum were {least:.2} to {most:.2}."
    ));
    if !fastapi.is_empty() {
        let ratio = crate::median(ratios(karyi, fastapi));
        report.check("calls, karyi / FastAPI", ratio, LEAST_OF_FASTAPI..);
    }
    report.check(
        "calls, karyi / bare axum",
        crate::median(beside),
        LEAST_OF_AXUM..,
    );
}
