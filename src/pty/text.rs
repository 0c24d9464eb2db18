//! Turns the bytes of a terminal into the text a person would have seen.
//!
//! Escape sequences vanish; carriage returns, backspaces and the few sequences that work inside one
//! line act on that line, so that a progress bar comes out as its last state. A program that moves
//! to other rows, or draws on the whole screen, gets a screen of its own from there on, with the
//! rows that are within its reach. Bytes may be cut anywhere.
//!
//! A result holds the last rows back until they are out of reach, so that it is exact. A watcher
//! gets each line as soon as it ends, and once more at the end if it was rewritten.

mod act;
mod answer;
mod cell;
mod decode;
mod escape;
mod grid;
mod line;
mod recent;
mod screen;
mod view;

use answer::Answers;
use decode::Decoder;
use escape::{Escape, Step};
use view::View;

const ESC: u8 = 0x1b;

/// Who the text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// Who reads it at the end.
    Result,
    /// Who sees it at once.
    Watcher,
    /// The program itself, which may ask where its cursor is; nobody reads the text.
    Terminal,
}

/// Reads a terminal's output in pieces and gives text.
#[derive(Debug)]
pub struct TerminalText {
    escape: Escape,
    decoder: Decoder,
    view: View,
    /// Kept where the program is answered.
    answers: Option<Answers>,
}

impl Default for TerminalText {
    fn default() -> Self {
        Self::new()
    }
}

impl TerminalText {
    /// Starts with an empty terminal whose text is exact at the end.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Audience::Result)
    }

    /// Starts with an empty terminal whose lines are given as soon as they end.
    #[must_use]
    pub fn for_watcher() -> Self {
        Self::with(Audience::Watcher)
    }

    /// Starts with an empty terminal that gives no text, but answers.
    #[must_use]
    pub fn for_answers() -> Self {
        Self {
            answers: Some(Answers::default()),
            ..Self::with(Audience::Terminal)
        }
    }

    fn with(audience: Audience) -> Self {
        Self {
            escape: Escape::default(),
            decoder: Decoder::default(),
            view: View::new(audience),
            answers: None,
        }
    }

    /// Whether a program shows the alternate screen.
    #[must_use]
    pub fn is_alternate(&self) -> bool {
        self.view.is_alternate()
    }

    /// Takes what the terminal answers to the questions so far.
    #[must_use]
    pub fn take_answers(&mut self) -> String {
        self.answers.as_mut().map(Answers::take).unwrap_or_default()
    }

    /// Reads some bytes; what is final is added to `text`.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            if self.escape.is_open() {
                rest = self.push_escape(*first, rest, after, text);
                continue;
            }
            let plain = plain_length(rest);
            if plain > 0 {
                let (run, remaining) = rest.split_at(plain);
                self.push_plain(run, text);
                rest = remaining;
            } else {
                self.push_control(*first, text);
                rest = after;
            }
        }
    }

    /// Ends the text: adds what is left, and the alternate screen as it stands if it is shown. What
    /// comes afterwards starts on an empty terminal, or goes on drawing on that screen.
    pub fn finish(&mut self, text: &mut String) {
        self.end_character(text);
        self.escape = Escape::default();
        self.view.finish(text);
    }

    /// Feeds one byte to an open escape sequence; returns what is left to read.
    fn push_escape<'a>(
        &mut self,
        byte: u8,
        whole: &'a [u8],
        after: &'a [u8],
        text: &mut String,
    ) -> &'a [u8] {
        match self.escape.push(byte) {
            Step::More | Step::Ignored => after,
            Step::Whole(sequence) => {
                self.view.act(&sequence, text);
                if let Some(answers) = &mut self.answers {
                    answers.push(&sequence, || self.view.place(text));
                }
                after
            }
            Step::NotMine => whole,
        }
    }

    fn push_control(&mut self, byte: u8, text: &mut String) {
        self.end_character(text);
        match byte {
            ESC => self.escape.open(),
            _ => self.view.control(byte),
        }
    }

    /// Reads bytes without controls other than line feeds and tabs.
    fn push_plain(&mut self, run: &[u8], text: &mut String) {
        let run = if self.decoder.is_open() {
            run
        } else {
            self.view.relevant(run)
        };
        let view = &mut self.view;
        self.decoder
            .push(run, &mut |characters| view.write(characters, text));
    }

    fn end_character(&mut self, text: &mut String) {
        let view = &mut self.view;
        self.decoder
            .end(&mut |characters| view.write(characters, text));
    }
}

