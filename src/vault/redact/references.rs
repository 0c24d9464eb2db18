//! The names of references in HTML: of ASCII, and of the rest of Latin-1, which PHP's `htmlentities` writes.

use super::grams::number;

/// Names of ASCII characters that are short enough for an escape. The hyphen, the dash and
/// the minus have characters of their own in HTML; who writes them means the sign.
const ASCII: &[(&[u8], char)] = &[
    (b"AMP", '&'),
    (b"GT", '>'),
    (b"Hat", '^'),
    (b"LT", '<'),
    (b"NewLine", '\n'),
    (b"QUOT", '"'),
    (b"Tab", '\t'),
    (b"UnderBar", '_'),
    (b"amp", '&'),
    (b"apos", '\''),
    (b"ast", '*'),
    (b"bsol", '\\'),
    (b"colon", ':'),
    (b"comma", ','),
    (b"commat", '@'),
    (b"dash", '-'),
    (b"dollar", '$'),
    (b"equals", '='),
    (b"excl", '!'),
    (b"grave", '`'),
    (b"gt", '>'),
    (b"hyphen", '-'),
    (b"lbrace", '{'),
    (b"lbrack", '['),
    (b"lcub", '{'),
    (b"lowbar", '_'),
    (b"lpar", '('),
    (b"lsqb", '['),
    (b"lt", '<'),
    (b"midast", '*'),
    (b"minus", '-'),
    (b"num", '#'),
    (b"percnt", '%'),
    (b"period", '.'),
    (b"plus", '+'),
    (b"quest", '?'),
    (b"quot", '"'),
    (b"rbrace", '}'),
    (b"rbrack", ']'),
    (b"rcub", '}'),
    (b"rpar", ')'),
    (b"rsqb", ']'),
    (b"semi", ';'),
    (b"sol", '/'),
    (b"verbar", '|'),
    (b"vert", '|'),
];

/// Names of the characters from U+00A1 on, in their order. Pages are full of `&nbsp;`, which is only looked at as it stands:
/// to read each takes two thirds of the speed.
const LATIN: [&[u8]; 95] = [
    b"iexcl", b"cent", b"pound", b"curren", b"yen", b"brvbar", b"sect", b"uml", b"copy", b"ordf",
    b"laquo", b"not", b"shy", b"reg", b"macr", b"deg", b"plusmn", b"sup2", b"sup3", b"acute",
    b"micro", b"para", b"middot", b"cedil", b"sup1", b"ordm", b"raquo", b"frac14", b"frac12",
    b"frac34", b"iquest", b"Agrave", b"Aacute", b"Acirc", b"Atilde", b"Auml", b"Aring", b"AElig",
    b"Ccedil", b"Egrave", b"Eacute", b"Ecirc", b"Euml", b"Igrave", b"Iacute", b"Icirc", b"Iuml",
    b"ETH", b"Ntilde", b"Ograve", b"Oacute", b"Ocirc", b"Otilde", b"Ouml", b"times", b"Oslash",
    b"Ugrave", b"Uacute", b"Ucirc", b"Uuml", b"Yacute", b"THORN", b"szlig", b"agrave", b"aacute",
    b"acirc", b"atilde", b"auml", b"aring", b"aelig", b"ccedil", b"egrave", b"eacute", b"ecirc",
    b"euml", b"igrave", b"iacute", b"icirc", b"iuml", b"eth", b"ntilde", b"ograve", b"oacute",
    b"ocirc", b"otilde", b"ouml", b"divide", b"oslash", b"ugrave", b"uacute", b"ucirc", b"uuml",
    b"yacute", b"thorn", b"yuml",
];

/// Longest name that is known, so that each of them is a number.
const MOST_NAME_BYTES: usize = 8;
/// Places in the table: three for each name.
const PLACES: usize = 512;

/// The names as numbers, each where its hash leads or in the next free place. A page has a reference for every word, so that
/// a search for its name would take longer than all the rest.
struct Names {
    keys: [u64; PLACES],
    /// All characters have a number that is a byte.
    characters: [u8; PLACES],
}

static NAMES: Names = Names::make();

impl Names {
    const fn make() -> Self {
        let mut names = Self {
            keys: [0; PLACES],
            characters: [0; PLACES],
        };
        let mut at = 0;
        while at < ASCII.len() {
            names.put(ASCII[at].0, ASCII[at].1 as u8);
            at += 1;
        }
        at = 0;
        while at < LATIN.len() {
            names.put(LATIN[at], 0xA1 + at as u8);
            at += 1;
        }
        names
    }

    const fn put(&mut self, name: &[u8], character: u8) {
        let (mut key, mut at) = (0, name.len());
        while at > 0 {
            at -= 1;
            key = key << 8 | name[at] as u64;
        }
        let mut place = hash(key);
        while self.keys[place] != 0 {
            place = (place + 1) % PLACES;
        }
        self.keys[place] = key;
        self.characters[place] = character;
    }

    #[inline]
    fn get(&self, key: u64) -> Option<char> {
        let mut place = hash(key);
        loop {
            match self.keys.get(place) {
                Some(&known) if known == key => {
                    return self.characters.get(place).copied().map(char::from);
                }
                Some(0) | None => return None,
                Some(_) => place = (place + 1) % PLACES,
            }
        }
    }
}

const fn hash(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % PLACES
}

/// Returns the character that a name stands for.
#[inline]
pub(super) fn named(name: &[u8]) -> Option<char> {
    if name.is_empty() || name.len() > MOST_NAME_BYTES {
        return None;
    }
    NAMES.get(number(name, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_ESCAPE_BYTES;

    #[test]
    fn names_stand_for_their_characters() {
        let latin = LATIN.iter().zip('\u{A1}'..='\u{FF}');
        let all = ASCII.iter().map(|(name, c)| (*name, *c));
        for (name, character) in all.chain(latin.map(|(name, c)| (*name, c))) {
            assert!(name.len() <= MOST_NAME_BYTES && name.len() + 2 <= MAX_ESCAPE_BYTES);
            assert_eq!(named(name), Some(character), "{name:?}");
        }
        for (name, expected) in [
            ("amp", Some('&')),
            ("AMP", Some('&')),
            ("bsol", Some('\\')),
            ("vert", Some('|')),
            ("nbsp", None),
            ("iexcl", Some('¡')),
            ("szlig", Some('ß')),
            ("Agrave", Some('À')),
            ("eacute", Some('é')),
            ("divide", Some('÷')),
            ("yuml", Some('ÿ')),
            ("Amp", None),
            ("UnderBars", None),
            ("alpha", None),
            ("", None),
        ] {
            assert_eq!(named(name.as_bytes()), expected, "{name}");
        }
    }
}
