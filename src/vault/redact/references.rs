//! The names of references in HTML: of ASCII, and of the rest of Latin-1, which PHP's `htmlentities` writes.

/// Names of ASCII characters that are short enough for an escape, sorted. The hyphen, the dash and
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

/// Returns the character that a name stands for.
pub(super) fn named(name: &[u8]) -> Option<char> {
    let found = ASCII.binary_search_by_key(&name, |(known, _)| *known).ok();
    if let Some((_, character)) = found.and_then(|at| ASCII.get(at)) {
        return Some(*character);
    }
    let mut latin = ('\u{A1}'..='\u{FF}').zip(LATIN);
    latin
        .find(|(_, known)| *known == name)
        .map(|(character, _)| character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_ESCAPE_BYTES;

    #[test]
    fn names_stand_for_their_characters() {
        assert!(ASCII.is_sorted_by_key(|(name, _)| *name));
        assert!(
            ASCII
                .iter()
                .all(|(name, _)| name.len() + 2 <= MAX_ESCAPE_BYTES)
        );
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
            ("alpha", None),
            ("", None),
        ] {
            assert_eq!(named(name.as_bytes()), expected, "{name}");
        }
    }
}
