//! Words of the full-text index.
//!
//! They are those of [`karyi_core::words`]. The last character of a run is indexed on its own, too: a single
//! character is found as the start of a pair or by itself.

use karyi_core::words::each_word;

/// Version of the tokenizer. An index written by another version is rebuilt.
pub const VERSION: u64 = 3;

/// Appends the words of a text, each after `mark` and followed by a space; returns their number.
pub fn index_text(text: &str, mark: &str, out: &mut String) -> u64 {
    let mut count = 0;
    let mut add = |word: &str| {
        out.extend([mark, word, " "]);
        count += 1;
    };
    each_word(text, &mut |word| {
        add(word.text);
        if word.is_end_of_run
            && let Some((start, _)) = word
                .text
                .char_indices()
                .next_back()
                .filter(|_| word.is_pair)
        {
            add(word.text.get(start..).unwrap_or_default());
        }
    });
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut out = String::new();
        let count = index_text(text, "", &mut out);
        assert_eq!(out.trim_end(), expected);
        assert_eq!(count, expected.split_whitespace().count() as u64);
    }

    #[test]
    fn text_is_split_into_pairs_and_words() {
        check("严氏家训", "严氏 氏家 家训 训");
        check("古井,Well No.7", "古井 井 well no 7");
        check("井", "井");
        check("한국어 조선", "한국 국어 어 조선 선");
        check("Über 10%", "über 10");
        check("%_\"*^", "");
        let mut out = "before ".to_owned();
        assert_eq!(index_text("古井 7", "s·", &mut out), 3);
        assert_eq!(out, "before s·古井 s·井 s·7 ");
    }

    #[test]
    fn composed_and_decomposed_letters_are_equal() {
        let pairs = [
            (
                "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}",
                "한국 국",
            ),
            ("U\u{308}ber", "über"),
            ("か\u{3099}く", "がく く"),
            ("\u{212b}", "å"),
        ];
        for (text, expected) in pairs {
            check(text, expected);
        }
    }
}
