//! First and last lines of a text that comes in pieces; those between are counted.

use std::collections::VecDeque;

use karyi_core::limits;

/// Lines at both ends of a text.
#[derive(Debug)]
pub struct LineWindow {
    /// Lines of each end.
    most: usize,
    /// Complete lines that were returned.
    returned: usize,
    held: VecDeque<String>,
    omitted: u64,
}

impl LineWindow {
    /// Makes a window with so many lines at each end.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            returned: 0,
            held: VecDeque::new(),
            omitted: 0,
        }
    }

    /// Adds a piece; returns what belongs to the first lines.
    pub fn push(&mut self, text: &str) -> String {
        let mut first = String::new();
        for piece in text.split_inclusive('\n') {
            if self.returned < self.most {
                first.push_str(piece);
                self.returned += usize::from(piece.ends_with('\n'));
                continue;
            }
            match self.held.back_mut().filter(|last| !last.ends_with('\n')) {
                Some(last) if last.len() < limits::MAX_TERMINAL_LINE_BYTES => last.push_str(piece),
                Some(last) if piece.ends_with('\n') => last.push('\n'),
                Some(_) => {}
                None => self.held.push_back(piece.to_owned()),
            }
            if self.held.len() > self.most {
                self.held.pop_front();
                self.omitted += 1;
            }
        }
        first
    }

    /// Takes the lines between that are not shown, and the last lines.
    pub fn take_end(&mut self) -> (u64, String) {
        let held = std::mem::take(&mut self.held).into_iter().collect();
        (std::mem::take(&mut self.omitted), held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: (&str, u64, &str)) {
        for size in 1..=text.len() {
            let mut window = LineWindow::new(2);
            let mut first = String::new();
            for piece in text.as_bytes().chunks(size) {
                first.push_str(&window.push(std::str::from_utf8(piece).unwrap()));
            }
            let (omitted, last) = window.take_end();
            assert_eq!((&*first, omitted, &*last), expected, "{size}");
        }
    }

    #[test]
    fn both_ends_are_shown_in_any_pieces() {
        check("1\n2", ("1\n2", 0, ""));
        check("1\n2\n3\n4\n", ("1\n2\n", 0, "3\n4\n"));
        check("1\n2\n3\n4\n5", ("1\n2\n", 1, "4\n5"));
        check("1\n2\n3\n4\n5\n6\n", ("1\n2\n", 2, "5\n6\n"));
    }
}
