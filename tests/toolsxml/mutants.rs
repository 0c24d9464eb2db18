//! Messages that are nearly right: cases and random documents, changed in a few places.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::documents::any_document;
use super::generic::MESSAGES;
use super::{grammar, inputs};

/// What mutations put into a message: everything that means something to the parser.
const PIECES: [&str; 46] = [
    "<tools>",
    "</tools>",
    "<TOOLS",
    "<command>",
    "</command>",
    "</command ",
    "<command",
    "<edit>",
    "</edit>",
    "<file src=\"a\">",
    "</file>",
    "<find>",
    "</find>",
    "<replace>",
    "</replace>",
    "<ctrl>c</ctrl>",
    "<input>",
    "</input>",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "--",
    "&amp;",
    "&#0;",
    "&#13;",
    "&",
    "<",
    ">",
    "</",
    "/>",
    "\"",
    "'",
    "“",
    "”",
    "=",
    " ",
    "\n",
    "\r",
    "\r\n",
    "```",
    "```xml\n",
    "$KARYI<A>",
    "\\x",
    "{\"tools\":\"",
    "\u{FFFE}",
];

#[derive(Debug, Clone)]
enum Mutation {
    Insert(Index, &'static str),
    Byte(Index, u8),
    Flip(Index, u8),
    Splice(Index, Index, Index, usize),
    Remove(Index, usize),
    Cut(Index),
    Repeat(Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        4 => (any::<Index>(), select(&PIECES[..])).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
        1 => (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        2 => (any::<Index>(), any::<Index>(), any::<Index>(), 1..60_usize)
            .prop_map(|(at, case, from, count)| Mutation::Splice(at, case, from, count)),
        2 => (any::<Index>(), 1..12_usize).prop_map(|(at, count)| Mutation::Remove(at, count)),
        1 => any::<Index>().prop_map(Mutation::Cut),
        1 => (any::<Index>(), 1..40_usize).prop_map(|(at, count)| Mutation::Repeat(at, count)),
    ]
}

fn mutate(message: &mut Vec<u8>, mutation: &Mutation, cases: &[Vec<u8>]) {
    let place = |at: &Index| at.index(message.len() + 1);
    match mutation {
        Mutation::Insert(at, piece) => {
            let at = place(at);
            message.splice(at..at, piece.bytes());
        }
        Mutation::Byte(at, byte) => message.insert(place(at), *byte),
        Mutation::Flip(at, bit) => {
            let at = place(at);
            if let Some(byte) = message.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        Mutation::Splice(at, case, from, count) => {
            let at = place(at);
            let case = &cases[case.index(cases.len())];
            let from = from.index(case.len() + 1);
            let end = (from + count).min(case.len());
            message.splice(at..at, case[from..end].iter().copied());
        }
        Mutation::Remove(at, count) => {
            let at = place(at);
            let end = (at + count).min(message.len());
            message.drain(at..end);
        }
        Mutation::Cut(at) => message.truncate(place(at)),
        Mutation::Repeat(at, count) => {
            let at = place(at);
            let end = (at + count).min(message.len());
            message.extend_from_within(at..end);
        }
    }
}

/// A message that shows as text.
#[derive(Clone)]
pub(super) struct Message(pub(super) Vec<u8>);

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// Messages to start from: the cases, and some with generic tools.
fn bases() -> Vec<Vec<u8>> {
    let cases = inputs().into_iter().map(|(_, message)| message);
    // Long cases would only slow the search down.
    let mut bases: Vec<Vec<u8>> = cases.filter(|message| message.len() < 1000).collect();
    bases.extend(MESSAGES.iter().map(|message| message.as_bytes().to_vec()));
    bases
}

/// A case or a random document, changed in a few places.
pub(super) fn mutant() -> impl Strategy<Value = Message> {
    let documents = any_document(grammar::with_generic_tools());
    let documents = documents.prop_map(|document| document.text.into_bytes());
    changed(prop_oneof![3 => select(bases()), 1 => documents])
}

/// A block without anything around it, changed in a few places.
pub(super) fn block_mutant() -> impl Strategy<Value = Message> {
    let documents = any_document(grammar::with_generic_tools());
    changed(documents.prop_map(|document| {
        let block = document.blocks[0].clone();
        document.text.as_bytes()[block].to_vec()
    }))
}

fn changed(base: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Message> {
    let bases = bases();
    (base, vec(mutation(), 0..5)).prop_map(move |(mut message, mutations)| {
        for mutation in &mutations {
            mutate(&mut message, mutation, &bases);
        }
        Message(message)
    })
}
