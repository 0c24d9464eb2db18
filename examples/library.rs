//! Reads a model's answer with the library and lists the calls in it, without running any.
//!
//! `cargo run --example library < answer.txt`

use std::io::{Read, Write};
use std::sync::Arc;

use karyi::exec::call::title;
use karyi::exec::intake::{Incoming, Intake};
use karyi::syntax::Mode;
use karyi::tools;

fn main() -> std::io::Result<()> {
    let mut message = Vec::new();
    std::io::stdin().read_to_end(&mut message)?;

    let registry = Arc::new(tools::registry());
    let grammar = Arc::new(registry.grammar());
    let mut intake = Intake::new(registry, grammar, Mode::Repair);
    let mut incoming = Vec::new();
    intake.feed(&message, &mut incoming);
    intake.finish(&mut incoming);

    let mut out = std::io::stdout().lock();
    for item in incoming {
        match item {
            Incoming::BlockOpened(_) => writeln!(out, "block")?,
            Incoming::Job(job) => writeln!(
                out,
                "  {} {}: {}",
                job.id,
                job.call.spec().name,
                title(&job.call)
            )?,
            Incoming::BlockClosed => {}
            Incoming::Warning(found) => {
                writeln!(out, "warning {}: {}", found.code.as_str(), found.message)?
            }
            Incoming::Refused(found) => {
                writeln!(out, "refused {}: {}", found.code.as_str(), found.message)?
            }
        }
    }
    Ok(())
}
