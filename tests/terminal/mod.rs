//! What real programs told a terminal of 120 columns and 40 rows, and the text that comes of it.
//!
//! `NAME.raw` is recorded with output processing off, as in a session; `NAME.txt` is what a person
//! sees at the end.

use karyi::pty::text::TerminalText;

use crate::toolsxml::choices::is_full;

fn render(mut terminal: TerminalText, pieces: &[&[u8]]) -> String {
    let mut text = String::new();
    pieces
        .iter()
        .for_each(|piece| terminal.push(piece, &mut text));
    terminal.finish(&mut text);
    text
}

/// Checks the whole, split points, single bytes, and what a watcher gets. The full run takes every split
/// point, the small one some two hundred of them.
fn check(recorded: &[u8], expected: &str) {
    assert_eq!(render(TerminalText::new(), &[recorded]), expected);
    let step = if is_full() {
        1
    } else {
        recorded.len() / 200 + 1
    };
    for at in (1..recorded.len()).step_by(step) {
        let (first, second) = recorded.split_at(at);
        let text = render(TerminalText::new(), &[first, second]);
        assert_eq!(text, expected, "split at {at}");
    }
    let single: Vec<&[u8]> = recorded.chunks(1).collect();
    assert_eq!(render(TerminalText::new(), &single), expected);
    assert_eq!(render(TerminalText::for_watcher(), &single), expected);
}

macro_rules! recorded {
    ($($test:ident $name:literal)*) => {$(
        #[test]
        fn $test() {
            check(
                include_bytes!(concat!($name, ".raw")),
                include_str!(concat!($name, ".txt")),
            );
        }
    )*};
}

recorded! {
    bar_of_curl "curl-hash"
    meter_of_curl "curl-meter"
    bar_of_cargo "cargo"
    spinner_of_npm "npm"
    bar_of_pip "pip"
}