/// Returns how many bytes at the start are neither controls nor DEL; line feeds and tabs count as
/// plain.
fn plain_length(bytes: &[u8]) -> usize {
    let is_special = |byte: u8| (byte < 0x20) & (byte != b'\n') & (byte != b'\t') | (byte == 0x7f);
    // Without branches inside, a whole block is checked at once.
    let (blocks, _) = bytes.as_chunks::<64>();
    let is_plain = |block: &&[u8; 64]| {
        !block
            .iter()
            .fold(false, |found, byte| found | is_special(*byte))
    };
    let length = 64 * blocks.iter().take_while(is_plain).count();
    let rest = bytes.get(length..).unwrap_or_default();
    let inside = rest.iter().position(|byte| is_special(*byte));
    length + inside.unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    fn render(pieces: &[&[u8]]) -> String {
        let mut terminal = TerminalText::new();
        let mut text = String::new();
        for piece in pieces {
            terminal.push(piece, &mut text);
        }
        terminal.finish(&mut text);
        text
    }

    /// Checks the whole, every split point and single bytes.
    fn check(input: impl AsRef<[u8]>, expected: &str) {
        let bytes = input.as_ref();
        let shown = String::from_utf8_lossy(bytes);
        assert_eq!(render(&[bytes]), expected, "{shown:?}");
        for at in 1..bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(
                render(&[first, second]),
                expected,
                "{shown:?} split at {at}"
            );
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(render(&single), expected, "{shown:?} byte by byte");
    }

    #[test]
    fn plain_text_is_kept() {
        check("", "");
        check("one\ntwo\n", "one\ntwo\n");
        check("a\tb\n你好 é\nend", "a\tb\n你好 é\nend");
        check("one\r\ntwo\r\n", "one\ntwo\n");
        check("a\r\r\nb", "a\nb");
    }

    #[test]
    fn other_controls_are_dropped() {
        check("a\0b\x07c\x0b\x0cd\x7fe", "abcde");
        check("a\u{9b}31mb\u{85}\n", "a31mb\n");
    }

    #[test]
    fn invalid_bytes_are_replaced() {
        check(b"a\xffb\xe4\xbd\n\xe4\xbd", "a\u{FFFD}b\u{FFFD}\n\u{FFFD}");
        check(
            b"\xe4\xbdx\xf0\x9f\x98\x1b[m\xa0",
            "\u{FFFD}x\u{FFFD}\u{FFFD}",
        );
        check(
            b"\xc0\x80\xed\xa0\x80",
            "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}",
        );
    }

    #[test]
    fn escape_sequences_vanish() {
        check("\x1b[1;31mred\x1b[0m\n", "red\n");
        check(
            "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
            "alink",
        );
        check("\x1bP1$r0m\x1b\\a\x1b(Bb\x1b=c\x1b7d", "abcd");
        check("\x1b[?1049h\x1b[?25lx", "x");
        check("a\x1b[3\x18b\x1b[4\x1b[1mc", "abc");
        check("\x1b_app\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\z", "z");
    }

    #[test]
    fn osc52_is_stripped() {
        check("a\x1b]52;c;aGk=\x07b", "ab");
    }

    #[test]
    fn an_unfinished_title_does_not_eat_the_output() {
        check("\x1b]0;title\nreal\n", "\nreal\n");
        let long = format!(
            "\x1bP{}end",
            "x".repeat(limits::MAX_TERMINAL_LINE_BYTES + 1)
        );
        assert!(render(&[long.as_bytes()]).ends_with("end"));
    }

    #[test]
    fn a_progress_bar_comes_out_as_its_last_state() {
        check(" 1%\r 50%\r100%\ndone\n", "100%\ndone\n");
        check("long text\rhi\n", "hing text\n");
        check("long text\r\x1b[Khi\n", "hi\n");
        check("long\x1b[2K\rhi\n", "hi\n");
        check("a\x1b[1Gb\x1b[3Cc\n", "b   c\n");
        check("abc\x1b[2Dx\x1b[K\n", "ax\n");
    }

    #[test]
    fn backspaces_go_back() {
        check("abc\x08\x08x\n", "axc\n");
        check("p\x08 \x08q\n", "q\n");
        check("\x08\x08a\n", "a\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        check("你好\rab\n", "ab好\n");
        check("你好\ra\n", "a 好\n");
        check("a你\x08\x08b\n", "ab \n");
    }

    #[test]
    fn a_line_without_end_is_passed_on() {
        let mut terminal = TerminalText::new();
        let mut text = String::new();
        for _ in 0..100 {
            terminal.push(&[b'x'; 10_000], &mut text);
            terminal.push(b"\x08\x1b[999999999C", &mut text);
        }
        assert!(terminal.view.line.held_bytes() <= 2 * limits::MAX_TERMINAL_LINE_BYTES);
        terminal.finish(&mut text);
        assert!(text.len() >= 900_000);
    }

    #[test]
    fn hostile_bytes_give_the_same_text_in_any_chunks() {
        let mut seed = 1u32;
        let alphabet = b"ab\n\r\x08\x1b[]P0;5KCDG\x07\\\xe4\xbd\xa0\xff\t\x18 ";
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            alphabet[(seed >> 16) as usize % alphabet.len()]
        })
        .take(5000)
        .collect();
        let whole = render(&[&bytes]);
        for size in [1, 2, 3, 7, 64, 65, 999] {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(render(&chunks), whole, "chunks of {size}");
        }
    }
}
