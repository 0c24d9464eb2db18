//! What proves that a dump is one of a value.
//!
//! Eight digits of a dump are little more than one character that is not ASCII, and half of them tell its script alone. So
//! a row of known stretches may be any text in the language of a value that has its pairs of letters. There it counts
//! only when as much as a match stands in the order of the value.

use zeroize::Zeroizing;

use super::grams::{WINDOW, number};
use super::visible::Visible;

/// The dumps of values that are not ASCII.
#[derive(Default)]
pub(super) struct Proofs {
    dumps: Vec<Zeroizing<Vec<u8>>>,
    /// Every part of them that is a match and no more, sorted by its first bytes.
    parts: Vec<Part>,
}

#[derive(Clone, Copy)]
struct Part {
    dump: u32,
    start: u32,
    end: u32,
}

impl Proofs {
    /// Adds a dump of which so many characters are a match.
    pub(super) fn add(&mut self, visible: &Visible, need: usize) {
        let bytes = &visible.bytes;
        let dump = self.dumps.len() as u32;
        let mut end = 0;
        for start in 0..(bytes.len() + 1).saturating_sub(WINDOW) {
            if visible.weight(start, 1) == 0 {
                continue;
            }
            end = end.max(start + WINDOW);
            while end < bytes.len() && visible.weight(start, end - start) < need {
                end += 1;
            }
            if visible.weight(start, end - start) < need {
                break;
            }
            let [start, end] = [start, end].map(|at| at as u32);
            self.parts.push(Part { dump, start, end });
        }
        self.dumps.push(Zeroizing::new(bytes.to_vec()));
    }

    /// Sorts what was added.
    pub(super) fn close(&mut self) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_unstable_by_key(|part| number(self.text(*part), 0));
        self.parts = parts;
    }

    fn text(&self, part: Part) -> &[u8] {
        let dump = self.dumps.get(part.dump as usize);
        let text = dump.and_then(|dump| dump.get(part.start as usize..part.end as usize));
        text.unwrap_or_default()
    }

    /// Whether a part of a dump stands in some bytes.
    pub(super) fn stand_in(&self, bytes: &[u8]) -> bool {
        let first = |part: &Part| number(self.text(*part), 0);
        (0..(bytes.len() + 1).saturating_sub(WINDOW)).any(|at| {
            let key = number(bytes, at);
            let from = self.parts.partition_point(|part| first(part) < key);
            let parts = self.parts.get(from..).unwrap_or_default().iter();
            let mut parts = parts.take_while(|part| first(part) == key);
            let rest = bytes.get(at..).unwrap_or_default();
            parts.any(|part| rest.starts_with(self.text(*part)))
        })
    }

    /// Returns how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let dumps: usize = self.dumps.iter().map(|dump| dump.len()).sum();
        dumps + self.parts.len() * size_of::<Part>()
    }
}
