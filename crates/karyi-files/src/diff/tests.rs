//! Hunks, their line numbers and their caps.

use super::*;

fn check(old: &str, new: &str, expected: &str) {
    let found = diff(old, new, DiffCaps::RESULT);
    assert_eq!(found.text, expected, "{old:?} {new:?}");
    let signs = |sign| expected.lines().filter(|l| l.starts_with(sign)).count();
    assert_eq!(
        (found.added, found.removed, found.omitted),
        (signs('+'), signs('-'), 0)
    );
}

#[test]
fn hunks_have_context_and_line_numbers() {
    check("a\n", "a\n", "");
    check("", "a\n", "@@ -0,0 +1 @@\n+a\n");
    check("a\n", "", "@@ -1 +0,0 @@\n-a\n");
    check(
        "a\nb\nc\n",
        "a\nB\nc\n",
        "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
    );
    check(
        "a\nb",
        "a\nc",
        "@@ -1,2 +1,2 @@\n a\n-b\n\\ no line break at the end of the file\n+c\n\\ no line break at the end of the file\n",
    );
    let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
    let new = old.replace("\n5\n", "\nfive\n").replace("\n15\n", "\n");
    check(
        &old,
        &new,
        "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -12,7 +12,6 @@\n 12\n 13\n 14\n-15\n 16\n 17\n 18\n",
    );
    check("a\na\n", "a\na\na\n", "@@ -1,2 +1,3 @@\n a\n a\n+a\n");
    check(
        "caf\u{e9}\n",
        "caf\u{e8}\n",
        "@@ -1 +1 @@\n-caf\u{e9}\n+caf\u{e8}\n",
    );
}

#[test]
fn long_lines_show_the_part_that_differs() {
    let most = DiffCaps::RESULT.line_bytes;
    let line =
        |word: &str, after: usize| format!("{}{word}{}", "a".repeat(3000), "b".repeat(after));
    let before = 3000 - most / 4;
    let cut = |word: &str, after: usize| {
        let left = after + most / 4 + word.len() - most;
        let shown = format!("{}{word}{}", "a".repeat(most / 4), "b".repeat(after - left));
        format!("[... {before} bytes before]{shown}[... {left} more bytes]")
    };
    for (old, new, expected) in [
        // In the middle, at the end, and where a line only got longer.
        (
            line("old", 900),
            line("new!", 900),
            format!("-{}\n+{}\n", cut("old", 900), cut("new!", 900)),
        ),
        (
            line("x", 0),
            line("y", 0),
            format!(
                "-[... {before} bytes before]{0}x\n+[... {before} bytes before]{0}y\n",
                "a".repeat(most / 4)
            ),
        ),
        (
            line("", 0),
            line("\u{E9}", 0),
            format!(
                "-[... {before} bytes before]{0}\n+[... {before} bytes before]{0}\u{E9}\n",
                "a".repeat(most / 4)
            ),
        ),
        (
            format!("x{}", line("", 0)),
            format!("y{}", line("", 0)),
            format!(
                "-x{0}[... {1} more bytes]\n+y{0}[... {1} more bytes]\n",
                "a".repeat(most - 1),
                3001 - most
            ),
        ),
    ] {
        let found = diff(&format!("{old}\n"), &format!("{new}\n"), DiffCaps::RESULT);
        assert_eq!(found.text, format!("@@ -1 +1 @@\n{expected}"));
        assert_eq!((found.added, found.removed, found.omitted), (1, 1, 0));
    }
}

#[test]
fn applying_a_diff_gives_the_new_text() {
    let mut seed = 7_u64;
    let mut next = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % most
    };
    for _ in 0..500 {
        let mut text = || -> String {
            let count = next(12);
            (0..count)
                .map(|_| ["a\n", "b\n", "c\n", "\u{e9}\n"][next(4) as usize])
                .collect()
        };
        let (old, new) = (text(), text());
        assert_eq!(
            applied(&old, &diff(&old, &new, DiffCaps::RESULT).text),
            new,
            "{old:?} {new:?}"
        );
    }
}

fn applied(old: &str, diff: &str) -> String {
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut at, mut out) = (0, String::new());
    for line in diff.split_inclusive('\n') {
        if let Some(place) = line.strip_prefix("@@ -") {
            let (from, count) = place
                .split_once(' ')
                .unwrap()
                .0
                .split_once(',')
                .unwrap_or((place.split_once(' ').unwrap().0, "1"));
            let from: usize = from.parse().unwrap();
            let from = if count == "0" { from } else { from - 1 };
            while at < from {
                out += lines[at];
                at += 1;
            }
            continue;
        }
        match line.chars().next().unwrap() {
            '-' => at += 1,
            '+' => out += &line[1..],
            _ => {
                out += lines[at];
                at += 1;
            }
        }
    }
    out + &lines[at..].concat()
}

