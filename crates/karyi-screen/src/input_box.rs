//! The input of a user: several lines, edited by clusters, with long pastes shown as their number of lines.
//!
//! It decides no key that sends or cancels. The rows it shows are narrower than the screen, and the caret has the column
//! where the terminal would put the next character.

use ratatui_textarea::{CursorMove, TextArea};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::keys::{Key, KeyPress};
use crate::safe_text::safe_line;
use crate::styled_line::{Line, Span, width};
use crate::theme;
use karyi_core::limits;

/// Mark before the first row; the other rows have as many blanks.
const PROMPT: &str = "> ";

/// Input that is being typed.
pub struct InputBox {
    area: TextArea<'static>,
    /// Texts that a label stands for, by label.
    pastes: Vec<(String, String)>,
    history: Vec<String>,
    /// Place in the history, while an entry is shown.
    place: Option<usize>,
    /// Text that was typed before the history was shown.
    draft: String,
}

/// Rows of an input, and its caret in them.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRows {
    /// Rows.
    pub lines: Vec<Line<'static>>,
    /// Row and column of the caret.
    pub caret: (usize, usize),
}

impl Default for InputBox {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl InputBox {
    /// Creates an empty input with earlier ones, oldest first.
    #[must_use]
    pub fn new(history: Vec<String>) -> Self {
        Self {
            area: TextArea::default(),
            pastes: Vec::new(),
            history,
            place: None,
            draft: String::new(),
        }
    }

    /// Returns the text, pastes included.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.area.lines().join("\n");
        for (label, paste) in &self.pastes {
            text = text.replacen(label, paste, 1);
        }
        text
    }

    /// Returns true when nothing is typed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Returns the earlier inputs, oldest first.
    #[must_use]
    pub fn history(&self) -> &[String] {
        &self.history
    }

    /// Takes the text away and adds it to the history.
    pub fn take(&mut self) -> String {
        let text = self.text();
        let is_new = self.history.last() != Some(&text);
        if is_new && !text.trim().is_empty() && text.len() < limits::LONG_PASTE_BYTES {
            self.history.push(text.clone());
            let surplus = self.history.len().saturating_sub(limits::MAX_INPUT_HISTORY);
            self.history.drain(..surplus);
        }
        self.set_text("");
        text
    }

    /// Replaces the text; the caret stands at its end.
    pub fn set_text(&mut self, text: &str) {
        self.area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
        self.pastes.clear();
        self.place = None;
    }

    /// Inserts pasted text; a long one is shown as its number of lines.
    pub fn paste(&mut self, text: &str) {
        let lines = text.lines().count();
        let is_long = lines >= limits::LONG_PASTE_LINES || text.len() >= limits::LONG_PASTE_BYTES;
        if !is_long {
            self.area.insert_str(text);
            return;
        }
        let number = self.pastes.len() + 1;
        let count = match lines {
            1 => "1 line".to_owned(),
            _ => format!("{lines} lines"),
        };
        let label = match number {
            1 => format!("[pasted {count}]"),
            _ => format!("[pasted {count}, {number}]"),
        };
        self.area.insert_str(&label);
        self.pastes.push((label, text.to_owned()));
    }

    /// Inserts a line break.
    pub fn break_line(&mut self) {
        self.area.insert_newline();
    }

    /// Replaces a `\` before the caret by a line break; returns false when there is none.
    pub fn break_at_backslash(&mut self) -> bool {
        let has_backslash = self.before_caret().ends_with('\\');
        if has_backslash {
            self.area.delete_char();
            self.area.insert_newline();
        }
        has_backslash
    }

    /// Returns the line of the caret up to it.
    #[must_use]
    pub fn before_caret(&self) -> String {
        let (row, column) = self.caret();
        let line = self.area.lines().get(row);
        line.map(|line| line.chars().take(column).collect())
            .unwrap_or_default()
    }

