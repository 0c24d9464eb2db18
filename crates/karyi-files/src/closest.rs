//! Finds the passage of a text that is closest to a text that was not found.
//!
//! A model that copied a passage with small errors corrects it at once when it sees the real one. The search
//! tries the same skeleton first, then a passage in which most lines have equal skeletons, then a single line
//! with shared trigrams. It compares a bounded prefix of both texts and visits each line once.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::document::count_breaks;
use super::skeleton::{self, is_blank, skeleton};
use karyi_core::limits;
use look_alikes::LookAlikes;

mod look_alikes;

/// Passage of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// First line, from 1.
    pub first_line: usize,
    /// Last line.
    pub last_line: usize,
    /// Text of the passage; long lines and passages are cut.
    pub text: String,
    /// Differences from the text to find, as phrases.
    pub differences: Vec<String>,
}

/// Compared lines of the text to find.
const MAX_FIND_LINES: usize = 500;
/// Compared bytes of one line.
const MAX_LINE_BYTES: usize = 1000;
/// Shown lines of a passage.
const MAX_SHOWN_LINES: usize = 20;
/// Shown bytes per line of a passage with many lines; short passages get more.
const MAX_SHOWN_BYTES: usize = 200;
/// Quoted bytes of a line that only one side has.
const MAX_QUOTED_BYTES: usize = 60;
/// Non-blank bytes from which a line is unlikely to occur in many places.
const SIGNIFICANT_BYTES: usize = 8;
/// Length of the grams that lines are compared by.
const TRIGRAM: usize = 3;
/// Length of the grams for short lines.
const BIGRAM: usize = 2;
/// Non-blank bytes up to which a line is short.
const SHORT_BYTES: usize = 6;
/// Lines by which the parts of a passage may be shifted.
const MAX_SHIFT: usize = 8;
/// Listed differences.
const MAX_DIFFERENCES: usize = 3;

/// Returns the passage of `text` closest to `find`, if one is near enough to be meant.
#[must_use]
pub fn closest(text: &str, find: &str) -> Option<Passage> {
    let text = searched(text);
    if text.contains('\r') {
        return with_carriage_returns(text, find);
    }
    closest_line(text, find)
}

/// Returns how many lines of a text [`closest`] searches; `None` when it searches all of it.
#[must_use]
pub fn searched_lines(text: &str) -> Option<usize> {
    let part = searched(text);
    (part.len() < text.len()).then(|| part.lines().count())
}

/// Returns the prefix of a text that is searched.
fn searched(text: &str) -> &str {
    let part = cut(text, limits::CLOSEST_TEXT_BYTES);
    let mut breaks = memchr::memchr_iter(b'\n', part.as_bytes());
    let last = breaks.nth(limits::CLOSEST_TEXT_LINES - 1);
    last.and_then(|at| part.get(..=at)).unwrap_or(part)
}

/// Similarity of two texts, the nearest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    /// Nothing is near enough to be meant.
    Far,
    /// One line shares this share of its trigrams, in thousandths.
    Trigrams(usize),
    /// Equal lines have this total weight.
    Lines(usize),
    /// The skeletons are equal.
    Skeleton,
}

/// Tells whether the replacements themselves are the closest match of `find`: without them no place is as
/// near. Also true when nothing is near.
pub(super) fn is_nearest(text: &str, find: &str, replacement: &str) -> bool {
    let (text, find) = (searched(text), find.trim_matches('\n'));
    match nearness(text, find) {
        Nearness::Far => true,
        nearest => nearness(&text.replace(replacement, "\n"), find) < nearest,
    }
}

fn nearness(text: &str, find: &str) -> Nearness {
    if skeleton::is_found(text, find) {
        return Nearness::Skeleton;
    }
    let wanted: Vec<&str> = find.lines().take(MAX_FIND_LINES).collect();
    let lines: Vec<&str> = text.lines().collect();
    let by_lines = by_equal_lines(&lines, &wanted).map(|(score, _)| Nearness::Lines(score));
    by_lines
        .or_else(|| by_grams(&lines, &wanted, TRIGRAM).map(|(score, _)| Nearness::Trigrams(score)))
        .unwrap_or(Nearness::Far)
}

