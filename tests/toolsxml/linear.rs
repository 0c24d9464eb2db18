//! Hostile messages take time in proportion to their length: each family at two sizes.
//!
//! What counts is the processor time of the thread, so that other work on the machine does not
//! matter much: the least for the long one by the middle one for the short one. A ratio that is too
//! large is measured again and again.

use std::time::Duration;

use karyi::syntax::{Mode, Parser};
use nix::time::{ClockId, clock_gettime};

use super::arguments::is_read;
use super::choices::is_full;
use super::{calls, grammar, parse_with};

/// Twice the input may take this many times the time.
const MOST: f64 = 2.2;
/// How often a ratio is measured before it is believed.
const ATTEMPTS: usize = 12;
/// Bytes of the first try; doubled until the time can be measured.
const FIRST_LENGTH: usize = 2_000;
/// Bytes after which a message counts as refused at its start.
const MOST_LENGTH: usize = 1 << 19;

/// What is repeated: before, unit, after. `@` in the unit is its number.
type Family<'f> = (&'f str, &'f str, &'f str);

/// What is repeated in a leaf; `NAME` is the leaf's.
const LEAVES: &[&str] = &[
    "let x = a > b; // 中文\n",
    "<",
    "a < b ",
    "&",
    "&amp;",
    "&amp",
    "&#0000000000",
    "<NAME ",
    "<NAME>",
    "<NAME/>",
    "<NAME></NAME>x",
    "</NAME>x",
    "</NAME",
    "</NAME \n",
    "</NAMEx>",
    "</a>",
    "<![CDATA[x]]>",
    "<![CDATA[<]]>&amp;",
    "<![CDATA[",
    "<![CDATA",
    "]]>",
    "]",
    "<!-- x -->",
    "<!--",
    "<?a?>",
    "$KARYI{A}",
    "$KARYI{",
    "$KARYI<A>",
    "$KARYI<A>&amp;",
    "$KARYI<",
    "$KARYI<![CDATA[",
    "\\",
    "\\n\\x41\\u{41}",
    "\r\n\r",
    " ",
    "```\n",
    "<tools></tools>",
];

/// Elements around a leaf: name, before its text, after it.
const AROUND: &[(&str, &str, &str)] = &[
    ("command", "<tools><command>", "</command></tools>"),
    ("input", "<tools><input>", "</input></tools>"),
    (
        "find",
        "<tools><edit><file src='a'><find>",
        "</find><replace>b</replace></file></edit></tools>",
    ),
    (
        "content",
        "<tools><write_file path='a'><content>",
        "</content></write_file></tools>",
    ),
    ("meta", "<tools><todo><meta>", "</meta></todo></tools>"),
    (
        "command",
        "<tools><command><![CDATA[",
        "]]></command></tools>",
    ),
    ("command", "<tools><command>", "\u{1}</command></tools>"),
    ("command", "<tools><command>", ""),
];

