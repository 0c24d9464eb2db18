//! Bytes of a model's message to raw calls.
//!
//! ```text
//!         ┌ prose ──── locate: line starts, fences ──────────────┐
//! bytes ──┼ envelope ─ json: the `tools` string, unescaped ──────┤ stream: one text
//!         └ block ──── tag, scan, text: complete slices          ┘
//!                        └─ quick-xml: values, CDATA ─ element ─ RawCall
//! ```
//!
//! The parser is push-style: it performs no I/O, never blocks, and gives the same events for every
//! chunking. It knows no tool; a [`grammar::Grammar`] tells it which elements exist. Its own scanners
//! find where a tag or a text ends, which repair mode decides by rules no XML parser has. What they
//! cut out is decoded by quick-xml, or taken raw; only a text of characters and references, which
//! most texts are, is decoded in the pass that checks it.
//!
//! Calls come out as soon as their end is decided. An error comes out when its source line is
//! complete, for the excerpt, or the message ends; the calls before it have come out by then.

mod attribute;
mod block;
mod chars;
mod comment;
mod common_faults;
mod context;
mod element;
mod envelope;
pub mod escapes;
mod event;
mod fault;
mod follow_set;
pub mod grammar;
mod ids;
mod json;
mod leaf_content;
mod leaf_decoder;
mod locator;
mod parser;
mod position_tracker;
mod raw_scan;
mod references;
mod repairs;
mod source;
mod stop_bytes;
mod stream;
mod strict;
mod table;
mod tag_scan;
mod text_scan;
mod tools_tag;
mod usage;

pub use event::{Event, Mode};
pub use parser::Parser;
