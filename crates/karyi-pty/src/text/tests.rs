//! Whole outputs, cut at every place.

use super::*;
use karyi_core::limits;

fn render(pieces: &[&[u8]]) -> String {
    render_for(TerminalText::new(), pieces)
}

fn render_for(mut terminal: TerminalText, pieces: &[&[u8]]) -> String {
    let mut text = String::new();
    for piece in pieces {
        terminal.push(piece, &mut text);
    }
    terminal.finish(&mut text);
    text
}

/// Checks the whole, every split point and single bytes.
fn check(input: impl AsRef<[u8]>, expected: &str) {
    let bytes = input.as_ref();
    let shown = String::from_utf8_lossy(bytes);
    assert_eq!(render(&[bytes]), expected, "{shown:?}");
    for at in 1..bytes.len() {
        let (first, second) = bytes.split_at(at);
        assert_eq!(
            render(&[first, second]),
            expected,
            "{shown:?} split at {at}"
        );
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(render(&single), expected, "{shown:?} byte by byte");
}

#[test]
fn plain_text_is_kept() {
    check("", "");
    check("one\ntwo\n", "one\ntwo\n");
    check("a\tb\n你好 é\nend", "a\tb\n你好 é\nend");
    check("one\r\ntwo\r\n", "one\ntwo\n");
    check("a\r\r\nb", "a\nb");
}

#[test]
fn other_controls_are_dropped() {
    check("a\0b\x07c\x0b\x0cd\x7fe", "abcde");
    check("a\u{9b}31mb\u{85}\n", "a31mb\n");
}

#[test]
fn invalid_bytes_are_replaced() {
    check(b"a\xffb\xe4\xbd\n\xe4\xbd", "a\u{FFFD}b\u{FFFD}\n\u{FFFD}");
    check(
        b"\xe4\xbdx\xf0\x9f\x98\x1b[m\xa0",
        "\u{FFFD}x\u{FFFD}\u{FFFD}",
    );
    check(
        b"\xc0\x80\xed\xa0\x80",
        "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}",
    );
}

#[test]
fn escape_sequences_vanish() {
    check("\x1b[1;31mred\x1b[0m\n", "red\n");
    check(
        "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
        "alink",
    );
    check("\x1bP1$r0m\x1b\\a\x1b(Bb\x1b=c\x1b7d", "abcd");
    check("\x1b[?1049h\x1b[?25lx", "x");
    check("a\x1b[3\x18b\x1b[4\x1b[1mc", "abc");
    check("\x1b_app\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\z", "z");
}

#[test]
fn osc52_is_stripped() {
    check("a\x1b]52;c;aGk=\x07b", "ab");
}

#[test]
fn an_unfinished_title_does_not_eat_the_output() {
    check("\x1b]0;title\nreal\n", "\nreal\n");
    let long = format!(
        "\x1bP{}end",
        "x".repeat(limits::MAX_TERMINAL_LINE_BYTES + 1)
    );
    assert!(render(&[long.as_bytes()]).ends_with("end"));
}

#[test]
fn a_progress_bar_comes_out_as_its_last_state() {
    check(" 1%\r 50%\r100%\ndone\n", "100%\ndone\n");
    check("long text\rhi\n", "hing text\n");
    check("long text\r\x1b[Khi\n", "hi\n");
    check("long\x1b[2K\rhi\n", "hi\n");
    check("a\x1b[1Gb\x1b[3Cc\n", "b   c\n");
    check("abc\x1b[2Dx\x1b[K\n", "ax\n");
}

#[test]
fn many_short_lines_that_are_erased_first_stay_cheap() {
    let line = "\r\x1b[Ka\n";
    let count = limits::MAX_TERMINAL_LINE_BYTES / line.len() - 1;
    let piece = line.repeat(count);
    let since = std::time::Instant::now();
    let text = render(&[piece.as_bytes(); 30]);
    assert_eq!(text, "a\n".repeat(30 * count));
    // A search of the whole piece for each line would take minutes.
    assert!(since.elapsed().as_secs() < 30, "{:?}", since.elapsed());
}

#[test]
fn backspaces_go_back() {
    check("abc\x08\x08x\n", "axc\n");
    check("p\x08 \x08q\n", "q\n");
    check("\x08\x08a\n", "a\n");
}

#[test]
fn wide_characters_take_two_columns() {
    check("你好\rab\n", "ab好\n");
    check("你好\ra\n", "a 好\n");
    check("a你\x08\x08b\n", "ab \n");
}

#[test]
fn a_line_without_end_is_passed_on() {
    let mut terminal = TerminalText::new();
    let mut text = String::new();
    for _ in 0..100 {
        terminal.push(&[b'x'; 10_000], &mut text);
        terminal.push(b"\x08\x1b[999999999C", &mut text);
    }
    assert!(terminal.view.line.held_bytes() <= 2 * limits::MAX_TERMINAL_LINE_BYTES);
    terminal.finish(&mut text);
    assert!(text.len() >= 900_000);
}

#[test]
fn hostile_bytes_give_the_same_text_in_any_chunks() {
    let mut seed = 1u32;
    let alphabet = b"ab\n\r\x08\x1b[]P0;5KCDG\x07\\\xe4\xbd\xa0\xff\t\x18 ";
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        alphabet[(seed >> 16) as usize % alphabet.len()]
    })
    .take(5000)
    .collect();
    let whole = render(&[&bytes]);
    for size in [1, 2, 3, 7, 64, 65, 999] {
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(render(&chunks), whole, "chunks of {size}");
    }
}