    /// Returns true when the caret is on the first line.
    #[must_use]
    pub fn is_on_first_line(&self) -> bool {
        self.caret().0 == 0
    }

    /// Replaces that many characters before the caret.
    pub fn replace_before_caret(&mut self, chars: usize, text: &str) {
        for _ in 0..chars {
            self.area.delete_char();
        }
        self.area.insert_str(text);
    }

    /// Takes a key that edits. Returns false when the key is none of these.
    pub fn key(&mut self, press: KeyPress) -> bool {
        let modifiers = press.modifiers;
        match press.key {
            Key::Char(c) if modifiers.control && !modifiers.alt => return self.control(c),
            Key::Char(c) if modifiers.alt && !modifiers.control => return self.alt(c),
            Key::Char(c) if !modifiers.control => self.area.insert_char(c),
            Key::Backspace if modifiers.alt || modifiers.control => {
                self.area.delete_word();
            }
            Key::Backspace => self.delete_cluster_before(),
            Key::Delete => self.delete_cluster_after(),
            Key::Left if modifiers.control || modifiers.alt => {
                self.area.move_cursor(CursorMove::WordBack);
            }
            Key::Right if modifiers.control || modifiers.alt => {
                self.area.move_cursor(CursorMove::WordForward);
            }
            Key::Left => self.left(),
            Key::Right => self.right(),
            Key::Home => self.area.move_cursor(CursorMove::Head),
            Key::End => self.area.move_cursor(CursorMove::End),
            Key::Up => self.up(),
            Key::Down => self.down(),
            _ => return false,
        }
        true
    }

    fn control(&mut self, letter: char) -> bool {
        match letter {
            'a' => self.area.move_cursor(CursorMove::Head),
            'e' => self.area.move_cursor(CursorMove::End),
            'b' => self.left(),
            'f' => self.right(),
            'd' if !self.is_empty() => self.delete_cluster_after(),
            'k' => {
                self.area.delete_line_by_end();
            }
            'u' => {
                self.area.delete_line_by_head();
            }
            'w' => {
                self.area.delete_word();
            }
            'y' => {
                self.area.paste();
            }
            'p' => self.up(),
            'n' => self.down(),
            '_' => {
                self.area.undo();
            }
            _ => return false,
        }
        true
    }

    fn alt(&mut self, letter: char) -> bool {
        match letter {
            'b' => self.area.move_cursor(CursorMove::WordBack),
            'f' => self.area.move_cursor(CursorMove::WordForward),
            'd' => {
                self.area.delete_next_word();
            }
            _ => return false,
        }
        true
    }

    fn caret(&self) -> (usize, usize) {
        let cursor = self.area.cursor();
        (cursor.0, cursor.1)
    }

    /// Returns the characters of the cluster that ends at the caret; none at the start of a line.
    fn cluster_before(&self) -> usize {
        let before = self.before_caret();
        let last = before.graphemes(true).next_back();
        last.map_or(0, |cluster| cluster.chars().count())
    }

    /// Returns the characters of the cluster that begins at the caret; none at the end of a line.
    fn cluster_after(&self) -> usize {
        let (row, column) = self.caret();
        let line = self.area.lines().get(row);
        let after: String = line
            .map(|line| line.chars().skip(column).collect())
            .unwrap_or_default();
        let first = after.graphemes(true).next();
        first.map_or(0, |cluster| cluster.chars().count())
    }

    fn left(&mut self) {
        for _ in 0..self.cluster_before().max(1) {
            self.area.move_cursor(CursorMove::Back);
        }
    }

    fn right(&mut self) {
        for _ in 0..self.cluster_after().max(1) {
            self.area.move_cursor(CursorMove::Forward);
        }
    }

    fn delete_cluster_before(&mut self) {
        // A label goes as a whole.
        let before = self.before_caret();
        let label = self
            .pastes
            .iter()
            .position(|(label, _)| before.ends_with(label));
        if let Some(place) = label {
            let (label, _) = self.pastes.remove(place);
            self.replace_before_caret(label.chars().count(), "");
            return;
        }
        for _ in 0..self.cluster_before().max(1) {
            self.area.delete_char();
        }
    }

