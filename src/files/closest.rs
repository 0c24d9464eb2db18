//! Finds the passage of a text that comes closest to one that is not there.
//!
//! A model that copied a passage with small errors mends it at once when it sees the real one. The
//! search compares lines by what remains without white space, case, quote style and characters that
//! only look alike, then single lines by shared trigrams. It looks at a bounded part of both texts and visits each line once.

use std::collections::{HashMap, HashSet};

/// A passage of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its first line, from 1.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// Its text; long lines and passages are cut.
    pub text: String,
    /// How it differs from what was asked for, in words.
    pub differences: Vec<String>,
}

/// Bytes of the file that are searched.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// Lines of the text to find that are compared.
const MAX_FIND_LINES: usize = 500;
/// Bytes of one line that are compared.
const MAX_LINE_BYTES: usize = 1000;
/// Lines of a passage that are shown.
const MAX_SHOWN_LINES: usize = 20;
/// Bytes of a line that are shown.
const MAX_SHOWN_BYTES: usize = 200;
/// Differences that are named.
const MAX_DIFFERENCES: usize = 3;

/// Returns the passage of `text` closest to `find`, when one is near enough to be meant.
#[must_use]
pub fn closest(text: &str, find: &str) -> Option<Passage> {
    let text = cut(text, MAX_TEXT_BYTES);
    if text.contains('\r') {
        return with_carriage_returns(text, find);
    }
    closest_line(text, find)
}

/// Does so in a text whose lines, or some of them, end with CR alone.
fn with_carriage_returns(text: &str, find: &str) -> Option<Passage> {
    let mut passage = closest_line(&text.replace("\r\n", "\n").replace('\r', "\n"), find)?;
    let ending = "lines of the file end with CR alone, which is no line end to find: name one line at a time";
    passage.differences.insert(0, ending.into());
    Some(passage)
}

fn closest_line(text: &str, find: &str) -> Option<Passage> {
    let wanted: Vec<&str> = find
        .trim_matches('\n')
        .lines()
        .take(MAX_FIND_LINES)
        .collect();
    let lines: Vec<&str> = text.lines().collect();
    let start = by_equal_lines(&lines, &wanted).or_else(|| by_trigrams(&lines, &wanted))?;
    let found = lines.get(start..lines.len().min(start + wanted.len()))?;
    Some(Passage {
        first_line: start + 1,
        last_line: start + found.len(),
        text: show(found),
        differences: differences(found, &wanted, start + 1),
    })
}

/// Lets every line that equals a wanted one, but for its skeleton, vote for where the passage starts.
fn by_equal_lines(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, line) in wanted.iter().enumerate() {
        places.entry(skeleton(line)).or_insert(index);
    }
    places.remove("");
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        let bones = skeleton(line);
        if let Some(place) = places.get(&bones)
            && let Some(start) = index.checked_sub(*place)
        {
            // A long line says more than a closing brace.
            *votes.entry(start).or_default() += bones.len().min(40);
        }
    }
    let total: usize = places.keys().map(|bones| bones.len().min(40)).sum();
    let (start, score) = votes
        .into_iter()
        .max_by_key(|(start, score)| (*score, std::cmp::Reverse(*start)))?;
    (score * 5 >= total * 2).then_some(start)
}

/// Compares each line with the longest wanted one by the trigrams they share.
fn by_trigrams(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let (place, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim().len())?;
    let goal = trigrams(longest);
    if goal.is_empty() {
        return None;
    }
    let mut best = (0, 0, 0);
    for (index, line) in lines.iter().enumerate() {
        let found = trigrams(line);
        let shared = found.iter().filter(|gram| goal.contains(*gram)).count();
        let score = shared * 1000 / goal.len();
        let nearness = usize::MAX - found.len().abs_diff(goal.len());
        if (score, nearness) > (best.0, best.1) {
            best = (score, nearness, index);
        }
    }
    (best.0 >= 500).then(|| best.2.saturating_sub(place))
}

