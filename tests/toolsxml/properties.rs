//! Properties: any chunking gives the same events, nothing panics, and well-formed input means the
//! same in both modes.

use std::sync::Arc;

use karyi::syntax::{Event, Mode, Parser};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{calls, error, grammar, inputs, parse_with};

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
    Remove(Index, usize),
    Cut(Index),
    Repeat(Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        4 => (any::<Index>(), select(&PIECES[..])).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
        2 => (any::<Index>(), 1..12_usize).prop_map(|(at, count)| Mutation::Remove(at, count)),
        1 => any::<Index>().prop_map(Mutation::Cut),
        1 => (any::<Index>(), 1..40_usize).prop_map(|(at, count)| Mutation::Repeat(at, count)),
    ]
}

fn mutate(message: &mut Vec<u8>, mutation: &Mutation) {
    let place = |at: &Index| at.index(message.len() + 1);
    match mutation {
        Mutation::Insert(at, piece) => {
            let at = place(at);
            message.splice(at..at, piece.bytes());
        }
        Mutation::Byte(at, byte) => message.insert(place(at), *byte),
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
struct Message(Vec<u8>);

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// A case, changed in a few places.
fn mutant() -> impl Strategy<Value = Message> {
    // Long cases would only slow the search down.
    let cases = inputs().into_iter().map(|(_, message)| message);
    let mut cases: Vec<Vec<u8>> = cases.filter(|message| message.len() < 1000).collect();
    cases.extend(
        super::generic::MESSAGES
            .iter()
            .map(|message| message.as_bytes().to_vec()),
    );
    (select(cases), vec(mutation(), 0..5)).prop_map(|(mut message, mutations)| {
        for mutation in &mutations {
            mutate(&mut message, mutation);
        }
        Message(message)
    })
}

/// Parses in pieces of the given sizes, again and again.
fn parse_in(mode: Mode, message: &[u8], sizes: &[usize]) -> Vec<Event> {
    let mut parser = Parser::new(Arc::new(grammar::with_generic_tools()), mode);
    let (mut events, mut rest) = (Vec::new(), message);
    for size in sizes.iter().cycle() {
        let (piece, more) = rest.split_at((*size).min(rest.len()));
        parser.feed(piece, &mut events);
        rest = more;
        if rest.is_empty() {
            break;
        }
    }
    parser.finish(&mut events);
    events
}

/// Checks what holds for the events of any message.
fn check_sane(events: &[Event], message: &[u8]) {
    for (at, event) in events.iter().enumerate() {
        let (Event::Error(diagnostic) | Event::Warning(diagnostic)) = event else {
            continue;
        };
        let is_error = matches!(event, Event::Error(_));
        assert!(
            !is_error || at + 1 == events.len(),
            "something follows the error"
        );
        assert!(diagnostic.position.offset <= message.len() as u64);
        let excerpt = diagnostic.excerpt.as_ref().unwrap();
        assert!(excerpt.caret_start <= excerpt.line.chars().count());
        assert!(!excerpt.line.contains(char::is_control));
        assert!(!diagnostic.message.contains('\n') && !diagnostic.hint.contains('\n'));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_chunking_gives_the_same_events(Message(message) in mutant(), sizes in vec(1..30_usize, 1..6)) {
        for mode in [Mode::Repair, Mode::Strict] {
            let whole = parse_in(mode, &message, &[usize::MAX]);
            check_sane(&whole, &message);
            prop_assert_eq!(&parse_in(mode, &message, &[1]), &whole, "byte by byte, {:?}", mode);
            prop_assert_eq!(&parse_in(mode, &message, &sizes), &whole, "pieces of {:?}, {:?}", sizes, mode);
        }
    }

    #[test]
    fn a_call_without_repairs_is_well_formed(Message(message) in mutant()) {
        let repaired = parse_in(Mode::Repair, &message, &[usize::MAX]);
        let is_clean = repaired.iter().all(|event| match event {
            Event::Call(call) => call.repairs.is_empty(),
            Event::Warning(_) | Event::Error(_) => false,
            Event::BlockOpened { .. } | Event::BlockClosed => true,
        });
        // A comment that strict mode refuses changes no call, so it is reported nowhere.
        let strict = parse_in(Mode::Strict, &message, &[usize::MAX]);
        let is_comment = error(&strict).is_some_and(|error| error.code.as_str() == "bad-comment");
        if is_clean && !is_comment {
            prop_assert_eq!(calls(&strict), calls(&repaired));
        }
    }

    #[test]
    fn well_formed_documents_mean_the_same_in_both_modes(document in document()) {
        let grammar = Arc::new(grammar::with_generic_tools());
        let strict = parse_with(&grammar, Mode::Strict, document.as_bytes(), usize::MAX);
        prop_assert!(error(&strict).is_none(), "{:?}\n{}", error(&strict), document);
        let repaired = parse_with(&grammar, Mode::Repair, document.as_bytes(), usize::MAX);
        prop_assert_eq!(repaired, strict);
    }
}

/// Text of a leaf: any characters, references and CDATA sections that XML allows.
fn text() -> impl Strategy<Value = String> {
    let plain = "[ -%'-;=-~é中😀\u{85}\t\r\n]{0,12}";
    let plain = plain.prop_map(|text: String| text.replace("]]>", "]] >"));
    let reference = select(vec![
        "&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&#65;", "&#x4e2d;", "&#13;", "&#010;",
    ]);
    let cdata = "[ -~\n\r]{0,12}|</command>|<find>|&amp;|\\]\\]|<!--";
    let cdata = cdata.prop_map(|text: String| format!("<![CDATA[{}]]>", text.replace("]]>", "]]")));
    let piece = prop_oneof![3 => plain, 2 => reference.prop_map(str::to_owned), 1 => cdata];
    // Pieces must not make `]]>` together.
    vec(piece, 0..5).prop_map(|pieces| pieces.join(" "))
}

fn attribute() -> impl Strategy<Value = String> {
    let value = "[ -%'-;=-~é中“”\t\n]{0,10}|a&amp;b|&lt;&#65;|\\$KARYI\\{X\\}|a>b";
    (value, any::<bool>()).prop_map(|(value, is_double): (String, bool)| match is_double {
        true => format!("\"{}\"", value.replace('"', "&quot;")),
        false => format!("'{}'", value.replace('\'', "&apos;")),
    })
}

fn space() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "",
        " ",
        "\n  ",
        "\r\n",
        "<!-- </tools> & -->",
        "\n<!---->\t",
    ])
}

