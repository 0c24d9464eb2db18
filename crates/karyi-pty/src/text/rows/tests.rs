//! Lines wider than the terminal: one line while they are only written, rows once they are changed.

use super::*;
use crate::text::TerminalText;

#[test]
fn the_last_row_is_found() {
    let check = |text: &str, expected: usize| {
        assert_eq!(start_of_last(text), expected, "{text:?}");
        assert_eq!(overflow(text), expected > 0, "{text:?}");
    };
    let row = "x".repeat(COLUMNS);
    check("", 0);
    check(&row, 0);
    check(&format!("{row}y"), COLUMNS);
    check(&format!("{row}{row}"), COLUMNS);
    check(&format!("{row}{row}{row}y"), 3 * COLUMNS);
    check(&format!("{row}\u{301}"), 0);
    check(&format!("{row}\u{301}y"), COLUMNS + 2);
    check(&"好".repeat(60), 0);
    check(&"好".repeat(61), 180);
    // It has no room in the last column.
    check(&format!("x{}", "好".repeat(60)), 1 + 59 * 3);
    // A tab stays on its row.
    check(&format!("{}x", "\t".repeat(99)), 0);
    check(&format!("{}xy", "\t".repeat(15)), 16);
    check(&format!("{row}\ty"), COLUMNS + 1);
    check(&format!("\x1b[31m{row}\x1b[0m"), 0);
    check(&format!("\x1b[31m{row}\x1b[0my"), COLUMNS + 9);
    assert_eq!(start_of_last("ab\ncd\n"), 6);
    assert_eq!(start_of_last(&format!("{row}y\n{row}z")), 2 * COLUMNS + 2);
}

fn render(mut terminal: TerminalText, pieces: &[&[u8]]) -> String {
    let mut text = String::new();
    for piece in pieces {
        terminal.push(piece, &mut text);
    }
    terminal.finish(&mut text);
    text
}