#[test]
fn rows_above_can_be_rewritten() {
    check("a\nb\nc\n\x1b[2A\x1b[2KB\n\x1b[2KC\nd\n", "a\nB\nC\nd\n");
    check("one\ntwo\x1b[A!\n", "one!\ntwo");
    check("one\ntwo\x1b[F\x1b[K1\n", "1\ntwo");
    check("a\nb\n\x1b[1A\x1b[J", "a\n");
    check("a\nb\n\x1b[A\x1b[2K\x1b[A\x1b[2Kend\n", "end\n");
    check("x\x1b[9Ay\n", "xy\n");
    check("a\r\nb\r\n\x1b[2A\x1b[Jc\r\n", "c\n");
    check("a  \n\x1b[A\n", "a  \n");
    check("a\tb\n\x1b[A\n", "a\tb\n");
    check("a\tb\n\x1b[Axyz\n", "xyz     b\n");
    check("p 1%\r\x1b[Kp 2%\n\x1b[Adone\x1b[K\n", "done\n");
}

/// Like docker, pip and npm with several bars.
#[test]
fn bars_of_several_lines_come_out_as_their_last_state() {
    let mut bytes = String::from("start\n");
    for percent in 0..=100 {
        for bar in 1..=3 {
            bytes.push_str(&format!("\x1b[2K\rbar {bar}: {percent}%\n"));
        }
        bytes.push_str(if percent < 100 { "\x1b[3A" } else { "end\n" });
    }
    let expected = "start\nbar 1: 100%\nbar 2: 100%\nbar 3: 100%\nend\n";
    assert_eq!(render(&[bytes.as_bytes()]), expected);
    let single: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
    assert_eq!(render(&single), expected);
}

#[test]
fn only_the_last_forty_rows_are_within_reach() {
    let lines = |from: u32, to: u32| -> String { (from..to).map(|n| format!("{n}\n")).collect() };
    let moved = format!("{}\x1b[99Atop\x1b[K", lines(0, 100));
    let expected = format!("{}top\n{}", lines(0, 61), lines(62, 100));
    for size in [1, 7, 4096] {
        let chunks: Vec<&[u8]> = moved.as_bytes().chunks(size).collect();
        assert_eq!(render(&chunks), expected, "chunks of {size}");
    }
    // After a screen full of plain lines the rows are lines again.
    let again = format!("a\x1b[A\n{}\x1b[99Atop\x1b[K", lines(0, 200));
    let expected = format!("a\n{}top\n{}", lines(0, 161), lines(162, 200));
    assert_eq!(render(&[again.as_bytes()]), expected);
}