fn leaf(name: &'static str) -> impl Strategy<Value = String> {
    (text(), space()).prop_map(move |(text, space)| {
        let space = if space.contains('<') { " " } else { space };
        format!("<{name}>{text}</{name}{space}>")
    })
}

fn edit() -> impl Strategy<Value = String> {
    let pair = (leaf("find"), space(), leaf("replace"), space());
    let pair =
        pair.prop_map(|(find, one, replace, two)| [find, one.into(), replace, two.into()].concat());
    let file = (attribute(), vec(pair, 0..3));
    let file = file.prop_map(|(src, pairs)| format!("<file src = {src}>{}</file>", pairs.concat()));
    vec(file, 1..3).prop_map(|files| format!("<edit>{}</edit>", files.concat()))
}

fn value() -> impl Strategy<Value = String> {
    let leaf = text().prop_map(|text| format!("<v>{text}</v>"));
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        (attribute(), space(), vec(inner, 1..3)).prop_map(|(key, space, inner)| {
            format!("<entry key={key}>{space}{}{space}</entry>", inner.concat())
        })
    });
    vec(value, 0..3).prop_map(|values| match values.is_empty() {
        true => "<items/>".to_owned(),
        false => format!("<items> {}</items>", values.concat()),
    })
}

fn call() -> impl Strategy<Value = String> {
    prop_oneof![
        (attribute(), text())
            .prop_map(|(cwd, text)| format!("<command cwd={cwd}>{text}</command>")),
        leaf("command"),
        Just("<command/>".to_owned()),
        Just("<ctrl> Up\n</ctrl>".to_owned()),
        edit(),
        attribute().prop_map(|src| format!("<read><file src={src}/><file src='b'></file></read>")),
        (attribute(), leaf("content"))
            .prop_map(|(path, content)| format!("<write_file path={path}>{content} </write_file>")),
        (vec(value(), 0..3), leaf("note"))
            .prop_map(|(items, note)| format!("<todo>{}{note}</todo>", items.concat())),
    ]
}

/// A message with one block that is well-formed XML and follows the grammar.
fn document() -> impl Strategy<Value = String> {
    let options = select(vec!["", " order='sequential'", " xml:space=\"preserve\" "]);
    (options, vec((space(), call()), 0..5), space()).prop_map(|(options, calls, end)| {
        let calls: String = calls
            .into_iter()
            .map(|(space, call)| format!("{space}{call}"))
            .collect();
        format!("Prose & <more>\n  <tools{options}>{calls}{end}</tools> prose\n")
    })
}
