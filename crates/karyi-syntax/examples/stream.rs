//! Parses tool calls from a message that arrives in pieces of a few bytes.

#![allow(clippy::print_stdout, reason = "an example prints its results")]

use std::sync::Arc;

use karyi_core::call::RawBody;
use karyi_syntax::grammar::{ContentRule, ElementRule, Grammar, LeafKind};
use karyi_syntax::{Event, Mode, Parser};

const MESSAGE: &str = "I look at the sources first.\n\
    <tools>\n  <command>cd src && ls *.rs</command>\n  <command>grep -c 'a < b' main.rs</comand>\n</tools>\n";

fn main() {
    let command = ElementRule {
        name: "command".into(),
        attributes: Vec::new(),
        content: ContentRule::Leaf(LeafKind::Script),
    };
    let grammar = Grammar {
        tools: vec![command],
        ..Grammar::default()
    };
    let mut parser = Parser::new(Arc::new(grammar), Mode::Repair);
    let mut events = Vec::new();
    for piece in MESSAGE.as_bytes().chunks(5) {
        parser.feed(piece, &mut events);
        events.drain(..).for_each(print);
    }
    parser.finish(&mut events);
    events.drain(..).for_each(print);
}

fn print(event: Event) {
    match event {
        Event::BlockOpened { position, .. } => println!("block at line {}", position.line),
        Event::Call(call) => match call.element.body {
            RawBody::Text(text) => println!(
                "call {}: {} (repairs {:?})",
                call.id, text.text, call.repairs
            ),
            RawBody::Empty | RawBody::Elements(_) => println!("call {}: no text", call.id),
        },
        Event::DraftsEnded => println!("the blocks so far were drafts"),
        Event::BlockClosed => println!("end of the block"),
        Event::Warning(diagnostic) => println!("warning: {}", diagnostic.message),
        Event::Error(diagnostic) => {
            println!(
                "error[{}]: {}",
                diagnostic.code.as_str(),
                diagnostic.message
            );
            println!("hint: {}", diagnostic.hint);
        }
    }
}
