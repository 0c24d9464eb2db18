//! Finds entries without a language model: the one a text means, and those that resemble it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::todo_entry::TodoEntry;
use karyi_core::words::{each_word, fold};

/// Entries of a list that a text may mean, by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TodoMatch {
    /// No entry.
    Nothing,
    /// One entry.
    One(usize),
    /// Several entries.
    Several(Vec<usize>),
}

impl TodoMatch {
    fn of(found: Vec<usize>) -> Self {
        match found.as_slice() {
            [] => Self::Nothing,
            [only] => Self::One(*only),
            _ => Self::Several(found),
        }
    }
}

/// Returns the text that a query asks for: the content of an entry that was copied whole, else the query itself.
#[must_use]
pub fn query_text(query: &str) -> String {
    match TodoEntry::parse(query.trim()) {
        Some(entry) => entry.content,
        None => query.trim().to_owned(),
    }
}

/// Finds the entry of which a query is the whole line; else the entries whose text equals the query, else those that
/// contain it. Of entries with the same text it is the oldest. Case and the amount of white space do not count.
#[must_use]
pub fn find(entries: &[TodoEntry], query: &str) -> TodoMatch {
    let copied = TodoEntry::parse(query.trim());
    let is_copied = |entry: &TodoEntry| {
        copied.as_ref().is_some_and(|copied| {
            (&copied.created_at, &copied.chat_id) == (&entry.created_at, &entry.chat_id)
                && folded(&copied.content) == folded(&entry.content)
        })
    };
    if let Some(index) = entries.iter().position(is_copied) {
        return TodoMatch::One(index);
    }
    let query = folded(&query_text(query));
    let texts: Vec<String> = entries.iter().map(|entry| folded(&entry.content)).collect();
    let matching = |is_match: &dyn Fn(&String) -> bool| {
        let found = texts.iter().enumerate().filter(|(_, text)| is_match(text));
        found.map(|(index, _)| index).collect::<Vec<usize>>()
    };
    let equal = matching(&|text| *text == query);
    let found = match equal.is_empty() {
        true => matching(&|text| text.contains(&query)),
        false => equal,
    };
    oldest_of_equal(entries, &found).map_or_else(|| TodoMatch::of(found), TodoMatch::One)
}

/// Returns the oldest of some entries when they are the same duty, written twice.
fn oldest_of_equal(entries: &[TodoEntry], found: &[usize]) -> Option<usize> {
    let found = found
        .iter()
        .filter_map(|index| Some((*index, entries.get(*index)?)));
    let (oldest, first) = found.clone().min_by_key(|(_, entry)| &entry.created_at)?;
    let is_same = |(_, entry): (usize, &TodoEntry)| {
        (&entry.content, &entry.chat_id) == (&first.content, &first.chat_id)
    };
    found.into_iter().all(is_same).then_some(oldest)
}

fn folded(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    fold(&words.join(" ")).into_owned()
}

/// Returns the entries that resemble a text, at most `most` of them, in the order of the list: at least half of the
/// words of the shorter one are in the other.
#[must_use]
pub fn resembling(entries: &[TodoEntry], text: &str, most: usize) -> Vec<usize> {
    let known = KnownWords::of(text);
    let resembles = |entry: &TodoEntry| {
        let (shared, all) = known.count(&entry.content);
        shared > 0 && shared * 2 >= all.min(known.words.len())
    };
    let found = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| resembles(entry));
    found.map(|(index, _)| index).take(most).collect()
}

/// Returns the entries that share most words with a text, at most `most` of them, in the order of the list.
#[must_use]
pub fn nearest(entries: &[TodoEntry], text: &str, most: usize) -> Vec<usize> {
    if entries.len() <= most {
        return (0..entries.len()).collect();
    }
    let known = KnownWords::of(text);
    let shared = entries.iter().map(|entry| known.count(&entry.content).0);
    let shared = shared.enumerate().filter(|(_, shared)| *shared > 0);
    let mut near: Vec<(Reverse<usize>, usize)> = shared
        .map(|(index, shared)| (Reverse(shared), index))
        .collect();
    near.sort_unstable();
    let mut chosen: BTreeSet<usize> = near.iter().take(most).map(|(_, index)| *index).collect();
    let missing = most - chosen.len();
    let others: Vec<usize> = (0..entries.len())
        .filter(|index| !chosen.contains(index))
        .take(missing)
        .collect();
    chosen.extend(others);
    chosen.into_iter().collect()
}

