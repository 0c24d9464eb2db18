//! Search in memory by BM25 (k1 1.2, b 0.75).
//!
//! Passages are held as text and scanned for the words of a query: a pair of characters of a script without spaces is a
//! word wherever both stand together, so scanning finds what an index of words would, in a third of its memory.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::Timestamp;
use karyi_core::error::ToolError;
use karyi_core::{limits, words};
use memchr::memmem::Finder;

use crate::passages::{Passage, PassageTime, passages};
use crate::state_folder::{FileTime, ReadFailure, StateFolder};

/// Name of the file with long-term memory.
pub(crate) const LONG_TERM: &str = "memory.md";
/// Directory of notes.
pub(crate) const NOTES: &str = "memory";

/// Weight of repetitions.
const K1: f64 = 1.2;
/// Weight of the length of a passage.
const B: f64 = 0.75;

/// Passage that matches a query.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryHit {
    /// Path of the file in the state directory.
    pub source: String,
    /// At most 300 characters around the best match; `…` marks a cut.
    pub content: String,
    /// BM25 score.
    pub score: f64,
}

/// Checked query.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryQuery {
    pub(crate) text: String,
    pub(crate) after: Option<Timestamp>,
    pub(crate) before: Option<Timestamp>,
    pub(crate) limit: usize,
}

/// Passages of every file, as they were when it was read last.
#[derive(Debug, Default)]
pub(crate) struct MemoryIndex {
    files: BTreeMap<String, IndexedFile>,
}

#[derive(Debug)]
struct IndexedFile {
    time: FileTime,
    passages: Vec<Passage>,
}

/// Word of a query.
struct QueryTerm {
    text: String,
    /// True if letters or digits beside it make it another word.
    has_borders: bool,
    weight: f64,
    /// Number of a passage, and how often the word is in it.
    counts: Vec<(usize, u32)>,
}

impl MemoryIndex {
    /// Reads the files that changed.
    ///
    /// # Errors
    /// The system fails.
    pub(crate) fn refresh(
        &mut self,
        root: &StateFolder,
        notes: &StateFolder,
    ) -> Result<(), ToolError> {
        let mut gone = std::mem::take(&mut self.files);
        self.file(root, LONG_TERM, LONG_TERM.to_owned(), &mut gone)?;
        notes.each_entry(&mut |name, _| match name.ends_with(".md") {
            true => self.file(notes, name, format!("{NOTES}/{name}"), &mut gone),
            false => Ok(()),
        })
    }

    fn file(
        &mut self,
        folder: &StateFolder,
        name: &str,
        path: String,
        known: &mut BTreeMap<String, IndexedFile>,
    ) -> Result<(), ToolError> {
        let known = known.remove(&path);
        if let Some(known) = known.filter(|known| folder.time_of(name) == Some(known.time)) {
            self.files.insert(path, known);
            return Ok(());
        }
        match folder.read(name, limits::MAX_MEMORY_FILE_BYTES) {
            Ok((bytes, time)) => {
                let text = String::from_utf8_lossy(&bytes);
                let passages = passages(&text, PassageTime::of_note(name));
                self.files.insert(path, IndexedFile { time, passages });
                Ok(())
            }
            // What cannot be read is not searched.
            Err(ReadFailure::Missing | ReadFailure::Foreign(_)) => Ok(()),
            Err(failure) => Err(folder.failure(name, failure)),
        }
    }

    /// Returns the best passages, the best one first; of equal ones the newer, then by path.
    pub(crate) fn search(&self, query: &MemoryQuery) -> Vec<MemoryHit> {
        let all = self.files.iter();
        let all = all.flat_map(|(path, file)| file.passages.iter().map(move |one| (path, one)));
        let all: Vec<(&String, &Passage)> = all.collect();
        let mut terms = terms(&query.text);
        for term in &mut terms {
            term.count(&all);
        }
        let words = all.iter().map(|(_, passage)| f64::from(passage.words));
        let average = words.sum::<f64>() / all.len().max(1) as f64;
        let mut scores = vec![0.0; all.len()];
        for term in &terms {
            for (number, count) in &term.counts {
                let Some((score, (_, passage))) = scores.get_mut(*number).zip(all.get(*number))
                else {
                    continue;
                };
                let count = f64::from(*count);
                let norm = K1 * (1.0 - B + B * f64::from(passage.words) / average);
                *score += term.weight * count * (K1 + 1.0) / (count + norm);
            }
        }
        let ranked = scores.into_iter().zip(&all);
        let ranked = ranked.filter(|(score, (_, one))| *score > 0.0 && is_in_time(one, query));
        let ranked = ranked.map(|(score, (path, passage))| (score, *path, *passage));
        let mut ranked: Vec<RankedPassage<'_>> = ranked.collect();
        if query.limit < ranked.len() {
            ranked.select_nth_unstable_by(query.limit, by_rank);
            ranked.truncate(query.limit);
        }
        ranked.sort_by(by_rank);
        let hit = |(score, path, passage): RankedPassage<'_>| MemoryHit {
            source: path.clone(),
            content: snippet(passage, &terms),
            score,
        };
        ranked.into_iter().map(hit).collect()
    }
}

