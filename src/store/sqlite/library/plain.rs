//! Words that the database and we cut alike.

/// Characters that are a letter or digit to the database and to us, each as it is: neither cut off,
/// left out nor folded into another one.
const PLAIN: &[(char, char)] = &[
    ('0', '9'),
    ('a', 'z'),
    ('\u{df}', '\u{f6}'),
    ('\u{f8}', '\u{ff}'),
    ('\u{430}', '\u{45f}'),
    ('\u{3005}', '\u{3007}'),
    ('\u{3041}', '\u{3096}'),
    ('\u{30a1}', '\u{30fa}'),
    ('\u{30fc}', '\u{30fe}'),
    ('\u{3400}', '\u{4db5}'),
    ('\u{4e00}', '\u{9fa5}'),
    ('\u{ac00}', '\u{d7a3}'),
    ('\u{20000}', '\u{2a6d6}'),
];

/// Whether a word is one word to the database too.
pub(super) fn is_plain(word: &str) -> bool {
    word.chars().all(|c| {
        let after = PLAIN.partition_point(|(first, _)| *first <= c);
        let range = after.checked_sub(1).and_then(|at| PLAIN.get(at));
        range.is_some_and(|(_, last)| c <= *last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    #[test]
    fn the_database_takes_every_such_character_as_it_is() {
        let connection = Connection::open_in_memory().unwrap();
        let tables =
            "CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'unicode61 remove_diacritics 0');
            CREATE VIRTUAL TABLE v USING fts5vocab (t, row);";
        connection.execute_batch(tables).unwrap();
        let chars = PLAIN.iter().flat_map(|(first, last)| *first..=*last);
        // Before, between and after others.
        let words: Vec<String> = chars.map(|c| format!("{c}a{c}{c}")).collect();
        assert!(words.iter().all(|word| is_plain(word)));
        for some in words.chunks(1000) {
            let sql = "INSERT INTO t VALUES (?)";
            connection.execute(sql, [some.join(" ")]).unwrap();
        }
        let mut statement = connection.prepare("SELECT term FROM v ORDER BY 1").unwrap();
        let terms = statement.query_map((), |row| row.get(0)).unwrap();
        let terms: Vec<String> = terms.map(Result::unwrap).collect();
        let mut words = words;
        words.sort_unstable();
        assert!(terms == words);
    }

    #[test]
    fn others_are_not_plain() {
        for word in [
            "A",
            "é\u{301}",
            "\u{30fb}",
            "\u{3c2}",
            "\u{4ff}",
            "a_",
            "\u{9fff}",
            "ก็",
        ] {
            assert!(!is_plain(word), "{word}");
        }
        assert!(is_plain("") && is_plain("well7") && is_plain("古井") && is_plain("über"));
    }
}
