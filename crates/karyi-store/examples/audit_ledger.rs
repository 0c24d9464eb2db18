//! Appends records to an audit ledger, verifies the chain, and shows that a manipulation is detected.
//!
//! Run it with `cargo run -p karyi-store --example audit_ledger`.

#![allow(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use karyi_store::Ledger;
use karyi_store::ledger::Record;
use karyi_store::sqlite::{LedgerFile, SqliteLedger, Verdict};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("ledger.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;

    let ledger = SqliteLedger::open(&path)?;
    for (call_id, status) in [("call-1", "success"), ("call-2", "error")] {
        let record = Record {
            call_id: call_id.into(),
            tool_name: "echo".into(),
            status: status.into(),
            ..Record::default()
        };
        // Before an effect the intent is recorded: if the server dies now, the call shows as interrupted.
        runtime.block_on(ledger.record_intent(&record))?;
        runtime.block_on(ledger.append(&record))?;
    }
    // Dropping the ledger waits for its writing thread.
    drop(ledger);

    let file = LedgerFile::open(&path)?;
    for row in file.tail(10)? {
        println!("{}: {}", row.seq, row.record);
    }
    let Verdict::Whole { rows, hash } = file.verify(None)? else {
        return Err("the ledger is damaged".into());
    };
    println!("{rows} records are intact");

    let database = rusqlite::Connection::open(&path)?;
    let sql = "UPDATE ledger_rows SET record = replace(record, 'error', 'success')";
    database.execute(sql, ())?;
    println!("after a manipulation: {:?}", file.verify(Some(&hash))?);
    Ok(())
}
