//! Removes white space that only lays out the XML around a text.
//!
//! The rules are in ToolsXML. They do not apply to `xml:space="preserve"`.

use karyi_core::call::RawText;

/// Removes the layout of a script: one leading line break, trailing white space, and the common
/// indentation of all non-blank lines.
#[must_use]
pub fn script(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text).trim_end();
    let indent = common_indent(text);
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        out.push_str(
            line.strip_prefix(indent)
                .unwrap_or_else(|| line.trim_start_matches([' ', '\t'])),
        );
    }
    out
}

/// Returns the common indentation of all non-blank lines.
fn common_indent(text: &str) -> &str {
    let mut common: Option<&str> = None;
    for line in text.split('\n').filter(|line| !line.trim().is_empty()) {
        let length = line.len() - line.trim_start_matches([' ', '\t']).len();
        let indent = &line[..length];
        common = Some(match common {
            None => indent,
            Some(so_far) => shared_prefix(so_far, indent),
        });
    }
    common.unwrap_or("")
}

fn shared_prefix<'a>(left: &'a str, right: &str) -> &'a str {
    let length = left
        .bytes()
        .zip(right.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    &left[..length]
}

/// Returns a text without its frame: the first line break, and the last one with the blanks after it. `None` when one
/// of them is missing. A line break alone, with blanks after it, is the empty text.
#[must_use]
pub fn frame(text: &str) -> Option<&str> {
    let body = text.strip_prefix('\n')?.trim_end_matches([' ', '\t']);
    match body.strip_suffix('\n') {
        None if body.is_empty() => Some(body),
        inner => inner,
    }
}

/// Removes the line breaks and blanks that lay out the XML around a text, outside CDATA and in it. Returns true when
/// there was a whole frame.
#[must_use]
pub fn framed(text: &RawText) -> (&str, bool) {
    let mut inner = text.text.as_str();
    let mut is_framed = false;
    if text.verbatim {
        let Some(source) = text
            .source
            .as_deref()
            .filter(|source| source.contains("<![CDATA["))
        else {
            return (inner, false);
        };
        let section = source.trim();
        if section.starts_with("<![CDATA[") && section.ends_with("]]>") {
            let lead = source.len() - source.trim_start().len();
            let trail = source.len() - source.trim_end().len();
            let has_break =
                |blanks: Option<&str>| blanks.is_some_and(|blanks| blanks.contains('\n'));
            let starts = has_break(source.get(..lead));
            let ends = has_break(source.get(source.len() - trail..));
            let start = if starts { lead } else { 0 };
            let end = inner.len() - if ends { trail } else { 0 };
            inner = inner.get(start..end).unwrap_or_default();
            is_framed = starts && ends;
        }
    }
    match frame(inner) {
        Some(inner) => (inner, true),
        None => (inner, is_framed),
    }
}

/// Returns the text that an input types: a framed one ends with Enter, and a line break after the start tag is none.
#[must_use]
pub fn typed(text: &RawText) -> String {
    if text.verbatim && text.source.is_none() {
        return text.text.clone();
    }
    let (inner, is_framed) = framed(text);
    let inner = match is_framed {
        true => inner,
        false => inner.trim_start_matches('\n'),
    };
    let mut typed = inner.trim_start_matches('\n').to_owned();
    if is_framed && !ends_with_enter(inner) {
        typed.push('\n');
    }
    typed
}

/// Returns true when a text to type ends with a line break or its escape.
fn ends_with_enter(text: &str) -> bool {
    let before = text.strip_suffix(['n', 'r']).unwrap_or_default();
    let backslashes = before.len() - before.trim_end_matches('\\').len();
    text.ends_with('\n') || backslashes % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_lose_their_layout() {
        let check = |text, expected| assert_eq!(script(text), expected, "{text:?}");
        check("ls", "ls");
        check(
            "\n    npm install\n    npm run build\n  ",
            "npm install\nnpm run build",
        );
        check("\n  if a; then\n    b\n  fi\n", "if a; then\n  b\nfi");
        check("\n  a\n\n  b\n", "a\n\nb");
        check("\n\n  a", "\na");
        check("\n\ta\n  b", "\ta\n  b");
        check("\n  a\n \n  b", "a\n\nb");
        check("cat <<EOF\n  kept\nEOF\n", "cat <<EOF\n  kept\nEOF");
        check("   ", "");
    }

    #[test]
    fn a_frame_comes_off_only_as_a_whole() {
        let check = |text, expected| assert_eq!(frame(text), expected, "{text:?}");
        check("a", None);
        check("\na\n", Some("a"));
        check("\n  a\n  b\n    ", Some("  a\n  b"));
        check("\na", None);
        check("a\n", None);
        check("\n", Some(""));
        check("\n  ", Some(""));
        check("\n\n", Some(""));
        check("\n\na\n\n", Some("\na\n"));
    }

    fn cdata(before: &str, inside: &str, after: &str) -> RawText {
        RawText {
            text: format!("{before}{inside}{after}"),
            verbatim: true,
            source: Some(format!("{before}<![CDATA[{inside}]]>{after}")),
        }
    }

    #[test]
    fn a_frame_in_cdata_and_around_it_is_layout() {
        let check = |text: RawText, expected| assert_eq!(framed(&text), expected, "{text:?}");
        check(cdata("", "\na\n", ""), ("a", true));
        check(cdata("", "a\n", ""), ("a\n", false));
        check(cdata("\n  ", "a", "\n"), ("a", true));
        check(cdata("\n  ", "\n  a\n  ", "\n "), ("  a", true));
        check(cdata(" ", "a", " "), (" a ", false));
        check(cdata("", "", ""), ("", false));
        let preserved = RawText {
            source: None,
            ..cdata("", "\na\n", "")
        };
        check(preserved, ("\na\n", false));
    }

    #[test]
    fn a_framed_input_ends_with_one_enter() {
        let check = |text: &str, expected: &str| {
            let text = RawText {
                text: text.into(),
                verbatim: false,
                source: None,
            };
            assert_eq!(typed(&text), expected, "{text:?}");
        };
        check("y", "y");
        check("\ny\n", "y\n");
        check("\n  a\n  b\n  ", "  a\n  b\n");
        check("\ny\\n\n", "y\\n");
        check("\ny\\\\n\n", "y\\\\n\n");
        check("\ny", "y");
        check("\n\ny\n", "y\n");
        check("y\n", "y\n");
        check("\n", "\n");
        check("", "");
    }
}
