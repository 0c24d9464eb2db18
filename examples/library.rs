//! Reads a model's answer with the library and lists the calls in it, without running any.
//!
//! `cargo run --example library < answer.txt`

use std::io::{Read, Write};
use std::sync::Arc;

use karyi::exec::call_title::title;
use karyi::exec::decoder::{DecodedItem, MessageDecoder};
use karyi::syntax::Mode;
use karyi::tools;

fn main() -> std::io::Result<()> {
    let mut message = Vec::new();
    std::io::stdin().read_to_end(&mut message)?;

    let registry = Arc::new(tools::registry());
    let grammar = Arc::new(registry.grammar());
    let mut decoder = MessageDecoder::new(registry, grammar, Mode::Repair);
    let mut decoded = Vec::new();
    decoder.feed(&message, &mut decoded);
    decoder.finish(&mut decoded);

    let mut out = std::io::stdout().lock();
    for item in decoded {
        match item {
            DecodedItem::BlockOpened(_) => writeln!(out, "block")?,
            DecodedItem::Call(prepared) => writeln!(
                out,
                "  {} {}: {}",
                prepared.id,
                prepared.call.spec().name,
                title(&prepared.call)
            )?,
            DecodedItem::BlockClosed | DecodedItem::DraftsEnded | DecodedItem::Prose(_) => {}
            DecodedItem::Warning(found) => {
                writeln!(out, "warning {}: {}", found.code.as_str(), found.message)?
            }
            DecodedItem::Refused(found) => {
                writeln!(out, "refused {}: {}", found.code.as_str(), found.message)?
            }
        }
    }
    Ok(())
}