/// Different words of a text.
#[derive(Default)]
struct KnownWords {
    words: HashMap<String, usize>,
    /// Lengths of the words, each a bit; most words of other texts differ in it.
    lengths: u128,
}

impl KnownWords {
    fn of(text: &str) -> Self {
        let mut known = Self::default();
        each_word(text, &mut |word| {
            let word = word.text;
            let number = known.words.len();
            known.words.entry(word.to_owned()).or_insert(number);
            known.lengths |= length_bit(word);
        });
        known
    }

    /// Returns how many of the words are in another text, and how many words that has.
    fn count(&self, text: &str) -> (usize, usize) {
        let (mut is_seen, mut shared, mut all) = (Vec::new(), 0, 0);
        each_word(text, &mut |word| {
            let word = word.text;
            all += 1;
            if self.lengths & length_bit(word) == 0 {
                return;
            }
            if let Some(number) = self.words.get(word) {
                is_seen.resize(self.words.len(), false);
                if let Some(seen) = is_seen.get_mut(*number).filter(|seen| !**seen) {
                    (*seen, shared) = (true, shared + 1);
                }
            }
        });
        (shared, all)
    }
}

fn length_bit(word: &str) -> u128 {
    1 << word.len().min(127)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(contents: &[&str]) -> Vec<TodoEntry> {
        let entry = |content: &&str| TodoEntry {
            created_at: "2026-02-03 08:30".to_owned(),
            done_at: None,
            chat_id: None,
            content: (*content).to_owned(),
        };
        contents.iter().map(entry).collect()
    }

    #[test]
    fn equal_wins_over_contained() {
        let list = entries(&[
            "Pay the rent",
            "Pay  THE rent of May",
            "Call Ann",
            "call ann",
        ]);
        let check = |query: &str, expected: TodoMatch| {
            assert_eq!(find(&list, query), expected, "{query}");
        };
        check("pay the rent", TodoMatch::One(0));
        check("the rent of", TodoMatch::One(1));
        check("rent", TodoMatch::Several(vec![0, 1]));
        check("Call Ann", TodoMatch::Several(vec![2, 3]));
        check("milk", TodoMatch::Nothing);
        assert_eq!(find(&[], "x"), TodoMatch::Nothing);
    }

    #[test]
    fn of_the_same_duty_the_copied_line_wins_or_the_oldest() {
        let mut list = entries(&["Buy milk", "Buy milk", "Buy milk for Ann"]);
        list[0].created_at = "2026-02-04 08:30".to_owned();
        let check = |list: &[TodoEntry], query: &str, expected: TodoMatch| {
            assert_eq!(find(list, query), expected, "{query}");
        };
        check(&list, &list[0].line(), TodoMatch::One(0));
        check(&list, &list[1].line(), TodoMatch::One(1));
        check(&list, "buy  milk", TodoMatch::One(1));
        check(&list, "milk", TodoMatch::Several(vec![0, 1, 2]));
        list[0].chat_id = Some("tg:1".to_owned());
        check(&list, "buy milk", TodoMatch::Several(vec![0, 1]));
        check(&list, &list[0].line(), TodoMatch::One(0));
    }

    #[test]
    fn a_copied_line_asks_for_its_content() {
        assert_eq!(
            query_text(" - [ ] [Created](2026-02-03 08:30) | B | c\n"),
            "B | c"
        );
        assert_eq!(query_text(" the rent "), "the rent");
    }

    #[test]
    fn what_shares_half_of_the_words_resembles() {
        let list = entries(&[
            "Pay the rent",
            "Rent, pay tomorrow!",
            "Buy milk",
            "去超市买牛奶",
            "给妈妈打电话",
            "买",
        ]);
        assert_eq!(resembling(&list, "pay RENT", 9), [0, 1]);
        assert_eq!(resembling(&list, "pay RENT", 1), [0]);
        assert_eq!(resembling(&list, "买牛奶", 9), [3]);
        assert_eq!(resembling(&list, "买", 9), [5]);
        assert_eq!(resembling(&list, "", 9), [0; 0]);
        assert_eq!(resembling(&list, "!", 9), [0; 0]);
    }

    #[test]
    fn the_nearest_are_kept_in_order() {
        let list = entries(&["a b", "c", "b c", "c b a"]);
        assert_eq!(nearest(&list, "a b", 4), [0, 1, 2, 3]);
        assert_eq!(nearest(&list, "a b", 2), [0, 3]);
        assert_eq!(nearest(&list, "nothing", 3), [0, 1, 2]);
    }
}
