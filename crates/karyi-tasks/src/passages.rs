//! Cuts memory into passages: the entries of `memory.md` and the paragraphs of notes.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use karyi_core::{limits, words};

/// Time of a passage: both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PassageTime {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

impl PassageTime {
    /// Returns the whole day, in UTC, that the name of a note begins with.
    pub(crate) fn of_note(name: &str) -> Option<Self> {
        let day: Date = name.get(..10)?.parse().ok()?;
        let start_of = |day: Date| Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp());
        let (start, next) = (start_of(day)?, start_of(day.tomorrow().ok()?)?);
        let end = Timestamp::from_nanosecond(next.as_nanosecond() - 1).ok()?;
        Some(Self { start, end })
    }
}

/// Part of a file that is found as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Text, composed (NFC).
    pub(crate) text: String,
    /// Text as it is compared, if that differs.
    pub(crate) folded: Option<String>,
    /// Time, where it is known.
    pub(crate) time: Option<PassageTime>,
    /// Number of its words.
    pub(crate) words: u32,
}

impl Passage {
    fn new(text: &str, time: Option<PassageTime>) -> Option<Self> {
        let text = words::compose(text.trim()).into_owned();
        let folded = words::fold(&text).into_owned();
        let mut count = 0;
        words::each_word(&text, &mut |_| count += 1);
        (count > 0).then(|| Self {
            folded: (folded != text).then_some(folded),
            text,
            time,
            words: count,
        })
    }

    /// Returns the text as it is compared.
    pub(crate) fn folded(&self) -> &str {
        self.folded.as_deref().unwrap_or(&self.text)
    }
}

/// Writes the line that begins an entry.
pub(crate) fn stamped(text: &str, now: Timestamp) -> String {
    format!("[{now}] {text}\n")
}

/// Reads the beginning of an entry: its time, and the rest of the line.
pub(crate) fn read_stamp(line: &str) -> Option<(Timestamp, &str)> {
    let (stamp, rest) = line.strip_prefix('[')?.split_once(']')?;
    Some((stamp.parse().ok()?, rest))
}

/// Returns the passages of a file of memory; `day` is the time of those that have none of their own.
pub(crate) fn passages(text: &str, day: Option<PassageTime>) -> Vec<Passage> {
    let mut found = Vec::new();
    let mut time = day;
    let mut paragraph = String::new();
    let heading = |number: usize, line: &str| number == 0 && line.starts_with("# ");
    for (number, line) in text.lines().enumerate() {
        let stamp = read_stamp(line);
        if stamp.is_some() || line.trim().is_empty() || heading(number, line) {
            add(&paragraph, time, &mut found);
            paragraph.clear();
        }
        match stamp {
            Some((at, rest)) => {
                time = Some(PassageTime { start: at, end: at });
                paragraph.push_str(rest);
            }
            None if heading(number, line) => {}
            None => paragraph.push_str(line),
        }
        paragraph.push('\n');
    }
    add(&paragraph, time, &mut found);
    found
}

/// Adds a paragraph, in several passages when it is long; each ends between words where that is possible.
fn add(paragraph: &str, time: Option<PassageTime>, found: &mut Vec<Passage>) {
    let mut rest = paragraph.trim();
    while let Some((most, _)) = rest.char_indices().nth(limits::MAX_PASSAGE_CHARS) {
        let head = rest.get(..most).unwrap_or_default();
        let blank = head.rfind(char::is_whitespace).filter(|at| *at > most / 2);
        let (head, tail) = rest.split_at(blank.unwrap_or(most));
        found.extend(Passage::new(head, time));
        rest = tail.trim_start();
    }
    found.extend(Passage::new(rest, time));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_paragraphs_are_passages() {
        let text = "# 2026-01-31\n\n[2026-01-31T09:00:00Z] one\nmore\n\nstill\n[2026-02-01T00:00:00Z] two\n\n---\n";
        let day = PassageTime::of_note("2026-01-31-x.md");
        let found = passages(text, day);
        let shown: Vec<_> = found
            .iter()
            .map(|p| (p.text.as_str(), p.time.unwrap().start.to_string()))
            .collect();
        let first = "2026-01-31T09:00:00Z".to_owned();
        assert_eq!(
            shown,
            [
                ("one\nmore", first.clone()),
                ("still", first),
                ("two", "2026-02-01T00:00:00Z".to_owned())
            ]
        );
        assert_eq!(passages("plain", day)[0].time, day);
        assert_eq!(
            day.unwrap().end.to_string(),
            "2026-01-31T23:59:59.999999999Z"
        );
        assert_eq!(PassageTime::of_note("notes.md"), None);
    }

    #[test]
    fn long_paragraphs_are_cut_between_words() {
        let text = "word ".repeat(450);
        let found = passages(&text, None);
        assert_eq!(found.len(), 3);
        assert!(
            found
                .iter()
                .all(|p| p.text.chars().count() <= 1000 && p.text.starts_with("word"))
        );
        assert_eq!(found.iter().map(|p| p.words).sum::<u32>(), 450);
        assert_eq!(passages(&"部".repeat(2500), None).len(), 3);
    }
}
