//! The text of one TODO file, and its changes in place.
//!
//! Front matter, comments and unknown lines stay as they are; in the front matter the count and the time of the
//! change follow. A comment begins with a line that starts with `<!--` and ends with the line that has `-->`, as in
//! Markdown; what stands in it is no entry.

use std::collections::BTreeSet;
use std::ops::Range;

use jiff::Timestamp;

use super::todo_entry::TodoEntry;

/// One of the two TODO files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TodoKind {
    /// Open entries.
    Open,
    /// Entries that are done.
    Done,
}

impl TodoKind {
    /// Returns the name of the file.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Open => "TODO.md",
            Self::Done => "TODO.DONE.md",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Open => "# TODO Work In Progress (WIP)",
            Self::Done => "# TODO Done",
        }
    }

    /// Returns the key of the front matter that has the number of entries.
    fn count_key(self) -> &'static str {
        match self {
            Self::Open => "open_count:",
            Self::Done => "done_count:",
        }
    }
}

/// Text of a TODO file with the places of its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoFile {
    kind: TodoKind,
    text: String,
    /// Line end of the file.
    line_end: &'static str,
    /// Lines between the two `---` at the start.
    front: Option<Range<usize>>,
    entries: Vec<TodoEntry>,
    /// Line of each entry, its end included.
    lines: Vec<Range<usize>>,
    /// Place of a new entry.
    place: usize,
}

impl TodoFile {
    /// Makes a file without entries.
    #[must_use]
    pub fn new(kind: TodoKind, now: Timestamp) -> Self {
        let (count, title, now) = (kind.count_key(), kind.title(), second(now));
        let front = format!("created_at: \"{now}\"\nupdated_at: \"{now}\"\n{count} 0\n");
        Self::parse(kind, format!("---\n{front}---\n\n{title}\n\n"))
    }

    /// Finds the entries of a text.
    #[must_use]
    pub fn parse(kind: TodoKind, text: String) -> Self {
        let mut scan = Scan::new(&text);
        let lines = text.get(scan.at..).unwrap_or_default();
        lines.split_inclusive('\n').for_each(|line| scan.line(line));
        let first_line = text.split_inclusive('\n').next().unwrap_or_default();
        Self {
            kind,
            line_end: if first_line.ends_with("\r\n") {
                "\r\n"
            } else {
                "\n"
            },
            front: scan.front_end.map(|end| scan.front_start..end),
            place: scan.place,
            entries: scan.entries,
            lines: scan.lines,
            text,
        }
    }

    /// Returns the entries, in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[TodoEntry] {
        &self.entries
    }

    /// Returns the text with an entry added and others, given by their index, removed.
    #[must_use]
    pub fn changed(&self, added: Option<&TodoEntry>, removed: &[usize], now: Timestamp) -> String {
        let removed: BTreeSet<usize> = removed.iter().copied().collect();
        let gone = removed.into_iter();
        let gone: Vec<&Range<usize>> = gone.filter_map(|index| self.lines.get(index)).collect();
        let count = self.entries.len() + usize::from(added.is_some()) - gone.len();
        let mut text = String::with_capacity(self.text.len() + 1024);
        let mut from = 0;
        if let Some(front) = &self.front {
            text.push_str(self.part(0..front.start));
            self.push_front(&mut text, front.clone(), count, now);
            from = front.end;
        }
        if let Some(entry) = added {
            text.push_str(self.part(from..self.place));
            self.push_entry(&mut text, entry);
            from = self.place;
        }
        // A new entry stands in front of all others.
        for line in gone {
            text.push_str(self.part(from..line.start));
            from = line.end;
        }
        text.push_str(self.part(from..self.text.len()));
        text
    }

    fn part(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    fn push_entry(&self, text: &mut String, entry: &TodoEntry) {
        if !matches!(text.chars().next_back(), None | Some('\n' | '\u{feff}')) {
            text.push_str(self.line_end);
        }
        text.push_str(&entry.line());
        text.push_str(self.line_end);
        let rest = self.part(self.place..self.text.len());
        // Text right below a list item would belong to it.
        if self.entries.is_empty() && !rest.is_empty() && !rest.starts_with(['\r', '\n']) {
            text.push_str(self.line_end);
        }
    }

    fn push_front(&self, text: &mut String, front: Range<usize>, count: usize, now: Timestamp) {
        let time = format!("updated_at: \"{}\"", second(now));
        let count_key = self.kind.count_key();
        let mut missing = vec![
            ("updated_at:", time),
            (count_key, format!("{count_key} {count}")),
        ];
        for line in self.part(front).split_inclusive('\n') {
            let known = missing.iter().position(|(key, _)| line.starts_with(key));
            match known {
                Some(at) => {
                    text.push_str(&missing.remove(at).1);
                    text.push_str(self.line_end);
                }
                None => text.push_str(line),
            }
        }
        for (_, line) in missing {
            text.push_str(&line);
            text.push_str(self.line_end);
        }
    }
}

