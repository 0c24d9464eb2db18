//! Decodes the bytes of a page.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::tokens::{Token, Tokens};

/// Bytes at the start of a page in which it may name its encoding; the standard takes 1,024.
const PRESCAN_BYTES: usize = 4 << 10;

/// Decodes a text by its byte order mark, else by the `charset` of its content type, else by the `<meta>` of a page,
/// else by a guess.
pub fn decode<'b>(bytes: &'b [u8], charset: Option<&str>, is_html: bool) -> Cow<'b, str> {
    let named = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let named = named.or_else(|| Encoding::for_label(charset?.as_bytes()));
    let named = named.or_else(|| if is_html { meta(bytes) } else { None });
    let encoding = named.unwrap_or_else(|| guess(bytes));
    encoding.decode(bytes).0
}

/// Returns the encoding that a page names in `<meta charset>` or `<meta http-equiv content>`.
fn meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.get(..PRESCAN_BYTES).unwrap_or(bytes);
    // What a page can name agrees with ASCII.
    let start = encoding_rs::WINDOWS_1252
        .decode_without_bom_handling(start)
        .0;
    let found = Tokens::of(&start).find_map(|token| match token {
        Token::Start(tag) if tag.name == "meta" => {
            let label = tag.attribute("charset").map(Cow::into_owned);
            let label = label.or_else(|| charset_of(&tag.attribute("content")?).map(str::to_owned));
            Encoding::for_label(label?.as_bytes())
        }
        _ => None,
    });
    // The page was just read as ASCII.
    found.map(|encoding| {
        if [UTF_16LE, UTF_16BE].contains(&encoding) {
            UTF_8
        } else {
            encoding
        }
    })
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Allow)
}

/// Returns the `charset` of a content type.
pub fn charset_of(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        name.trim().eq_ignore_ascii_case("charset").then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], charset: Option<&str>, expected: &str) {
        assert_eq!(decode(bytes, charset, true), expected, "{bytes:?}");
    }

    #[test]
    fn the_encoding_is_named_by_mark_header_or_page() {
        check(b"\xef\xbb\xbf\xc3\xa9", Some("latin1"), "é");
        check(b"\xff\xfea\0", None, "a");
        check(b"\xe9", Some("ISO-8859-1"), "é");
        check(
            b"<meta charset=windows-1251>\xef",
            None,
            "<meta charset=windows-1251>п",
        );
        let page = b"<META http-equiv=content-type content='text/html; charset=Shift_JIS'>\x93\xfa";
        check(
            page,
            None,
            "<META http-equiv=content-type content='text/html; charset=Shift_JIS'>日",
        );
        check(
            b"<meta charset=utf-16>\xc3\xa9",
            None,
            "<meta charset=utf-16>é",
        );
        check(
            b"<!-- <meta charset=latin1> -->\xc3\xa9",
            None,
            "<!-- <meta charset=latin1> -->é",
        );
    }

    #[test]
    fn the_encoding_is_guessed_where_none_is_named() {
        check("Grüße".as_bytes(), None, "Grüße");
        check("Grüße".as_bytes(), Some("no-such-charset"), "Grüße");
        check(
            &encoding_rs::WINDOWS_1252.encode("une fenêtre, déjà vu").0,
            None,
            "une fenêtre, déjà vu",
        );
        check(
            &encoding_rs::SHIFT_JIS.encode("これは日本語の文章です。").0,
            None,
            "これは日本語の文章です。",
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        check(b"a\xffb", Some("utf-8"), "a\u{fffd}b");
    }

    #[test]
    fn the_charset_stands_in_the_content_type() {
        assert_eq!(
            charset_of("text/html; a=b; Charset=\"UTF-8\""),
            Some("UTF-8")
        );
        assert_eq!(charset_of("text/html"), None);
    }
}