/// Score, path and passage.
type RankedPassage<'a> = (f64, &'a String, &'a Passage);

/// Compares two passages: by score, then the newer one, then by path.
fn by_rank(one: &RankedPassage<'_>, other: &RankedPassage<'_>) -> Ordering {
    let start = |passage: &Passage| passage.time.map(|time| time.start);
    let by_score = other.0.total_cmp(&one.0);
    let by_time = by_score.then_with(|| start(other.2).cmp(&start(one.2)));
    by_time.then_with(|| one.1.cmp(other.1))
}

/// Tells whether a passage is of the time of a query. One without a time is only of a query without one.
fn is_in_time(passage: &Passage, query: &MemoryQuery) -> bool {
    match passage.time {
        Some(time) => {
            query.after.is_none_or(|after| time.end >= after)
                && query.before.is_none_or(|before| time.start <= before)
        }
        None => query.after.is_none() && query.before.is_none(),
    }
}

/// Returns the different words of a query.
fn terms(text: &str) -> Vec<QueryTerm> {
    let mut terms: Vec<QueryTerm> = Vec::new();
    words::each_word(text, &mut |word| {
        let is_new = terms.iter().all(|term| term.text != word.text);
        if is_new && terms.len() < limits::MAX_QUERY_WORDS {
            terms.push(QueryTerm {
                text: word.text.to_owned(),
                has_borders: !word.is_pair && !word.is_single,
                weight: 0.0,
                counts: Vec::new(),
            });
        }
    });
    terms
}

impl QueryTerm {
    /// Counts the word in every passage and sets its weight.
    fn count(&mut self, all: &[(&String, &Passage)]) {
        let finder = Finder::new(&self.text);
        for (number, (_, passage)) in all.iter().enumerate() {
            let count = places(&finder, passage.folded(), self.has_borders).count();
            if count > 0 {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                self.counts.push((number, count));
            }
        }
        let (all, with) = (all.len() as f64, self.counts.len() as f64);
        self.weight = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
    }
}

/// Returns the places of a word.
fn places<'a>(
    finder: &'a Finder<'_>,
    text: &'a str,
    has_borders: bool,
) -> impl Iterator<Item = usize> + 'a {
    let needle = finder.needle();
    // Two equal characters are a pair at each of three.
    let (one, other) = needle.split_at(needle.len() / 2);
    let step = match one == other {
        true => one.len(),
        false => needle.len(),
    };
    let mut from = 0;
    let next = move || {
        let at = from + finder.find(text.as_bytes().get(from..)?)?;
        from = at + step;
        Some(at)
    };
    std::iter::from_fn(next).filter(move |at| {
        if !has_borders {
            return true;
        }
        let before = text.get(..*at).and_then(|text| text.chars().next_back());
        let after = text.get(at + needle.len()..);
        let after = after.and_then(|text| text.chars().next());
        ![before, after].into_iter().flatten().any(words::is_word)
    })
}