/// Searches a text in which some lines end with CR alone.
fn with_carriage_returns(text: &str, find: &str) -> Option<Passage> {
    let mut passage = closest_line(&text.replace("\r\n", "\n").replace('\r', "\n"), find)?;
    let ending =
        "lines of the file end with CR alone, which no line break matches: find one line at a time";
    passage.differences.insert(0, ending.into());
    Some(passage)
}

fn closest_line(text: &str, find: &str) -> Option<Passage> {
    let mut passage = closest_trimmed(text, find.trim_matches('\n'))?;
    if passage.differences.is_empty() {
        passage.differences.extend(ends_of(find));
    }
    Some(passage)
}

/// Describes extra line breaks around a text to find whose lines all match.
fn ends_of(find: &str) -> Option<String> {
    let lines = find.trim_matches('\n');
    let before = find.len() - find.trim_start_matches('\n').len();
    let after = (find.len() - before - lines.len()).saturating_sub(1);
    let blank = |count| counted(count, "blank line");
    let has = match (before, after) {
        (0, 0) if find.ends_with('\n') => "a line break at its end".to_owned(),
        (0, 0) => return None,
        (0, after) => format!("{} at its end", blank(after)),
        (before, 0) => format!("{} at its start", blank(before)),
        (before, after) => format!(
            "{} at its start and {} at its end",
            blank(before),
            blank(after)
        ),
    };
    Some(format!(
        "the text to find has {has} that the file does not have there"
    ))
}

/// Searches for a text without blank lines around it.
fn closest_trimmed(text: &str, find: &str) -> Option<Passage> {
    if let Some(place) = skeleton::find(text, find) {
        return Some(at(text, place, find));
    }
    let wanted: Vec<&str> = find.lines().take(MAX_FIND_LINES).collect();
    if let Some(plain) = without_numbers(&wanted)
        && let Some(place) = skeleton::find(text, &plain)
    {
        let mut passage = at(text, place, &plain);
        let numbers = "the text to find has line numbers, which the file does not have";
        passage.differences.insert(0, numbers.into());
        return Some(passage);
    }
    let lines: Vec<&str> = text.lines().collect();
    let (_, place) = by_equal_lines(&lines, &wanted)
        .or_else(|| by_grams(&lines, &wanted, TRIGRAM))
        .or_else(|| by_grams(&lines, &wanted, BIGRAM))?;
    let found = lines.get(place.clone())?;
    Some(Passage {
        first_line: place.start + 1,
        last_line: place.end,
        text: show(found),
        differences: differences(found, &wanted, place.start + 1),
    })
}

/// Returns the passage at a place with an equal skeleton.
fn at(text: &str, place: Range<usize>, find: &str) -> Passage {
    let before = text.get(..place.start).unwrap_or_default();
    let first_line = 1 + count_breaks(before);
    let found: Vec<&str> = text.get(place).unwrap_or_default().lines().collect();
    let wanted: Vec<&str> = find.lines().collect();
    Passage {
        first_line,
        last_line: first_line + found.len().max(1) - 1,
        text: show(&found),
        differences: match found.len() == wanted.len() {
            true => differences(compared(&found), compared(&wanted), first_line),
            false => broken_elsewhere(&found, &wanted),
        },
    }
}

/// Describes two passages that break their lines at different places.
fn broken_elsewhere(found: &[&str], wanted: &[&str]) -> Vec<String> {
    let mut words = vec![format!(
        "it breaks its lines elsewhere: the file has {}, the text to find {}",
        counted(found.len(), "line"),
        counted(wanted.len(), "line")
    )];
    let is_escaped = |lines: &[&str]| lines.iter().any(|line| line.contains("\\n"));
    match (is_escaped(found), is_escaped(wanted)) {
        (true, false) => {
            words.push("the file has `\\n` where the text to find breaks the line".into())
        }
        (false, true) => {
            words.push("the text to find has `\\n` where the file breaks the line".into())
        }
        (true, true) | (false, false) => {}
    }
    words
}

/// Returns the prefix that is compared line by line, which takes quadratic time.
fn compared<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    lines.get(..MAX_FIND_LINES).unwrap_or(lines)
}