/// Messages of other kinds.
const MESSAGES: &[Family<'_>] = &[
    ("", "many words, `code` and <tags> ", ""),
    ("", "<", ""),
    ("", "x <tools> ", ""),
    ("", "<tools>\n", ""),
    ("", "<tools x\n", ""),
    ("", "<tools \"\n", ""),
    ("", "<tools a=\"x\" \n", ""),
    ("", "<TOOLS", ""),
    ("", "```\n", ""),
    ("", "```a", ""),
    ("", "`", ""),
    ("", "~~~~\n<tools>\n", ""),
    ("", "  ", ""),
    ("", "\r", ""),
    ("", "{", ""),
    ("", "<tools><ctrl>c</ctrl></tools>\n", ""),
    ("```xml\n", "<tools><ctrl>c</ctrl></tools>\n", "```"),
    ("<tools>", "<ctrl>c</ctrl>", "</tools>"),
    ("<tools>", "<ctrl id='a@'>c</ctrl>", "</tools>"),
    (
        "<tools>",
        "<ctrl id='1@'>c</ctrl><ctrl>c</ctrl>",
        "</tools>",
    ),
    ("<tools>", "<Ctrl  timeout=1>c</CTRL >", "</tools>"),
    (
        "<tools>",
        "<read><file src='a' lines=\"1\" all='&amp;'/></read>",
        "</tools>",
    ),
    ("<tools>", "<a>", ""),
    ("<tools>", " ", "</tools>"),
    ("<tools>", "<!-- x -->", "</tools>"),
    ("<tools><!--", "<!-", "--></tools>"),
    ("<tools><!--", "<!--", "--></tools>"),
    ("<tools><!--", "-", "--></tools>"),
    ("<tools><!--", "é", ""),
    ("<tools><read>", "<file src='a'/>", "</read></tools>"),
    (
        "<tools><edit><file src='a'>",
        "<find>a</find><replace>b</replace>",
        "</file></edit></tools>",
    ),
    (
        "<tools><edit><file src='a'>",
        "<find>&amp;<</find><replace/>",
        "</file></edit></tools>",
    ),
    ("<tools><edit>", "<file src='a'></file>", "</edit></tools>"),
    ("<tools><todo>", "<items>a</items>", "</todo></tools>"),
    (
        "<tools><todo>",
        "<items><a k='@'><b>c</b></a></items>",
        "</todo></tools>",
    ),
    (
        "<tools><todo><meta>",
        "<a><a><a><a><a></a></a></a></a></a>",
        "</meta></todo></tools>",
    ),
    (
        "<tools><todo><meta>",
        "<a/> <!-- x -->",
        "</meta></todo></tools>",
    ),
    (
        "<tools><todo><meta>",
        "<entry key=\"@\"/>",
        "</meta></todo></tools>",
    ),
    ("<tools><todo items='", "[", "'/></tools>"),
    ("<tools><todo items=\"", "<a/>", "\"/></tools>"),
    ("<tools><command ", "a", ">"),
    ("<tools><command>a</command ", " ", "></tools>"),
    ("<tools><command>a</command>", " ", "</tools>"),
    ("<tools><command>a</command>", "\n", "x</tools>"),
    ("<tools><command>a</command>", "x", ""),
    ("<tools><command>a</command><", "x", ""),
    ("{\"tools\":\"<tools>", "<ctrl>c</ctrl>", "</tools>\"}"),
    (
        "{\"tools\":\"<tools><command>",
        "\\n",
        "</command></tools>\"}",
    ),
    (
        "{\"tools\":\"<tools><command>",
        "\\u0041<",
        "</command></tools>\"}",
    ),
    (
        "{\"tools\":\"<tools><command>",
        "\\ud83d\\ude00",
        "</command></tools>\"}",
    ),
    ("{\"tools\":\"", "\\ud83d", "\"}"),
    ("{\"tools\":\"", "\\u003ctools\\u003e ", "\"}"),
    ("{\"reply\":\"", "<tools>", "\"}"),
    ("{\"reply\":\"", "<tool", "\"}"),
    ("{\"reply\":\"", "\\\\\\u0041", "\"}"),
    (
        "{\"reply\":[0",
        ",1234567890123456789012345678901234567890",
        "]}",
    ),
    ("{\"a\":1", ",\"tools\":[]", "}"),
    ("{\"a\":1", ",\"\":{}", "}"),
    ("{\"", "\\u0041", "\":1}"),
    ("{", " ", "}"),
];