/// Returns the part of a passage around the first place of its rarest word.
fn snippet(passage: &Passage, terms: &[QueryTerm]) -> String {
    let place = |term: &QueryTerm| {
        let finder = Finder::new(&term.text);
        let first = places(&finder, passage.folded(), term.has_borders).next();
        first.map(|at| (term.weight, at, term.text.len()))
    };
    let found = terms.iter().filter_map(place);
    let best = found.max_by(|one, other| one.0.total_cmp(&other.0));
    let (_, at, length) = best.unwrap_or_default();
    // The characters before the match: lower case may have another length.
    let mut folded = 0;
    let is_before = |sign: &char| {
        let before = folded < at;
        folded += sign.to_lowercase().map(char::len_utf8).sum::<usize>();
        before
    };
    let start = passage.text.chars().take_while(is_before).count();
    let matched = passage.folded().get(at..at + length);
    let matched = matched.map_or(0, |text| text.chars().count());
    let total = passage.text.chars().count();
    if total <= limits::MAX_SNIPPET_CHARS {
        return passage.text.clone();
    }
    // Both ends have room for the sign of a cut.
    let most = limits::MAX_SNIPPET_CHARS - 2;
    let margin = most.saturating_sub(matched) / 2;
    let first = start.saturating_sub(margin).min(total - most);
    let kept = passage.text.chars().skip(first).take(most);
    let cut = |is_cut: bool| is_cut.then_some('…');
    cut(first > 0)
        .into_iter()
        .chain(kept)
        .chain(cut(first + most < total))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[&str]) -> MemoryIndex {
        let temp = tempfile::tempdir().unwrap();
        let root = StateFolder::open(temp.path()).unwrap();
        let notes = root.child(NOTES).unwrap();
        for (number, text) in texts.iter().enumerate() {
            std::fs::write(
                temp.path()
                    .join(format!("memory/2026-01-0{}-n.md", number + 1)),
                text,
            )
            .unwrap();
        }
        let mut index = MemoryIndex::default();
        index.refresh(&root, &notes).unwrap();
        index
    }

    fn search(index: &MemoryIndex, text: &str) -> Vec<(String, f64)> {
        let query = MemoryQuery {
            text: text.into(),
            limit: 5,
            ..MemoryQuery::default()
        };
        let hits = index.search(&query);
        hits.into_iter()
            .map(|hit| (hit.source, hit.score))
            .collect()
    }

    /// The four notes of the specification.
    const NOTES_OF_SPECIFICATION: [&str; 4] = [
        "上次部署使用了云函数，遇到了超时问题",
        "用户偏好使用 pnpm 而非 npm",
        "今天天气很好",
        "Deploy TIMEOUT in Production",
    ];

    #[test]
    fn scores_are_those_of_the_specification() {
        let index = index(&NOTES_OF_SPECIFICATION);
        let check = |text: &str, expected: &[(usize, f64)]| {
            let found = search(&index, text);
            assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
            for ((source, score), (note, wanted)) in found.iter().zip(expected) {
                assert_eq!(*source, format!("memory/2026-01-0{note}-n.md"), "{text}");
                assert!((score - wanted).abs() < 0.001, "{text}: {score}");
            }
        };
        check("部署超时", &[(1, 1.7732)]);
        check("超时", &[(1, 0.8866)]);
        check("timeout", &[(4, 1.5136)]);
        check("pnpm", &[(2, 1.2040)]);
        check("pnpm 偏好", &[(2, 2.4079)]);
        check("天气", &[(3, 1.4221)]);
        check("云函数 deploy", &[(1, 1.7732), (4, 1.5136)]);
        check("npm", &[(2, 1.2040)]);
        check("pm", &[]);
        check("npm npm", &[(2, 1.2040)]);
        check("", &[]);
        check("，", &[]);
    }

    #[test]
    fn small_memories_are_searched_too() {
        assert_eq!(search(&index(&[]), "超时"), []);
        let one = search(&index(&NOTES_OF_SPECIFICATION[..1]), "超时");
        assert_eq!(one.len(), 1);
        assert!((one[0].1 - 0.2877).abs() < 0.001, "{one:?}");
        assert_eq!(search(&index(&NOTES_OF_SPECIFICATION[..1]), "署").len(), 1);
    }

    #[test]
    fn three_equal_characters_are_two_pairs() {
        let finder = Finder::new("哈哈");
        assert_eq!(places(&finder, "哈哈哈。哈哈", false).count(), 3);
        let finder = Finder::new("abab");
        assert_eq!(places(&finder, "ababab abab", true).count(), 1);
    }

    #[test]
    fn a_snippet_holds_the_match() {
        for (before, after) in [(0, 0), (0, 900), (800, 100), (100, 800), (900, 0)] {
            for filler in ["x ", "字。", "İ "] {
                let text = format!(
                    "{}NEEDLE {}",
                    filler.repeat(before / 2),
                    filler.repeat(after / 2)
                );
                let index = index(&[&text]);
                let query = MemoryQuery {
                    text: "needle".into(),
                    limit: 5,
                    ..MemoryQuery::default()
                };
                let hits = index.search(&query);
                assert_eq!(hits.len(), 1);
                let content = &hits[0].content;
                assert!(content.contains("NEEDLE"), "{before} {after} {content}");
                assert!(content.chars().count() <= 300);
            }
        }
    }

    #[test]
    fn times_are_compared_before_the_limit() {
        let index = index(&["x common", "x common", "x common"]);
        let time = |text: &str| Some(text.parse().unwrap());
        let check = |after: Option<Timestamp>, before: Option<Timestamp>, expected: &[usize]| {
            let query = MemoryQuery {
                text: "common".into(),
                after,
                before,
                limit: 2,
            };
            let found: Vec<String> = index
                .search(&query)
                .into_iter()
                .map(|hit| hit.source)
                .collect();
            let expected: Vec<String> = expected
                .iter()
                .map(|day| format!("memory/2026-01-0{day}-n.md"))
                .collect();
            assert_eq!(found, expected);
        };
        check(None, None, &[3, 2]);
        check(None, time("2026-01-01T00:00:00Z"), &[1]);
        check(
            time("2026-01-02T23:59:59Z"),
            time("2026-01-02T23:59:59Z"),
            &[2],
        );
        check(time("2026-01-04T00:00:00Z"), None, &[]);
    }
}