/// Returns a time in the form of the front matter.
fn second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Search for the entries of a text, line by line.
struct Scan {
    /// Start of the next line.
    at: usize,
    front_start: usize,
    front_end: Option<usize>,
    is_front: bool,
    is_comment: bool,
    place: usize,
    /// True while comments, and one blank line below each, move the place of a new entry down.
    is_moving: bool,
    /// True below a blank line.
    is_below_blank: bool,
    has_title: bool,
    entries: Vec<TodoEntry>,
    lines: Vec<Range<usize>>,
}

impl Scan {
    fn new(text: &str) -> Self {
        let mark = text.len() - text.trim_start_matches('\u{feff}').len();
        let first = text
            .get(mark..)
            .and_then(|text| text.split_inclusive('\n').next());
        let front_start = mark + first.map_or(0, str::len);
        let is_end = |line: &str| line.trim_end() == "---";
        let mut at = front_start;
        let mut front_end = None;
        if first.is_some_and(|line| is_end(line) && line.ends_with('\n')) {
            for line in text
                .get(front_start..)
                .unwrap_or_default()
                .split_inclusive('\n')
            {
                if is_end(line) {
                    front_end = Some(at);
                    break;
                }
                at += line.len();
            }
        }
        Self {
            at: mark,
            front_start,
            front_end,
            is_front: front_end.is_some(),
            is_comment: false,
            place: mark,
            is_moving: true,
            is_below_blank: false,
            has_title: false,
            entries: Vec::new(),
            lines: Vec::new(),
        }
    }