/// Arguments of the core tools.
const CORE: &[Family<'_>] = &[
    ("<command>\n", "    echo a\n", "</command>"),
    ("<command>", "  \n", "</command>"),
    ("<command>a", " ", "</command>"),
    ("<command>", "\n\ta\n b", "</command>"),
    ("<command>", "$KARYI{", "</command>"),
    ("<command>", "$KARYI{A} ", "</command>"),
    ("<command>", "$$KARYI{A} ", "</command>"),
    ("<command>", "$KARYI<A", "</command>"),
    ("<command>", "$KARYI{A@}", "</command>"),
    ("<command>", "'\"$(`{", "</command>"),
    ("<input>", "\\x41\\\\\\", "\\n</input>"),
    ("<input>", "\\", "\\xz</input>"),
    (
        "<edit>",
        "<file src='a'><find>a</find><replace>b</replace></file>",
        "</edit>",
    ),
    (
        "<edit><file src='a'>",
        "<find>\na\n</find><replace>b</replace>",
        "</file></edit>",
    ),
    (
        "<edit><file src='a'><find>",
        "\n ",
        "</find><replace/></file></edit>",
    ),
    (
        "<read>",
        "<file src='a' lines='1'/><search pattern='p'/>",
        "</read>",
    ),
];

/// Arguments of a generic tool.
const GENERIC: &[Family<'_>] = &[
    ("<body>", "a\n", "</body>"),
    ("<body>", "$KARYI{A} ", "</body>"),
    ("", "<tags>a</tags>", ""),
    ("<tags>", "<item>a</item>", "</tags>"),
    ("<tags>", "<tags>a</tags>", "</tags>"),
    ("<tags>[\"\"", ",\"a\"", "]</tags>"),
    ("<tags>", "x", "</tags>"),
    ("<headers>", "<entry key='@'>v</entry>", "</headers>"),
    ("<headers>", "<k@>v</k@>", "</headers>"),
    ("<headers>", "<k>v</k>", "</headers>"),
    ("<headers>{\"a\":\"\"", ",\"k@\":\"v\"", "}</headers>"),
    (
        "<items>",
        "<item><name>n</name><tags>a</tags><tags>b</tags></item>",
        "</items>",
    ),
    ("", "<items><name>n</name></items>", ""),
    ("<rows>[[0]", ",[1,2]", "]</rows>"),
    ("<rows>", "<item><item>1</item></item>", "</rows>"),
    ("<any>", "<a>1</a>", "</any>"),
    ("<any>", "<entry key='@'>1</entry>", "</any>"),
    ("<any>{\"a\":1", ",\"k@\":[]", "}</any>"),
    ("<any>", "[", "</any>"),
    ("<any>", "{\"a\":", "</any>"),
    ("<any>", "1", "</any>"),
    ("<target>", "<item>a</item>", "</target>"),
    ("<text_or_number>", "1", "</text_or_number>"),
    ("<retries>", "1", "</retries>"),
    ("<retries>", "é", "</retries>"),
    ("<delay>1", "0", "</delay>"),
    ("<follow>", " ", "</follow>"),
    (
        "<tree>{\"value\":1,\"children\":[{\"value\":1}",
        ",{\"value\":1}",
        "]}</tree>",
    ),
];

fn message((before, unit, after): Family<'_>, length: usize) -> Vec<u8> {
    let count = length.div_ceil(unit.len());
    let units = match unit.contains('@') {
        true => (0..count)
            .map(|n| unit.replace('@', &n.to_string()))
            .collect(),
        false => unit.repeat(count),
    };
    [before, &units, after].concat().into_bytes()
}

/// Returns the processor time this thread has used, in seconds.
fn used() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    Duration::from(time).as_secs_f64()
}

fn time(work: &dyn Fn(&[u8]), message: &[u8]) -> f64 {
    let start = used();
    work(message);
    used() - start
}

/// Measures how much longer twice the input takes; returns what is wrong with it.
fn check(family: Family<'_>, work: &dyn Fn(&[u8])) -> Option<String> {
    let enough = if is_full() { 20e-3 } else { 1e-3 };
    let mut one = message(family, FIRST_LENGTH);
    let mut short = time(work, &one);
    while short < enough {
        if one.len() > MOST_LENGTH {
            // Refused at its start.
            return None;
        }
        one = message(family, 2 * one.len());
        short = time(work, &one);
    }
    let length = one.len() - family.0.len() - family.2.len();
    let two = message(family, 2 * length);
    let (mut times, mut long, mut ratio) = (vec![short], f64::MAX, f64::MAX);
    for _ in 0..ATTEMPTS {
        times.push(time(work, &one));
        long = long.min(time(work, &two));
        times.sort_by(f64::total_cmp);
        short = times[times.len() / 2];
        // Numbers in it may make the long one a little more than twice as long.
        ratio = 2.0 * (long / two.len() as f64) / (short / one.len() as f64);
        if ratio <= MOST {
            return None;
        }
    }
    let time = 1e3 * short;
    Some(format!(
        "{family:?}: {time:.1} ms for {length} bytes, {ratio:.2} times that for twice as much"
    ))
}

