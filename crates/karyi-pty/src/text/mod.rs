//! Turns the bytes of a terminal into the text a person would have seen.
//!
//! Escape sequences are removed. Carriage returns, backspaces and the sequences that work inside one line change that
//! line, so that a progress bar yields its last state. A program that moves to other rows, or inside one row of a line
//! wider than the terminal, or draws on the whole screen, gets a virtual screen from there on, which begins with the
//! rows within its reach. Bytes may be cut anywhere.
//!
//! For a result the last rows are held back until they are out of reach, so that it is exact. A watcher gets each line
//! as soon as it ends, and once more at the end if it was rewritten.

mod apply_sequence;
mod audience;
mod cell;
mod colour;
mod decode;
mod escape;
mod grid;
mod line;
mod progress_bar;
mod query_replies;
mod recent;
mod rows;
mod scan;
mod screen;
mod view;

use audience::Audience;
use decode::Decoder;
use escape::{Escape, Sequence, Step};
use query_replies::QueryReplies;
use view::View;

const ESC: u8 = 0x1b;

/// Converts a terminal's output, in pieces, to text.
#[derive(Debug, Clone)]
pub struct TerminalText {
    escape: Escape,
    decoder: Decoder,
    view: View,
    /// Replies to queries, for the program.
    replies: Option<QueryReplies>,
    /// Set if colours stay in the text of plain lines; true after one was passed on.
    colours: Option<bool>,
    /// Buffer for a run of characters without its colours.
    run: Vec<u8>,
}

impl Default for TerminalText {
    fn default() -> Self {
        Self::new()
    }
}

impl TerminalText {
    /// Creates an empty terminal whose text is exact at the end.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Audience::Result)
    }

    /// Creates an empty terminal whose lines are passed on as soon as they end.
    #[must_use]
    pub fn for_watcher() -> Self {
        Self::with(Audience::Watcher)
    }

    /// Creates a terminal as for a watcher, which keeps the colours of plain lines.
    #[must_use]
    pub fn for_watcher_in_colour() -> Self {
        Self {
            colours: Some(false),
            ..Self::with(Audience::Watcher)
        }
    }

    /// Creates an empty terminal that yields replies instead of text.
    #[must_use]
    pub fn for_replies() -> Self {
        Self {
            replies: Some(QueryReplies::default()),
            ..Self::with(Audience::Terminal)
        }
    }

    fn with(audience: Audience) -> Self {
        Self {
            escape: Escape::default(),
            decoder: Decoder::default(),
            view: View::new(audience),
            replies: None,
            colours: None,
            run: Vec::new(),
        }
    }

    /// Returns true if a program shows the alternate screen.
    #[must_use]
    pub fn is_alternate(&self) -> bool {
        self.view.is_alternate()
    }

    /// Takes the replies to the queries so far.
    #[must_use]
    pub fn take_replies(&mut self) -> String {
        self.replies
            .as_mut()
            .map(QueryReplies::take)
            .unwrap_or_default()
    }

    /// Reads bytes; final text is added to `text`.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        let mut rest = self.skip_discarded(bytes);
        while !rest.is_empty() {
            if self.escape.is_open() {
                rest = self.push_escape(rest, text);
                continue;
            }
            rest = self.skip_erased(rest);
            let used = self.push_run(rest, text);
            if used > 0 {
                rest = rest.get(used..).unwrap_or_default();
            } else if let Some(after) = scan::after_colour(rest) {
                self.end_character(text);
                if self.colours.is_some() {
                    let length = rest.len() - after.len();
                    self.push_colour(rest.get(..length).unwrap_or_default());
                }
                rest = after;
            } else if let Some((sequence, after)) = Sequence::read(rest) {
                self.end_character(text);
                self.act(&sequence, text);
                rest = after;
            } else if let Some((first, after)) = rest.split_first() {
                self.push_control(*first, text);
                rest = after;
            }
        }
    }

    /// Skips the states of a bar whose line is erased for the next one.
    fn skip_erased<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let is_bar = self.colours.is_none() && progress_bar::starts_anew(bytes);
        if !is_bar || !self.view.has_room(bytes.len()) {
            return bytes;
        }
        match progress_bar::last_start(bytes) {
            0 => bytes,
            last => {
                self.decoder.clear();
                self.view.line.clear();
                bytes.get(last..).unwrap_or_default()
            }
        }
    }

    /// Skips lines that only scroll others off the screen, when the text is not used.
    fn skip_discarded<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.escape.is_open() || !self.view.discards_lines() {
            return bytes;
        }
        let (lines, _) = bytes.split_at(scan::length_in_line(bytes));
        let Some(end) = memchr::memrchr(b'\n', lines) else {
            return bytes;
        };
        self.decoder.clear();
        self.view.line.clear();
        bytes.get(end + 1..).unwrap_or_default()
    }

    /// Ends the text: adds the remaining lines, and the alternate screen if it is shown. Later output begins on an
    /// empty terminal, or continues on that screen.
    pub fn finish(&mut self, text: &mut String) {
        self.end_character(text);
        self.escape = Escape::default();
        self.view.finish(text);
        if self.colours == Some(true) {
            self.colours = Some(false);
            text.push_str(colour::RESET);
        }
    }

    /// Adds a colour sequence for a watcher.
    fn push_colour(&mut self, sequence: &[u8]) {
        let Ok(sequence) = std::str::from_utf8(sequence) else {
            return;
        };
        if self.view.colour(sequence) {
            self.colours = Some(true);
        }
    }

    /// Passes one byte to an open escape sequence; returns the other bytes.
    fn push_escape<'a>(&mut self, bytes: &'a [u8], text: &mut String) -> &'a [u8] {
        let Some((first, after)) = bytes.split_first() else {
            return bytes;
        };
        match self.escape.push(*first) {
            Step::More | Step::Ignored => after,
            Step::Whole(sequence) => {
                self.act(&sequence, text);
                after
            }
            Step::NotMine => bytes,
        }
    }

    fn act(&mut self, sequence: &Sequence, text: &mut String) {
        if self.colours.is_some() && sequence.is_colour() {
            return self.push_colour(sequence.to_string().as_bytes());
        }
        self.view.act(sequence, text);
        if let Some(replies) = &mut self.replies {
            replies.push(sequence, || self.view.place(text));
        }
    }

    fn push_control(&mut self, byte: u8, text: &mut String) {
        self.end_character(text);
        match byte {
            ESC => self.escape.open(),
            _ => self.view.control(byte, text),
        }
    }

    /// Reads the characters at the start, and the colours between them where those are not used; returns the number of
    /// bytes.
    fn push_run(&mut self, bytes: &[u8], text: &mut String) -> usize {
        let (plain, mut rest) = bytes.split_at(scan::plain_length(bytes));
        let drops_colours = self.colours.is_none() && !self.decoder.is_open();
        let after_colour = |plain: &[u8], rest| match drops_colours && scan::is_whole(plain) {
            true => scan::after_colour(rest),
            false => None,
        };
        let Some(mut next) = after_colour(plain, rest) else {
            if !plain.is_empty() {
                self.push_plain(plain, text);
            }
            return plain.len();
        };
        let mut run = std::mem::take(&mut self.run);
        run.extend_from_slice(plain);
        loop {
            let (plain, after) = next.split_at(scan::plain_length(next));
            run.extend_from_slice(plain);
            rest = after;
            match after_colour(plain, rest) {
                Some(after) => next = after,
                None => break,
            }
        }
        self.push_plain(&run, text);
        run.clear();
        self.run = run;
        bytes.len() - rest.len()
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

#[cfg(test)]
mod tests;