#[test]
fn blank_lines_that_slide_leave_three_lines_of_context() {
    let old = "l1\nl2\nl3\nl4\nl5\nl6\nabb\n\nl9\nl10\nl11\nl12\nl13\n";
    let found = diff(old, &old.replace("\nabb", "\n"), DiffCaps::RESULT).text;
    let after: Vec<&str> = found
        .lines()
        .rev()
        .take_while(|l| l.starts_with(' '))
        .collect();
    assert_eq!(after.len(), 3, "{found}");
    let before = found.lines().skip(1).take_while(|l| l.starts_with(' '));
    assert_eq!(before.count(), 3, "{found}");
}

#[test]
fn shown_hunks_of_a_large_diff_apply() {
    let old: String = (0..400).map(|n| format!("line {n}\n")).collect();
    let every = |step: usize| -> String {
        let line = |n: usize| match n % step {
            0 => format!("new {n}\n"),
            _ => format!("line {n}\n"),
        };
        (0..400).map(line).collect()
    };
    for step in [1, 2, 3, 5, 9] {
        let new = every(step);
        let found = diff(&old, &new, DiffCaps::RESULT);
        let count = |sign| found.text.lines().filter(|l| l.starts_with(sign)).count();
        assert!(
            found.text.lines().count() <= 200 && count('+') > 10,
            "{step}"
        );
        assert_eq!(count('+'), count('-'), "{step}: {}", found.text);
        let changed = found.added + found.removed;
        assert_eq!(found.omitted, changed - 2 * count('+'), "{step}");
        // Each shown line, when applied, equals the new one; all others stay old.
        let half = applied(&old, &found.text);
        assert_eq!(half.lines().count(), 400, "{step}");
        let known = half.lines().zip(old.lines().zip(new.lines()));
        assert!(
            known.into_iter().all(|(l, (o, n))| l == o || l == n),
            "{step}"
        );
        let last = found.text.lines().last().unwrap_or_default();
        assert!(step == 1 || last.starts_with(' '), "{step}: {last}");
        let whole = diff(&old, &new, DiffCaps::WHOLE);
        assert_eq!((applied(&old, &whole.text), whole.omitted), (new, 0));
    }
    let made = diff("", &old, DiffCaps::RESULT);
    assert_eq!((made.text.lines().count(), made.omitted), (200, 201));
    assert!(made.text.starts_with("@@ -0,0 +1,199 @@\n+line 0\n"));
}

#[test]
fn omitted_changes_of_a_long_text_are_counted() {
    let text = |word: &str| -> String {
        let line = |n: usize| format!("{n} {}\n", if n.is_multiple_of(10) { word } else { "same" });
        (0..300_000).map(line).collect()
    };
    let (old, new) = (text("old"), text("new"));
    assert!(old.len() + new.len() > LONG_BYTES);
    let long = diff(&old, &new, DiffCaps::RESULT);
    // The same with lists of all lines.
    let (olds, news) = (lines(&old), lines(&new));
    let mut writer = Writer::new("", &olds, &news, "", DiffCaps::RESULT);
    let mut pending = Vec::new();
    in_order(&olds, &news, &mut |block| writer.take(block, &mut pending));
    writer.hunk(&mut pending);
    assert_eq!(long, writer.finish());
    assert_eq!((long.added, long.removed), (30_000, 30_000));
    // Few changes far apart are all shown.
    let few = old
        .replacen("10 old", "10 new", 1)
        .replacen("290000 old", "290000 new", 1);
    let found = diff(&old, &few, DiffCaps::RESULT);
    assert_eq!((found.added, found.omitted), (2, 0));
}

#[test]
fn changed_lines_are_counted_as_line_by_line() {
    let mut seed = 11_u64;
    let mut next = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % most
    };
    for _ in 0..2000 {
        let mut text = || -> String {
            let lines = (0..6).map(|_| ["a\n", "ab\n", "\n", "b\n"][next(4) as usize]);
            let text: String = lines.collect();
            text[..text.len() - next(2) as usize].repeat(1 + next(2) as usize)
        };
        let (old, new) = (text(), text());
        let lines = old.split_inclusive('\n').zip(new.split_inclusive('\n'));
        let expected = lines.filter(|(a, b)| a != b).count();
        let found = changed_lines(old.as_bytes(), new.as_bytes());
        assert_eq!(found, expected, "{old:?} {new:?}");
    }
}

#[test]
fn omitted_lines_are_counted_exactly() {
    let old = "old line\n".repeat(100_000);
    let new = "new line\n".repeat(100_000);
    let found = diff(&old, &new, DiffCaps::RESULT);
    assert_eq!((found.added, found.removed), (100_000, 100_000));
    let shown = found
        .text
        .lines()
        .filter(|l| l.starts_with(['+', '-']))
        .count();
    assert_eq!(found.omitted, 200_000 - shown);
    assert!(found.text.len() < 20_000);
    let found = diff(&old, &"new line\n".repeat(99_999), DiffCaps::RESULT);
    assert_eq!((found.added, found.removed), (99_999, 100_000));
    let long = diff("x", &"y".repeat(1 << 20), DiffCaps::RESULT);
    assert!(long.text.len() < 2000, "{}", long.text.len());
}
