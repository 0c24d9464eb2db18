//! A repairing, streaming parser for tool calls in the output of language models.
//!
//! [`Parser`] takes the bytes of a message in pieces of any size and emits an [`Event`] for each block, call, warning
//! and error. A [`grammar::Grammar`] defines the elements. [`Mode::Repair`] fixes what the published rules allow and
//! reports each repair; [`Mode::Strict`] accepts XML 1.0 and the grammar only.
//!
//! ```text
//!         ┌ prose ──── locate: line starts, fences ──────────────┐
//! bytes ──┼ envelope ─ json: the `tools` string, unescaped ──────┤ stream: one text
//!         └ block ──── tag, scan, text: complete slices          ┘
//!                        └─ quick-xml: values, CDATA ─ element ─ RawCall
//! ```
//!
//! The parser performs no I/O and never blocks. Its events do not depend on how the input is divided. Its own scanners
//! find the ends of tags and texts, because repair mode follows rules that no XML parser has. quick-xml decodes the
//! slices they cut out. Plain text with character references, the common case, is decoded in the pass that checks it.
//!
//! A call is emitted as soon as its end is certain. An error is emitted when its source line is complete, so that the
//! excerpt is whole, or when the message ends.

mod attribute;
mod bare_calls;
mod block;
mod chars;
mod comment;
mod common_faults;
mod context;
mod drafts;
mod element;
mod envelope;
pub mod escapes;
mod event;
mod fault;
mod fence;
mod follow_set;
pub mod grammar;
mod ids;
mod json;
mod leaf_content;
mod leaf_decoder;
mod locator;
mod parser;
mod position_tracker;
mod prose;
mod raw_scan;
mod references;
mod repairs;
pub mod slips;
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
pub use prose::Prose;