fn parse(mode: Mode, message: &[u8], chunk: usize) {
    let mut parser = Parser::new(grammar::shared(), mode);
    let mut events = Vec::new();
    for piece in message.chunks(chunk.min(message.len())) {
        parser.feed(piece, &mut events);
        events.clear();
    }
    parser.finish(&mut events);
}

/// Checks families in both modes, byte by byte, in pages and whole; in the short run each in two of
/// these ways, which take turns.
fn check_all(families: &[Family<'_>]) {
    let ways =
        [1, 4096, usize::MAX].map(|chunk| [Mode::Repair, Mode::Strict].map(|mode| (mode, chunk)));
    let ways: Vec<(Mode, usize)> = ways.concat();
    let mut wrong = Vec::new();
    for (number, family) in families.iter().enumerate() {
        let turns = [number % ways.len(), (number + 3) % ways.len()];
        for (turn, (mode, chunk)) in ways.iter().enumerate() {
            if is_full() || turns.contains(&turn) {
                let found = check(*family, &|message| parse(*mode, message, *chunk));
                wrong.extend(found.map(|what| format!("{mode:?}, chunks of {chunk}: {what}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks arguments from the message to the typed call.
fn check_arguments(families: &[Family<'_>], decode: impl Fn(&str)) {
    let decode = |inside: &[u8]| decode(std::str::from_utf8(inside).unwrap());
    let wrong: Vec<String> = families
        .iter()
        .filter_map(|family| check(*family, &decode))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn texts_of_leaves_take_linear_time() {
    let mut families = Vec::new();
    for (number, unit) in LEAVES.iter().enumerate() {
        for (other, (name, before, after)) in AROUND.iter().enumerate() {
            if is_full() || (number + other) % 2 == 0 {
                families.push((*before, unit.replace("NAME", name), *after));
            }
        }
    }
    let families: Vec<Family<'_>> = families
        .iter()
        .map(|(b, unit, a)| (*b, unit.as_str(), *a))
        .collect();
    check_all(&families);
}

#[test]
fn messages_take_linear_time() {
    check_all(MESSAGES);
}

#[test]
fn arguments_of_core_tools_take_linear_time() {
    let (registry, grammar) = (karyi::tools::registry(), grammar::shared());
    check_arguments(CORE, |inside| {
        let message = format!("<tools>{inside}</tools>");
        let events = parse_with(&grammar, Mode::Repair, message.as_bytes(), usize::MAX);
        for call in calls(&events) {
            drop(registry.decode(call));
        }
    });
}

#[test]
fn arguments_of_generic_tools_take_linear_time() {
    check_arguments(GENERIC, |inside| {
        is_read(&format!("<fetch url='u'>{inside}</fetch>"));
    });
}

#[test]
fn work_that_is_not_linear_is_noticed() {
    let sum = |bytes: &[u8]| bytes.iter().map(|b| u64::from(*b)).sum::<u64>();
    let quadratic = |bytes: &[u8]| {
        for end in (0..bytes.len()).step_by(32) {
            std::hint::black_box(sum(&bytes[..end]));
        }
    };
    assert!(check(("", "a", ""), &quadratic).is_some());
    let linear = |bytes: &[u8]| {
        std::hint::black_box(sum(bytes));
    };
    assert_eq!(check(("", "a", ""), &linear), None);
}