fn trigrams(line: &str) -> HashSet<[u8; 3]> {
    let bones = skeleton(line);
    bones
        .as_bytes()
        .windows(3)
        .filter_map(|gram| gram.try_into().ok())
        .collect()
}

/// Returns what is left of a line without white space, case, quote style and look-alikes.
fn skeleton(line: &str) -> String {
    let visible = cut(line, MAX_LINE_BYTES).chars().filter(|c| !is_blank(*c));
    visible.map(plain).flat_map(char::to_lowercase).collect()
}

fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || matches!(character, '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}')
}

/// Characters that look like another one, and that one.
const LOOK_ALIKES: &[(&str, &str)] = &[
    (
        "АВЕЅІЈКМНОРСТХУаеѕіјорсухһԁԛԝ",
        "ABESIJKMHOPCTXYaesijopcyxhdqw",
    ),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανρ", "ABEZHIKMNOPTYXoavp"),
    ("ı‚…․⁄∕∗˗；：，。（）！？", "i,..//*-;:,.()!?"),
];

/// Returns the plain spelling of a character that only looks different.
fn plain(character: char) -> char {
    match character {
        c if c.is_ascii() && !matches!(c, '\'' | '`') => c,
        '\'' | '`' | '‘' | '’' | '‛' | '“' | '”' | '„' | '′' | '″' | '＂' | '＇' => {
            '"'
        }
        '–' | '—' | '−' | '‐' | '‑' | '‒' | '―' | '－' => '-',
        '\u{FF01}'..='\u{FF5E}' => {
            char::from_u32(u32::from(character) - 0xFEE0).unwrap_or(character)
        }
        other => {
            let find = |(odd, usual): &(&str, &str)| {
                let place = odd.chars().position(|c| c == other)?;
                usual.chars().nth(place)
            };
            LOOK_ALIKES.iter().find_map(find).unwrap_or(other)
        }
    }
}

fn differences(found: &[&str], wanted: &[&str], first_line: usize) -> Vec<String> {
    let mut words = Vec::new();
    for (index, line) in wanted.iter().enumerate() {
        let number = first_line + index;
        match found.get(index) {
            None => words.push(format!("the file ends before line {number}")),
            Some(there) if there != line => {
                words.push(format!("line {number}: {}", difference(there, line)))
            }
            Some(_) => {}
        }
        if words.len() == MAX_DIFFERENCES {
            break;
        }
    }
    words
}

/// Says how the line in the file differs from the wanted one.
fn difference<'a>(there: &'a str, wanted: &'a str) -> String {
    if there.trim_end() == wanted.trim_end() {
        let tail = |line: &'a str| line.get(line.trim_end().len()..).unwrap_or_default();
        return format!(
            "the file has {} at its end, the text to find {}",
            blanks(tail(there)),
            blanks(tail(wanted))
        );
    }
    if there.trim() == wanted.trim() {
        return format!(
            "the file indents with {}, the text to find with {}",
            indent(there),
            indent(wanted)
        );
    }
    let without_blanks = |text: &str| text.chars().filter(|c| !is_blank(*c)).collect::<String>();
    let (a, b) = (without_blanks(there), without_blanks(wanted));
    if a == b {
        let (a, b) = around_difference(&visible(there), &visible(wanted));
        return format!(
            "white space differs: the file has `{a}` where the text to find has `{b}` (· is a space, → a tab)"
        );
    }
    if a.chars().map(plain).eq(b.chars().map(plain)) {
        return look_alikes(&a, &b);
    }
    if a.to_lowercase() == b.to_lowercase() {
        return "upper and lower case differ".into();
    }
    let (a, b) = around_difference(there, wanted);
    format!("the file has `{a}` where the text to find has `{b}`")
}

