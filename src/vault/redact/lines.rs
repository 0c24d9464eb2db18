//! Lines of a value that are secret each on its own: recovery codes, say.
//!
//! A run goes on over the end of a line, as a value may be wrapped. But many programs put something before each line
//! or between two (`grep -n`, `diff`, `paste -sd,`), and then a line that is shorter than a run would be seen.

use std::collections::HashSet;
use std::ops::Range;

use zeroize::Zeroizing;

use crate::limits;
use crate::vault::view::{is_visible, plain, visible_bytes};

/// Words in the name of a setting that is secret.
const SECRET_WORDS: [&str; 14] = [
    "secret",
    "secrets",
    "token",
    "tokens",
    "apikey",
    "pass",
    "passwd",
    "password",
    "passphrase",
    "pwd",
    "pin",
    "credential",
    "credentials",
    "auth",
];
/// Words that say so only beside others: `api_key`, and not `key`.
const SECRET_ENDS: [&str; 4] = ["key", "keys", "code", "codes"];
/// What such a name ends with when only another name stands there.
const NAME_ENDS: [&str; 12] = [
    "name", "file", "path", "type", "id", "url", "uri", "ref", "dir", "login", "backend",
    "endpoint",
];

/// Returns the lines of a value, or what stands behind the mark of one, that a run is too long for and that look like
/// secrets. `mask` tells which bytes of the value are secret.
pub(super) fn codes<'a>(value: &'a str, mask: &[bool]) -> Vec<&'a str> {
    let lines = value.lines().map(str::trim);
    let items: Vec<&str> = lines
        .filter(|line| !line.is_empty())
        .map(unmarked)
        .collect();
    if items.len() < 2 {
        return Vec::new();
    }
    let settings = items.iter().filter(|item| setting(item).is_some()).count();
    let like = alike(&items);
    let is_list = 2 * like.len() > items.len();
    let is_configuration = 2 * settings >= items.len();
    let mut codes: Vec<&str> = items
        .iter()
        .filter_map(|item| match setting(item) {
            Some((key, text)) => Some(text).filter(|text| is_secret_key(key) && is_chosen(text)),
            None if is_configuration || is_markup(item) => None,
            None => Some(*item).filter(|item| is_list && like.contains(item) || is_code(item)),
        })
        .filter(|code| is_between(code) && is_secret(value, code, mask))
        .collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Whether a text is too long for a word and too short for a run, which counts characters.
fn is_between(text: &str) -> bool {
    let range = limits::GOOD_SECRET_BYTES..limits::REDACTED_RUN_BYTES;
    let bytes = visible_bytes(text);
    let more = text.bytes().filter(|byte| byte & 0xC0 == 0x80).count();
    range.contains(&bytes) || range.contains(&bytes.saturating_sub(more))
}

/// Whether a text is a word without capitals, of whichever letters.
fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_alphabetic() && !c.is_uppercase())
}

/// Whether all of a part of the value is secret.
fn is_secret(value: &str, part: &str, mask: &[bool]) -> bool {
    let is_all = |range: Range<usize>| mask.get(range).is_some_and(|part| !part.contains(&false));
    let mut places = value.match_indices(part);
    !mask.contains(&false) || places.any(|(at, part)| is_all(at..at + part.len()))
}

/// Leaves out the number of an item of a list, the sign or the box before it, and quotes and a comma around it.
fn unmarked(line: &str) -> &str {
    let line = unboxed(line);
    let mark = line.split(' ').next().unwrap_or_default();
    let number = mark.trim_start_matches(['(', '[', '#']);
    let number = number.trim_end_matches(['.', ')', ':', ']']);
    let is_number = number.len() < mark.len() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_mark = matches!(mark, "-" | "*" | "+" | "•") || is_number && number.len() <= 3;
    let item = match is_mark {
        true => line.get(mark.len()..).unwrap_or_default().trim_start(),
        false => line,
    };
    let item = unboxed(item);
    let bare = item.trim_end_matches([',', ';']);
    let inner = ['"', '\'']
        .into_iter()
        .find_map(|quote| bare.strip_prefix(quote)?.strip_suffix(quote));
    inner.unwrap_or(item)
}

/// Leaves out the box of an item that is done or not.
fn unboxed(item: &str) -> &str {
    let mut boxes = ["[ ] ", "[x] ", "[X] "].into_iter();
    let rest = boxes.find_map(|done| item.strip_prefix(done));
    rest.map_or(item, str::trim_start)
}

