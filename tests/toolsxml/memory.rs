//! What the parser keeps of a long message: a text that is still open, and nothing else.
//!
//! A process of its own parses each message, which is made piece by piece, and tells by how much
//! its peak has grown.

use std::process::Command;

use karyi::syntax::{Event, Mode, Parser};

use super::choices::is_full;
use super::grammar;

/// Says in the child which message it parses and with how many megabytes.
const WISH: &str = "KARYI_TEST_MESSAGE";
/// Bytes given to the parser at once.
const PIECE: usize = 16 << 10;
/// What a message of any length may take, in KiB.
const FIXED_KIB: u64 = 2 << 10;
/// Nothing is kept.
const NOTHING: u64 = 0;
/// The number of each call is kept, in a list that doubles.
const NUMBERS: u64 = 2;
/// An open text is kept: as it came, with room to grow, and as it is read.
const TEXT: u64 = 4;

/// What stands first, what is repeated, and how many bytes may be kept for one that came.
const MESSAGES: &[(&str, &str, u64)] = &[
    ("", "many words, `code` and <tags> 中文 ", NOTHING),
    ("", "words\n```\n<tools>\n```\n<tools> is a tag\n", NOTHING),
    ("", "<tools><ctrl>c</ctrl></tools>\n", NUMBERS),
    ("<tools>", "<a>", NOTHING),
    ("<tools>", "<ctrl>c</ctrl>", NUMBERS),
    ("<tools>", " \n", NOTHING),
    ("<tools><!--", "- -", NOTHING),
    ("<tools><bogus>", "</tools>", NOTHING),
    ("<tools><command ", "a", NOTHING),
    ("{\"reply\":\"", "<p>\\u0041\\n", NOTHING),
    ("{\"tools\":\"<tools>", "<ctrl>c</ctrl>\\n", NUMBERS),
    ("{\"a\":[1", ",{\"b\":[]}", NOTHING),
    ("<tools><command>", "<", TEXT),
    (
        "<tools><command>",
        "let x = a < b && c > d; // 中文\n",
        TEXT,
    ),
    ("<tools><command><![CDATA[", "]]", TEXT),
    ("<tools><command>a</command>", " ", TEXT),
    ("{\"tools\":\"<tools><command>", "<p>\\u0041\\n", TEXT),
];

/// Parses a message as a child that [`growth_kib`] starts.
#[test]
fn in_a_child() {
    let Ok(wish) = std::env::var(WISH) else {
        return;
    };
    let (number, megabytes) = wish.split_once(' ').unwrap();
    let (before, unit, _) = MESSAGES[number.parse::<usize>().unwrap()];
    let megabytes: usize = megabytes.parse().unwrap();
    let piece = unit.repeat(PIECE.div_ceil(unit.len()));
    // Once in small, so that the pages of the program itself are there and not counted.
    let mut small = Parser::new(grammar::shared(), Mode::Repair);
    for piece in [before, unit] {
        small.feed(piece.as_bytes(), &mut Vec::new());
    }
    small.finish(&mut Vec::new());
    let mut parser = Parser::new(grammar::shared(), Mode::Repair);
    let start = peak_kib();
    let mut feed = |bytes: &str| {
        let mut events: Vec<Event> = Vec::new();
        parser.feed(bytes.as_bytes(), &mut events);
    };
    feed(before);
    for _ in 0..(megabytes << 20) / piece.len() {
        feed(&piece);
    }
    parser.finish(&mut Vec::new());
    println!("\ngrown by {}", peak_kib() - start);
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

fn growth_kib(number: usize, megabytes: u64) -> u64 {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "toolsxml::memory::in_a_child", "--nocapture"])
        .env(WISH, format!("{number} {megabytes}"))
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let growth = output
        .lines()
        .find_map(|line| line.strip_prefix("grown by "));
    growth
        .unwrap_or_else(|| panic!("{output}"))
        .parse()
        .unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn only_a_text_that_is_open_is_kept() {
    let mut wrong = Vec::new();
    for (number, (before, unit, kept)) in MESSAGES.iter().enumerate() {
        let megabytes = if is_full() { 100 } else { 3 };
        let growth = growth_kib(number, megabytes);
        println!("{before:?} {unit:?} {megabytes} MiB: {growth} KiB");
        if growth > FIXED_KIB + ((kept * megabytes) << 10) {
            wrong.push(format!(
                "{before:?} {unit:?}: {growth} KiB for {megabytes} MiB"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
