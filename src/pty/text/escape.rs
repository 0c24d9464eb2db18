//! Reads escape sequences and tells which of them act inside one line.

use crate::limits;

use super::line::Edit;

/// An escape sequence that is being read.
#[derive(Debug, Default, Clone)]
pub(super) struct Escape {
    state: State,
    /// The first parameter of a control sequence.
    number: u32,
    /// Whether the control sequence is a private one, or has more than one parameter.
    is_odd: bool,
    /// Bytes read of a string.
    length: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    /// After ESC.
    Start,
    /// After ESC and intermediate bytes.
    Intermediate,
    /// After ESC `[`.
    Control,
    /// In a title or another string that never spans lines.
    Title,
    /// In a device control string, which may hold pictures of many lines.
    Device,
    /// After ESC in a title or device string.
    TitleEnd,
    DeviceEnd,
}

/// What a byte did to the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The sequence goes on.
    More,
    /// It ended and means nothing inside a line.
    Ignored,
    /// It ended and acts on the line.
    Line(Edit),
    /// It ended before this byte.
    NotMine,
}

impl Escape {
    /// Whether a sequence is being read.
    pub(super) fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// Starts a sequence: ESC was read.
    pub(super) fn open(&mut self) {
        *self = Self {
            state: State::Start,
            ..Self::default()
        };
    }

    /// Reads the next byte of an open sequence.
    pub(super) fn push(&mut self, byte: u8) -> Step {
        match self.state {
            State::Closed => Step::NotMine,
            State::Start => self.start(byte),
            State::Intermediate => self.intermediate(byte),
            State::Control => self.control(byte),
            State::Title => self.title(byte),
            State::Device => self.device(byte),
            State::TitleEnd | State::DeviceEnd => self.string_end(byte),
        }
    }

    fn close(&mut self, step: Step) -> Step {
        self.state = State::Closed;
        step
    }

    fn go(&mut self, state: State) -> Step {
        self.state = state;
        Step::More
    }

    fn start(&mut self, byte: u8) -> Step {
        match byte {
            b'[' => self.go(State::Control),
            b']' | b'X' | b'^' | b'_' => self.go(State::Title),
            b'P' => self.go(State::Device),
            _ => self.intermediate(byte),
        }
    }

    fn intermediate(&mut self, byte: u8) -> Step {
        match byte {
            0x20..=0x2f => self.go(State::Intermediate),
            0x30..=0x7e | 0x18 | 0x1a => self.close(Step::Ignored),
            _ => self.close(Step::NotMine),
        }
    }

    fn control(&mut self, byte: u8) -> Step {
        match byte {
            b'0'..=b'9' if !self.is_odd => {
                let digit = u32::from(byte - b'0');
                self.number = self.number.saturating_mul(10).saturating_add(digit);
                Step::More
            }
            0x20..=0x3f => {
                self.is_odd = true;
                Step::More
            }
            0x40..=0x7e => {
                let step = self.final_byte(byte);
                self.close(step)
            }
            0x18 | 0x1a => self.close(Step::Ignored),
            _ => self.close(Step::NotMine),
        }
    }

    fn final_byte(&self, byte: u8) -> Step {
        let count = self.number.max(1);
        match byte {
            _ if self.is_odd => Step::Ignored,
            b'C' => Step::Line(Edit::Right(count)),
            b'D' => Step::Line(Edit::Left(count)),
            b'G' => Step::Line(Edit::Column(count - 1)),
            b'K' if self.number == 0 => Step::Line(Edit::EraseRight),
            b'K' if self.number == 1 => Step::Line(Edit::EraseLeft),
            b'K' if self.number == 2 => Step::Line(Edit::EraseAll),
            _ => Step::Ignored,
        }
    }

    fn title(&mut self, byte: u8) -> Step {
        match byte {
            0x07 | 0x18 | 0x1a => self.close(Step::Ignored),
            0x1b => self.go(State::TitleEnd),
            // A title that was never closed must not hide the lines after it.
            b'\n' => self.close(Step::NotMine),
            _ => self.string_byte(),
        }
    }

    fn device(&mut self, byte: u8) -> Step {
        match byte {
            0x18 | 0x1a => self.close(Step::Ignored),
            0x1b => self.go(State::DeviceEnd),
            _ => self.string_byte(),
        }
    }

    fn string_byte(&mut self) -> Step {
        self.length += 1;
        if self.length > limits::MAX_TERMINAL_LINE_BYTES {
            return self.close(Step::Ignored);
        }
        Step::More
    }

    fn string_end(&mut self, byte: u8) -> Step {
        if byte == b'\\' {
            return self.close(Step::Ignored);
        }
        // Any other byte after ESC starts a new sequence.
        self.open();
        self.push(byte)
    }
}