/// Whether the name of a setting says that it is secret.
fn is_secret_key(key: &str) -> bool {
    let words = words(key);
    let is_end = |ends: &[&str], word: &String| ends.contains(&word.as_str());
    let Some(last) = words.last() else {
        return false;
    };
    if is_end(&NAME_ENDS, last) {
        return false;
    }
    words.iter().any(|word| is_end(&SECRET_WORDS, word))
        || words.len() > 1 && is_end(&SECRET_ENDS, last)
}

/// Returns the words of a name, in small letters: they are parted by signs or begin with capitals.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        let is_sign = !c.is_ascii_alphanumeric();
        if is_sign || was_small && c.is_ascii_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| !is_sign) {
            word.push(c.to_ascii_lowercase());
        }
        was_small = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether the value of a setting may be a secret: no word, no path, and nothing that stands for another text.
fn is_chosen(text: &str) -> bool {
    let stands = ["${", "$(", "{{", "<", "%("];
    !is_word(text) && !is_markup(text) && !stands.iter().any(|start| text.starts_with(start))
}

/// Returns the key and the value of a setting, as in YAML and in INI.
fn setting(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let at = line.find([':', '='])?;
    let (key, rest) = (line.get(..at)?.trim_end(), line.get(at + 1..)?);
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let key = key.trim_matches(['"', '\'']);
    let has_digit = key.bytes().any(|byte| byte.is_ascii_digit());
    let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.bytes().all(is_part)
        && (!has_digit || key.contains('_'));
    let is_set = match line.as_bytes().get(at) {
        Some(b':') => rest.is_empty() || rest.starts_with([' ', '\t']),
        _ => !rest.trim_matches('=').is_empty(),
    };
    let value = rest
        .trim()
        .trim_end_matches([',', ';'])
        .trim_matches(['"', '\'']);
    (is_key && is_set).then_some((key, value))
}

/// Whether a line is a tag, a section, a comment, a path or an address: public, however it looks.
fn is_markup(text: &str) -> bool {
    let pairs = [('<', '>'), ('[', ']')];
    let starts = ["/", "./", "../", "~/", "-----", "# ", "#!", "//"];
    pairs
        .iter()
        .any(|(first, last)| text.starts_with(*first) && text.ends_with(*last))
        || starts.iter().any(|start| text.starts_with(start))
        || text.contains("://")
}

/// Whether a text looks as if it was made by chance: of digits alone, with digits among its letters, or with signs that
/// no word has.
fn is_code(text: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let has_digit = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
    if !text.split_whitespace().all(has_digit) {
        // Signs around a word, as of Markdown, are no part of it.
        let inner = text.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let signs = inner.bytes().filter(|byte| b"!@#$%^&*+=?~|".contains(byte));
        return !text.contains(char::is_whitespace) && signs.count() >= 2;
    }
    if text
        .bytes()
        .any(|byte| byte.is_ascii_alphabetic() || byte >= 0x80)
    {
        return true;
    }
    let digits = text.bytes().filter(is_digit).count();
    digits >= limits::GOOD_SECRET_BYTES && !is_date(text) && !text.contains(['.', ':', '/'])
}

/// Whether a text is a date such as `2026-11-23`.
fn is_date(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [4, 2, 2]
}

/// Returns the items of the shape that most of them have, when there are several: letters and digits are alike.
fn alike<'a>(items: &[&'a str]) -> HashSet<&'a str> {
    let shape = |item: &str| -> Vec<u8> {
        let letter = |byte: u8| {
            if byte.is_ascii_alphanumeric() {
                b'x'
            } else {
                byte
            }
        };
        item.bytes().map(letter).collect()
    };
    let fitting = items
        .iter()
        .filter(|item| is_between(item) && setting(item).is_none());
    let mut shapes: Vec<(Vec<u8>, &str)> = fitting.map(|item| (shape(item), *item)).collect();
    shapes.sort();
    let same = shapes.chunk_by(|a, b| a.0 == b.0);
    let most = same.max_by_key(|same| same.len()).unwrap_or_default();
    // A few words of one length are no list of codes as yet.
    let codes = most.iter().map(|(_, item)| *item);
    let is_list = most.len() > 2 && most.len() == items.len();
    codes.filter(|item| is_list || !is_word(item)).collect()
}

/// Where the lines of a value of several end, to see where a stretch of a text goes on by chance.
pub(super) struct Layout {
    /// What is visible of the value.
    text: Zeroizing<Vec<u8>>,
    /// How much of that stands before the end of each line.
    ends: Vec<usize>,
}

