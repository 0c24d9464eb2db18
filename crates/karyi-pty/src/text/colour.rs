//! Colour sequences in the text of plain lines, for watchers on a terminal.

use std::borrow::Cow;

use karyi_core::limits;

/// Resets all colours.
pub(super) const RESET: &str = "\x1b[0m";

/// Adds a colour to earlier ones; a reset removes those.
pub(super) fn add(colours: &mut String, sequence: &str) {
    if matches!(sequence, "\x1b[m" | RESET) || colours.len() > limits::MAX_KEPT_COLOUR_BYTES {
        colours.clear();
    }
    colours.push_str(sequence);
}

/// Calls `act` with every sequence of a text.
pub(super) fn each(text: &str, mut act: impl FnMut(&str)) {
    let mut rest = text;
    while let Some((_, sequence, after)) = next(rest) {
        act(sequence);
        rest = after;
    }
}

/// Returns the text without its sequences.
pub(super) fn strip(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut plain = String::new();
    while let Some((before, _, after)) = next(rest) {
        plain.push_str(before);
        rest = after;
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Splits a text at its next sequence; nothing else in it begins with ESC.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let start = memchr::memchr(0x1b, text.as_bytes())?;
    let (before, rest) = text.split_at(start);
    let end = memchr::memchr(b'm', rest.as_bytes())? + 1;
    let (sequence, after) = rest.split_at(end);
    Some((before, sequence, after))
}

#[cfg(test)]
mod tests {
    use super::super::TerminalText;

    /// Checks the text for a watcher in colour, in one piece and byte by byte, and that the result has the same text
    /// without colours.
    fn check(bytes: &str, expected: &str) {
        check_watcher(bytes, expected);
        let (mut result, mut text) = (TerminalText::new(), String::new());
        result.push(bytes.as_bytes(), &mut text);
        result.finish(&mut text);
        assert_eq!(text, super::strip(expected), "{bytes:?}");
    }

    fn check_watcher(bytes: &str, expected: &str) {
        for size in [bytes.len().max(1), 1, 2, 3] {
            let mut watcher = TerminalText::for_watcher_in_colour();
            let mut text = String::new();
            for piece in bytes.as_bytes().chunks(size) {
                watcher.push(piece, &mut text);
            }
            watcher.finish(&mut text);
            assert_eq!(text, expected, "{bytes:?} in pieces of {size}");
        }
    }

    #[test]
    fn colours_of_plain_lines_stay() {
        check("a\n", "a\n");
        check(
            "\x1b[31mred\x1b[0m\nplain\n",
            "\x1b[31mred\x1b[0m\nplain\n\x1b[0m",
        );
        check("\x1b[1;32mok\n", "\x1b[1;32mok\n\x1b[0m");
        check("\x1b[1mtitle\x1b]0;t\x07\n", "\x1b[1mtitle\n\x1b[0m");
    }

    #[test]
    fn a_line_that_was_changed_inside_sets_them_at_its_end() {
        check("\x1b[31m10%\r20%\x1b[0m\nx\n", "20%\x1b[0m\nx\n\x1b[0m");
        check("\x1b[1mab\x08c\nx\n", "ac\x1b[1m\nx\n\x1b[0m");
    }

    #[test]
    fn a_screen_has_none() {
        // The watcher has got the rewritten line before.
        check_watcher(
            "\x1b[31mone\x1b[0m\ntwo\n\x1b[1Athree\n",
            "\x1b[31mone\x1b[0m\ntwo\nthree\n\x1b[0m",
        );
    }
}
