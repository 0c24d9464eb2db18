//! Formats of printf: the conversion `%n` sets a variable, and zsh calculates the words of numbers, which may run code.

use super::Doubt;
use crate::approval::command_words::CommandWord;

/// Checks the words behind `printf`.
///
/// # Errors
/// The first word that may set a variable or run code.
pub(super) fn check(words: &[CommandWord<'_>]) -> Result<(), Doubt> {
    check_values(words, |_| false)
}

/// The same in bash, where the word of a number is no calculation: a quoted expansion may stand there.
///
/// # Errors
/// Those of [`check`].
pub(super) fn check_in_bash(words: &[CommandWord<'_>]) -> Result<(), Doubt> {
    let is_quoted = |word: &CommandWord<'_>| !word.is_split && word.source.starts_with('"');
    check_values(words, |word| !word.is_certain && is_quoted(word))
}

fn check_values(
    words: &[CommandWord<'_>],
    is_digits: impl Fn(&CommandWord<'_>) -> bool,
) -> Result<(), Doubt> {
    let has_end = words.first().is_some_and(|word| word.text == "--");
    let words = words.get(usize::from(has_end)..).unwrap_or_default();
    let Some((format, values)) = words.split_first() else {
        return Ok(());
    };
    let doubt = |word: &CommandWord<'_>| Doubt::Word(word.text.to_owned());
    if values.is_empty() {
        return Ok(());
    }
    let conversions = conversions(format.text).filter(|_| format.is_certain);
    let conversions = conversions.ok_or_else(|| doubt(format))?;
    if conversions.iter().all(|one| *one == Conversion::Text) {
        return Ok(());
    }
    // A word that is expanded may become several.
    let is_fine = |(word, conversion): (&CommandWord<'_>, &Conversion)| {
        let is_number = word
            .text
            .bytes()
            .all(|byte| b"0123456789.+-".contains(&byte));
        let is_own = *conversion != Conversion::Width && is_digits(word);
        is_own || word.is_certain && (is_number || *conversion == Conversion::Text)
    };
    let mut pairs = values.iter().zip(conversions.iter().cycle());
    match pairs.find(|pair| !is_fine(*pair)) {
        None => Ok(()),
        Some((word, _)) => Err(doubt(word)),
    }
}

/// Kind of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversion {
    Text,
    Number,
    /// Width or precision of the next one.
    Width,
}

/// Returns what a format does with each word; `None` when it may set a variable or is not understood.
fn conversions(format: &str) -> Option<Vec<Conversion>> {
    let mut found = Vec::new();
    let mut signs = format.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => {
                let escaped: String =
                    std::iter::from_fn(|| signs.next_if(char::is_ascii_alphanumeric))
                        .take(9)
                        .collect();
                // zsh reads `\\045` and `\\x25` as `%`.
                let is_number =
                    escaped.starts_with(|sign: char| "xuU".contains(sign) || sign.is_ascii_digit());
                if is_number && (escaped.contains("45") || escaped.contains("25")) {
                    return None;
                }
            }
            '%' => loop {
                match signs.next()? {
                    '-' | '+' | ' ' | '#' | '.' | '0'..='9' => {}
                    '*' => found.push(Conversion::Width),
                    's' | 'b' | 'q' | 'c' => {
                        found.push(Conversion::Text);
                        break;
                    }
                    'd' | 'i' | 'u' | 'o' | 'x' | 'X' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                        found.push(Conversion::Number);
                        break;
                    }
                    '%' => break,
                    _ => return None,
                }
            },
            _ => {}
        }
    }
    Some(found)
}