impl Layout {
    /// Returns the layout of a value of several lines.
    pub(super) fn of(value: &str) -> Option<Self> {
        let mut text = Zeroizing::new(Vec::with_capacity(value.len()));
        let mut ends = Vec::new();
        for line in value.lines() {
            text.extend(line.bytes().filter(|byte| is_visible(*byte)));
            if ends.last() != Some(&text.len()) && !text.is_empty() {
                ends.push(text.len());
            }
        }
        (ends.len() > 1).then_some(Self { text, ends })
    }

    /// Whether a line of the value ends with the end of some visible bytes, and what follows there is not `next`, which
    /// has few bytes, as a line of its own.
    fn ends_before(&self, before: &[u8], next: &[u8]) -> bool {
        let known = before
            .get(before.len().saturating_sub(limits::GOOD_SECRET_BYTES)..)
            .unwrap_or_default();
        let mut places = memchr::memmem::find_iter(&self.text, known).map(|at| at + known.len());
        places.any(|at| self.is_end(at) && !(self.is_end(at + next.len()) && self.has(at, next)))
    }

    /// The same for the start of a line.
    fn starts_after(&self, last: &[u8], after: &[u8]) -> bool {
        let known = after
            .get(..after.len().min(limits::GOOD_SECRET_BYTES))
            .unwrap_or_default();
        let mut places = memchr::memmem::find_iter(&self.text, known);
        places.any(|at| {
            let before = at.checked_sub(last.len());
            let is_line = before.is_some_and(|before| {
                (before == 0 || self.is_end(before)) && self.has(before, last)
            });
            self.is_end(at) && !is_line
        })
    }