/// Removes line numbers when every line starts with one.
fn without_numbers(wanted: &[&str]) -> Option<String> {
    let mut lines = Vec::with_capacity(wanted.len());
    for line in wanted {
        let rest = line
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit());
        let has_number = rest.len() < line.trim_start().len();
        let after = rest
            .strip_prefix(['\t', ':', '|', '→'])
            .or_else(|| rest.strip_prefix("  "));
        match (has_number, after) {
            (true, Some(after)) => lines.push(after),
            (true, None) if rest.trim().is_empty() => lines.push(""),
            (true, None) | (false, _) => return None,
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Votes for one line as the start of the passage.
#[derive(Clone, Copy, Default)]
struct Vote {
    score: u32,
    /// First and last matching line that is unlikely to occur elsewhere.
    significant: Option<(u16, u16)>,
}

/// Lets every line with the skeleton of a wanted line vote for a start of the passage. Around an inserted or
/// missing line the two parts vote for neighbouring starts. Returns the weight of the matching lines and the
/// passage.
fn by_equal_lines(lines: &[&str], wanted: &[&str]) -> Option<(usize, Range<usize>)> {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, line) in wanted.iter().enumerate() {
        places.entry(skeleton_of(line)).or_insert(index);
    }
    places.remove("");
    let votes = votes(lines, &places);
    let total: usize = places.keys().map(|bones| weight(bones)).sum();
    let (best, vote) = votes
        .iter()
        .enumerate()
        .max_by_key(|(start, vote)| (vote.score, std::cmp::Reverse(*start)))?;
    let near = best.saturating_sub(MAX_SHIFT)..(best + MAX_SHIFT + 1).min(votes.len());
    let parts = || {
        let near = near
            .clone()
            .zip(votes.get(near.clone()).unwrap_or_default());
        near.filter_map(|(start, vote)| {
            vote.significant
                .map(|significant| (start, vote.score, significant))
        })
    };
    let sum: u32 = parts().map(|(_, score, _)| score).sum();
    let score = sum.max(vote.score) as usize;
    if score == 0 || score * 5 < total * 2 {
        return None;
    }
    let head = parts().min_by_key(|(start, _, (first, _))| (*first, start.abs_diff(best)));
    let tail =
        parts().max_by_key(|(start, _, (_, last))| (*last, usize::MAX - start.abs_diff(best)));
    let start = head.map_or(best, |part| part.0).min(lines.len() - 1);
    let end = tail.map_or(best, |part| part.0) + wanted.len();
    Some((score, start..end.clamp(start + 1, lines.len())))
}

/// Returns the votes for each line.
fn votes(lines: &[&str], places: &HashMap<String, usize>) -> Vec<Vote> {
    let mut votes = vec![Vote::default(); lines.len()];
    for (index, line) in lines.iter().enumerate() {
        let bones = skeleton_of(line);
        let place = places.get(&bones).copied();
        let start = place.and_then(|place| index.checked_sub(place));
        if let Some((place, vote)) = place.zip(start.and_then(|start| votes.get_mut(start))) {
            vote.score += u32::try_from(weight(&bones)).unwrap_or(0);
            if bones.len() >= SIGNIFICANT_BYTES {
                let place = u16::try_from(place).unwrap_or(u16::MAX);
                let (first, last) = vote.significant.unwrap_or((place, place));
                vote.significant = Some((first.min(place), last.max(place)));
            }
        }
    }
    votes
}

/// Returns how significant a line is: a long line more than a closing brace.
fn weight(bones: &str) -> usize {
    bones.len().min(40)
}

/// Compares each line with the longest wanted line by shared grams. Returns the best score in thousandths and
/// the passage. Bigrams only serve short lines; elsewhere they match too much.
fn by_grams(lines: &[&str], wanted: &[&str], length: usize) -> Option<(usize, Range<usize>)> {
    let (place, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim().len())?;
    let bones = skeleton_of(longest);
    let goal = grams(&bones, length);
    if goal.is_empty() || length < TRIGRAM && bones.len() > SHORT_BYTES {
        return None;
    }
    let mut best = (0, 0, 0);
    for (index, line) in lines.iter().enumerate() {
        let bones = skeleton_of(line);
        let found = grams(&bones, length);
        let shared = found.iter().filter(|gram| goal.binary_search(gram).is_ok());
        let score = shared.count() * 1000 / goal.len();
        let nearness = usize::MAX - found.len().abs_diff(goal.len());
        if (score, nearness) > (best.0, best.1) {
            best = (score, nearness, index);
        }
    }
    let start = best.2.saturating_sub(place);
    (best.0 >= 500).then(|| (best.0, start..lines.len().min(start + wanted.len())))
}

/// Returns the distinct grams of a skeleton, sorted.
fn grams(bones: &str, length: usize) -> Vec<&[u8]> {
    let mut grams: Vec<&[u8]> = bones.as_bytes().windows(length).collect();
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// Returns the skeleton of a line, of which only a prefix is read.
fn skeleton_of(line: &str) -> String {
    skeleton(cut(line, MAX_LINE_BYTES))
}

fn differences(found: &[&str], wanted: &[&str], first_line: usize) -> Vec<String> {
    let (old, new): (Vec<String>, Vec<String>) = (
        wanted.iter().map(|line| skeleton_of(line)).collect(),
        found.iter().map(|line| skeleton_of(line)).collect(),
    );
    let (mut words, mut look_alikes) = (Vec::new(), LookAlikes::default());
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        let (old, new) = (op.old_range(), op.new_range());
        let both = old.len().min(new.len());
        for (wanted, number) in wanted.iter().skip(old.start).zip(new.clone()).take(both) {
            let there = found.get(number).copied().unwrap_or_default();
            if there == *wanted {
                continue;
            }
            let description = look_alikes.describe(there, wanted);
            let description = description.unwrap_or_else(|| difference(there, wanted));
            if !description.is_empty() {
                words.push(format!("line {}: {description}", first_line + number));
            }
        }
        let more = |line: Option<&&str>| {
            cut(line.map_or("", |line| line.trim()), MAX_QUOTED_BYTES).to_owned()
        };
        if !matches!(op, DiffOp::Equal { .. }) && new.len() > both {
            let (count, line) = (
                counted(new.len() - both, "line"),
                first_line + new.start + both,
            );
            let text = more(found.get(new.start + both));
            words.push(format!(
                "the file has {count} more at line {line}: `{text}`"
            ));
        } else if old.len() > both {
            let (count, text) = (
                counted(old.len() - both, "line"),
                more(wanted.get(old.start + both)),
            );
            words.push(format!(
                "the text to find has {count} that the file does not have there: `{text}`"
            ));
        }
        if words.len() >= MAX_DIFFERENCES {
            break;
        }
    }
    words.truncate(MAX_DIFFERENCES);
    words.extend(look_alikes.more());
    words
}

/// Describes how a line of the file differs from the wanted line.
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
    if a.to_lowercase() == b.to_lowercase() {
        return "upper and lower case differ".into();
    }
    let (a, b) = around_difference(there, wanted);
    format!(
        "the file has `{a}` where the text to find has `{b}`{}",
        codes(there, wanted)
    )
}

/// Returns the code points of the first differing characters when they may look the same.
fn codes(there: &str, wanted: &str) -> String {
    let code = |c: Option<char>| c.map_or("nothing".into(), |c| format!("U+{:04X}", u32::from(c)));
    let (mut a, mut b) = (there.chars(), wanted.chars());
    loop {
        match (a.next(), b.next()) {
            (a, b) if a == b && a.is_some() => {}
            (a, b) if a.is_some_and(|c| !c.is_ascii()) || b.is_some_and(|c| !c.is_ascii()) => {
                return format!(" ({} and {})", code(a), code(b));
            }
            _ => return String::new(),
        }
    }
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

/// Describes white space in words.
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

/// Returns an excerpt of both lines that starts shortly before the first difference; `[...]` marks omissions.
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
    let most = MAX_SHOWN_BYTES * MAX_SHOWN_LINES / lines.len().clamp(1, MAX_SHOWN_LINES);
    for line in lines.iter().take(MAX_SHOWN_LINES) {
        let shown = cut(line, most);
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

/// Returns at most `max` bytes of the start of a text, cut at a character boundary.
fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

#[cfg(test)]
mod tests;