    fn delete_cluster_after(&mut self) {
        for _ in 0..self.cluster_after().max(1) {
            self.area.delete_next_char();
        }
    }

    /// Moves up a line, or to the input before.
    fn up(&mut self) {
        if !self.is_on_first_line() {
            self.area.move_cursor(CursorMove::Up);
            return;
        }
        let place = self.place.unwrap_or(self.history.len());
        let Some(place) = place.checked_sub(1) else {
            return;
        };
        if self.place.is_none() {
            self.draft = self.text();
        }
        self.show_history(place);
    }

    /// Moves down a line, or to the input after.
    fn down(&mut self) {
        if self.caret().0 + 1 < self.area.lines().len() {
            self.area.move_cursor(CursorMove::Down);
            return;
        }
        match self.place {
            Some(place) if place + 1 < self.history.len() => self.show_history(place + 1),
            Some(_) => {
                let draft = std::mem::take(&mut self.draft);
                self.set_text(&draft);
            }
            None => {}
        }
    }

    fn show_history(&mut self, place: usize) {
        if let Some(text) = self.history.get(place).cloned() {
            self.set_text(&text);
            self.place = Some(place);
        }
    }

    /// Returns the rows to show on a screen with that many columns, at most `most` of them, those around the caret.
    #[must_use]
    pub fn rows(&self, columns: usize, most: usize) -> InputRows {
        let room = columns.saturating_sub(width(PROMPT) + 2).max(2);
        let (caret_row, caret_column) = self.caret();
        let mut rows: Vec<String> = Vec::new();
        let mut caret = (0, 0);
        for (number, line) in self.area.lines().iter().enumerate() {
            // As many characters as before.
            let line = safe_line(line);
            let place = (number == caret_row).then_some(caret_column);
            let first = rows.len();
            let found = add_rows(&mut rows, &line, room, place);
            if let Some((row, column)) = found {
                caret = (first + row, column);
            }
        }
        let most = most.max(1);
        let start = (caret.0 + 1).saturating_sub(most);
        let line = |(number, row): (usize, &String)| {
            let mark = if number == 0 { PROMPT } else { "  " };
            Line::from(vec![
                Span::styled(mark, theme::USER),
                Span::raw(row.clone()),
            ])
        };
        let shown = rows.iter().enumerate().skip(start).take(most);
        InputRows {
            lines: shown.map(line).collect(),
            caret: (caret.0 - start, caret.1 + width(PROMPT)),
        }
    }
}

