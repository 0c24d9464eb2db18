//! What proves that a dump is one of a value.
//!
//! Eight digits of a dump are little more than one character that is not ASCII, and half of them tell its script alone. So
//! a row of known stretches may be any text in the language of a value that has its pairs of letters. There it counts
//! only when as much as a match stands in the order of the value.

use zeroize::Zeroizing;

use super::grams::WINDOW;
use super::visible::Visible;

/// Most bytes of a part: twelve take fewer than a hundred, but a row of one byte counts for nothing, so that a part it is
/// in may be any length. A lane keeps more than these, since a part may come in pieces.
const MOST: usize = 128;

/// The dumps of values that are not ASCII.
#[derive(Default)]
pub(super) struct Proofs {
    dumps: Vec<Zeroizing<Vec<u8>>>,
    /// Every part of them that is a match and no more, sorted by its text. None begins with another one.
    parts: Vec<Part>,
}

#[derive(Clone, Copy)]
struct Part {
    dump: u32,
    start: u32,
    end: u32,
}

impl Proofs {
    /// Adds a dump of which so many characters are a match; returns whether it can be proven, which is not so when one of
    /// its parts is too long to be kept.
    pub(super) fn add(&mut self, visible: &Visible, need: usize) -> bool {
        let bytes = &visible.bytes;
        let dump = self.dumps.len() as u32;
        let known = self.parts.len();
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
            if end - start > MOST {
                self.parts.truncate(known);
                return false;
            }
            let [start, end] = [start, end].map(|at| at as u32);
            self.parts.push(Part { dump, start, end });
        }
        self.dumps.push(Zeroizing::new(bytes.to_vec()));
        true
    }

    /// Sorts what was added, and leaves out what holds another part at its start: a value may repeat itself.
    pub(super) fn close(&mut self) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_unstable_by_key(|part| self.text(*part));
        parts.dedup_by(|next, last| self.text(*next).starts_with(self.text(*last)));
        self.parts = parts;
    }

    fn text(&self, part: Part) -> &[u8] {
        let dump = self.dumps.get(part.dump as usize);
        let text = dump.and_then(|dump| dump.get(part.start as usize..part.end as usize));
        text.unwrap_or_default()
    }

    /// Whether a part of a dump stands in some bytes.
    pub(super) fn stand_in(&self, bytes: &[u8]) -> bool {
        (0..(bytes.len() + 1).saturating_sub(WINDOW)).any(|at| {
            let rest = bytes.get(at..).unwrap_or_default();
            // What lies between a part and a text that begins with it begins with that part, too, so there is only one.
            let behind = self.parts.partition_point(|part| self.text(*part) <= rest);
            let part = behind.checked_sub(1).and_then(|at| self.parts.get(at));
            part.is_some_and(|part| rest.starts_with(self.text(*part)))
        })
    }

    /// Returns how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let dumps: usize = self.dumps.iter().map(|dump| dump.len()).sum();
        dumps + self.parts.len() * size_of::<Part>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::encodings::for_each_form;
    use super::super::form::Form;
    use super::*;

    /// The proofs of the dumps of a value in hexadecimal where so many characters are a match.
    fn proofs_of(value: &str, needs: &[usize]) -> Proofs {
        let mut proofs = Proofs::default();
        let mut visible = Visible::of(value, vec![true; value.len()]);
        for_each_form(value, |form, encoded| {
            visible.take(form, encoded);
            if form == Form::Hex && visible.is_dump {
                needs.iter().for_each(|need| {
                    proofs.add(&visible, *need);
                });
            }
        });
        proofs.close();
        proofs
    }

    fn proofs(value: &str) -> Proofs {
        proofs_of(value, &[12])
    }

    /// However often something stands in a value, a text is compared with it once.
    #[test]
    fn a_value_that_repeats_itself_has_few_parts() {
        let [few, many] = [3, 300].map(|count| proofs(&"вечер ".repeat(count)).parts.len());
        assert!(few > 0);
        assert_eq!(few, many);
        // What begins with a shorter part is not needed beside it.
        let [short, both] = [&[8][..], &[12, 8]].map(|needs| proofs_of("вечером", needs));
        assert!(!short.parts.is_empty());
        assert_eq!(short.parts.len(), both.parts.len());
    }

    /// A part is found wherever it stands, and a text that lacks its last digit holds none.
    #[test]
    fn every_part_is_found_and_nothing_less() {
        let proofs = proofs("аб1 аб2 аб3 вечер вечером абвгд абвгде");
        assert!(!proofs.parts.is_empty());
        for part in &proofs.parts {
            let text = proofs.text(*part);
            assert!(proofs.stand_in(&[b"d0b0", text, b"ff"].concat()));
            assert!(!proofs.stand_in(&text[..text.len() - 1]));
            assert!(!proofs.stand_in(&text[1..]));
        }
        assert!(!proofs.stand_in(b"d0b0d0b0d0b0d0b0d0b0d0b0"));
    }

    /// A row counts for nothing, and what is longer than a lane keeps would never be seen as a whole.
    #[test]
    fn a_part_that_is_too_long_leaves_nothing() {
        let (short, long) = ("=".repeat(40), "=".repeat(60));
        assert!(!proofs(&format!("вгдежзик{short}лмн")).parts.is_empty());
        assert!(proofs(&format!("вгдежзик{long}лмн")).dumps.is_empty());
        assert!(proofs(&format!("вгдежзик{long}лмн")).parts.is_empty());
    }
}
