//! What the fuzz targets check. The first bytes of an input choose how the rest is looked at.

#[path = "../../tests/toolsxml/grammar.rs"]
mod grammar;
#[path = "../../tests/toolsxml/invariants.rs"]
mod invariants;
#[path = "../../tests/toolsxml/reader.rs"]
mod reader;

#[path = "../../tests/redaction/reference.rs"]
mod reference;
#[path = "../../tests/redaction/streams.rs"]
mod streams;

mod decoding;
mod enveloping;
mod spelling;

/// Stops at the first thing that is wrong.
fn stop_if_wrong(checked: Result<(), String>) {
    if let Err(what) = checked {
        panic!("{what}");
    }
}

/// The sizes of the chunks that one byte chooses.
fn sizes(byte: u8) -> [usize; 2] {
    [usize::from(byte & 15) + 1, usize::from(byte >> 4) * 7 + 1]
}

/// A message as it is.
pub fn parser(data: &[u8]) {
    let [first, message @ ..] = data else {
        return;
    };
    stop_if_wrong(invariants::check_chunks(message, &sizes(*first)));
    stop_if_wrong(invariants::check_modes(message));
    stop_if_wrong(invariants::check_reader(message));
}

/// A JSON envelope, written by the fuzzer or around what it wrote.
pub fn envelope(data: &[u8]) {
    let [first, kind, rest @ ..] = data else {
        return;
    };
    let message = match kind % 4 {
        0 => [b"{\"", rest].concat(),
        1 => rest.to_vec(),
        2 => enveloping::around(rest),
        _ => return stop_if_wrong(invariants::check_part(rest, &sizes(*first))),
    };
    stop_if_wrong(invariants::check_chunks(&message, &sizes(*first)));
    stop_if_wrong(enveloping::check(&message));
}

/// A stream with values planted in it, and one without.
pub fn redact(data: &[u8]) {
    stop_if_wrong(streams::check(&mut streams::Dice::given(data)).map(|_| ()));
    stop_if_wrong(streams::check_benign(&mut streams::Dice::given(data)));
}

/// Arguments in XML or in JSON.
pub fn decode(data: &[u8]) {
    let [style, kind, rest @ ..] = data else {
        return;
    };
    stop_if_wrong(match kind % 2 {
        0 => decoding::check_xml(rest),
        _ => decoding::check_json(rest, *style),
    });
}
