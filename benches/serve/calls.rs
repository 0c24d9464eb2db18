//! `search_content` with checks and ledger: calls per second beside FastAPI and beside bare axum.

use std::path::Path;

use crate::load::{self, Load, Sent};
use crate::report::Report;
use crate::servers;

/// What is called.
const BODY: &str = r#"{"tool_name": "search_content", "input": {"query": "严氏家训", "limit": 5}, "context": {"tenant_id": "yantian", "site_id": "yantian-main", "trace_id": "trace-1"}}"#;

/// The query, and the same one so that every call has another text with the same words.
const QUERY: &str = "严氏家训";
const OTHERS: &str = "严氏家训????????";

/// Turns each contestant has.
const TURNS: usize = 5;

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
    let karyi = servers::karyi(dir.path());
    let fastapi = servers::fastapi(dir.path());
    let bare = servers::bare();
    let mut sent = [const { Vec::new() }; 4];
    for _ in 0..TURNS {
        sent[0].push(load::send(&karyi, &other, KARYI));
        sent[3].push(load::send(&karyi, &call, KARYI));
        if let Some(fastapi) = &fastapi {
            sent[1].push(load::send(fastapi, &call, FASTAPI));
        }
        sent[2].push(load::send(&bare, &hello, BARE));
    }
    let calls = 2 * KARYI.calls * TURNS as u64;
    let missing = rows(dir.path()).abs_diff(calls);
    let script = dir.path().join("call.lua");
    std::fs::write(&script, lua()).unwrap();
    let wrk = load::wrk(karyi.port, Some(&script), CONNECTIONS).zip(load::wrk(
        bare.port,
        None,
        CONNECTIONS,
    ));
    drop((karyi, fastapi, bare));
    tell(report, sent.map(middle));
    if let Some((karyi, bare)) = wrk {
        report.note(&format!(
            "Called by wrk: karyi {karyi:.0} calls/s, axum that says hello {bare:.0}, ratio {:.2}.",
            karyi / bare
        ));
    }
    #[allow(clippy::cast_precision_loss)]
    report.check("calls without a row of the ledger", missing as f64, ..=0.0);
}

fn request(body: &str) -> String {
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
fn middle(mut turns: Vec<Sent>) -> Option<Sent> {
    turns.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    turns.get(turns.len() / 2).copied()
}

/// The row of one contestant; `karyi` is the rate that the others are compared with.
fn row(name: &str, sent: Option<Sent>, karyi: f64) -> Vec<String> {
    let cell = |value: &dyn Fn(Sent) -> f64, places: usize| {
        sent.map_or("not installed".into(), |sent| {
            format!("{:.places$}", value(sent))
        })
    };
    vec![
        name.to_owned(),
        cell(&|sent| sent.rate, 0),
        cell(&|sent| karyi / sent.rate, 2),
        cell(&|sent| sent.server, 1),
        cell(&|sent| sent.caller, 1),
        cell(&|sent| sent.caller * sent.rate / 10_000.0, 0),
    ]
}

fn tell(report: &mut Report, [karyi, fastapi, bare, again]: [Option<Sent>; 4]) {
    let (rate, hello) = (karyi.unwrap().rate, bare.unwrap().rate);
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
        row("karyi, every call another query", karyi, rate),
        row("karyi, the same query", again, rate),
        row("FastAPI, pydantic, uvicorn, SQLite", fastapi, rate),
        row("axum that says hello", bare, rate),
    ];
    let title = format!("`search_content`, {CONNECTIONS} connections");
    report.table(&title, &rows);
    report.note(
        "Every query has the same words with other signs after them; the peer is asked the same query, of which it \
        finds something. karyi keeps contents and their index in memory, and no results.",
    );
    report.note(
        "karyi writes its log and waits for the disk; the FastAPI server has no log and does not wait.",
    );
    if let Some(fastapi) = fastapi {
        report.check("calls, karyi / FastAPI", rate / fastapi.rate, 12.0..);
    }
    report.check("calls, karyi / bare axum", rate / hello, 0.35..);
}
