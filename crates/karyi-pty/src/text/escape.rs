//! Parses escape sequences.

use karyi_core::limits;

/// A complete escape or control sequence.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequence {
    /// True if it began with ESC `[`.
    pub(super) is_control: bool,
    /// The private marker after ESC `[`, or 0.
    pub(super) private: u8,
    /// The last byte between the parameters and the end, or 0.
    pub(super) intermediate: u8,
    /// The final byte, which names the function.
    pub(super) last: u8,
    numbers: [u16; limits::MAX_SEQUENCE_PARAMETERS],
    /// Number of parameters before the open one.
    index: usize,
}

impl Sequence {
    /// Parses a complete control sequence, the most frequent case, and returns the bytes after it.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut rest = bytes.strip_prefix(b"\x1b[")?;
        let mut sequence = Self {
            is_control: true,
            ..Self::default()
        };
        loop {
            let (byte, after) = rest.split_first()?;
            match byte {
                0x20..=0x3f => sequence.parameter_byte(*byte),
                0x40..=0x7e => {
                    sequence.last = *byte;
                    return Some((sequence, after));
                }
                _ => return None,
            }
            rest = after;
        }
    }

    /// Returns a parameter; 0 when it is absent.
    pub(super) fn number(&self, index: usize) -> usize {
        self.numbers.get(index).copied().map_or(0, usize::from)
    }

    /// Returns a parameter that is a count; 1 when it is absent.
    pub(super) fn count(&self, index: usize) -> usize {
        self.number(index).max(1)
    }

    /// Returns the parameters that are present.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        let given = self.index + 1;
        self.numbers.into_iter().take(given).map(usize::from)
    }

    /// Returns true if it sets colours.
    pub(super) fn is_colour(&self) -> bool {
        self.is_control && (self.last, self.private, self.intermediate) == (b'm', 0, 0)
    }

    fn parameter_byte(&mut self, byte: u8) {
        match byte {
            b'0'..=b'9' => {
                if let Some(number) = self.numbers.get_mut(self.index) {
                    let digit = u16::from(byte - b'0');
                    *number = number.saturating_mul(10).saturating_add(digit);
                }
            }
            b':' | b';' => self.index = (self.index + 1).min(limits::MAX_SEQUENCE_PARAMETERS),
            0x20..=0x2f => self.intermediate = byte,
            _ => self.private = byte,
        }
    }
}

/// Writes a control sequence as a program would.
impl std::fmt::Display for Sequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers: Vec<String> = self.numbers().map(|number| number.to_string()).collect();
        write!(f, "\x1b[{}{}", numbers.join(";"), char::from(self.last))
    }
}

/// Parser of an escape sequence.
#[derive(Debug, Default, Clone)]
pub(super) struct Escape {
    state: State,
    sequence: Sequence,
    /// Number of bytes of a string so far.
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
    /// In a device control string, which may contain images of many lines.
    Device,
    /// After ESC in a title or device string.
    TitleEnd,
    DeviceEnd,
}

/// Result of parsing a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The sequence continues.
    More,
    /// The sequence ended without a meaning.
    Ignored,
    /// The sequence ended.
    Whole(Sequence),
    /// The sequence ended before this byte.
    NotMine,
}

impl Escape {
    /// Returns true while a sequence is parsed.
    pub(super) fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// Begins a sequence after ESC.
    pub(super) fn open(&mut self) {
        *self = Self {
            state: State::Start,
            ..Self::default()
        };
    }

    /// Parses the next byte of a sequence.
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
            b'[' => {
                self.sequence.is_control = true;
                self.go(State::Control)
            }
            b']' | b'X' | b'^' | b'_' => self.go(State::Title),
            b'P' => self.go(State::Device),
            _ => self.intermediate(byte),
        }
    }

    fn intermediate(&mut self, byte: u8) -> Step {
        match byte {
            0x20..=0x2f => {
                self.sequence.intermediate = byte;
                self.go(State::Intermediate)
            }
            0x30..=0x7e => self.whole(byte),
            0x18 | 0x1a => self.close(Step::Ignored),
            _ => self.close(Step::NotMine),
        }
    }

    fn control(&mut self, byte: u8) -> Step {
        match byte {
            0x20..=0x3f => {
                self.sequence.parameter_byte(byte);
                Step::More
            }
            0x18 | 0x1a => self.close(Step::Ignored),
            0x40..=0x7e => self.whole(byte),
            _ => self.close(Step::NotMine),
        }
    }

    fn whole(&mut self, byte: u8) -> Step {
        self.sequence.last = byte;
        self.close(Step::Whole(self.sequence))
    }

    fn title(&mut self, byte: u8) -> Step {
        match byte {
            0x07 | 0x18 | 0x1a => self.close(Step::Ignored),
            0x1b => self.go(State::TitleEnd),
            // An unterminated title must not hide the lines after it.
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
        // Any other byte after ESC begins a new sequence.
        self.open();
        self.push(byte)
    }
}