#[test]
fn what_was_printed_before_the_screen_was_cleared_stays() {
    check("\x1b[H\x1b[2J\x1b[3Jx\n", "x\n");
    check("a\nb\x1b[H\x1b[2J\x1b[3Jx\n", "a\nb\nx\n");
    check("a\n\x1b[H\x1b[Jx\n", "a\nx\n");
    check("a\n\x1bcx\n", "a\nx\n");
    // Pictures that replace each other.
    check("a\n\x1b[2J\x1b[Hone\n\x1b[2J\x1b[Htwo\n", "a\ntwo\n");
    check("a\nb\n\x1b[Hx\n", "x\nb\n");
    check("\x1b[3;5Hx\x1b[5;1Hy", "    x\n\ny");
    check("a\n\x1b[2J\x1b[3;5Hx", "a\n\n\n    x");
    check("\x1b[H\x1b[Jx   \ny", "x\ny");
}

#[test]
fn the_alternate_screen_leaves_nothing_behind() {
    check(
        "a\n\x1b[?1049h\x1b[2J\x1b[Hvim\n~\n\x1b[?1049lb\n",
        "a\nb\n",
    );
    check("a\x1b[?47hx\x1b[?47l\rb\n", "b\n");
    check(
        "a\n\x1b[?1049h\x1b[Hone\x1b[3;3Htwo  \x1b[40;1H",
        "a\none\n\n  two",
    );
    check("\x1b[?1049h", "");
    check("a\x1b[?1049hb", "a\n b");
    // Alone a line feed goes down there.
    check("\x1b[?1049hab\ncd\r\n", "ab\n  cd");
}

#[test]
fn the_alternate_screen_outlives_a_part_of_the_output() {
    let mut terminal = TerminalText::new();
    let (mut first, mut second, mut third) = (String::new(), String::new(), String::new());
    terminal.push(b"sh\n\x1b[?1049h\x1b[Hone\r\ntwo", &mut first);
    terminal.finish(&mut first);
    assert_eq!(
        (first.as_str(), terminal.is_alternate()),
        ("sh\none\ntwo", true)
    );
    terminal.push(b"\x1b[1;1HO", &mut second);
    terminal.finish(&mut second);
    assert_eq!(second, "One\ntwo");
    terminal.push(b"\x1b[?1049lbye\n\x1b[1", &mut third);
    terminal.finish(&mut third);
    assert_eq!((third.as_str(), terminal.is_alternate()), ("bye\n", false));
    terminal.push(b"A\n", &mut third);
    terminal.finish(&mut third);
    assert_eq!(third, "bye\nA\n");
}

#[test]
fn wrapped_rows_are_one_line() {
    let long = "0123456789".repeat(30);
    check(format!("{long}\n\x1b[A\n"), &format!("{long}\n"));
    check(format!("\x1b[H{long}\nend\n"), &format!("{long}\nend\n"));
    check(format!("a\n{long}\n\x1b[4AA"), &format!("A\n{long}\n"));
    let exact = "x".repeat(120);
    check(format!("\x1b[H{exact}\ny\n"), &format!("{exact}\ny\n"));
    let wide = "好".repeat(70);
    check(format!("\x1b[H{wide}\n"), &format!("{wide}\n"));
    // A character that does not fit in the last column.
    check(format!("\x1b[Hx{wide}\n"), &format!("x{wide}\n"));
    check(
        format!("\x1b[?7l{exact}yz\n"),
        &format!("{}z\n", "x".repeat(119)),
    );
}

