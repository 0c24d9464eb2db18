//! Text to the words that search knows.
//!
//! Chinese and Japanese have no spaces, and Korean writes endings onto its words, so runs of their
//! characters are cut into overlapping pairs;
//! everything else is cut into lower-cased words. The last character of a run stands alone too: a
//! single character is then found as the start of a pair or as itself.

/// Counts the ways in which texts were ever cut: an index that was written in another one is written
/// anew.
pub const WAY: u64 = 2;

/// Returns the words of a text, separated by spaces, for the index.
#[must_use]
pub fn index_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    each_word(text, &mut |word| {
        out.push_str(word.text);
        out.push(' ');
        if word.is_end_of_run
            && let Some(last) = word.text.chars().next_back().filter(|_| word.is_pair)
        {
            out.push(last);
            out.push(' ');
        }
    });
    out
}

/// One word as it is found.
pub struct Word<'a> {
    /// Letters and digits only, in lower case.
    pub text: &'a str,
    /// Whether it is a pair of characters of a run.
    pub is_pair: bool,
    /// Whether it is the only character of its run: it may be the start of a pair in the index.
    pub is_alone: bool,
    /// Whether a run ends with it.
    is_end_of_run: bool,
}

/// Gives every word of a text to `found`, in order.
pub fn each_word(text: &str, found: &mut dyn FnMut(Word<'_>)) {
    let lower = text.to_lowercase();
    let mut rest = lower.as_str();
    while let Some(first) = rest.chars().next() {
        let is_same: fn(char) -> bool = match first {
            c if is_ideograph(c) => is_ideograph,
            c if is_word(c) => is_word,
            _ => {
                rest = &rest[first.len_utf8()..];
                continue;
            }
        };
        let end = rest.find(|c| !is_same(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        if is_ideograph(first) {
            pairs(run, found);
        } else {
            found(Word {
                text: run,
                is_pair: false,
                is_alone: false,
                is_end_of_run: true,
            });
        }
        rest = after;
    }
}

fn pairs(run: &str, found: &mut dyn FnMut(Word<'_>)) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
    if starts.len() == 1 {
        return found(Word {
            text: run,
            is_pair: false,
            is_alone: true,
            is_end_of_run: true,
        });
    }
    for (number, pair) in starts.windows(2).enumerate() {
        let end = starts.get(number + 2).copied().unwrap_or(run.len());
        let start = pair.first().copied().unwrap_or(0);
        found(Word {
            text: run.get(start..end).unwrap_or_default(),
            is_pair: true,
            is_alone: false,
            is_end_of_run: end == run.len(),
        });
    }
}

/// Whether a character belongs to a script whose words are not found by the spaces between them.
fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}'
        | '\u{3130}'..='\u{318f}' | '\u{3400}'..='\u{4dbf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() && !is_ideograph(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(index_text(text).trim_end(), expected);
    }

    #[test]
    fn text_is_cut_into_pairs_and_words() {
        check("严氏家训", "严氏 氏家 家训 训");
        check("古井,Well No.7", "古井 井 well no 7");
        check("井", "井");
        check("한국어 조선", "한국 국어 어 조선 선");
        check("Über 10%", "über 10");
        check("%_\"*^", "");
    }
}
