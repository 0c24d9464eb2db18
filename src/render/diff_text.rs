//! A unified diff of a report: line numbers and signs in a margin, in colour.

use crate::render::paint::Colour;
use karyi_screen::diff;
use karyi_screen::styled_line::{Palette, write_line};

/// Returns a diff as lines with their numbers and signs.
#[must_use]
pub fn paint(diff: &str, colour: Colour) -> String {
    let palette = match colour {
        Colour::On => Palette::Ansi,
        Colour::Off => Palette::Plain,
    };
    let mut bytes = Vec::new();
    for line in diff::lines(diff) {
        write_line(&mut bytes, &line, palette);
        bytes.push(b'\n');
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_and_signs() {
        let diff = "@@ -2,3 +2,3 @@\n a\n-b\u{1b}[2J\n+c\n d\n@@ -9 +9,0 @@\n-x\n\\ no end\n";
        let plain = "     2   a\n     3 - b\u{241b}[2J\n     3 + c\n     4   d\n       ...\n     9 - x\n         no end\n";
        assert_eq!(paint(diff, Colour::Off), plain);
        assert!(paint(diff, Colour::On).contains("\u{1b}[32m+ c"));
    }
}