#[test]
fn regions_scroll_on_their_own() {
    check(
        "\x1b[H1\n2\n3\n4\n\x1b[2;3r\x1b[3;1H\na\x1b[r\x1b[5;1H",
        "1\n3\na\n4\n",
    );
    check("1\n2\n3\n\x1b[2;1H\x1b[Mx\n", "1\nx\n");
    check("1\n2\n\x1b[2;1H\x1b[Lx\n", "1\nx\n2\n");
    check("1\n2\n\x1b[H\x1bMx\n", "x\n1\n2\n");
    check("1\n2\n\x1b[2;3r\x1b[?6h\x1b[Hx\x1b[?6l\x1b[Hy", "y\nx\n");
    check("1\n2\n\x1b[S\x1b[3;1H3\n", "1\n2\n\n3\n");
}

/// Like apt, whose bar stands on the last row under a region that scrolls.
#[test]
fn a_bar_below_a_region_does_not_hold_up_the_lines() {
    let mut bytes = String::from("\n\x1b7\x1b[0;39r\x1b8\x1b[1A");
    for number in 0..100 {
        bytes.push_str(&format!("line {number}\n"));
        bytes.push_str(&format!("\x1b7\x1b[40;0f{number} %\x1b8"));
    }
    bytes.push_str("\x1b7\x1b[0;40r\x1b8\x1b[1A\x1b[J");
    let text = render(&[bytes.as_bytes()]);
    let expected: String = (0..99).map(|number| format!("line {number}\n")).collect();
    assert_eq!(text, expected);
}

#[test]
fn rows_are_edited_in_place() {
    check("\x1b[Habc\x1b[1;2H\x1b[Px", "ax");
    check("\x1b[Habc\x1b[1;2H\x1b[2@x", "ax bc");
    check("\x1b[Habc\x1b[1;2H\x1b[Xx", "axc");
    check("\x1b[Habc\x1b[1;2H\x1b[4hx\x1b[4l", "axbc");
    check("\x1b[Hab\x1b[3b", "abbbb");
    check("\x1b[Hab\x1b7\x1b[9;9H\x1b8c", "abc");
    check("\x1b[Hab\x1b[s\x1b[9;9H\x1b[uc", "abc");
    check("\x1b[H\x1b(0lqk\x1b(Bq", "┌─┐q");
    check("\x1b[H\x1b)0a\x0eq\x0fb", "a─b");
    check("\x1b[Hcafe\u{301}\x1b[D!", "caf!");
    check("\x1b[He\u{301}\u{302}", "e\u{301}\u{302}");
    check("\x1b[H👩\u{200d}👩\u{200d}👧!", "👩\u{200d}👩\u{200d}👧!");
    check("\x1b[H你好\x1b[1;2Hx", " x好");
    check("a\x1b[Zb\x1b[Ic", "b\tc");
}

#[test]
fn a_row_of_marks_takes_no_memory() {
    let marks = format!("\x1b[Ha{}b", "\u{301}".repeat(100_000));
    let text = render(&[marks.as_bytes()]);
    assert!(
        text.starts_with('a') && text.ends_with('b') && text.len() <= 32,
        "{text:?}"
    );
}

#[test]
fn a_repeated_character_stays_on_its_row() {
    let bytes = "x\x1b[65535b".repeat(1000);
    assert!(render(&[bytes.as_bytes()]).len() < 16 * bytes.len());
}

#[test]
fn line_feeds_mean_the_same_with_and_without_returns() {
    let bytes = "a\nbc\n\x1b[2Ax\n\x1b[Hy\n\nz\x1b[A\n\n";
    let returned = bytes.replace('\n', "\r\n");
    assert_eq!(render(&[bytes.as_bytes()]), render(&[returned.as_bytes()]));
}

