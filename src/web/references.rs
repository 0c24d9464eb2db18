//! Decodes character references such as `&amp;` and `&#8364;`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Names of HTML 4, each with its character. Those of white space and of marks without a shape stand in
/// [`by_name`].
const NAMES: &str = "AElig Æ Aacute Á Acirc Â Agrave À Alpha Α Aring Å Atilde Ã Auml Ä Beta Β Ccedil Ç Chi Χ Dagger ‡ \
    Delta Δ ETH Ð Eacute É Ecirc Ê Egrave È Epsilon Ε Eta Η Euml Ë Gamma Γ Iacute Í Icirc Î Igrave Ì Iota Ι \
    Iuml Ï Kappa Κ Lambda Λ Mu Μ Ntilde Ñ Nu Ν OElig Œ Oacute Ó Ocirc Ô Ograve Ò Omega Ω Omicron Ο Oslash Ø \
    Otilde Õ Ouml Ö Phi Φ Pi Π Prime ″ Psi Ψ Rho Ρ Scaron Š Sigma Σ THORN Þ Tau Τ Theta Θ Uacute Ú Ucirc Û \
    Ugrave Ù Upsilon Υ Uuml Ü Xi Ξ Yacute Ý Yuml Ÿ Zeta Ζ aacute á acirc â acute ´ aelig æ agrave à \
    alefsym ℵ alpha α amp & and ∧ ang ∠ apos ' aring å asymp ≈ atilde ã auml ä bdquo „ beta β brvbar ¦ \
    bull • cap ∩ ccedil ç cedil ¸ cent ¢ chi χ circ ˆ clubs ♣ cong ≅ copy © crarr ↵ cup ∪ curren ¤ dArr ⇓ \
    dagger † darr ↓ deg ° delta δ diams ♦ divide ÷ eacute é ecirc ê egrave è empty ∅ epsilon ε equiv ≡ \
    eta η eth ð euml ë euro € exist ∃ fnof ƒ forall ∀ frac12 ½ frac14 ¼ frac34 ¾ frasl ⁄ gamma γ ge ≥ gt > \
    hArr ⇔ harr ↔ hearts ♥ hellip … iacute í icirc î iexcl ¡ igrave ì image ℑ infin ∞ int ∫ iota ι iquest ¿ \
    isin ∈ iuml ï kappa κ lArr ⇐ lambda λ lang 〈 laquo « larr ← lceil ⌈ ldquo “ le ≤ lfloor ⌊ lowast ∗ \
    loz ◊ lsaquo ‹ lsquo ‘ lt < macr ¯ mdash — micro µ middot · minus − mu μ nabla ∇ ndash – ne ≠ ni ∋ \
    not ¬ notin ∉ nsub ⊄ ntilde ñ nu ν oacute ó ocirc ô oelig œ ograve ò oline ‾ omega ω omicron ο oplus ⊕ \
    or ∨ ordf ª ordm º oslash ø otilde õ otimes ⊗ ouml ö para ¶ part ∂ permil ‰ perp ⊥ phi φ pi π piv ϖ \
    plusmn ± pound £ prime ′ prod ∏ prop ∝ psi ψ quot \" rArr ⇒ radic √ rang 〉 raquo » rarr → rceil ⌉ \
    rdquo ” real ℜ reg ® rfloor ⌋ rho ρ rsaquo › rsquo ’ sbquo ‚ scaron š sdot ⋅ sect § sigma σ sigmaf ς \
    sim ∼ spades ♠ sub ⊂ sube ⊆ sum ∑ sup ⊃ sup1 ¹ sup2 ² sup3 ³ supe ⊇ szlig ß tau τ there4 ∴ theta θ \
    thetasym ϑ thorn þ tilde ˜ times × trade ™ uArr ⇑ uacute ú uarr ↑ ucirc û ugrave ù uml ¨ upsih ϒ \
    upsilon υ uuml ü weierp ℘ xi ξ yacute ý yen ¥ yuml ÿ zeta ζ";

/// Longest name.
const MAX_NAME_BYTES: usize = 8;
/// Most digits of a number that a character can have.
const MAX_DIGITS: usize = 10;

static CHARACTERS: LazyLock<HashMap<&str, char>> = LazyLock::new(|| {
    let words: Vec<&str> = NAMES.split(' ').collect();
    let pairs = words.chunks_exact(2).filter_map(|pair| match pair {
        [name, character] => Some((*name, character.chars().next()?)),
        _ => None,
    });
    pairs.collect()
});

