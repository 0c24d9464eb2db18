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
mod colour;
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
#[derive(Debug, Clone)]
pub struct TerminalText {
    escape: Escape,
    decoder: Decoder,
    view: View,
    /// Kept where the program is answered.
    answers: Option<Answers>,
    /// Whether colours stay in the text of plain lines, and whether one was given.
    colours: Option<bool>,
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

    /// Starts as for a watcher whose own terminal shows colours: those of plain lines stay in the
    /// text.
    #[must_use]
    pub fn for_watcher_in_colour() -> Self {
        Self {
            colours: Some(false),
            ..Self::with(Audience::Watcher)
        }
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
            colours: None,
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
            } else if let Some(after) = after_colour(rest) {
                self.end_character(text);
                if self.colours.is_some() {
                    let length = rest.len() - after.len();
                    self.push_colour(rest.get(..length).unwrap_or_default());
                }
                rest = after;
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
        if self.colours == Some(true) {
            self.colours = Some(false);
            text.push_str(colour::RESET);
        }
    }

    /// Keeps a colour sequence for the terminal of who watches.
    fn push_colour(&mut self, sequence: &[u8]) {
        let Ok(sequence) = std::str::from_utf8(sequence) else {
            return;
        };
        if self.view.colour(sequence) {
            self.colours = Some(true);
        }
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
            Step::Whole(sequence) if self.colours.is_some() && sequence.is_colour() => {
                self.push_colour(sequence.to_string().as_bytes());
                after
            }
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

/// Skips a colour sequence that is there whole: by far the most frequent one, and faster so.
fn after_colour(bytes: &[u8]) -> Option<&[u8]> {
    let body = bytes.strip_prefix(b"\x1b[")?;
    let end = body.iter().position(|byte| !matches!(byte, b'0'..=b';'))?;
    body.get(end..)?.strip_prefix(b"m")
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
mod tests;