/// Checks the whole, split points and single bytes, and that a screen that was there from the start shows
/// the same. The full run takes every split point.
fn check(input: &str, expected: &str) {
    let bytes = input.as_bytes();
    assert_eq!(render(TerminalText::new(), &[bytes]), expected, "{input:?}");
    let is_full = std::env::var_os("KARYI_FULL").is_some();
    let step = if is_full { 1 } else { bytes.len() / 50 + 1 };
    for at in (1..bytes.len()).step_by(step) {
        let (first, second) = bytes.split_at(at);
        let text = render(TerminalText::new(), &[first, second]);
        assert_eq!(text, expected, "{input:?} split at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(render(TerminalText::new(), &single), expected, "{input:?}");
    let drawn = format!("\x1b[H{input}");
    let text = render(TerminalText::new(), &[drawn.as_bytes()]);
    assert_eq!(text, expected, "{input:?} on a screen");
}

fn x(count: usize) -> String {
    "x".repeat(count)
}

#[test]
fn a_line_that_is_only_written_stays_one() {
    let text = format!("{}\n", "wide é 好 \t".repeat(99));
    assert_eq!(render(TerminalText::new(), &[text.as_bytes()]), text);
    check(&format!("{}\n", x(300)), &format!("{}\n", x(300)));
    check(&format!("{}\r\n", x(300)), &format!("{}\n", x(300)));
    check(&format!("{}\r", x(300)), &x(300));
    check(
        &format!("a\n{}\nb\n", x(121)),
        &format!("a\n{}\nb\n", x(121)),
    );
}

#[test]
fn what_acts_on_a_wide_line_acts_on_its_last_row() {
    let (x, y) = (x, |count| "y".repeat(count));
    let line = x(300);
    check(&format!("{line}\rY\n"), &format!("{}Y{}\n", x(240), x(59)));
    check(
        &format!("{line}\x1b[2K\x1b[AY\n"),
        &format!("{}Y{}\n", x(180), x(59)),
    );
    check(&format!("{line}\r\x1b[KY\n"), &format!("{}\nY\n", x(240)));
    check(&format!("{line}\x08\x08Y\n"), &format!("{}Yx\n", x(298)));
    check(
        &format!("{line}\x1b[99D\x08Y\n"),
        &format!("{}Y{}\n", x(240), x(59)),
    );
    check(
        &format!("{line}\x1b[3GY\n"),
        &format!("{}Y{}\n", x(242), x(57)),
    );
    check(&format!("{line}\x1b[2CY\n"), &format!("{line}  Y\n"));
    check(
        &format!("{line}\x1b[1KY\n"),
        &format!("{}{}Y\n", x(240), " ".repeat(60)),
    );
    check(
        &format!("{line}\r{}\x1b[K\n", y(9)),
        &format!("{}\n{}\n", x(240), y(9)),
    );
    // From the end of one row over the next.
    check(
        &format!("{line}\r{}\n", y(130)),
        &format!("{}\n{}\n", x(240), y(130)),
    );
    check(
        &format!("a\r{line}\rY\n"),
        &format!("{}Y{}\n", x(240), x(59)),
    );
    check(
        &format!("{line}\nb\n\x1b[2AY\n\n"),
        &format!("{}Y{}\nb\n", x(240), x(59)),
    );
}

#[test]
fn the_last_column_is_the_end_of_the_row_and_not_behind_it() {
    let full = x(120);
    check(&format!("{full}\rY\n"), &format!("Y{}\n", x(119)));
    check(&format!("{full}\x08Y\n"), &format!("{}Yx\n", x(118)));
    check(&format!("{full}\x1b[DY\n"), &format!("{}Yx\n", x(118)));
    check(&format!("{full}\x1b[999GY\n"), &format!("{}Y\n", x(119)));
    check(&format!("{full}\x1b[CY\n"), &format!("{}Y\n", x(119)));
    check(
        &format!("{full}\x1b[2KY\n"),
        &format!("{}Y\n", " ".repeat(119)),
    );
    check(&format!("{full}\x1b[KY\n"), &format!("{full}Y\n"));
    check(&format!("{full}Y\rZ\n"), &format!("{full}\nZ\n"));
    check(&format!("ab\r{full}\rY\n"), &format!("Y{}\n", x(119)));
}

#[test]
fn wide_characters_and_tabs_keep_to_the_row() {
    let wide = "好".repeat(60);
    check(&format!("{wide}\rY\n"), &format!("Y {}\n", "好".repeat(59)));
    check(&format!("{wide}好好\rY\n"), &format!("{wide}Y 好\n"));
    check(
        &format!("x{wide}好\rY\n"),
        &format!("x{}Y 好\n", "好".repeat(59)),
    );
    check(
        &format!("{}好\x08\x08Y\n", x(119)),
        &format!("{}Y \n", x(119)),
    );
    check(
        &format!("{}\tab\rY\n", x(115)),
        &format!("{}\ta\nY\n", x(115)),
    );
    check(&format!("{}\ta\rY\n", x(115)), &format!("Y{}\ta\n", x(114)));
    check(
        &format!("{}\t\tab\x08Y\n", x(119)),
        &format!("{}aY\n", x(119)),
    );
    check(&format!("{}\tb\rY\n", x(120)), &format!("{}\nY\n", x(120)));
    check(
        &format!("{}\u{301}y\u{301}z\rY\n", x(120)),
        &format!("{}\u{301}Yz\n", x(120)),
    );
}

/// As on any terminal, each state leaves its rows but the last one above. The last state is whole.
#[test]
fn a_bar_wider_than_the_terminal_leaves_rows_above() {
    let state = |number: usize, fill: &str| format!("{number:03} {}", fill.repeat(130));
    let (one, two) = (state(1, "="), state(2, "="));
    let row = |state: &str| state[..120].to_owned();
    for start in ["\r", "\r\x1b[K", "\r\x1b[2K"] {
        let bytes = format!("{start}{one}{start}{two}{start}short\x1b[K\n");
        check(&bytes, &format!("{}\n{}\nshort\n", row(&one), row(&two)));
        let bytes = format!("go\n{start}{one}{start}{two}\ndone\n");
        check(&bytes, &format!("go\n{}\n{two}\ndone\n", row(&one)));
    }
    // One as wide as the terminal leaves none, whatever its bytes are.
    for fill in ["=", "━", "\x1b[32m=\x1b[0m"] {
        let state = |number: usize| format!("\r\x1b[K{number:03}{}", fill.repeat(117));
        let bytes: String = (0..5).map(state).collect();
        check(
            &bytes,
            &format!(
                "004{}",
                fill.replace("\x1b[32m", "")
                    .replace("\x1b[0m", "")
                    .repeat(117)
            ),
        );
    }
    // What a bar is padded with counts.
    let padded = |name: &str| format!("\r{name:<130}");
    let bytes = format!("{}{}\rend\n", padded("one"), padded("two"));
    let [first, second] = ["one", "two"].map(|name| format!("{name:<120}"));
    check(&bytes, &format!("{first}\n{second}end       \n"));
}

/// Editors of lines print a space behind a full row to get to the next one.
#[test]
fn a_line_wrapped_by_hand_stays_one() {
    let typed = format!("{} \r{} \rend", x(120), "y".repeat(120));
    check(&typed, &format!("{}{}end", x(120), "y".repeat(120)));
}

/// `grep` erases what is behind each match: nothing, wherever in a row it ends.
#[test]
fn coloured_matches_lose_nothing_at_the_end_of_a_row() {
    for before in 100..130 {
        let (start, end) = ("\x1b[01;31m\x1b[K", "\x1b[m\x1b[K");
        let bytes = format!("{}{start}match{end}{}\n", x(before), x(200));
        let text = format!("{}match{}\n", x(before), x(200));
        assert_eq!(render(TerminalText::new(), &[bytes.as_bytes()]), text);
        let drawn = format!("\x1b[H{bytes}");
        assert_eq!(render(TerminalText::new(), &[drawn.as_bytes()]), text);
        let colours = render(TerminalText::for_watcher_in_colour(), &[bytes.as_bytes()]);
        let expected_colours = format!("{}\x1b[01;31mmatch\x1b[m{}\n\x1b[0m", x(before), x(200));
        assert_eq!(colours, expected_colours);
    }
}

#[test]
fn the_rows_of_a_line_too_long_to_be_held_are_known() {
    for count in [65_536, 70_001, 200_003] {
        let bytes = format!("{}\rY\n", x(count));
        let start = (count - 1) / 120 * 120;
        let expected = format!("{}Y{}\n", x(start), x(count - start - 1));
        for size in [1 << 20, 4096, 999] {
            let chunks: Vec<&[u8]> = bytes.as_bytes().chunks(size).collect();
            let text = render(TerminalText::new(), &chunks);
            assert!(text == expected, "{count} in pieces of {size}");
        }
    }
    let mut terminal = TerminalText::for_replies();
    let mut text = String::new();
    terminal.push(format!("{}\x1b[6n", x(100_003)).as_bytes(), &mut text);
    assert_eq!(terminal.take_replies(), "\x1b[40;44R");
}

#[test]
fn a_watcher_sees_the_rows_of_a_bar_in_their_order() {
    let state = |number: usize| format!("{number:03} {}\r", "=".repeat(130));
    let bytes: String = (0..60).map(state).collect();
    let expected: String = (0..59)
        .map(|number| format!("{}\n", &state(number)[..120]))
        .collect();
    let bytes = format!("a\n{bytes}\nb\n");
    let expected = format!("a\n{expected}{}\nb\n", state(59).trim_end());
    for size in [1, 7, 1 << 20] {
        let chunks: Vec<&[u8]> = bytes.as_bytes().chunks(size).collect();
        assert_eq!(render(TerminalText::for_watcher(), &chunks), expected);
        assert_eq!(render(TerminalText::new(), &chunks), expected);
    }
}

#[test]
fn very_many_changes_of_wide_lines_stay_cheap() {
    let mut bytes = format!("{}\rY\n", x(130)).repeat(4000);
    bytes.push_str(&format!("\r\x1b[K{}", x(121)).repeat(4000));
    bytes.push_str(&format!("{}\x08", x(60_000)).repeat(20));
    let since = std::time::Instant::now();
    let text = render(TerminalText::new(), &[bytes.as_bytes()]);
    assert!(text.len() > 2_000_000);
    assert!(since.elapsed().as_secs() < 30, "{:?}", since.elapsed());
}

/// What is known of lines says the same as a screen that was there from the start. A tab in the last
/// column, which takes none, stays in a line that was only written.
#[test]
fn lines_and_a_screen_show_the_same() {
    let words: Vec<&str> = "a|word|some longer text, 40%| |\n|\n|\r|\x08|\t|好|e\u{301}|━━━|\x1b[1;31m|\x1b[K|\x1b[1K|\x1b[2K|\
        \x1b[3C|\x1b[7D|\x1b[9G|\x1b[999G|\r\x1b[K"
        .split('|')
        .collect();
    let long = [x(50), x(119), "好".repeat(59), x(260)];
    let mut seed = 3u32;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) as usize % below
    };
    for _ in 0..800 {
        let mut bytes = String::new();
        for _ in 0..next(30) {
            match next(6) {
                0 => bytes.push_str(&long[next(long.len())]),
                _ => bytes.push_str(words[next(words.len())]),
            }
        }
        let drawn = format!("\x1b[H{bytes}");
        for make in [TerminalText::new, TerminalText::for_watcher] {
            let expected = render(make(), &[drawn.as_bytes()]).replace('\t', "");
            for size in [1, 3, 64, 1 << 20] {
                let chunks: Vec<&[u8]> = bytes.as_bytes().chunks(size).collect();
                let text = render(make(), &chunks).replace('\t', "");
                assert_eq!(text, expected, "in pieces of {size}: {bytes:?}");
            }
        }
    }
}