/// Returns a text with its references decoded. Unknown ones stay as they are.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', text.as_bytes()) else {
        return Cow::Borrowed(text);
    };
    let (start, mut rest) = text.split_at(first);
    let mut decoded = String::with_capacity(text.len());
    decoded.push_str(start);
    while let Some(after) = rest.strip_prefix('&') {
        match reference(after) {
            Some((character, length)) => {
                decoded.push(character);
                rest = after.get(length..).unwrap_or_default();
            }
            None => {
                decoded.push('&');
                rest = after;
            }
        }
        let next = memchr::memchr(b'&', rest.as_bytes()).unwrap_or(rest.len());
        let (plain, others) = rest.split_at(next);
        decoded.push_str(plain);
        rest = others;
    }
    Cow::Owned(decoded)
}

/// Returns the character of the reference at the start of a text, without its `&`, and the length of the reference.
fn reference(text: &str) -> Option<(char, usize)> {
    let (character, length) = match text.strip_prefix('#') {
        Some(number) => {
            let (digits, radix) = match number.strip_prefix(['x', 'X']) {
                Some(digits) => (digits, 16),
                None => (number, 10),
            };
            let count = count(digits, MAX_DIGITS, |sign| char::from(sign).is_digit(radix));
            let code = u32::from_str_radix(digits.get(..count)?, radix).ok()?;
            (by_code(code), text.len() - digits.len() + count)
        }
        None => {
            let count = count(text, MAX_NAME_BYTES, |sign| sign.is_ascii_alphanumeric());
            (by_name(text.get(..count)?)?, count)
        }
    };
    let has_end = text.as_bytes().get(length) == Some(&b';');
    // A name without its end is one only where no other letter follows, as in the query `?a=1&copy=2`.
    let is_open = matches!(
        text.as_bytes().get(length),
        Some(b'=' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9')
    );
    (has_end || !is_open).then_some((character, length + usize::from(has_end)))
}

fn count(text: &str, most: usize, is_part: impl Fn(u8) -> bool) -> usize {
    text.bytes()
        .take(most)
        .take_while(|sign| is_part(*sign))
        .count()
}

fn by_name(name: &str) -> Option<char> {
    match name {
        "nbsp" => Some('\u{a0}'),
        "shy" => Some('\u{ad}'),
        "ensp" | "emsp" | "thinsp" => Some(' '),
        "zwnj" => Some('\u{200c}'),
        "zwj" => Some('\u{200d}'),
        "lrm" => Some('\u{200e}'),
        "rlm" => Some('\u{200f}'),
        _ => CHARACTERS.get(name).copied(),
    }
}

/// Returns the character of a number; those from 128 to 159 mean Windows-1252.
fn by_code(code: u32) -> char {
    let byte = u8::try_from(code)
        .ok()
        .filter(|byte| (0x80..0xa0).contains(byte));
    let windows = byte.and_then(|byte| {
        encoding_rs::WINDOWS_1252
            .decode_without_bom_handling(&[byte])
            .0
            .chars()
            .next()
    });
    windows
        .or_else(|| char::from_u32(code).filter(|character| *character != '\0'))
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(decode(text), expected, "{text}");
    }

    #[test]
    fn references_are_characters() {
        check(
            "a &lt;b&gt; &amp;amp; &quot;c&quot; &apos;",
            "a <b> &amp; \"c\" '",
        );
        check(
            "&eacute;&Eacute;&euro;&mdash;&copy;&frac12;&hearts;&nbsp;.",
            "éÉ€—©½♥\u{a0}.",
        );
        check("&#65;&#x42;&#X43;&#8364;&#x1F600;", "ABC€😀");
        check("&amp b, &lt", "& b, <");
        check("&#65 &#x42", "A B");
        check("&#150;&#0;&#xD800;&#9999999;", "–\u{fffd}\u{fffd}\u{fffd}");
    }

    #[test]
    fn other_signs_stay() {
        check("a & b && c", "a & b && c");
        check("?a=1&copy=2&nosuch;&;", "?a=1&copy=2&nosuch;&;");
        check("&#;&#x;&#99999999999;&", "&#;&#x;&#99999999999;&");
        check("&é", "&é");
    }
}
