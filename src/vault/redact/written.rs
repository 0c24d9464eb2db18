//! How texts are written in JSON and XML, and back. What was masked meanwhile may have cut an escape
//! in two; what is left of it stays as it is.

use serde_json::Value;

/// A way to write a text.
pub(super) struct Form {
    /// Writes a text.
    pub(super) escape: fn(&str) -> String,
    /// Reads what was written.
    pub(super) unescape: fn(&str) -> String,
}

/// A string of JSON, without its quotes.
pub(super) const JSON: Form = Form {
    escape: |text| {
        let json = Value::from(text).to_string();
        json.get(1..json.len().saturating_sub(1))
            .unwrap_or_default()
            .to_owned()
    },
    unescape: from_json,
};

/// Text of an XML element.
pub(super) const XML: Form = Form {
    escape: xml,
    unescape: from_xml,
};

/// The value of an XML attribute.
pub(super) const ATTRIBUTE: Form = Form {
    escape: |text| xml(text).replace('"', "&quot;"),
    unescape: from_xml,
};

fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn from_xml(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

fn from_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let (character, length) = escape_of_json(after).unwrap_or(('\\', 0));
        plain.push(character);
        rest = after.get(length..).unwrap_or_default();
    }
    plain.push_str(rest);
    plain
}

/// Returns what stands after a backslash, and how many bytes it takes.
fn escape_of_json(after: &str) -> Option<(char, usize)> {
    let character = match after.chars().next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => {
            let code = u32::from_str_radix(after.get(1..5)?, 16).ok()?;
            return Some((char::from_u32(code)?, 5));
        }
        same @ ('"' | '\\' | '/') => same,
        _ => return None,
    };
    Some((character, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_what_it_wrote() {
        let text = "a <b> & &lt; \"q\" 'r' \\ \\n \n\t\r \u{8}\u{c}\u{1}\u{7f} \u{1F600} é";
        for form in [&JSON, &XML, &ATTRIBUTE] {
            assert_eq!((form.unescape)(&(form.escape)(text)), text);
        }
    }

    #[test]
    fn halves_of_escapes_stay() {
        assert_eq!(from_json("a\\"), "a\\");
        assert_eq!(from_json("\\u00"), "\\u00");
        assert_eq!(from_json("\\é"), "\\é");
        assert_eq!(from_xml("&l[x]t;"), "&l[x]t;");
    }
}