/// Returns the text of a watcher after each piece.
fn watch(pieces: &[&str]) -> Vec<String> {
    let mut terminal = TerminalText::for_watcher();
    let mut seen: Vec<String> = Vec::new();
    for piece in pieces {
        let mut text = String::new();
        terminal.push(piece.as_bytes(), &mut text);
        seen.push(text);
    }
    let mut text = String::new();
    terminal.finish(&mut text);
    seen.push(text);
    seen
}

#[test]
fn a_watcher_sees_lines_at_once() {
    assert_eq!(watch(&["a\nb", "c\n", "d"]), ["a\n", "bc\n", "", "d"]);
    assert_eq!(watch(&["1%\r2%", "\r3%\n"]), ["", "3%\n", ""]);
    assert_eq!(
        watch(&["a\nb\n", "\x1b[Hx\n", "y\n", "z\n"]),
        ["a\nb\n", "", "", "z\n", "x\ny\n"]
    );
}

#[test]
fn a_watcher_sees_a_rewritten_row_once_more() {
    let frame = |percent: u32| format!("\x1b[2Kone {percent}\n\x1b[2Ktwo {percent}\n");
    let mut pieces = vec![frame(0)];
    pieces.extend((1..=100).map(|percent| format!("\x1b[2A{}", frame(percent))));
    pieces.push("three\n".into());
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let seen: String = watch(&pieces).concat();
    assert_eq!(seen, "one 0\ntwo 0\nthree\none 100\ntwo 100\n");
}

#[test]
fn a_watcher_sees_every_line_of_a_stream_once() {
    let lines: String = (0..500).map(|n| format!("{n}\n")).collect();
    let bytes = format!("a\nb\x1b[A\n\n{lines}");
    let seen = watch(&[&bytes]).concat();
    assert!(seen.ends_with(&lines), "{seen}");
    assert_eq!(seen.lines().count(), 502);
}

/// Returns the replies after each piece.
fn ask(pieces: &[&str]) -> String {
    let mut terminal = TerminalText::for_replies();
    let mut text = String::new();
    let mut replies = String::new();
    for piece in pieces {
        terminal.push(piece.as_bytes(), &mut text);
        replies.push_str(&terminal.take_replies());
    }
    terminal.finish(&mut text);
    assert_eq!(text, "");
    replies
}

#[test]
fn queries_of_programs_get_replies() {
    assert_eq!(ask(&["\x1b[5n"]), "\x1b[0n");
    assert_eq!(ask(&["\x1b[6n"]), "\x1b[1;1R");
    assert_eq!(ask(&["a\nbc\x1b[6n"]), "\x1b[2;3R");
    assert_eq!(ask(&["a\nb", "c\x1b", "[6", "n"]), "\x1b[2;3R");
    assert_eq!(ask(&["\x1b[999;999H\x1b[6n"]), "\x1b[40;120R");
    assert_eq!(
        ask(&["x\n".repeat(500).as_str(), "ab\x1b[6n"]),
        "\x1b[40;3R"
    );
    assert_eq!(ask(&["x".repeat(250).as_str(), "\n\x1b[6n"]), "\x1b[4;1R");
    assert_eq!(ask(&["好\x1b[?6n"]), "\x1b[?1;3R");
    assert_eq!(
        ask(&["\x1b[c\x1b[0c\x1b[>c"]),
        "\x1b[?1;2c\x1b[?1;2c\x1b[>0;0;0c"
    );
    assert_eq!(ask(&["\x1b[?1049h\x1b[4;9H\x1b[6n"]), "\x1b[4;9R");
}

#[test]
fn only_queries_get_replies() {
    let others = "\x1b[7n\x1b[21t\x1b]10;?\x07\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1b[?5n\x1b[=c\x1b[1c\x1bZ\x05\x1b[!n";
    assert_eq!(ask(&[others]), "");
    assert!(ask(&["\x1b[6n".repeat(100_000).as_str()]).len() < 300);
}

