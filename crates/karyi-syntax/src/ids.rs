//! Ids of calls: the model's own, or the call's number in the message.

use std::collections::HashSet;

/// The ids given so far in one message.
#[derive(Debug, Default)]
pub(super) struct Ids {
    own: HashSet<String>,
    /// Numbers given as ids, ascending.
    numbers: Vec<u64>,
    calls: u64,
}

impl Ids {
    /// Counts a call; returns its number in the message, from 1.
    pub(super) fn count(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// Claims an id that the model wrote; returns true when it is new.
    pub(super) fn claim(&mut self, id: &str) -> bool {
        let number = id.parse::<u64>().ok().filter(|n| n.to_string() == id);
        let is_number = number.is_some_and(|n| self.numbers.binary_search(&n).is_ok());
        !is_number && self.own.insert(id.to_owned())
    }

    /// Assigns an id to a call without one: its number, or the next free number.
    ///
    /// Skips each number that the model used as an id, once.
    pub(super) fn assign(&mut self) -> String {
        let last = self.numbers.last().copied().unwrap_or(0);
        let mut number = self.calls.max(last + 1);
        let mut id = number.to_string();
        while !self.own.is_empty() && self.own.contains(&id) {
            number += 1;
            id = number.to_string();
        }
        self.numbers.push(number);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty string asks for a number; `None` is a refused id.
    fn check(asked: &[&str], expected: &[Option<&str>]) {
        let mut ids = Ids::default();
        let given: Vec<Option<String>> = asked
            .iter()
            .map(|id| {
                ids.count();
                match *id {
                    "" => Some(ids.assign()),
                    id => ids.claim(id).then(|| id.to_owned()),
                }
            })
            .collect();
        let given: Vec<Option<&str>> = given.iter().map(Option::as_deref).collect();
        assert_eq!(given, expected, "{asked:?}");
    }

    #[test]
    fn calls_are_numbered_through_the_message() {
        check(&["", "", ""], &[Some("1"), Some("2"), Some("3")]);
        check(
            &["a", "", "b", ""],
            &[Some("a"), Some("2"), Some("b"), Some("4")],
        );
    }

    #[test]
    fn own_ids_are_unique() {
        check(&["a", "a"], &[Some("a"), None]);
        check(&["", "1"], &[Some("1"), None]);
        check(&["", "01"], &[Some("1"), Some("01")]);
    }

    #[test]
    fn numbers_pass_over_own_ids() {
        check(&["2", "", ""], &[Some("2"), Some("3"), Some("4")]);
        check(
            &["", "3", "", "4"],
            &[Some("1"), Some("3"), Some("4"), None],
        );
    }
}
