//! Decoding of keys, and values assembled from them.

use super::*;

fn shown(key: &Key) -> String {
    match key {
        Key::Char(c) => c.to_string(),
        Key::Control(c) => format!("^{c}"),
        Key::Enter => "Enter".into(),
        Key::Backspace => "Back".into(),
        Key::Escape => "Esc".into(),
        Key::Paste(text) => format!("{:?}", text.as_str()),
        Key::Other => "-".into(),
    }
}

/// Returns the keys in some bytes followed by a pause, separated by spaces.
fn read(bytes: &[u8]) -> String {
    let mut bytes = bytes.iter().copied();
    let mut next = || Ok::<_, ()>(bytes.next());
    let keys = std::iter::from_fn(|| read_key(&mut next).unwrap());
    keys.map(|key| shown(&key)).collect::<Vec<_>>().join(" ")
}

#[test]
fn bytes_are_keys() {
    for (bytes, expected) in [
        (&b"aZ \r\n\t\x7f\x08"[..], "a Z   Enter Enter ^i Back Back"),
        (b"\x03\x04\x15\x00\x1c", "^c ^d ^u - -"),
        ("é名🦀".as_bytes(), "é 名 🦀"),
        (b"a\xff\xe5\x90", "a - -"),
        (b"\x1b[A\x1b[1;5C\x1bOPx\x1b[15~", "- - - x -"),
        (b"\x1bxy\x1b\x1b", "- y Esc"),
        (b"\x1b[200~a\r\nb\x1b[201~c", "\"a\\r\\nb\" c"),
        (
            b"\x1b[200~\x1b[A\x1b[20\x1b[201~",
            "\"\\u{1b}[A\\u{1b}[20\"",
        ),
        (b"\x1b[200~a\xff\x1b[201~b", "- b"),
        (b"a\x1b", "a Esc"),
        (b"\x1b[", "-"),
    ] {
        assert_eq!(read(bytes), expected, "{bytes:?}");
    }
}

#[test]
fn a_paste_does_not_grow_without_end() {
    let long = [b"\x1b[200~", &[b'x'; 3 * MOST_PASTED][..], PASTE_END].concat();
    assert_eq!(read(&long).len(), MOST_PASTED + 2);
}

const PASTE: &str = "paste:";

/// Processes words as keys or pasted text; returns the value.
fn typed(words: &[&str]) -> Option<String> {
    let mut line = ValueInput::new();
    for word in words {
        let keys: Vec<Key> = match word.strip_prefix(PASTE) {
            Some(text) => vec![Key::Paste(Zeroizing::new(text.into()))],
            None => word.chars().map(key).collect(),
        };
        for key in keys {
            match line.take(key, false) {
                Step::More | Step::SeveralLines => {}
                Step::Complete => return Some(line.into_value().expose().to_owned()),
                Step::Declined => return None,
            }
        }
    }
    panic!("{words:?} is no answer");
}

fn key(c: char) -> Key {
    match c {
        '\n' => Key::Enter,
        '\x7f' => Key::Backspace,
        '\x1b' => Key::Escape,
        '\x04' => Key::Control('d'),
        '\x15' => Key::Control('u'),
        c => Key::Char(c),
    }
}

#[test]
fn keys_make_a_value() {
    for (words, expected) in [
        (&["abx\x7fc123456\n"][..], Some("abc123456")),
        (&["lost\x15", "value-1\n"], Some("value-1")),
        (&["value-1\x04"], Some("value-1")),
        (&["\x1b"], None),
        (&["\n"], None),
        (&["\x04"], None),
        (&["paste:token-1\n", "\n"], Some("token-1")),
        (&["paste:a 1\r\nb 2\n", "\x04"], Some("a 1\nb 2\n")),
        (&["paste:a 1\rb 2", "\n", "c 3\x04"], Some("a 1\nb 2\nc 3")),
    ] {
        assert_eq!(typed(words).as_deref(), expected, "{words:?}");
    }
}

#[test]
fn lines_pasted_as_keys_are_one_value() {
    let mut line = ValueInput::new();
    for c in "begin\nsave\n".chars() {
        assert!(!matches!(line.take(key(c), true), Step::Complete));
    }
    assert_eq!(line.take(key('\x04'), false), Step::Complete);
    assert_eq!(line.into_value().expose(), "begin\nsave\n");
}

#[test]
fn what_is_too_long_stays_so() {
    let most = "x".repeat(limits::MAX_SECRET_BYTES);
    let more = format!("{most}yyyyyyyy");
    let length = |words: &[&str]| typed(words).unwrap().len();
    assert_eq!(length(&[&most, "\n"]), limits::MAX_SECRET_BYTES);
    assert!(length(&[&more, "\n"]) > limits::MAX_SECRET_BYTES);
    let pasted = format!("{PASTE}{more}");
    assert!(length(&[&pasted, "\n"]) > limits::MAX_SECRET_BYTES);
    // What is taken back is what came last.
    let back = "\x7f".repeat(8);
    assert_eq!(length(&[&more, &back, "\n"]), limits::MAX_SECRET_BYTES);
}