/// Names the first pair of characters that look alike and are not the same.
fn look_alikes(there: &str, wanted: &str) -> String {
    let mut pairs = there.chars().zip(wanted.chars());
    let Some((a, b)) = pairs.find(|(a, b)| a != b) else {
        return "characters that look alike differ".into();
    };
    let (code_a, code_b) = (u32::from(a), u32::from(b));
    format!(
        "the file has {a} (U+{code_a:04X}) where the text to find has {b} (U+{code_b:04X}), which only look alike"
    )
}

/// Returns a text with its white space made visible.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in cut(text, MAX_LINE_BYTES).chars() {
        match character {
            ' ' => shown.push('·'),
            '\t' => shown.push('→'),
            c if is_blank(c) => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

fn indent(line: &str) -> String {
    blanks(
        line.get(..line.len() - line.trim_start().len())
            .unwrap_or_default(),
    )
}

/// Says in words what white space is made of.
fn blanks(blanks: &str) -> String {
    let tabs = blanks.chars().filter(|c| *c == '\t').count();
    let spaces = blanks.chars().filter(|c| *c == ' ').count();
    let others = blanks.chars().find(|c| !matches!(c, ' ' | '\t'));
    let mut words = Vec::new();
    if tabs > 0 {
        words.push(counted(tabs, "tab"));
    }
    if spaces > 0 {
        words.push(counted(spaces, "space"));
    }
    if let Some(other) = others {
        words.push(format!("U+{:04X}", u32::from(other)));
    }
    match words.is_empty() {
        true => "nothing".into(),
        false => words.join(" and "),
    }
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Returns both lines from a little before the first character that differs; `[...]` stands where
/// something is left out.
fn around_difference(there: &str, wanted: &str) -> (String, String) {
    let pairs = there.char_indices().zip(wanted.chars());
    let mut same = pairs
        .take_while(|((_, a), b)| a == b)
        .map(|((at, a), _)| at + a.len_utf8());
    let split = same.by_ref().last().unwrap_or(0);
    let from = there
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| at + 20 >= split)
        .unwrap_or(0)
        .min(split);
    let shown = |text: &str| {
        let rest = text.get(from..).unwrap_or(text);
        let part = cut(rest, 60);
        let before = if from > 0 { "[...]" } else { "" };
        let after = if part.len() < rest.len() { "[...]" } else { "" };
        format!("{before}{part}{after}")
    };
    (shown(there), shown(wanted))
}

fn show(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines.iter().take(MAX_SHOWN_LINES) {
        let shown = cut(line, MAX_SHOWN_BYTES);
        text.push_str(shown);
        text.push_str(if shown.len() < line.len() {
            "[...]\n"
        } else {
            "\n"
        });
    }
    if lines.len() > MAX_SHOWN_LINES {
        text.push_str(&format!(
            "[... {} more lines]\n",
            lines.len() - MAX_SHOWN_LINES
        ));
    }
    text
}

/// Returns at most `max` bytes of the start of a text, ending between two characters.
fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn one() {\n    let a = \"x\";\n    call(a, 1);\n}\n\nfn two() {\n\tlet b = 'y';\n\tcall(b, 2);\n}\n";

    fn check(find: &str, expected: Option<(usize, usize, &[&str])>) {
        let found = closest(FILE, find);
        let seen = found
            .as_ref()
            .map(|p| (p.first_line, p.last_line, p.differences.clone()));
        let expected = expected.map(|(first, last, words)| {
            (first, last, words.iter().map(|w| (*w).to_owned()).collect())
        });
        assert_eq!(seen, expected, "{find:?}");
    }

    #[test]
    fn differences_are_named() {
        check(
            "  let a = \"x\";\n  call(a, 1);",
            Some((
                2,
                3,
                &[
                    "line 2: the file indents with 4 spaces, the text to find with 2 spaces",
                    "line 3: the file indents with 4 spaces, the text to find with 2 spaces",
                ],
            )),
        );
        check(
            "    let b = 'y';",
            Some((
                7,
                7,
                &["line 7: the file indents with 1 tab, the text to find with 4 spaces"],
            )),
        );
        check(
            "fn two() { \n\tlet b = 'y';",
            Some((
                6,
                7,
                &["line 6: the file has nothing at its end, the text to find 1 space"],
            )),
        );
    }

    #[test]
    fn other_differences_are_named() {
        check(
            "    let a = “x”;",
            Some((
                2,
                2,
                &[
                    "line 2: the file has \" (U+0022) where the text to find has “ (U+201C), which only look alike",
                ],
            )),
        );
        check(
            "FN one() {",
            Some((1, 1, &["line 1: upper and lower case differ"])),
        );
        check(
            "    call(a,1);",
            Some((
                3,
                3,
                &[
                    "line 3: white space differs: the file has `····call(a,·1);` where the text to find has `····call(a,1);` (· is a space, → a tab)",
                ],
            )),
        );
        check(
            "fn one() {\n    let a = \"z\";\n    call(a, 1);",
            Some((
                1,
                3,
                &[
                    "line 2: the file has `    let a = \"x\";` where the text to find has `    let a = \"z\";`",
                ],
            )),
        );
        check(
            "call(b, 2);\n}\nmore",
            Some((
                8,
                9,
                &[
                    "line 8: the file indents with 1 tab, the text to find with nothing",
                    "the file ends before line 10",
                ],
            )),
        );
    }

    #[test]
    fn nothing_is_close() {
        check("completely different words", None);
        check("}", Some((4, 4, &[])));
        check("", None);
        check("\n\n", None);
        assert_eq!(closest("", "x"), None);
    }

    fn check_difference(there: &str, wanted: &str, expected: &str) {
        assert_eq!(difference(there, wanted), expected, "{there:?} {wanted:?}");
    }

    #[test]
    fn what_cannot_be_seen_is_made_visible() {
        check_difference(
            "a\u{A0}b",
            "a b",
            "white space differs: the file has `a<U+00A0>b` where the text to find has `a·b` (· is a space, → a tab)",
        );
        check_difference(
            "x\t= 1",
            "x = 1",
            "white space differs: the file has `x→=·1` where the text to find has `x·=·1` (· is a space, → a tab)",
        );
        check_difference(
            "a\u{200B}b",
            "ab",
            "white space differs: the file has `a<U+200B>b` where the text to find has `ab` (· is a space, → a tab)",
        );
        check_difference(
            "n\u{430}me",
            "name",
            "the file has \u{430} (U+0430) where the text to find has a (U+0061), which only look alike",
        );
        check_difference(
            "f\u{FF08}x",
            "f(x",
            "the file has \u{FF08} (U+FF08) where the text to find has ( (U+0028), which only look alike",
        );
        check_difference(
            "it\u{2019}s \u{2014}",
            "it's -",
            "the file has \u{2019} (U+2019) where the text to find has ' (U+0027), which only look alike",
        );
    }

    #[test]
    fn lines_that_end_with_cr_alone_are_told() {
        let passage = closest("one\rtwo words\rthree\r", "two words\nthree").unwrap();
        assert_eq!((passage.first_line, passage.last_line), (2, 3));
        assert!(passage.differences[0].contains("CR alone"), "{passage:?}");
    }

    #[test]
    fn a_passage_shows_its_text() {
        let passage = closest(FILE, "fn tvo() {\nlet b = 'y';").unwrap();
        assert_eq!(passage.text, "fn two() {\n\tlet b = 'y';\n");
    }

    #[test]
    fn hostile_texts_stay_cheap() {
        let text = "}\n".repeat(1 << 20);
        let find = format!("{}x", "}\n".repeat(100_000));
        let passage = closest(&text, &find).unwrap();
        assert_eq!((passage.first_line, passage.last_line), (1, 500));
        let long = "ab".repeat(8 << 20);
        assert!(closest(&long, "abababababx").is_some_and(|p| p.text.len() < 300));
    }
}
