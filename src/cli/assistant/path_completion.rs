//! Completion of the path before the caret, for a line of the shell.

use std::path::Path;

/// Characters of a path that a shell would read as something else.
const SPECIAL: &[char] = &[
    ' ', '\t', '\'', '"', '\\', '$', '&', '|', ';', '<', '>', '(', ')', '*', '?', '[', ']', '#',
    '`', '!', '{', '}',
];

/// Completes the last word of a line as the path of a file, as far as all files that fit agree. Returns how many
/// characters before the caret are replaced, and by what.
pub(super) fn complete_path(line: &str, directory: &Path) -> Option<(usize, String)> {
    let start = word_start(line);
    let word = line.get(start..)?;
    let plain = word.replace('\\', "");
    let (above, name) = plain
        .rsplit_once('/')
        .map_or(("", plain.as_str()), |(above, name)| {
            let end = plain.len() - name.len();
            (plain.get(..end).unwrap_or(above), name)
        });
    let place = match (above.strip_prefix("~/"), std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        _ => directory.join(above),
    };
    let found = std::fs::read_dir(place)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let known = entry.file_name().into_string().ok()?;
            let is_shown = !known.starts_with('.') || name.starts_with('.');
            let is_directory = entry.path().is_dir();
            (is_shown && known.starts_with(name)).then_some((known, is_directory))
        });
    let mut found: Vec<(String, bool)> = found.collect();
    found.sort();
    let (first, is_directory) = found.first()?;
    let common = found.iter().fold(first.as_str(), |common, (name, _)| {
        common_start(common, name)
    });
    let end = match (found.as_slice(), is_directory) {
        ([_], true) => "/",
        ([_], false) => " ",
        _ => "",
    };
    if common == name && end.is_empty() {
        return None;
    }
    let mut text = String::new();
    for letter in above.chars().chain(common.chars()) {
        if SPECIAL.contains(&letter) {
            text.push('\\');
        }
        text.push(letter);
    }
    Some((word.chars().count(), text + end))
}

/// Returns the start of the last word of a line; a blank after `\` does not end one.
fn word_start(line: &str) -> usize {
    let (mut start, mut is_escaped) = (0, false);
    for (at, letter) in line.char_indices() {
        if !is_escaped && (letter.is_whitespace() || "=;|&<>(".contains(letter)) {
            start = at + letter.len_utf8();
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    start
}

fn common_start<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    let length: usize = same.map(|(letter, _)| letter.len_utf8()).sum();
    one.get(..length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_completed_as_far_as_files_agree() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("source")).unwrap();
        for name in ["source/main.rs", "some file", "sours", ".hidden", "日本"] {
            std::fs::write(home.path().join(name), "").unwrap();
        }
        let check = |line: &str, expected: Option<(usize, &str)>| {
            let found = complete_path(line, home.path());
            let found = found.as_ref().map(|(chars, text)| (*chars, text.as_str()));
            assert_eq!(found, expected, "{line}");
        };
        check("cat sourc", Some((5, "source/")));
        check("cat sou", Some((3, "sour")).filter(|_| true));
        check("cat sour", None);
        check("cat source/", Some((7, "source/main.rs ")));
        check("cat som", Some((3, "some\\ file ")));
        check("cat some\\ f", Some((7, "some\\ file ")));
        check("X=.h", Some((2, ".hidden ")));
        check("cat 日", Some((1, "日本 ")));
        check("cat none", None);
        check("cat /nowhere/x", None);
    }
}