    fn line(&mut self, line: &str) {
        let start = self.at;
        self.at += line.len();
        if self.is_front {
            self.is_front = self.front_end.is_none_or(|end| start < end);
            self.place = self.at;
            return;
        }
        let text = line.trim();
        let begins_comment = text.starts_with("<!--");
        if self.is_comment || begins_comment {
            self.is_comment = !text.contains("-->");
            if self.is_moving && !self.is_comment {
                (self.place, self.is_below_blank) = (self.at, false);
            }
            return;
        }
        if let Some(entry) = TodoEntry::parse(line) {
            if self.entries.is_empty() {
                (self.place, self.is_moving) = (start, false);
            }
            self.entries.push(entry);
            self.lines.push(start..self.at);
            return;
        }
        let is_title = text.starts_with("# ") && !self.has_title && self.entries.is_empty();
        if is_title {
            (self.has_title, self.is_moving) = (true, true);
        } else if !text.is_empty() {
            self.is_moving = false;
        }
        if self.is_moving && !(text.is_empty() && self.is_below_blank) {
            self.place = self.at;
        }
        self.is_below_blank = text.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRONT: &str = "---\ncreated_at: \"2026-01-01T00:00:00Z\"\nupdated_at: \"2026-01-01T00:00:00Z\"\nopen_count: 9\n---\n";
    const NEW_FRONT: &str = "---\ncreated_at: \"2026-01-01T00:00:00Z\"\nupdated_at: \"2026-02-03T08:30:15Z\"\nopen_count: N\n---\n";

    fn now() -> Timestamp {
        "2026-02-03T08:30:15Z".parse().unwrap()
    }

    fn entry(content: &str) -> TodoEntry {
        TodoEntry {
            created_at: "2026-02-03 08:30".to_owned(),
            done_at: None,
            chat_id: None,
            content: content.to_owned(),
        }
    }

    /// Adds `new` to a text whose entries are `A`, `B` ..., and removes those of the indexes. In the texts a letter
    /// with a colon is its entry.
    #[track_caller]
    fn check(text: &str, removed: &[usize], expected: &str) {
        let letters = regex::Regex::new("(?m)^([A-Z]|new):").unwrap();
        let spelled = |text: &str| {
            let line = |found: &regex::Captures<'_>| entry(&found[1]).line();
            letters.replace_all(text, line).into_owned()
        };
        let file = TodoFile::parse(TodoKind::Open, spelled(text));
        let count = file.entries().len() + 1 - removed.len();
        let expected = spelled(expected).replace("N\n---", &format!("{count}\n---"));
        let changed = file.changed(Some(&entry("new")), removed, now());
        assert_eq!(changed, expected, "{text}");
        let again = TodoFile::parse(TodoKind::Open, changed);
        assert_eq!(again.entries().len(), count, "{text}");
        assert_eq!(again.entries()[0], entry("new"), "{text}");
    }

    #[test]
    fn a_new_entry_stands_in_front_of_the_others() {
        check("A:\nB:\n", &[], "new:\nA:\nB:\n");
        check("# T\n\nA:\nB:", &[1], "# T\n\nnew:\nA:\n");
        check("# T\nA:\nnote\nB:\nC:\n", &[2, 0], "# T\nnew:\nnote\nB:\n");
        check(
            "text\n\n# T\nmore\nA:\n",
            &[],
            "text\n\n# T\nmore\nnew:\nA:\n",
        );
    }

    #[test]
    fn without_entries_it_stands_below_the_title_and_its_comments() {
        check("", &[], "new:\n");
        check("# T", &[], "# T\nnew:\n");
        check("# T\n\n", &[], "# T\n\nnew:\n");
        check(
            "# T\n\n<!--\nA:\n-->\n\n",
            &[],
            "# T\n\n<!--\nA:\n-->\n\nnew:\n",
        );
        check("# T\n\ntext\n", &[], "# T\n\nnew:\n\ntext\n");
        check("text\n", &[], "new:\n\ntext\n");
        check("# T\n\n\n## U\n", &[], "# T\n\nnew:\n\n## U\n");
        check(
            "# T\n\n\n<!-- x -->\n\n\n",
            &[],
            "# T\n\n\n<!-- x -->\n\nnew:\n\n",
        );
        check("text\n\n# T\n## U\n", &[], "text\n\n# T\nnew:\n\n## U\n");
    }

    #[test]
    fn comments_hold_no_entries() {
        check(
            "<!-- A:\nA:\n-->\nB:\n",
            &[],
            "<!-- A:\nA:\n-->\nnew:\nB:\n",
        );
        check("A:\n<!-- x -->\nB:\n", &[1], "new:\nA:\n<!-- x -->\n");
        check(
            "# T\n\n<!--\nA:\nB:\n",
            &[],
            "# T\n\nnew:\n\n<!--\nA:\nB:\n",
        );
        check("A:\n<!--\nB:\n", &[0], "new:\n<!--\nB:\n");
        let text = format!("{}\n{}\n", entry("<!-- a").line(), entry("b").line());
        assert_eq!(TodoFile::parse(TodoKind::Open, text).entries().len(), 2);
    }

    #[test]
    fn the_front_matter_follows() {
        check(
            &format!("{FRONT}A:\n"),
            &[],
            &format!("{NEW_FRONT}new:\nA:\n"),
        );
        check(
            &format!("\u{feff}{FRONT}\n# T\n"),
            &[],
            &format!("\u{feff}{NEW_FRONT}\n# T\nnew:\n"),
        );
        let added = "updated_at: \"2026-02-03T08:30:15Z\"\nopen_count: 1\n";
        check(
            "---\nname: x\n---\n",
            &[],
            &format!("---\nname: x\n{added}---\nnew:\n"),
        );
        check("---\n---\nA:\n", &[0], &format!("---\n{added}---\nnew:\n"));
        check(
            "---\nopen_count: 1\nA:\n",
            &[],
            "---\nopen_count: 1\nnew:\nA:\n",
        );
        check("---", &[], "new:\n\n---");
    }

    #[test]
    fn line_ends_and_marks_are_kept() {
        let text = format!(
            "\u{feff}---\r\nopen_count: 1\r\n---\r\n{}\r\n",
            entry("a").line()
        );
        let file = TodoFile::parse(TodoKind::Open, text);
        let expected = format!(
            "\u{feff}---\r\nopen_count: 1\r\nupdated_at: \"2026-02-03T08:30:15Z\"\r\n---\r\n{}\r\n",
            entry("b").line()
        );
        assert_eq!(file.changed(Some(&entry("b")), &[0], now()), expected);
        let marked = format!("\u{feff}{}\n", entry("a").line());
        let file = TodoFile::parse(TodoKind::Open, marked);
        assert_eq!(file.changed(None, &[0], now()), "\u{feff}");
    }

    #[test]
    fn a_new_file_is_as_others_write_it() {
        let text = TodoFile::new(TodoKind::Done, now()).changed(None, &[], now());
        let expected = "---\ncreated_at: \"2026-02-03T08:30:15Z\"\nupdated_at: \"2026-02-03T08:30:15Z\"\n\
            done_count: 0\n---\n\n# TODO Done\n\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn large_files_are_read_line_by_line() {
        let line = format!("{}\n", entry(&"x".repeat(1_000)).line());
        let text = format!("{}<!--\n{}", line.repeat(10_000), "open\n".repeat(100_000));
        let file = TodoFile::parse(TodoKind::Open, text.clone());
        assert_eq!(file.entries().len(), 10_000);
        let expected = format!("{}\n{text}", entry("new").line());
        assert!(file.changed(Some(&entry("new")), &[], now()) == expected);
    }
}
