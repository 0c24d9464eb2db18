//! Whole texts, cut at every place.

use super::*;
use crate::styled_line::{Palette, plain_text, width, write_line};

const TEXT: &str = "# A title\n\nSome **bold** text that is\nlonger than a line, with `code` and [a link](https://a.b/c).\n\n\
- one\n- two *slanted*\n  more\n  - nested\n\n  in the item\n\n3. three\n\n> quoted\n> text\n\n\
| a | b |\n|---|--:|\n| 1 | 22 |\n| long cell | 3 |\n\nBefore\n```sh\nmake test  # and a line that is longer than the screen\n\n```\n\
After\n===\n\n---\n日本語🎉é 日本語🎉é 日本語🎉é\n";

fn texts(lines: &[Line<'_>]) -> Vec<String> {
    lines.iter().map(plain_text).collect()
}

fn whole(text: &str, columns: usize) -> Vec<Line<'static>> {
    let mut stream = MarkdownStream::new(columns);
    let mut lines = stream.push(text);
    lines.extend(stream.finish());
    lines
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(texts(&whole(text, 30)), expected);
}

#[test]
fn a_text_becomes_these_lines() {
    check(
        TEXT,
        &[
            "# A title",
            "",
            "Some bold text that is longer",
            "than a line, with code and a",
            "link (https://a.b/c).",
            "",
            "- one",
            "- two slanted more",
            "  - nested",
            "",
            "  in the item",
            "",
            "3. three",
            "",
            "│ quoted text",
            "",
            "a         │  b",
            "──────────┼───",
            "1         │ 22",
            "long cell │  3",
            "",
            "Before",
            "```sh",
            "make test  # and a line that is longer than the screen",
            "",
            "```",
            "# After",
            "",
            "────────",
            "日本語🎉é 日本語🎉é 日本語🎉é",
        ],
    );
}

#[test]
fn the_same_lines_come_however_the_text_is_cut() {
    let expected = whole(TEXT, 30);
    let cuts: Vec<usize> = TEXT.char_indices().map(|(at, _)| at).collect();
    for cut in &cuts {
        let (head, tail) = TEXT.split_at(*cut);
        let mut stream = MarkdownStream::new(30);
        let mut lines = stream.push(head);
        let _ = stream.preview();
        lines.extend(stream.push(tail));
        lines.extend(stream.finish());
        assert_eq!(lines, expected, "cut at {cut}");
    }
    let mut stream = MarkdownStream::new(30);
    let mut lines = Vec::new();
    for c in TEXT.chars() {
        lines.extend(stream.push(&c.to_string()));
    }
    lines.extend(stream.finish());
    assert_eq!(lines, expected);
}

#[test]
fn a_bold_word_is_bold_once() {
    let mut out = Vec::new();
    for line in whole("a **bold** word\n", 30) {
        write_line(&mut out, &line, Palette::Ansi);
    }
    assert_eq!(String::from_utf8(out).unwrap(), "a \x1b[1mbold\x1b[0m word");
}

#[test]
fn lines_come_as_soon_as_they_are_final() {
    let mut stream = MarkdownStream::new(30);
    assert_eq!(texts(&stream.push("one\n")), [""; 0]);
    assert_eq!(texts(&stream.preview()), ["one"]);
    assert_eq!(texts(&stream.push("\n")), ["one"]);
    assert_eq!(texts(&stream.push("```\nco")), ["", "```"]);
    assert_eq!(texts(&stream.preview()), ["co"]);
    assert_eq!(texts(&stream.push("de\n")), ["code"]);
    assert_eq!(texts(&stream.push("- a")), [""; 0]);
    assert_eq!(texts(&stream.finish()), ["- a"]);
}

#[test]
fn hostile_text_is_visible() {
    check(
        "a\x1b]52;c;eA==\x07 \u{202E}b\u{9b}2J\n",
        &["a␛]52;c;eA==␇ \u{FFFD}b\u{FFFD}2J"],
    );
    check("a&#27;[2J `\x1b[2J` &#x202E;\n", &["a␛[2J ␛[2J \u{FFFD}"]);
    check(
        "```\x1b[1m\n\x1b]0;x\x07\n```\n",
        &["```␛[1m", "␛]0;x␇", "```"],
    );
    check("    \x1b[2J\n", &["␛[2J"]);
    check("[a](javascript:\x1b[2J)\n", &["[a](javascript:␛[2J)"]);
    check(
        "<b>\x1b[2J</b>\n\n<div>\n\x1b[2J\n",
        &["<b>␛[2J</b>", "", "<div>", "␛[2J"],
    );
}

#[test]
fn a_table_that_is_too_wide_is_wrapped() {
    let cell = "many words in one cell ".repeat(4);
    let table = format!("| name | text |\n|---|---|\n| a | {cell} |\n");
    let lines = whole(&table, 30);
    assert!(lines.len() > 5, "{lines:?}");
    assert!(
        lines.iter().all(|line| width(&plain_text(line)) <= 30),
        "{lines:?}"
    );
}

#[test]
fn a_text_without_line_breaks_is_bounded() {
    let mut stream = MarkdownStream::new(30);
    let mut count = 0;
    for _ in 0..1024 {
        count += stream.push(&"word日 ".repeat(128)).len();
        assert!(stream.line.len() + stream.block.len() <= 2 * limits::MAX_MARKDOWN_BLOCK_BYTES);
    }
    assert!(count > 1000);
    assert!(stream.preview().len() < 400);
}

#[test]
fn code_is_coloured_once_the_syntaxes_are_there() {
    let mut stream = MarkdownStream::new(30).with_highlighting();
    crate::highlight::wait_for_syntaxes();
    let lines = stream.push("```rust\nlet a = \"text\"; // note\n");
    assert_eq!(plain_text(&lines[1]), "let a = \"text\"; // note");
    let styles: std::collections::HashSet<_> = lines[1].spans.iter().map(|s| s.style).collect();
    assert!(styles.len() >= 3, "{:?}", lines[1]);
}
