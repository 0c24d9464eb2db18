//! Frames on a terminal in memory.

use super::*;
use std::num::NonZeroU16;

const SIZE: Size = Size {
    columns: 20,
    rows: 10,
};

/// A terminal in memory; it counts writes.
struct Memory {
    parser: vt100::Parser,
    writes: usize,
}

impl Memory {
    fn new() -> Self {
        let side = |count: u16| NonZeroU16::new(count).unwrap();
        Self {
            parser: vt100::Parser::new(side(SIZE.rows), side(SIZE.columns), 100),
            writes: 0,
        }
    }

    fn rows(&self) -> Vec<String> {
        let contents = self.parser.screen().contents();
        contents.lines().map(str::to_owned).collect()
    }

    /// Returns everything that was ever printed and not erased.
    fn all(&mut self) -> String {
        self.parser.screen_mut().set_scrollback(usize::MAX);
        let back = self.parser.screen().scrollback();
        let mut text = String::new();
        for row in (0..=back).rev() {
            self.parser.screen_mut().set_scrollback(row);
            let contents = self.parser.screen().contents();
            match row {
                0 => text.push_str(&contents),
                _ => text.push_str(&format!(
                    "{}\n",
                    contents.lines().next().unwrap_or_default()
                )),
            }
        }
        text
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        self.parser.process(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lines(texts: &[&str]) -> Vec<Line<'static>> {
    texts
        .iter()
        .map(|text| Line::from((*text).to_owned()))
        .collect()
}

fn region(texts: &[&str], caret: Option<(usize, usize)>) -> Region {
    Region {
        lines: lines(texts),
        caret,
    }
}

#[test]
fn history_stands_once_above_the_region() {
    let mut memory = Memory::new();
    let mut live = LiveRegion::new(Palette::Ansi, Reflow::Wraps);
    for number in 0..30 {
        let history = lines(&[&format!("line {number}")]);
        let input = format!("> input {number}");
        let shown = region(&["card", &input, "status"], Some((1, 4)));
        live.draw(&mut memory, SIZE, &history, &shown).unwrap();
    }
    let all = memory.all();
    for number in 0..30 {
        let line = format!("line {number}\n");
        assert_eq!(all.matches(&line).count(), 1, "{line}{all}");
    }
    assert_eq!(all.matches("> input").count(), 1, "{all}");
    assert!(all.ends_with("line 29\ncard\n> input 29\nstatus"), "{all}");
    assert_eq!(memory.writes, 30);
}

#[test]
fn the_cursor_stands_at_the_caret() {
    let mut memory = Memory::new();
    let mut live = LiveRegion::new(Palette::Plain, Reflow::Wraps);
    let shown = region(&["above", "> 日本語🎉e\u{301}", "below"], Some((1, 10)));
    live.draw(&mut memory, SIZE, &[], &shown).unwrap();
    assert_eq!(memory.parser.screen().cursor_position(), (1, 10));
    assert!(!memory.parser.screen().hide_cursor());
    let hidden = region(&["above"], None);
    live.draw(&mut memory, SIZE, &[], &hidden).unwrap();
    assert!(memory.parser.screen().hide_cursor());
    assert_eq!(memory.rows(), ["above"]);
}

#[test]
fn an_equal_frame_writes_nothing() {
    let mut memory = Memory::new();
    let mut live = LiveRegion::new(Palette::Plain, Reflow::Wraps);
    for _ in 0..3 {
        live.draw(&mut memory, SIZE, &[], &region(&["a"], Some((0, 1))))
            .unwrap();
    }
    assert_eq!(memory.writes, 1);
}

#[test]
fn the_region_is_cut_to_half_the_screen_around_the_caret() {
    let mut memory = Memory::new();
    let mut live = LiveRegion::new(Palette::Plain, Reflow::Wraps);
    let texts: Vec<String> = (0..20)
        .map(|number| format!("row {number} {}", "x".repeat(40)))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for caret in 0..20 {
        live.draw(&mut memory, SIZE, &[], &region(&texts, Some((caret, 2))))
            .unwrap();
        let rows = memory.rows();
        assert_eq!(rows.len(), 5, "{rows:?}");
        assert!(
            rows.iter()
                .any(|row| row.starts_with(&format!("row {caret} "))),
            "{rows:?}"
        );
        assert!(rows.iter().all(|row| row.chars().count() < 20), "{rows:?}");
    }
    let tiny = Size {
        columns: 1,
        rows: 1,
    };
    live.draw(&mut memory, tiny, &[], &region(&texts, Some((3, 90))))
        .unwrap();
}

#[test]
fn the_region_leaves_nothing_behind() {
    let mut memory = Memory::new();
    let mut live = LiveRegion::new(Palette::Plain, Reflow::Wraps);
    let history = lines(&["kept"]);
    live.draw(
        &mut memory,
        SIZE,
        &history,
        &region(&["a", "b"], Some((1, 0))),
    )
    .unwrap();
    live.finish(&mut memory, SIZE).unwrap();
    assert_eq!(memory.rows(), ["kept"]);
    assert_eq!(memory.parser.screen().cursor_position(), (1, 0));
}

#[test]
fn rows_before_the_cursor_follow_from_the_widths() {
    assert_eq!(wrapped_rows(&[], 10), 1);
    assert_eq!(wrapped_rows(&[1; 10], 10), 1);
    assert_eq!(wrapped_rows(&[1; 11], 10), 2);
    // A wide character does not fit into the last column.
    assert_eq!(wrapped_rows(&[2; 5], 9), 2);
}