    /// Returns how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.ends.len() * size_of::<usize>()
    }

    fn is_end(&self, at: usize) -> bool {
        self.ends.binary_search(&at).is_ok()
    }

    fn has(&self, at: usize, bytes: &[u8]) -> bool {
        self.text.get(at..at + bytes.len()) == Some(bytes)
    }

    /// Returns which bytes of a masked stretch are of the value for sure: where a line of it ends, a letter or two of
    /// the text's next line may be the value's next ones by chance.
    pub(super) fn trimmed(&self, stretch: &str) -> Range<usize> {
        let visible = |text: &str| {
            let mut bytes = plain(text.as_bytes());
            bytes.retain(|byte| is_visible(*byte));
            bytes
        };
        let is_few = |bytes: &[u8]| (1..limits::MIN_CUT_SECRET_BYTES).contains(&bytes.len());
        let (mut start, mut end) = (0, stretch.len());
        if let Some((before, last)) = stretch.rsplit_once('\n') {
            let (known, next) = (visible(before), visible(last));
            if is_few(&next) && self.ends_before(&known, &next) {
                end = before.trim_end().len();
            }
        }
        let left = stretch.get(..end).unwrap_or_default();
        if let Some((first, after)) = left.split_once('\n') {
            let (last, known) = (visible(first), visible(after));
            if is_few(&last) && self.starts_after(&last, &known) {
                start = end - after.trim_start().len();
            }
        }
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which lines of a value are codes.
    #[track_caller]
    fn check(value: &str, expected: &[&str]) {
        assert_eq!(
            codes(value, &vec![true; value.len()]),
            expected,
            "{value:?}"
        );
    }

    #[test]
    fn lines_of_a_list_of_codes_are_codes() {
        check(
            "1a2b3-c4d5e\nf6a7b-8c9d0\n",
            &["1a2b3-c4d5e", "f6a7b-8c9d0"],
        );
        check("1234 5678\r\n2345 6789", &["1234 5678", "2345 6789"]);
        check(
            "Codes of me:\n\n1. abcd 1234\n10) efgh 5678\n",
            &["abcd 1234", "efgh 5678"],
        );
        check("Codes of me:\n\n1. abcd 1234\n", &[]);
        check(
            "Codes of me:\n\n1. ab1d 1234\n10) ef2h 5678\n",
            &["ab1d 1234", "ef2h 5678"],
        );
        check(
            "- \"qwer-tyui\",\n- 'asdf-ghjk'",
            &["asdf-ghjk", "qwer-tyui"],
        );
        check(
            "kdjfhgqw\nzmxncbvq\nplokijuh\n",
            &["kdjfhgqw", "plokijuh", "zmxncbvq"],
        );
        check("Tr#b$dor\nx", &["Tr#b$dor"]);
        check("пароль12\nсекрет34", &["пароль12", "секрет34"]);
        check(
            "[x] abcd1234\n[ ] efgh5678\n- [X] ijkl9012",
            &["abcd1234", "efgh5678", "ijkl9012"],
        );
        check("k3Wq0Zr7mV=\nsame\nsame", &["k3Wq0Zr7mV="]);
        check("API_TOKEN=Zk7qPw2L\nHOST1=db1.local\n", &["Zk7qPw2L"]);
        check("a:\n  password: \"hunter-two\"\n", &["hunter-two"]);
        // One line alone is a value as any other, and of a longer line a run is known.
        check("1a2b3-c4d5e\n", &[]);
        check("1a2b3-c4d5e6\nf6a7b-8c9d01\n1a2b3-c\n", &[]);
    }

    #[test]
    fn what_many_texts_say_is_no_code() {
        for value in [
            "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://1.2.3.4\n  name: dev-west1\n",
            "[default]\nregion = eu-west-1\noutput = json\naws_access_key_id = AKIA1234\n",
            "NODE_ENV=production\nPORT=12345678\n",
            "abandon\nzebra\nquartz\nmountain\numbrella\nturtle\n",
            "mountain\numbrella\n",
            "картошка\nмолочный\n",
            "<server>\n<id>a1</id>\n</server1>\n",
            "machine a\nlogin deploy\n2026-11-23\n/srv/app1\n10.0.0.10\n",
            "metadata:\n  secretName: my-tls-1\n  tokenFile: /run/tok1\n",
            "-----BEGIN\n-----END1\n",
            "secretKeyRef:\n  name: db\n  key: password\n  user: username1\n",
            "POSTGRES_USER=app\nPOSTGRES_PASSWORD=postgres\nPGHOST=db",
            "KEYCLOAK_REALM=production\nKEYCLOAK_URL=http://x",
            "A=1\nPASSWORD_LOGIN=Disabled\nTOKEN_ENDPOINT=/api/token\nSECRET_DIR=/run/keys\nKEY_ALGO=ssh-ed25519",
            "services:\n  password: ${DB_PASS}\n  token: \"{{token}}\"",
            "Monkey: Business\nsource code: Available\npassage: Something\n",
            "country_code=DE\nzh_locale=zh-Hans-CN",
            "#!/bin/bash\nset -euo pipefail\ncurl x",
            "==========\nabcdefg\n==========\n**********",
            "**Codes:**\nabc",
            "regions:\n- eu-west-1\n",
        ] {
            check(value, &[]);
        }
        let pem = "-----BEGIN KEY-----\nk3Wq0Zr7mV=\n";
        assert!(codes(pem, &vec![false; pem.len()]).is_empty());
    }

    #[test]
    fn what_stands_on_the_next_line_by_chance_is_left_out() {
        let layout = Layout::of("1a2b3-c4d5e\nf6a7b-8c9d0\nxy\nd6e7f-8a9b0").unwrap();
        let check = |stretch: &str, expected: &str| {
            assert_eq!(&stretch[layout.trimmed(stretch)], expected, "{stretch:?}");
        };
        check("1a2b3-c4d5e\nf6a", "1a2b3-c4d5e");
        check("1a2b3-c4d5e \r\n  f", "1a2b3-c4d5e");
        check("1a2b3-c4d5e\nf6a7", "1a2b3-c4d5e\nf6a7");
        check("1a2b3-c4\nd5", "1a2b3-c4\nd5");
        check("f6a7b-8c9d0\nxy", "f6a7b-8c9d0\nxy");
        check("f6a7b-8c9d0\nxy\nd", "f6a7b-8c9d0\nxy");
        check("f6a7b-8c9d0\nx", "f6a7b-8c9d0");
        check("5e\nf6a7b-8c9d0", "f6a7b-8c9d0");
        check("xy\nd6e7f-8a9b0", "xy\nd6e7f-8a9b0");
        check("y\nd6e7f-8a9b0", "d6e7f-8a9b0");
        check("d0xy\nd6e7f-8a9b0", "d0xy\nd6e7f-8a9b0");
        check("5e\nf6a7b-8c9d0\nx", "f6a7b-8c9d0");
        check("1a\n2b3-c4d5e", "1a\n2b3-c4d5e");
        check(
            "\u{1b}[1m1a2b3-c4d5e\u{1b}[m\nf6",
            "\u{1b}[1m1a2b3-c4d5e\u{1b}[m",
        );
        assert!(Layout::of("one\n").is_none() && Layout::of("one").is_none());
    }
}