/// Adds the rows of a line; returns row and column of the caret, which stands before that many characters.
fn add_rows(
    rows: &mut Vec<String>,
    line: &str,
    room: usize,
    caret: Option<usize>,
) -> Option<(usize, usize)> {
    let first = rows.len();
    let (mut row, mut used, mut chars, mut found) = (String::new(), 0, 0, None);
    for cluster in line.graphemes(true) {
        let columns = width(cluster);
        if used + columns > room {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        if found.is_none() && caret.is_some_and(|caret| caret <= chars) {
            found = Some((rows.len() - first, used));
        }
        row.push_str(cluster);
        used += columns;
        chars += cluster.chars().count();
    }
    if found.is_none() && caret.is_some() {
        found = Some((rows.len() - first, used));
    }
    rows.push(row);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_line::plain_text;

    fn typed(text: &str) -> InputBox {
        let mut input = InputBox::default();
        for c in text.chars() {
            input.key(KeyPress::plain(Key::Char(c)));
        }
        input
    }

    fn shown(input: &InputBox, columns: usize) -> (Vec<String>, (usize, usize)) {
        let rows = input.rows(columns, 4);
        (rows.lines.iter().map(plain_text).collect(), rows.caret)
    }

    fn press(input: &mut InputBox, keys: &[Key]) {
        for key in keys {
            assert!(input.key(KeyPress::plain(*key)), "{key:?}");
        }
    }

    #[test]
    fn wide_and_combined_characters_move_the_caret_by_their_columns() {
        let mut input = typed("日本語🎉e\u{301}x");
        assert_eq!(
            shown(&input, 40),
            (vec!["> 日本語🎉e\u{301}x".into()], (0, 12))
        );
        press(&mut input, &[Key::Left]);
        assert_eq!(input.rows(40, 4).caret, (0, 11));
        press(&mut input, &[Key::Left]);
        assert_eq!(input.rows(40, 4).caret, (0, 10));
        press(&mut input, &[Key::Left, Key::Backspace, Key::Char('é')]);
        assert_eq!(input.text(), "日本é🎉e\u{301}x");
        assert_eq!(input.rows(40, 4).caret, (0, 7));
        press(&mut input, &[Key::Right, Key::Delete]);
        assert_eq!(input.text(), "日本é🎉x");
        assert_eq!(input.rows(40, 4).caret, (0, 9));
    }

    #[test]
    fn long_lines_wrap_below_the_prompt() {
        let mut input = typed("abcdefgh");
        assert_eq!(
            shown(&input, 8),
            (vec!["> abcd".into(), "  efgh".into()], (1, 6))
        );
        press(&mut input, &[Key::Home]);
        assert_eq!(input.rows(8, 4).caret, (0, 2));
        input.break_line();
        assert_eq!(input.text(), "\nabcdefgh");
        let input = typed(&"x".repeat(100));
        assert_eq!(input.rows(8, 3).lines.len(), 3);
    }

    #[test]
    fn a_long_paste_is_shown_as_its_number_of_lines() {
        let mut input = typed("see: ");
        let paste = "line\n".repeat(300);
        input.paste(&paste);
        assert_eq!(shown(&input, 60).0, ["> see: [pasted 300 lines]"]);
        input.paste("short");
        assert_eq!(input.text(), format!("see: {paste}short"));
        assert_eq!(input.take(), format!("see: {paste}short"));
        assert!(input.is_empty());
        input.paste(&"x".repeat(limits::LONG_PASTE_BYTES));
        assert_eq!(shown(&input, 60).0, ["> [pasted 1 line]"]);
        press(&mut input, &[Key::Backspace]);
        assert_eq!(input.text(), "");
    }

    #[test]
    fn hostile_text_is_visible_and_stays_what_it_is() {
        let mut input = InputBox::default();
        input.paste("a\x1b]52;c;eA==\x07\u{202E}b");
        assert_eq!(shown(&input, 60).0, ["> a␛]52;c;eA==␇\u{FFFD}b"]);
        assert_eq!(input.text(), "a\x1b]52;c;eA==\x07\u{202E}b");
    }

    #[test]
    fn earlier_inputs_come_back() {
        let mut input = InputBox::new(vec!["one".into()]);
        input.set_text("two");
        input.take();
        input.set_text("draft");
        press(&mut input, &[Key::Up]);
        assert_eq!(input.text(), "two");
        press(&mut input, &[Key::Up, Key::Up]);
        assert_eq!(input.text(), "one");
        press(&mut input, &[Key::Down, Key::Down]);
        assert_eq!(input.text(), "draft");
        assert_eq!(input.history(), ["one", "two"]);
    }

    #[test]
    fn keys_of_a_shell_edit() {
        let mut input = typed("one two\\");
        assert!(input.break_at_backslash() && !input.break_at_backslash());
        assert_eq!(input.text(), "one two\n");
        input.set_text("one two");
        assert!(input.key(KeyPress::control('w')));
        assert_eq!(input.text(), "one ");
        assert!(input.key(KeyPress::control('u')));
        assert!(input.is_empty());
        assert!(!input.key(KeyPress::control('d')));
        assert!(!input.key(KeyPress::plain(Key::Enter)));
    }
}