#[test]
fn hostile_screens_give_the_same_text_in_any_chunks() {
    let mut seed = 7u32;
    let alphabet: Vec<&str> = "a b \n \r \t 好 \u{301} \x08 \x1b[A \x1b[2B \x1b[H \x1b[5;5H \x1b[J \x1b[1J \x1b[2J \
        \x1b[K \x1b[L \x1b[2M \x1b[P \x1b[@ \x1b[X \x1b[S \x1b[T \x1b[2;9r \x1b[r \x1b7 \x1b8 \x1bM \x1bD \x1b[?1049h \
        \x1b[?1049l \x1b[?7l \x1b[?7h \x1b[4h \x1b[4l \x1b(0 \x1b(B \x1b[9b \x1b[999C \x1b[20D word"
        .split(' ')
        .collect();
    for _ in 0..300 {
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as usize
        };
        let mut bytes = String::new();
        for _ in 0..next() % 200 {
            bytes.push_str(alphabet[next() % alphabet.len()]);
        }
        let bytes = bytes.as_bytes();
        for make in [TerminalText::new, TerminalText::for_watcher] {
            let whole = render_for(make(), &[bytes]);
            for size in [1, 2, 3, 7, 64] {
                let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
                assert_eq!(
                    render_for(make(), &chunks),
                    whole,
                    "chunks of {size}: {bytes:?}"
                );
            }
        }
    }
}

/// Whole sequences and runs are read at once, cut ones byte by byte: both give the same.
#[test]
fn what_is_read_at_once_is_the_same_as_byte_by_byte() {
    let seed = std::env::var("KARYI_SEED").ok();
    let mut state = seed.and_then(|seed| seed.parse().ok()).unwrap_or(11u64);
    println!("KARYI_SEED={state}");
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    let words: Vec<&str> = "a|word|some longer text, 40%|\n|\r|\r\n|\x08|\t|好|é|e\u{301}|━━━|\u{9b}|\x1b[m|\x1b[1;31m|\x1b[38:5:7m|\
        \x1b[K|\x1b[1K|\x1b[2K|\x1b[?K|\x1b[3C|\x1b[7D|\x1b[9G|\x1b[999G|\x1b[A|\x1b[H|\x1b[J|\x1b[6n|\x1b[?25l|\x1b[?1049h|\
        \x1b[?1049l|\x1b]0;t\x07|\x1b(B|\x1b7|\x1b8|\x1b[3\x18|\x1b[4\x1b[1m|\x1b|\x1b[1;|\x1b[ q|\x1b[>0m|\x07|\x7f|x\x1b[5b"
        .split('|')
        .collect();
    for _ in 0..400 {
        let some: Vec<&str> = (0..2 + next(20))
            .map(|_| words[next(words.len())])
            .collect();
        let mut bytes = Vec::new();
        for _ in 0..next(200) {
            match next(40) {
                0 => bytes.extend(b"\xe4\xbd"),
                1 => bytes.extend("line\n".repeat(45).bytes()),
                _ => bytes.extend(some[next(some.len())].bytes()),
            }
        }
        for make in [
            TerminalText::new,
            TerminalText::for_watcher,
            TerminalText::for_replies,
        ] {
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            let expected = replies_and_text(make(), &single);
            assert_eq!(replies_and_text(make(), &[&bytes]), expected, "{bytes:?}");
            let (first, second) = bytes.split_at(next(bytes.len() + 1));
            let halves = replies_and_text(make(), &[first, second]);
            assert_eq!(halves, expected, "{first:?} {second:?}");
        }
    }
}

fn replies_and_text(mut terminal: TerminalText, pieces: &[&[u8]]) -> (String, String) {
    let mut text = String::new();
    for piece in pieces {
        terminal.push(piece, &mut text);
    }
    let replies = terminal.take_replies();
    terminal.finish(&mut text);
    (replies, text)
}
