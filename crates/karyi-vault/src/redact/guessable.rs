//! Values with so little entropy that they are ordinary words of many texts.

/// Longest lower-case word; longer ones are random, as the sixteen letters of an application password.
const MAX_WORD_LETTERS: usize = 15;
/// Most characters after a word, as in `hunter2`.
const MAX_SUFFIX: usize = 3;
/// Fewest bits of a value that is hard to guess.
const MIN_BITS: f64 = 40.0;

/// Returns true for an easily guessed value: one lower-case word, alone or followed by up to three digits or signs, or
/// anything of less than about 40 bits. Such a value is masked as a whole word only.
#[must_use]
pub fn is_guessable(value: &str) -> bool {
    let value = value.trim();
    is_word(value) || bits(value) < MIN_BITS
}

fn is_word(value: &str) -> bool {
    let word = value.trim_end_matches(|character: char| !character.is_alphabetic());
    let suffix = value.chars().count() - word.chars().count();
    let is_lower = word.chars().all(char::is_lowercase);
    is_lower && suffix <= MAX_SUFFIX && word.chars().count() <= MAX_WORD_LETTERS
}

/// Class of characters, and the number of them.
type CharacterClass = (fn(char) -> bool, u32);

/// Returns the bits of a random text of the same length and the same classes of characters.
fn bits(value: &str) -> f64 {
    let classes: [CharacterClass; 5] = [
        (|c| c.is_ascii_lowercase(), 26),
        (|c| c.is_ascii_uppercase(), 26),
        (|c| c.is_ascii_digit(), 10),
        (|c| c.is_ascii() && !c.is_ascii_alphanumeric(), 33),
        (|c| !c.is_ascii(), 100),
    ];
    let used = classes.iter().filter(|(is, _)| value.chars().any(is));
    let pool: u32 = used.map(|(_, size)| size).sum();
    let length = u32::try_from(value.chars().count()).unwrap_or(u32::MAX);
    f64::from(length) * f64::from(pool.max(1)).log2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_short_values_are_guessable() {
        let guessable = [
            "",
            "postgres",
            "password",
            "localhost",
            "hunter2",
            "admin123",
            "secret",
            "1234567890",
            "Ab3$x",
            "письмо",
        ];
        for value in guessable {
            assert!(is_guessable(value), "{value}");
        }
        let random = [
            "abcdefghijklmnop",
            "Zk7qPw2L",
            "0a1b2c3d4e5f",
            "ghp_0123456789abcdef",
            "correct horse battery",
            "密码密码密码密码",
            "postgres://u:hunter2@db.example.com/x",
        ];
        for value in random {
            assert!(!is_guessable(value), "{value}");
        }
    }
}
