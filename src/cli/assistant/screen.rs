//! The terminal of the assistant: the live region on it, its size, and giving it to other programs.

use std::fs::File;
use std::io::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karyi_core::limits;
use karyi_screen::live_region::{LiveRegion, Reflow, Region, Size};
use karyi_screen::styled_line::{Line, Palette};
use karyi_screen::terminal_guard::{self, TerminalGuard};

use crate::cli::screen::colour;
use crate::render::paint::Colour;

/// Rows of a terminal that does not know its size.
const DEFAULT_ROWS: u16 = 24;

/// The terminal of the assistant.
pub(super) struct Screen {
    out: File,
    guard: TerminalGuard,
    region: LiveRegion,
    has_input_last: bool,
    size: Size,
    notice: Notice,
}

/// How the user is called to this window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notice {
    /// The bell.
    Bell,
    /// A notification of the desktop, by the sequence OSC 9.
    Osc9,
    /// Not at all.
    Off,
}

impl Notice {
    /// Returns the one of a word in the settings.
    pub(super) fn of(word: Option<&str>) -> Self {
        match word {
            Some("osc9") => Self::Osc9,
            Some("off") => Self::Off,
            _ => Self::Bell,
        }
    }
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open(terminal: &File, palette: Palette, notice: Notice) -> io::Result<Self> {
        Ok(Self {
            out: terminal.try_clone()?,
            guard: TerminalGuard::take(terminal.try_clone()?)?,
            region: LiveRegion::new(palette, reflow()),
            has_input_last: reflow() == Reflow::WrapsOthers,
            size: size(),
            notice,
        })
    }

    /// Returns the size that was measured last.
    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// Returns true when nothing long should stand below the cursor.
    pub(super) fn has_input_last(&self) -> bool {
        self.has_input_last
    }

    /// Returns the size, as it is now.
    pub(super) fn measure(&mut self) -> Size {
        self.size = size();
        self.size
    }

    /// Prints history and draws the region below it.
    pub(super) fn draw(&mut self, history: &[Line<'_>], region: &Region) -> io::Result<()> {
        self.region.draw(&mut self.out, self.size, history, region)
    }

    /// Calls the user to this window.
    pub(super) fn notify(&mut self, text: &str) {
        let _ = match self.notice {
            Notice::Bell => self.out.write_all(b"\x07"),
            Notice::Osc9 => write!(self.out, "\x1b]9;{text}\x07"),
            Notice::Off => Ok(()),
        };
    }

    /// Returns the terminal.
    pub(super) fn terminal(&self) -> &File {
        &self.out
    }

    /// Returns the terminal, to write to it while a program has it.
    pub(super) fn writer(&self) -> io::Result<File> {
        self.out.try_clone()
    }

    /// Gives a text to the clipboard, if the terminal lets programs do that (OSC 52).
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        let encoded = STANDARD.encode(text);
        self.out
            .write_all(format!("\x1b]52;c;{encoded}\x07").as_bytes())
    }

    /// Gives the terminal to another program.
    pub(super) fn leave(&mut self) {
        // A terminal that is gone is noticed by the keys.
        let _ = self.region.finish(&mut self.out, self.size);
        terminal_guard::give_back();
    }

    /// Leaves the terminal to a program of the session; what is typed in between is not shown.
    pub(super) fn lend(&mut self) {
        let _ = self.region.finish(&mut self.out, self.size);
        let _ = self.guard.lend();
    }

    /// Takes back what was lent.
    pub(super) fn reclaim(&mut self) -> io::Result<()> {
        self.guard.reclaim()
    }

    /// Takes the terminal again.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        self.guard.enter()
    }
}

/// Returns the colours of standard output.
pub(super) fn palette() -> Palette {
    match colour(&io::stdout()) {
        Colour::On => Palette::Ansi,
        Colour::Off => Palette::Plain,
    }
}

/// Returns what the terminal does with lines that have become too long: xterm and the console cut them.
fn reflow() -> Reflow {
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
    if is("TERM", "linux") || std::env::var_os("XTERM_VERSION").is_some() {
        Reflow::Cuts
    } else if is("TERM_PROGRAM", "vscode") {
        Reflow::WrapsOthers
    } else {
        Reflow::Wraps
    }
}

fn size() -> Size {
    let (columns, rows) = crossterm::terminal::size().unwrap_or_default();
    let usual = u16::try_from(limits::DEFAULT_COLUMNS).unwrap_or(u16::MAX);
    Size {
        columns: if columns == 0 { usual } else { columns },
        rows: if rows == 0 { DEFAULT_ROWS } else { rows },
    }
}
