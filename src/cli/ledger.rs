//! `karyi ledger`: shows, verifies and exports the server's ledger.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::cli::args::{LedgerArgs, LedgerCommand};
use crate::cli::{fail, print, serve};
use crate::http::server::ledger_path;
use crate::render::paint::{safe_json, safe_line};
use karyi_core::ids::{hex, is_id, unhex};
use karyi_store::StoreError;
use karyi_store::ledger::{Hash, Record, Row};
use karyi_store::sqlite::{LedgerFile, Verdict};

/// Exit status of a ledger that was altered.
const BROKEN: u8 = 1;

/// Runs `karyi ledger`.
pub(super) fn ledger(args: LedgerArgs) -> ExitCode {
    let opened = serve::database(args.db).and_then(|path| {
        let path = ledger_path(&path);
        if !path.exists() {
            anyhow::bail!(
                "there is no ledger {}\nhint: `karyi serve` makes one at its first call; --db names the database beside it",
                path.display()
            );
        }
        Ok(LedgerFile::open(&path)?)
    });
    let file = match opened {
        Ok(file) => file,
        Err(error) => return fail(&format!("{error:#}")),
    };
    let shown = match args.command {
        LedgerCommand::Tail { count } => file.tail(count).map(|rows| match args.json {
            true => print(&list(&rows)),
            false => print(&lines(&rows)),
        }),
        LedgerCommand::Show { id } => file.about(&id).map(|rows| match rows.is_empty() {
            true => fail(&format!("the ledger has no call or trace {id:?}")),
            false if args.json => print(&list(&rows)),
            false => print(&rows.iter().map(pretty).collect::<String>()),
        }),
        LedgerCommand::Verify { anchor } => verify(&file, anchor.as_deref(), args.json),
        LedgerCommand::Export => export(&file),
    };
    shown.unwrap_or_else(|error| fail(&format!("reading {}: {error}", file.path().display())))
}

fn verify(file: &LedgerFile, anchor: Option<&str>, as_json: bool) -> Result<ExitCode, StoreError> {
    let hash = anchor.map(|text| unhex(text).and_then(|bytes| Hash::try_from(bytes).ok()));
    if hash == Some(None) {
        return Ok(fail("expected 64 hexadecimal digits for --anchor"));
    }
    let verdict = file.verify(hash.flatten().as_ref())?;
    let (text, data) = match &verdict {
        Verdict::Whole { rows, hash } => {
            let anchor = hex(hash);
            let data = json!({"status": "ok", "records": rows, "anchor": anchor});
            (format!("ok: {rows} records, anchor {anchor}"), data)
        }
        Verdict::Broken { seq } => (
            format!("broken: record {seq}, or one before it, was altered"),
            json!({"status": "broken", "seq": seq}),
        ),
        Verdict::NoAnchor { rows } => (
            format!("broken: none of the {rows} records has the hash of the anchor"),
            json!({"status": "broken", "records": rows, "anchor": null}),
        ),
    };
    let shown = match as_json {
        true => data.to_string(),
        false => text,
    };
    let printed = print(&format!("{shown}\n"));
    Ok(match verdict {
        Verdict::Whole { .. } => printed,
        Verdict::Broken { .. } | Verdict::NoAnchor { .. } => ExitCode::from(BROKEN),
    })
}

fn export(file: &LedgerFile) -> Result<ExitCode, StoreError> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut written = Ok(());
    let read = file.each(&mut |row| {
        written = out.write_all(exported(&row).as_bytes());
        match written {
            Ok(()) => Ok(()),
            Err(_) => Err(StoreError::Closed),
        }
    });
    match (written.and_then(|()| out.flush()), read) {
        // A reader that closed the pipe is no error.
        (Err(error), _) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        (Err(error), _) => Ok(fail(&format!("writing to stdout: {error}"))),
        (Ok(()), read) => read.map(|()| ExitCode::SUCCESS),
    }
}

/// Returns one record as a line; it contains the hashed text verbatim.
fn exported(row: &Row) -> String {
    format!(
        "{{\"seq\":{},\"hash\":\"{}\",\"record\":{}}}\n",
        row.seq,
        hex(&row.hash),
        row.record
    )
}

fn list(rows: &[Row]) -> String {
    let rows: Vec<Value> = rows.iter().map(data).collect();
    format!("{}\n", safe_json(&Value::Array(rows).to_string()))
}

fn lines(rows: &[Row]) -> String {
    rows.iter().map(line).collect()
}

fn line(row: &Row) -> String {
    let record: Record<'_> = serde_json::from_str(&row.record).unwrap_or_default();
    // A name chosen by a caller could imitate other columns.
    let tool = match &*record.tool_name {
        "" => "-".into(),
        name if is_id(name) => Cow::Borrowed(name),
        name => Cow::Owned(format!("{name:?}")),
    };
    let problem = record
        .error_type
        .map(|kind| format!(" {kind}"))
        .unwrap_or_default();
    let count = record
        .count
        .map(|count| format!(" x{count}"))
        .unwrap_or_default();
    let place = format!("{}/{}", record.tenant_id, record.site_id);
    let line = format!(
        "{} {} {} {tool} {place} {} {} ms{problem}{count}",
        row.seq, record.ts_end, record.status, record.trace_id, record.latency_ms
    );
    format!("{}\n", safe_line(&line))
}

fn data(row: &Row) -> Value {
    let record: Value = serde_json::from_str(&row.record).unwrap_or_default();
    json!({"seq": row.seq, "hash": hex(&row.hash), "record": record})
}

fn pretty(row: &Row) -> String {
    format!("{}\n", safe_json(&format!("{:#}", data(row))))
}
