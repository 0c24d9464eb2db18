//! `karyi ledger`: shows, verifies and exports the server's ledger.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

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
    let opened =
        serve::database(args.db).and_then(|path| Ok(LedgerFile::open(&ledger_path(&path))?));
    let file = match opened {
        Ok(file) => file,
        Err(error) => return fail(&format!("{error:#}")),
    };
    let shown = match args.command {
        LedgerCommand::Tail { count } => file.tail(count).map(|rows| print(&lines(&rows))),
        LedgerCommand::Show { id } => file.about(&id).map(|rows| match rows.is_empty() {
            true => fail(&format!("the ledger has no call or trace {id:?}")),
            false => print(&rows.iter().map(pretty).collect::<String>()),
        }),
        LedgerCommand::Verify { anchor } => verify(&file, anchor.as_deref()),
        LedgerCommand::Export => export(&file),
    };
    shown.unwrap_or_else(|error| fail(&format!("reading {}: {error}", file.path().display())))
}

fn verify(file: &LedgerFile, anchor: Option<&str>) -> Result<ExitCode, StoreError> {
    let hash = anchor.map(|text| unhex(text).and_then(|bytes| Hash::try_from(bytes).ok()));
    if hash == Some(None) {
        return Ok(fail("expected 64 hexadecimal digits for --anchor"));
    }
    Ok(match file.verify(hash.flatten().as_ref())? {
        Verdict::Whole { rows, hash } => {
            print(&format!("ok: {rows} records, anchor {}\n", hex(&hash)))
        }
        Verdict::Broken { seq } => {
            print(&format!(
                "broken: record {seq}, or one before it, was altered\n"
            ));
            ExitCode::from(BROKEN)
        }
        Verdict::NoAnchor { rows } => {
            print(&format!(
                "broken: none of the {rows} records has the hash of the anchor\n"
            ));
            ExitCode::from(BROKEN)
        }
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

fn pretty(row: &Row) -> String {
    let record: serde_json::Value = serde_json::from_str(&row.record).unwrap_or_default();
    let shown = serde_json::json!({"seq": row.seq, "hash": hex(&row.hash), "record": record});
    format!("{}\n", safe_json(&format!("{shown:#}")))
}
